"""Fig. 3: error of the couplings and simplified likelihood, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.fig2 import FOUND, all_rounds, students_for
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    exact,
    judge,
    listed,
    lowest,
    mean,
    mean_and_error,
    proportion,
)
from dualtap.metrics import coupling_error, match
from dualtap.published.stopping import kink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (20,),
    M: Sequence[int] = (100, 200, 500, 1000),
    beta: Sequence[float] = (2.0,),
    students: Sequence[int] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return the paper's four numbers of samples; quick trials are fewer."""
    return [
        ({"N": n, "P": p, "students": s, "beta": b, "M": m}, 100 if full else 10)
        for n in N
        for p in P
        for s in students or (students_for(p),)
        for b in beta
        for m in M
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns by the published algorithm, all P' rounds."""
    teacher, model = all_rounds(parameters, seed)
    history = model.history_
    soft = coupling_error(model.magnetizations_, teacher.patterns)
    return {
        "errors": history.coupling_errors(teacher),
        "likelihood": history.likelihood,
        "error": soft.relative,
        "error_printed": soft.printed,
        "error_signs": coupling_error(model.patterns_, teacher.patterns).relative,
        "recovered": match(model.patterns_, teacher.patterns).n_recovered(FOUND),
        # 0 stands for no kink: JSON keeps one type per column.
        "kink_gains": kink(history.gains) or 0,
        "kink_likelihood": kink(np.diff(history.likelihood, prepend=0.0)) or 0,
        "gains": history.gains,
    }


def _checked(results: Results) -> Results:
    """Return results that differ in M alone; raise if they do in anything else."""
    for name in ("N", "P", "students", "beta"):
        results.only(name)
    return results


def _scaled_likelihood(results: Results, M: int) -> NDArray[np.float64]:
    """Return 2 L̂/(NM): squared overlaps with the students, summed, in the mean over samples."""
    scaled: NDArray[np.float64] = 2 * results.stacked("likelihood", M=M) / (results.only("N") * M)
    return scaled


def _scaled_gains(results: Results, M: int) -> NDArray[np.float64]:
    """Return the gains ½ m·J^τ m on the same scale as L̂."""
    scaled: NDArray[np.float64] = 2 * results.stacked("gains", M=M) / (results.only("N") * M)
    return scaled


def _pairs(results: Results) -> float:
    """Return N(N-1)/2, the factor between the relative error and the printed ε."""
    n_spins: int = results.only("N")
    return n_spins * (n_spins - 1) / 2


def plot(results: Results) -> Figure:
    """Draw against the round: the error, the scaled likelihood, its increments and the gains."""
    figure = new_figure(3, width=4.4)
    axes = figure.subplots(1, 3)
    for M, style in zip(_checked(results).values("M"), STYLES, strict=False):
        look = {**style, "ms": 3.5, "lw": 1.2, "capsize": 2, "label": f"M = {M}"}
        likelihood = _scaled_likelihood(results, M)
        steps = np.diff(likelihood, axis=1, prepend=0.0)
        for ax, paths in zip(
            axes, (results.stacked("errors", M=M), likelihood, steps), strict=True
        ):
            _errorbar(ax, paths, look)
        hollow = {"markerfacecolor": "none", "ms": 6, "lw": 0.8, "label": None}
        _errorbar(axes[2], _scaled_gains(results, M), look | hollow)
    P, pairs = results.only("P"), _pairs(results)
    for ax in axes:
        ax.axvline(P, color="black", lw=0.8, ls=":")
        ax.set_xlabel("round τ")
    left, middle, right = axes
    # On a linear scale the M differ in one point only, the one that matters.
    left.set(yscale="log", ylabel="relative error of J", yticks=(0.05, 0.1, 0.2, 0.5, 1))
    left.set_yticklabels(["0.05", "0.1", "0.2", "0.5", "1"])
    left.minorticks_off()
    middle.set(ylim=(0, None), ylabel="2 L̂ / (N M)")
    right.set(ylim=(0, None), ylabel="added by round τ: to L̂; rings: gains")
    printed = left.secondary_yaxis("right", functions=(lambda e: e / pairs, lambda e: e * pairs))
    printed.set_ylabel("ε as printed")
    left.legend(frameon=False, fontsize=8, loc="lower left")
    letter(axes)
    return figure


def _errorbar(ax: Axes, paths: NDArray[np.float64], look: dict[str, Any]) -> None:
    """Draw the mean over trials against the round, with standard errors."""
    average, error = mean_and_error(paths)
    ax.errorbar(np.arange(1, len(average) + 1), average, error, **look)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    counts = ", ".join(str(M) for M in results.values("M"))
    errors = listed({M: mean(results.column("error", M=M)) for M in results.values("M")}, "M = {}")
    return (
        f"Fig. 3. (a) Relative error of the couplings rebuilt from the first τ rounds; the "
        f"paper's ε is this over N(N−1)/2 (right scale). (b) Simplified likelihood L̂ over NM/2. "
        f"(c) What each round adds to it, filled, and the gain ½ m·J^τ m on the deflated J, "
        f"rings, both over NM/2. N = {p['N']}, P = {p['P']} (dotted line), P' = {p['students']}, "
        f"β = {p['beta']:g}, M = {counts}; published algorithm, γ = M/P. Means of "
        f"{results.n_trials()} trials for each M, with standard errors. Relative error after "
        f"{p['P']} rounds: {errors}."
    )


@judge("fig3.turn")
def _turn(results: Results) -> Evidence:
    """Measure how often the error is smallest after round P."""
    P = _checked(results).only("P")
    found = {
        M: proportion(np.argmin(results.stacked("errors", M=M), axis=1) + 1 == P)
        for M in results.values("M")
    }
    return Evidence({"lowest": lowest(found)}, listed(found, "M = {}"))


@judge("fig3.zero")
def _zero(results: Results) -> Evidence:
    """Measure the error at every M, and how many trials find all patterns."""
    counts = sorted(_checked(results).values("M"))
    P = results.only("P")
    soft = {M: mean(results.column("error", M=M)) for M in counts}
    if len(counts) < 2:
        raise MissingTrialsError("one M alone does not show a fall with M")
    # Neighbours may lie closer than trials can tell: a rise counts beyond the errors of both.
    rise = max(soft[b].low - soft[a].high for a, b in pairwise(counts))
    last = max(counts)
    complete = {M: proportion(results.column("recovered", M=M) == P) for M in counts}
    return Evidence(
        {"rise": exact(rise), "last": soft[last]},
        f"{listed(soft, 'M = {}')}; with signs "
        f"{mean(results.column('error_signs', M=last))} at the last. All patterns above overlap "
        f"{FOUND:g}: {listed(complete, 'M = {}')}. The printed ε is "
        f"{results.column('error_printed', M=last).mean():.1e} at the last: zero on any axis, but "
        f"so is the {1 / _pairs(results):.1e} of J = 0",
    )


@judge("fig3.collapse")
def _collapse(results: Results) -> Evidence:
    """Measure how much the scaled likelihood depends on M."""
    counts = _checked(results).values("M")
    curves = np.array([_scaled_likelihood(results, M).mean(axis=0) for M in counts])
    P = results.only("P")
    spread = np.ptp(curves, axis=0) / curves.mean(axis=0)
    if len(counts) < 2 or len(spread) <= P:
        raise MissingTrialsError("this takes two M and rounds after the last pattern")
    before, after = exact(spread[:P].max()), exact(spread[P:].max())
    return Evidence(
        {"before": before, "after": after}, f"{before} up to round {P}, {after} after it"
    )


@judge("fig3.kink")
def _kinks(results: Results) -> Evidence:
    """Measure both kinks: of L̂ itself, and of what deflation leaves to be gained."""
    P = _checked(results).only("P")
    shares = {
        name: {M: proportion(results.column(f"kink_{name}", M=M) == P) for M in results.values("M")}
        for name in ("likelihood", "gains")
    }
    return Evidence(
        {name: lowest(of) for name, of in shares.items()},
        f"L̂ itself: {listed(shares['likelihood'], 'M = {}')}; gains: "
        f"{listed(shares['gains'], 'M = {}')}. The gains stop the algorithm: an increment of L̂ "
        "counts again what earlier rounds have explained, so that a student of noise, which "
        "overlaps with found patterns, adds to L̂ but gains little",
    )


EXPERIMENT = Experiment(
    name="fig3",
    title="Error of the couplings and simplified likelihood, round by round",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_turn, _zero, _collapse, _kinks),
)
