"""Weights: where an RBM's weights and chains start, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.experiments import fig5
from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    judge,
    mean,
    mean_and_error,
    proportion,
)
from dualtap.metrics import match
from dualtap.rbm.estimator import HopfieldRBM
from dualtap.rbm.patterns import data_modes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Tiny weights take 300 updates until they matter: long enough for modes to grow apart.
UPDATES = {"patterns": 600, "tiny": 1000, "chains": 600}
FLIPPED = 0.1  # of the bits of the patterns near which learning starts
TINY = 1e-9
SMALL = 0.5  # largest singular value up to which couplings are small
KEPT = 0.95
ESTIMATES = ("pcd", "cd")


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (10,),
    M: Sequence[int] | None = None,
    beta: Sequence[float] = (2.0,),
    hidden: Sequence[int] = (15,),
    case: Sequence[str] = tuple(UPDATES),
) -> Sequence[tuple[Parameters, int]]:
    """Return the model of Fig. 5 for each case; few samples, too, where overfitting is asked."""
    return [
        (
            {"case": c, "N": n, "P": p, "beta": b, "hidden": h, "updates": UPDATES[c], "M": m},
            20 if full else 2,
        )
        for c in case
        for n in N
        for p in P
        for b in beta
        for h in hidden
        for m in M or ((100, 1000) if c == "chains" else (1000,))
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Learn from one start of the weights, or with chains started in both ways."""
    cases: dict[str, Callable[[Parameters, int], Outcome]] = {
        "patterns": _near_patterns,
        "tiny": _from_tiny,
        "chains": _both_chains,
    }
    return cases[parameters["case"]](parameters, seed)


def _near_patterns(parameters: Parameters, seed: int) -> Outcome:
    """Start at the teacher's weights with a tenth of the bits turned, and follow the units."""
    teacher, X = fig5.samples(parameters, seed)
    rng = np.random.default_rng(seed + 3)
    flips = np.where(rng.random(teacher.patterns.shape) < FLIPPED, -1, 1)
    init = np.sqrt(parameters["beta"] / parameters["N"]) * teacher.patterns * flips
    overlaps: list[float] = []

    def look(rbm: HopfieldRBM) -> None:
        overlaps.append(match(np.sign(rbm.components_), teacher.patterns).mean_overlap)

    rbm = fig5.untrained(parameters, seed).fit(X, init=init, callbacks=[look])
    kept = match(np.sign(rbm.components_), teacher.patterns)
    return {
        "update": rbm.history_.update,
        "overlap": np.array(overlaps),
        "kept": kept.n_recovered(KEPT),
        "smallest_overlap": float(kept.overlaps.min()),
    }


def _from_tiny(parameters: Parameters, seed: int) -> Outcome:
    """Start at weights so small that data modes grow apart, and compare singular vectors."""
    _, X = fig5.samples(parameters, seed)
    P, N = parameters["P"], parameters["N"]
    modes = data_modes(X, P)
    init = TINY * np.random.default_rng(seed + 3).standard_normal((parameters["hidden"], N))
    seen: list[tuple[float, float]] = []

    def look(rbm: HopfieldRBM) -> None:
        _, sigma, vectors = np.linalg.svd(rbm.components_.astype(np.float64), full_matrices=False)
        seen.append((float(sigma[0]), float(np.abs((vectors[:P] * modes).sum(axis=1)).mean())))

    rbm = fig5.untrained(parameters, seed).fit(X, init=init, callbacks=[look])
    sigma, alignment = np.array(seen).T
    is_small = sigma < SMALL
    n_last = len(sigma) // 5  # singular vectors of close values turn from look to look
    return {
        "update": rbm.history_.update,
        "sigma": sigma,
        "alignment": alignment,
        "early": float(alignment[is_small][-1]),
        "late": float(alignment[-n_last:].mean()),
    }


def _both_chains(parameters: Parameters, seed: int) -> Outcome:
    """Learn with chains that are kept, and with chains that start at the data."""
    teacher, X = fig5.samples(parameters, seed)
    held_out = teacher.sample(200, random_state=seed + 4)
    outcome: dict[str, Any] = {}
    for estimate in ESTIMATES:
        scores: list[tuple[float, float]] = []

        def look(rbm: HopfieldRBM, scores: list[tuple[float, float]] = scores) -> None:
            if rbm.n_updates_ % 20 == 0:
                scores.append((rbm.score(X[:200]), rbm.score(held_out)))

        rbm = fig5.untrained(parameters, seed, estimate=estimate)
        rbm.fit(X, teacher=teacher, callbacks=[look])
        train, test = np.array(scores).T
        outcome |= {
            f"{estimate}_train": train,
            f"{estimate}_test": test,
            f"{estimate}_gap": float(train[-1] - test[-1]),
            f"{estimate}_error": float(rbm.history_.error[-1]),
        }
    return outcome


def plot(results: Results) -> Figure:
    """Draw a panel for each case that there is."""
    panels: dict[str, Callable[[Axes, Results], None]] = {
        "patterns": _draw_overlap,
        "tiny": _draw_alignment,
        "chains": _draw_scores,
    }
    cases = results.values("case")
    figure = new_figure(n_panels=len(cases), width=4.2)
    axes = figure.subplots(1, len(cases), squeeze=False)[0]
    for ax, case in zip(axes, cases, strict=True):
        panels[case](ax, results.where(case=case))
        ax.set_xlabel("updates")
    letter(axes)
    return figure


