"""Extra 3: one pattern, and a student whose temperature is not the teacher's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtap.couplings import sample_couplings
from dualtap.experiments.drawing import STYLES, letter, new_figure, within
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    curve,
    exact,
    highest,
    judge,
    lowest,
    mean,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.hopfield import HopfieldModel
from dualtap.published.starts import spectral_student
from dualtap.schemes import TAP
from dualtap.solve import solve
from dualtap.theory import critical_samples, student_limit, student_threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEACHER = 0.6
STUDENTS = (0.3, 0.45, 0.6, 0.9, 2.0)
LOADS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0)
TOLERANCE = 1e-4
MAX_ITER = 500


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    beta: Sequence[float] = (TEACHER,),
    load: Sequence[float] = LOADS,
) -> Sequence[tuple[Parameters, int]]:
    """Return the numbers of samples; every data set is given to all students."""
    chosen = load if full or load is not LOADS else load[::2]
    return [
        ({"N": n, "beta": b, "M": round(x * n)}, 50 if full else 3)
        for n in N
        for b in beta
        for x in chosen
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Draw one data set, and run the convergence-safe iteration at every student's β."""
    N, M, beta = (parameters[k] for k in ("N", "M", "beta"))
    teacher = HopfieldModel.random(N, 1, beta, random_state=seed)
    J = sample_couplings(teacher.sample(M, random_state=seed + 1))
    spectral = spectral_student(J, np.random.default_rng(seed + 2))
    # Signs as well: a student that is too cold may be drawn to m = 0 from a smaller start.
    start = np.vstack([spectral, np.sign(spectral)])
    zeta = teacher.patterns[0].astype(np.float64)
    outcome: dict[str, Any] = {}
    for student in STUDENTS:
        solution = solve(TAP(J, student), start, damping="auto", tol=TOLERANCE, max_iter=MAX_ITER)
        best = int(np.argmax(np.vecdot(solution.magnetizations, J.dot(solution.magnetizations))))
        m = solution.magnetizations[best]
        outcome[f"soft_{student:g}"] = abs(float(m @ zeta)) / N
        outcome[f"sign_{student:g}"] = abs(float(np.sign(m) @ zeta)) / N
        outcome[f"converged_{student:g}"] = int(solution.converged[best])
    return outcome


def plot(results: Results) -> Figure:
    """Draw the overlap against M/N for every student, and its threshold against β'."""
    beta = results.only("beta")
    figure = new_figure(n_panels=2)
    overlap, threshold = figure.subplots(1, 2)
    for style, student in zip(STYLES, STUDENTS, strict=False):
        _draw_student(overlap, results, student, style)
        threshold.plot(student, student_threshold(beta, student), **{**style, "linestyle": ""})
    overlap.set(xlabel="M/N", ylabel="m·ζ/N", ylim=(-0.03, 1.03))
    overlap.legend(frameon=False, fontsize=8)
    grid = np.geomspace(0.2, 4, 60)
    threshold.plot(grid, [student_threshold(beta, b) for b in grid], color="black", lw=1)
    threshold.axhline(critical_samples(beta, 1), color="grey", lw=0.8, ls=":")
    threshold.axvline(beta, color="grey", lw=0.8, ls=":")
    ticks = (0.25, 0.5, 1, 2, 4)
    threshold.set(xlabel="β' of the student", ylabel="M/N at its threshold", xscale="log")
    threshold.set(ylim=(0, None), xticks=ticks, xticklabels=[f"{tick:g}" for tick in ticks])
    threshold.minorticks_off()
    letter([overlap, threshold])
    return figure


