"""Fig. 2: the best solution of every round against the hidden patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtap.experiments.drawing import new_figure
from dualtap.experiments.experiment import Claim, Experiment, Outcome, Parameters, Results
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match
from dualtap.recovery import DualTAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = {"N": 1000, "P": 20, "students": 25, "M": 200, "beta": 2.0}


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return the paper's point; quick trials are fewer."""
    return [(POINT, 100 if full else 10)]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns by the published algorithm, all P' rounds."""
    N, P, n_students, M, beta = (parameters[k] for k in ("N", "P", "students", "M", "beta"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    model = DualTAP(
        P, beta=beta, n_students=n_students, n_steps=n_students, random_state=seed + 2
    ).fit(X)
    overlaps = model.history_.overlaps(teacher)
    found = match(np.sign(model.history_.magnetizations[:P]), teacher.patterns)
    return {
        "overlaps": overlaps.astype(np.float32),
        "recovered": found.n_recovered(0.97),
        "mean_overlap": found.mean_overlap,
        "largest_after": float(overlaps[P:].max()),
    }


def plot(results: Results) -> Figure:
    """Draw the first trial as a map of rounds against patterns."""
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
    complete = int(np.sum(results.column("recovered") == p["P"]))
    return (
        f"Fig. 2. Absolute overlap of the best student of each round with each teacher pattern. "
        f"N = {p['N']}, P = {p['P']}, P' = {p['students']}, M = {p['M']}, β = {p['beta']:g}; "
        f"published algorithm, γ = M/P. One trial of {len(results)}; all {p['P']} patterns are "
        f"found (overlap above 0.97) in the first {p['P']} rounds of {complete}. After them the "
        f"largest overlap is {results.column('largest_after').mean():.2f} on average."
    )


def claims(results: Results) -> list[Claim]:
    """Judge the recovery of all patterns."""
    P = results.rows[0].parameters["P"]
    complete = int(np.sum(results.column("recovered") == P))
    share: Any = complete / len(results)
    return [
        Claim(
            says="The students find all 20 patterns from 200 samples, ten a state.",
            where="Fig. 2",
            decided_by="all 20 patterns above overlap 0.97 in the first 20 rounds",
            measured=f"{complete} of {len(results)} trials; mean overlap "
            f"{results.column('mean_overlap').mean():.4f}",
            verdict="holds" if share >= 0.9 else "holds with a limit",
        )
    ]


EXPERIMENT = Experiment(
    name="fig2",
    title="Best solution of every round against the hidden patterns",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
