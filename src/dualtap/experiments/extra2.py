"""Extra 2: parallel AMP on the dual problem, and the λ_max > 2 that the appendix asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import HebbianCouplings
from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import (
    Claim,
    Experiment,
    Outcome,
    Parameters,
    Results,
    Verdict,
)
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import overlaps
from dualtap.schemes import AMP, TAP, Scheme
from dualtap.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BETAS = (0.5, 0.6, 0.7, 0.8, 0.9)
MULTIPLES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
MAX_LOAD = 3.0  # samples a spin: beyond it every rule succeeds and sampling takes all the time
N_STARTS = 10
MAX_ITER = 300
CHANCE = 5.0  # standard deviations, 1/√N each, that an overlap must exceed


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return M = multiples of M_c = N (1/β - 1)² at every β; quick ones are smaller and fewer."""
    N, n_trials = (1000, 50) if full else (500, 4)
    loads = [(beta, x * (1 / beta - 1) ** 2) for beta in BETAS for x in MULTIPLES]
    return [
        ({"N": N, "beta": beta, "M": max(2, round(N * load))}, n_trials)
        for beta, load in loads
        if load <= MAX_LOAD
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Draw one data set, and run AMP and TAP on it from the same random starts."""
    N, M, beta = (parameters[k] for k in ("N", "M", "beta"))
    teacher = HopfieldModel.random(N, 1, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    J = HebbianCouplings(X, np.float64)
    start = np.random.default_rng(seed + 2).choice([-1.0, 1.0], size=(N_STARTS, N))
    _, singular, modes = np.linalg.svd(J.vectors, full_matrices=False)
    spectral = abs(overlaps(np.sign(modes[:1]), teacher.patterns)[0, 0])
    rules: dict[str, Scheme[Any]] = {"amp": AMP(J, beta), "tap": TAP(J, beta)}
    outcome: dict[str, Any] = {"lambda_max": singular[0] ** 2 / N, "spectral": spectral}
    for name, rule in rules.items():
        solution = solve(rule, start, max_iter=MAX_ITER)
        found = np.abs(overlaps(np.sign(solution.magnetizations), teacher.patterns)[:, 0])
        above_chance = found > CHANCE / np.sqrt(N)
        outcome[f"{name}_success"] = int(np.sum(solution.converged & above_chance))
        outcome[f"{name}_converged"] = int(np.sum(solution.converged))
        outcome[f"{name}_overlap"] = float(found.mean())
    return outcome


def plot(results: Results) -> Figure:
    """Draw the success of AMP and of TAP against λ_max."""
    figure = new_figure(n_panels=2)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, name in zip(axes, ("amp", "tap"), strict=True):
        for style, beta in zip(STYLES, results.values("beta"), strict=False):
            _draw_success(ax, name, results.where(beta=beta), {**style, "label": f"β = {beta:g}"})
        ax.axvline(2, color="black", lw=1, ls=":")
        ax.set(title=f"{name.upper()}, parallel", xscale="log", xlabel="λ_max of J")
        ax.set(ylim=(-0.05, 1.08), xticks=[1, 2, 4, 8, 16], xticklabels=["1", "2", "4", "8", "16"])
        ax.minorticks_off()
    axes[0].set(ylabel="share of starts that find the pattern")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _draw_success(ax: Axes, name: str, mine: Results, style: dict[str, Any]) -> None:
    """Draw one β with binomial errors; data sets, not starts, are what is independent."""
    loads = mine.values("M")
    lambdas = [mine.column("lambda_max", M=M).mean() for M in loads]
    share = np.array([mine.column(f"{name}_success", M=M).mean() for M in loads]) / N_STARTS
    n_sets = len(mine.where(M=loads[0]))
    error = np.sqrt(share * (1 - share) / n_sets)
    ax.errorbar(lambdas, share, error, **style, ms=4, lw=1, capsize=2)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    N = results.rows[0].parameters["N"]
    n_sets = len(results) // len({(r.parameters["beta"], r.parameters["M"]) for r in results})
    return (
        f"Extra 2. The dual problem, P = 1, N = {N}, M from {MULTIPLES[0]:g} to {MULTIPLES[-1]:g} "
        f"M_c with M_c = N(1/β - 1)², M at most {MAX_LOAD:g} N. Share of random starts (|m| = 1) "
        f"that converge (mean change below 0.001 within {MAX_ITER} steps) with a sign overlap "
        f"above {CHANCE:g}/√N = {CHANCE / np.sqrt(N):.2f}, against the mean largest eigenvalue of "
        f"J = SᵀS/N; left parallel AMP, right parallel TAP on the same data and starts; dotted: "
        f"λ_max = 2. {n_sets} data sets a point, {N_STARTS} starts each; bars are binomial, a data "
        f"set counting once."
    )


def claims(results: Results) -> list[Claim]:
    """Judge whether λ_max > 2, with enough signal, is what AMP needs."""
    N = results.rows[0].parameters["N"]
    beta, M = (np.array([row.parameters[k] for row in results]) for k in ("beta", "M"))
    above = results.column("lambda_max") > 2
    # 1.9, not 2: M is a whole number, and rounding may leave 2 M_c just short of itself.
    signal = 1.9 * N * (1 / beta - 1) ** 2 <= M
    both, small, poor = (
        _share(results, chosen) for chosen in (above & signal, ~above & signal, above & ~signal)
    )
    tap = results.column("tap_success")[~above & signal].mean() / N_STARTS
    enough, needed = both >= 0.9, small <= 0.1
    verdict: Verdict = "does not hold"
    if enough:
        verdict = "holds" if needed else "holds with a limit"
    return [
        Claim(
            says="On the dual problem parallel AMP infers the pattern when the data carry enough "
            "signal and λ_max > 2.",
            where="Appendix A, last paragraphs",
            decided_by=f"P = 1, N = {N}: starts that converge with overlap above {CHANCE:g}/√N, on "
            "data sets with M ≥ 2 M_c, by λ_max",
            measured=f"λ_max > 2: {both:.1%}; λ_max ≤ 2: {small:.1%} (TAP there {tap:.1%}); "
            f"λ_max > 2 but M < 2 M_c: {poor:.1%}: without any signal the bulk of J alone reaches "
            "(1 + √α)², above 2 from M/N = 0.17 on",
            verdict=verdict,
        )
    ]


def _share(results: Results, chosen: NDArray[np.bool_]) -> float:
    """Return the share of AMP's starts that succeed in the chosen rows."""
    return float(results.column("amp_success")[chosen].mean() / N_STARTS)


EXPERIMENT = Experiment(
    name="extra2",
    title="Parallel AMP on the dual problem against the largest eigenvalue",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