def _draw_student(ax: Axes, results: Results, student: float, style: dict[str, Any]) -> None:
    """Draw one student: a line by theory, symbols simulated."""
    beta, N = results.only("beta"), results.only("N")
    M, y, error = curve(results, f"soft_{student:g}")
    grid = np.linspace(0.02, M.max() / N, 40)
    limits = [student_limit(beta, student, alpha).magnetization for alpha in grid]
    ax.plot(grid, limits, color=style["color"], linestyle=style["linestyle"], lw=1)
    look = {"color": style["color"], "marker": style["marker"], "linestyle": "", "ms": 4}
    ax.errorbar(M / N, y, within(y, error), capsize=2, label=f"β' = {student:g}", **look)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    beta = results.only("beta")
    return (
        f"Extra 3. One pattern, samples drawn at β = {beta:g}, students at β'. (a) Overlap m·ζ/N "
        f"against M/N; lines: state evolution, replica symmetric; symbols: TAP from the leading "
        f"eigenvector and from its signs, the better one, damped against oscillations, "
        f"mean change below {TOLERANCE:g} or {MAX_ITER} steps, N = {results.only('N')}, "
        f"{results.n_trials()} data sets per point, bars are standard errors. (b) Samples "
        f"per spin from which on a student finds the pattern: (1/β − 1)(1/β' − 1) for β' ≤ β; "
        f"above, where a spin glass comes first, replica symmetric. Dotted: the Bayes limit "
        f"(1/β − 1)² and β' = β."
    )


def _judged(results: Results, lowest_share: float, highest_share: float, students: Sequence[float]
            ) -> list[tuple[float, int]]:  # fmt: skip
    """Return students and M with M within these multiples of the student's threshold."""
    beta, N = results.only("beta"), results.only("N")
    chosen = [
        (student, M)
        for student in students
        for M in results.values("M")
        if lowest_share <= M / N / student_threshold(beta, student) <= highest_share
    ]
    if not chosen:
        raise MissingTrialsError("there is no M on one side of a threshold")
    return chosen


def _soft(results: Results, student: float, M: int) -> Estimate:
    return mean(results.column(f"soft_{student:g}", M=M))


@judge("extra3.curves")
def _curves(results: Results) -> Evidence:
    """Measure how far the simulated means are from state evolution."""
    beta, N = results.only("beta"), results.only("N")
    found = {}
    for student, M in _judged(results, 2.0, np.inf, STUDENTS):
        simulated = _soft(results, student, M)
        theory = student_limit(beta, student, M / N).magnetization
        text = f"{simulated} against {theory:.3f} at β' = {student:g}, M = {M}"
        distance = abs(simulated.value - theory)
        error = simulated.high - simulated.value
        found[student, M] = Estimate(distance, max(0.0, distance - error), distance + error, text)
    worst = highest(found)
    return Evidence({"distance": worst}, f"{worst.value:.3f}, of {len(found)} points: {worst.text}")


@judge("extra3.hot")
def _hot(results: Results) -> Evidence:
    """Measure students that are too hot on both sides of their threshold."""
    hot = [b for b in STUDENTS if b < results.only("beta")]
    below = {x: _soft(results, *x) for x in _judged(results, 0.0, 0.75, hot)}
    above = {x: _soft(results, *x) for x in _judged(results, 1.25, np.inf, hot)}
    return Evidence(
        {"below": highest(below), "above": lowest(above)},
        f"{highest(below)} below at the most, {lowest(above)} above at the least, β' = "
        + ", ".join(f"{b:g} (threshold {student_threshold(results.only('beta'), b):.2f} N)"
                    for b in hot),
    )  # fmt: skip


@judge("extra3.best")
def _best(results: Results) -> Evidence:
    """Measure what other students gain over the one at the teacher's β."""
    beta, N = results.only("beta"), results.only("N")
    if beta not in STUDENTS:
        raise MissingTrialsError(f"there is no student at the teacher's β = {beta:g}")
    gains = {}
    for student in STUDENTS:
        for M in results.values("M"):
            if student != beta and student_threshold(beta, beta) <= M / N:
                same = results.column(f"sign_{beta:g}", M=M)
                gains[student, M] = mean(results.column(f"sign_{student:g}", M=M) - same)
    best = highest(gains)
    (student, M), _ = max(gains.items(), key=lambda item: item[1])
    costs = {b: exact(min(g.value for (s, _), g in gains.items() if s == b)) for b, _ in gains}
    return Evidence(
        {"gain": best},
        f"{best} at β' = {student:g}, M = {M}; largest loss "
        + ", ".join(f"{-cost.value:.3f} at β' = {b:g}" for b, cost in costs.items()),
    )


EXPERIMENT = Experiment(
    name="extra3",
    title="A student whose temperature is not the teacher's",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_curves, _hot, _best),
)
