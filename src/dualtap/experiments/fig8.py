"""Fig. 8: how often the iterations reach a pattern from a random start, the patterns known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import Couplings, FloatArray, HebbianCouplings, StackedCouplings
from dualtap.experiments.drawing import LEGEND, STYLES, letter, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.fig8_evidence import (
    ALPHAS,
    BESIDE,
    FEW_TEMPERATURES,
    FIGURE,
    RULES,
    SEQUENTIAL,
    SIZES,
    START_POINT,
    START_TEMPERATURES,
    STARTS,
    TEMPERATURES,
    claims,
    usual_start,
    usual_trials,
)
from dualtap.experiments.judging import wilson_bars
from dualtap.experiments.transitions import transitions
from dualtap.schemes import TAP, OpperWinther, Scheme, SequentialAMP, SequentialTAP
from dualtap.solve import Solution, join, solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DAMPING = 0.95
PATTERN = 0.7  # overlap that excludes mixtures, as in the paper
MAX_ITER = 1000
CACHE = 4_000_000
"""Bytes of patterns that products of several experiments go over, step after step."""
EXPERIMENTS = 20
"""Teachers, with a start each, that a trial advances side by side."""


def points(
    full: bool,
    *,
    rule: Sequence[str] = tuple(RULES),
    alpha: Sequence[float] = ALPHAS,
    N: Sequence[int] = SIZES,
    T: Sequence[float] = TEMPERATURES,
) -> Sequence[tuple[Parameters, int]]:
    """Return every rule, size, load and temperature, and other starts where they are compared.

    Full counts are the paper's, 1000 experiments per point, for the rules of the figure; what is
    shown beside them has 100, at one size.
    """
    grid = [
        ({"rule": r, "alpha": a, "N": n, "T": t, "start": usual_start(r)}, n_trials)
        for r in rule
        for a in alpha
        for n in N
        for t in T
        if (n_trials := _trials(full, r, a, n, t, is_default=N is SIZES and T is TEMPERATURES))
    ]
    cold = START_TEMPERATURES if full else START_TEMPERATURES[1::2]
    others = [
        ({"rule": r, **START_POINT, "T": t, "start": start}, 10 if full else 1)
        for r in FIGURE
        for start in STARTS
        for t in cold
        if r in rule and start != usual_start(r) and t in T and START_POINT["N"] in N
    ]
    return [*grid, *others]


def _trials(full: bool, rule: str, alpha: float, N: int, T: float, is_default: bool) -> int:
    """Return the number of trials at a point; none where only a full or a chosen run goes."""
    if full:
        return 50 if rule in FIGURE else 5 if N == 1000 or not is_default else 0
    few = T in FEW_TEMPERATURES or not is_default
    if rule not in SEQUENTIAL:
        return 2 if N <= 1000 else int(few)
    wanted = not is_default or (N == 1000 and (rule == "amp" or alpha == ALPHAS[0]))
    return int(few and wanted)


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Run a rule on several teachers at once, one random start each."""
    rule, alpha, N, T = (parameters[k] for k in ("rule", "alpha", "N", "T"))
    rng = np.random.default_rng(seed)
    shape = (EXPERIMENTS, max(1, round(alpha * N)), N)
    patterns = rng.choice(np.array([-1, 1], dtype=np.int8), size=shape)
    signs = rng.choice(np.array([-1, 1], dtype=np.float32), size=(EXPERIMENTS, N))
    start = np.float32(parameters["start"]) * signs
    solution = _solution(rule, patterns, start, 1 / T)
    m = solution.magnetizations
    overlaps = np.abs(np.matmul(patterns, m[:, :, None], dtype=np.float64)[:, :, 0]) / N
    found = overlaps.max(axis=1) > PATTERN
    reached = found & solution.converged
    return {
        "reached": int(reached.sum()),
        "converged": int(solution.converged.sum()),
        "overlapping": int(found.sum()),
        "experiments": EXPERIMENTS,
        "steps": float(np.median(solution.n_iter[reached])) if reached.any() else -1.0,
        "residual": _tap_residual(rule, patterns, m, reached, 1 / T),
    }


