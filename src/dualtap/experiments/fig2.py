"""Fig. 2: the best solution of every round against the hidden patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualtap.experiments.drawing import new_figure
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import Evidence, claims_of, judge, mean, proportion
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match
from dualtap.published import DualTAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOUND = 0.97  # overlap of a pattern that is found


def students_for(n_patterns: int) -> int:
    """Return P', the students per round: the paper's 25, or a quarter more than the patterns."""
    return max(25, -(-5 * n_patterns // 4))


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (20,),
    M: Sequence[int] = (200,),
    beta: Sequence[float] = (2.0,),
    students: Sequence[int] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return the paper's point; quick trials are fewer."""
    return [
        ({"N": n, "P": p, "students": s, "M": m, "beta": b}, 100 if full else 20)
        for n in N
        for p in P
        for s in students or (students_for(p),)
        for m in M
        for b in beta
    ]


def all_rounds(parameters: Parameters, seed: int) -> tuple[HopfieldModel, DualTAP]:
    """Return a teacher, and the published algorithm fitted to its samples in all P' rounds."""
    N, P, n_students, M, beta = (parameters[k] for k in ("N", "P", "students", "M", "beta"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    model = DualTAP(P, beta=beta, n_students=n_students, n_steps=n_students, random_state=seed + 2)
    return teacher, model.fit(X)


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns and compare every round with the teacher."""
    teacher, model = all_rounds(parameters, seed)
    P = parameters["P"]
    overlaps = model.history_.overlaps(teacher)
    found = match(np.sign(model.history_.magnetizations[:P]), teacher.patterns)
    return {
        "overlaps": overlaps.astype(np.float32),
        "recovered": found.n_recovered(FOUND),
        "mean_overlap": found.mean_overlap,
        "largest_after": float(overlaps[P:].max()) if len(overlaps) > P else 0.0,
    }


def plot(results: Results) -> Figure:
    """Draw the first trial as a map of rounds against patterns."""
    for name in ("N", "P", "students", "M", "beta"):
        results.only(name)
    o = results.rows[0].array("overlaps")
    order = np.argsort(np.argmax(o, axis=0), kind="stable")
    n_rounds, n_patterns = o.shape
    figure = new_figure(width=5.2, height=4.0)
    ax = figure.subplots()
    image = ax.imshow(
        o[:, order].T,
        origin="lower",
        aspect="auto",
        vmin=0,
        vmax=1,
        cmap="Greys",
        extent=(0.5, n_rounds + 0.5, 0.5, n_patterns + 0.5),
    )
    figure.colorbar(image, ax=ax, label="absolute overlap")
    ax.axvline(n_patterns + 0.5, color="black", lw=1, ls=":")
    ax.locator_params(integer=True)
    ax.set(xlabel="round τ", ylabel="hidden pattern, in order of discovery")
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    complete = proportion(results.column("recovered", **p) == p["P"])
    return (
        f"Fig. 2. Absolute overlap of the best student of each round with each teacher pattern. "
        f"N = {p['N']}, P = {p['P']}, P' = {p['students']}, M = {p['M']}, β = {p['beta']:g}; "
        f"published algorithm, γ = M/P. One trial is drawn. All {p['P']} patterns are found "
        f"(overlap above {FOUND:g}) in the first {p['P']} rounds of {complete} trials. After them "
        f"the largest overlap is {mean(results.column('largest_after', **p), 2)}."
    )


@judge("fig2.all")
def _all_found(results: Results) -> Evidence:
    """Count the trials that find every pattern."""
    P = results.only("P")
    results.only("M")
    complete = proportion(results.column("recovered") == P)
    overlap = mean(results.column("mean_overlap"), 4)
    return Evidence({"complete": complete}, f"{complete} trials; mean overlap {overlap}")


EXPERIMENT = Experiment(
    name="fig2",
    title="Best solution of every round against the hidden patterns",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_all_found),
)