def _draw_mean(ax: Axes, x: NDArray[Any], paths: NDArray[Any], **look: Any) -> None:
    """Draw the mean over trials with a band of its standard error."""
    average, error = mean_and_error(paths)
    (line,) = ax.plot(x, average, markevery=max(1, len(x) // 12), ms=4, lw=1.2, **look)
    ax.fill_between(x, average - error, average + error, color=line.get_color(), alpha=0.2, lw=0)


def _draw_overlap(ax: Axes, results: Results) -> None:
    update = results.rows[0].array("update")
    _draw_mean(ax, update, results.stacked("overlap"), **STYLES[0])
    ax.set(ylim=(0, 1.05), ylabel="overlap of hidden units with patterns")


def _draw_alignment(ax: Axes, results: Results) -> None:
    update = results.rows[0].array("update")
    alignment = "alignment with data modes"
    _draw_mean(ax, update, results.stacked("alignment"), label=alignment, **STYLES[0])
    _draw_mean(ax, update, results.stacked("sigma"), label="largest singular value", **STYLES[1])
    ax.axhline(SMALL, color="black", lw=0.8, ls=":")
    ax.set(ylim=(0, None), ylabel="alignment, singular value")
    ax.legend(frameon=False, fontsize=8)


def _draw_scores(ax: Axes, results: Results) -> None:
    """Draw training and held-out scores at the fewest samples, where fits differ most."""
    few = results.where(M=min(results.values("M")))
    for style, estimate in zip(STYLES, ESTIMATES, strict=False):
        for name, line in (("train", "-"), ("test", "--")):
            scores = few.stacked(f"{estimate}_{name}")
            words = {"train": "training", "test": "held-out"}[name]
            look = {**style, "linestyle": line, "label": f"{estimate.upper()}, {words}"}
            _draw_mean(ax, 20 * np.arange(scores.shape[1]), scores, **look)
    ax.set(ylabel="log pseudo-likelihood per spin")
    ax.legend(frameon=False, fontsize=8)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    few = min(results.values("M"))
    return (
        f"Weights. RBMs as in Fig. 5 (N = {p['N']}, P = {p['P']}, β = {p['beta']:g}, "
        f"{p['hidden']} hidden units, M = 1000 where nothing else is said). (a) Weights started "
        f"at those of the teacher with {FLIPPED:.0%} of the bits turned: overlap of the signs of "
        f"hidden units with the patterns, matched one to one. (b) Weights started at {TINY:g} "
        f"times normal numbers: mean |cosine| of the k-th singular vector of the weights with the "
        f"k-th of the data, k ≤ P, and the largest singular value; couplings count as small up to "
        f"{SMALL:g} (dotted). (c) Chains kept (PCD) or started at the mini-batch (CD), M = {few}: "
        f"log pseudo-likelihood per spin of training and of held-out samples. Means and standard "
        f"errors of {results.n_trials()} trials."
    )


@judge("weights.keeps")
def _keeps(results: Results) -> Evidence:
    """Measure what is left of the patterns at the end."""
    mine = results.where(case="patterns")
    P = results.only("P")
    kept = proportion(mine.column("kept") == P)
    start = mean([path[0] for path in mine.stacked("overlap")])
    end = mean([path[-1] for path in mine.stacked("overlap")])
    return Evidence(
        {"kept": kept},
        f"all {P} patterns in {kept} trials; mean overlap {start} at the start, {end} at the end",
    )


@judge("weights.early")
def _early(results: Results) -> Evidence:
    """Measure the alignment of singular vectors while couplings are small, and at the end."""
    mine = results.where(case="tiny")
    early, late = mean(mine.column("early")), mean(mine.column("late"))
    fall = mean(mine.column("early") - mine.column("late"))
    return Evidence(
        {"early": early, "fall": fall},
        f"{early} when couplings stop being small, {late} over the last fifth of "
        "learning. From weights of the usual size the first stage is too short for single modes to "
        "grow apart",
    )


@judge("weights.cd")
def _overfits(results: Results) -> Evidence:
    """Compare what training gains over held-out samples under CD and under PCD."""
    mine = results.where(case="chains")
    excess, said = [], []
    for M in mine.values("M"):
        gaps = {name: mine.column(f"{name}_gap", M=M) for name in ESTIMATES}
        excess.append(gaps["cd"] - gaps["pcd"])
        errors = {name: mean(mine.column(f"{name}_error", M=M), 2) for name in ESTIMATES}
        said.append(
            f"M = {M}: training exceeds held-out by {mean(gaps['cd'], 4)} with CD and by "
            f"{mean(gaps['pcd'], 4)} with PCD per spin, error of J at the end {errors['cd']} and "
            f"{errors['pcd']}"
        )
    return Evidence({"excess": mean(np.concatenate(excess or [[]]), 4)}, "; ".join(said))


EXPERIMENT = Experiment(
    name="weights",
    title="Where an RBM's weights and chains start",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_keeps, _early, _overfits),
)