def _solution(
    rule: str, patterns: NDArray[np.int8], start: NDArray[np.float32], beta: float
) -> Solution:
    """Run the rule, experiments side by side; parallel ones as many as fit into a cache."""
    n_together = len(start)
    if rule not in SEQUENTIAL:
        n_together = max(1, CACHE // (4 * patterns[0].size))
    groups = range(0, len(start), n_together)
    return join(
        [
            solve(
                _scheme(rule, StackedCouplings(patterns[g : g + n_together]), beta),
                start[g : g + n_together],
                max_iter=MAX_ITER,
            )
            for g in groups
        ]
    )


def _scheme(rule: str, J: Couplings, beta: float) -> Scheme[Any]:
    """Return the update rule of this name."""
    if rule == "tap":
        return TAP(J, beta)
    if rule == "tap-sequential":
        return SequentialTAP(J, beta, damping=DAMPING)
    if rule == "amp":
        return SequentialAMP(J, beta, damping=DAMPING, damps="field")
    if rule == "amp-printed":
        return SequentialAMP(J, beta, damping=DAMPING, damps="magnetization")
    return OpperWinther(J, beta, printed=rule == "ow-printed")


def _tap_residual(
    rule: str,
    patterns: NDArray[np.int8],
    m: FloatArray,
    reached: NDArray[np.bool_],
    beta: float,
) -> float:
    """Return how far the rule's fixed point is from solving TAP's equations, once per trial."""
    if not reached.any():
        return -1.0
    first = int(np.argmax(reached))
    J = HebbianCouplings(patterns[first], np.float64)
    start = m[first : first + 1].astype(np.float64)
    exact_m = solve(_scheme(rule, J, beta), start, tol=1e-8, max_iter=300).magnetizations
    tap = TAP(J, beta)
    return float(tap.step(tap.init(exact_m))[1].residual[0])


def plot(results: Results) -> Figure:
    """Draw the probability of reaching a pattern: a column per rule, a row per load."""
    shown = usual_trials(results)
    loads = shown.values("alpha")
    columns = [rule for rule in FIGURE if shown.where(rule=rule)]
    if not columns:
        raise MissingTrialsError("there is no trial of a rule of the figure")
    figure = new_figure(n_panels=len(columns), width=3.1, height=2.7 * len(loads))
    axes = figure.subplots(len(loads), len(columns), sharex=True, sharey=True, squeeze=False)
    for line, alpha in zip(axes, loads, strict=True):
        for ax, rule in zip(line, columns, strict=True):
            _draw_sizes(ax, shown.where(alpha=alpha, rule=rule))
            if rule == "amp":
                _draw_beside(ax, shown.where(alpha=alpha))
            _draw_phases(ax, alpha)
        line[0].set(ylabel=f"$P_c$ at P/N = {alpha:g}")
    for ax, rule in zip(axes[0], columns, strict=True):
        ax.set_title(RULES[rule], fontsize=10)
    for ax in axes[-1]:
        ax.set(xlabel="T")
    # What is drawn beside a rule is not at every load.
    beside = [line[columns.index("amp")] for line in axes[:-1]] if "amp" in columns else []
    for ax in (*axes[-1], *beside):  # where no curve runs: beyond T_M, or below it between 0 and 1
        place = "center left" if ax in beside else "center right"
        ax.legend(**LEGEND, fontsize=6.5, loc=place, handlelength=1.5, borderaxespad=0.2)
    letter(axes)
    return figure


def _draw_sizes(ax: Axes, mine: Results) -> None:
    """Draw a curve for each size, with Wilson intervals."""
    for style, N in zip(STYLES, mine.values("N"), strict=False):
        _draw_curve(ax, mine.where(N=N), {**style, "label": f"N = {N}"})


def _draw_beside(ax: Axes, results: Results) -> None:
    """Draw the rules that the paper does not show, where there are trials of them."""
    for style, rule in zip(STYLES[4:], BESIDE, strict=False):
        mine = results.where(rule=rule)
        for N in mine.values("N")[-1:]:
            label = RULES[rule].removeprefix("AMP, sequential, ")
            _draw_curve(ax, mine.where(N=N), {**style, "label": label, "mfc": "none"})


def _draw_curve(ax: Axes, mine: Results, style: dict[str, Any]) -> None:
    T = sorted(mine.values("T"))
    n = np.array([mine.column("experiments", T=t).sum() for t in T])
    k = np.array([mine.column("reached", T=t).sum() for t in T])
    ax.errorbar(T, k / n, wilson_bars(k, n), **style, ms=4, lw=1, capsize=2)


def _draw_phases(ax: Axes, alpha: float) -> None:
    """Mark where retrieval states appear, win, and where the spin glass melts."""
    for side, (name, T) in zip(
        ("right", "left", "right"), transitions(alpha)._asdict().items(), strict=True
    ):
        ax.axvline(T, color="grey", lw=0.8, ls=":")
        ax.text(T, 1.07, f" ${name}$ ", ha=side, va="bottom", fontsize=8)
    ax.set(ylim=(-0.05, 1.18), yticks=[0, 0.5, 1])


def caption(results: Results) -> str:
    """Say what the figure shows."""
    shown = usual_trials(results)
    loads = " and ".join(f"{alpha:g}" for alpha in shown.values("alpha"))
    counts = "; ".join(
        f"{RULES[rule]}: {_counts(shown.where(rule=rule))}" for rule in shown.values("rule")
    )
    return (
        f"Fig. 8. Direct problem: probability P_c that an iteration from a random start converges "
        f"(mean change below 0.001) to a pattern (overlap above {PATTERN:g}) within {MAX_ITER} "
        f"steps or sweeps, P/N = {loads}. Experiments per point: {counts}. Each experiment has "
        f"patterns and a start of its own; |m| = 1 at the start, 0.1 for Opper–Winther. Sequential "
        f"rules have damping {DAMPING:g}; the paper prints the damping of m, which reaches no "
        f"pattern, while damping the field of AMP does; rules drawn beside it have the largest N "
        f"that they were run at. Bars are Wilson's 95 % intervals. Dotted, "
        f"by replica theory: retrieval states are stable below T_R and metastable below T_M; the "
        f"spin glass melts at T_g = 1 + √(P/N). The paper prints no P/N."
    )


def _counts(mine: Results) -> str:
    """Return the number of experiments per point at every size, as text."""
    counts = {}
    for N in mine.values("N"):
        of_size = mine.where(N=N)
        first = of_size.rows[0].parameters
        counts[N] = int(of_size.column("experiments", **first).sum())
    return ", ".join(f"{count} at N = {N}" for N, count in counts.items())


EXPERIMENT = Experiment(
    name="fig8",
    title="Probability of reaching a pattern from a random start, by rule and temperature",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
