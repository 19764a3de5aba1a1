"""Extra 1: the naive time index in sequence and damped, where its parallel form fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualtap.couplings import DenseCouplings, FloatArray
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
from dualtap.schemes import AMP, TAP, Scheme, SequentialTAP, StepInfo
from dualtap.schemes._base import DampsOnlyM, mean_change
from dualtap.schemes.tap import TAPState
from dualtap.solve import solve
from dualtap.theory import spin_glass_temperature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RULES = {
    "parallel": "TAP, parallel",
    "damped": "TAP, parallel, damped",
    "sequential": "TAP, sequential, damped",
    "amp": "AMP, parallel",
}
MODELS = {"SK": "SK", "Hopfield": "Hopfield, P/N = 0.2"}
TEMPERATURES = {"SK": (0.5, 0.75, 1.25, 2.0, 2.75), "Hopfield": (0.5, 0.9, 1.2, 1.6, 2.5)}
ALPHA = 0.2
FREEZING = {"SK": 1.0, "Hopfield": spin_glass_temperature(ALPHA)}
DAMPING = 0.95
MAX_ITER = 1000
N_STARTS = 10
FROZEN = 0.01  # q above which a solution is not the paramagnet m = 0


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return both models at temperatures around freezing; quick ones are smaller and fewer."""
    N, n_trials = (500, 20) if full else (200, 3)
    return [
        ({"model": model, "rule": rule, "N": N, "T": T}, n_trials)
        for model, temperatures in TEMPERATURES.items()
        for rule in RULES
        for T in temperatures
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Draw one set of couplings and run one rule on it from random starts."""
    model, rule, N, T = (parameters[k] for k in ("model", "rule", "N", "T"))
    start = np.random.default_rng(seed + 1).choice([-1.0, 1.0], size=(N_STARTS, N))
    rules = _sk_rules(N, 1 / T, seed) if model == "SK" else _hopfield_rules(N, 1 / T, seed)
    damping = DAMPING if rule == "damped" else 0.0
    solution = solve(rules[rule], start, damping=damping, max_iter=MAX_ITER)
    # Another rule's small step is no proof: all are judged by the equations they share.
    residual = rules["parallel"].step(rules["parallel"].init(solution.magnetizations))[1].residual
    converged = solution.converged & (residual < 2e-3)
    frozen = np.square(solution.magnetizations).mean(axis=1) > FROZEN
    return {
        "converged": int(np.sum(converged)),
        "frozen": int(np.sum(converged & frozen)),
        "residual": float(np.median(residual)),
        "steps": float(np.median(solution.n_iter)),
    }


def _hopfield_rules(N: int, beta: float, seed: int) -> dict[str, Scheme[Any]]:
    """Return the package's rules on P = αN random patterns."""
    teacher = HopfieldModel.random(N, round(ALPHA * N), beta, random_state=seed)
    J = teacher.coupling_operator()
    return {
        "parallel": TAP(J, beta),
        "damped": TAP(J, beta),
        "sequential": SequentialTAP(J, beta, damping=DAMPING),
        "amp": AMP(J, beta),
    }


def _sk_rules(N: int, beta: float, seed: int) -> dict[str, Scheme[Any]]:
    """Return the rules of the SK model: J symmetric, Gaussian, of variance 1/N, no diagonal."""
    noise = np.random.default_rng(seed).normal(size=(N, N)) / np.sqrt(N)
    upper = np.triu(noise, 1)
    J = DenseCouplings(upper + upper.T)
    return {
        "parallel": SKTAP(J, beta),
        "damped": SKTAP(J, beta),
        "sequential": SKSequentialTAP(J, beta),
        "amp": SKAMP(J, beta),
    }


class SKAMPState(NamedTuple):
    """Magnetizations now and one step ago."""

    m: FloatArray
    m_prev: FloatArray


def _onsager(m: FloatArray, beta: float) -> FloatArray:
    """Return β²(1 - q) of every student: SK's reaction, which is not the Hopfield model's."""
    reaction: FloatArray = beta**2 * (1 - np.square(m).mean(axis=1, keepdims=True))
    return reaction


def _info(residual: FloatArray) -> StepInfo:
    """Return the diagnostics of a step without singularities and without automatic damping."""
    return StepInfo(residual, np.zeros(len(residual)), np.zeros(len(residual), dtype=np.bool_))


@dataclass(frozen=True)
class SKTAP(DampsOnlyM):
    """m' = tanh(βJm - β²(1-q)m): the naive index, all spins at once."""

    couplings: DenseCouplings
    beta: float

    def init(self, m: FloatArray) -> TAPState:
        """Start at ``m``."""
        return TAPState(m)

    def step(self, state: TAPState) -> tuple[TAPState, StepInfo]:
        """Update all spins of all students at once."""
        (m,) = state
        new = np.tanh(self.beta * self.couplings.dot(m) - _onsager(m, self.beta) * m)
        return TAPState(new), _info(mean_change(new, m))


@dataclass(frozen=True)
class SKSequentialTAP(DampsOnlyM):
    """The naive index, one spin after the other, each damped; q is that before the sweep."""

    couplings: DenseCouplings
    beta: float

    def init(self, m: FloatArray) -> TAPState:
        """Start at ``m``."""
        return TAPState(m)

    def step(self, state: TAPState) -> tuple[TAPState, StepInfo]:
        """Sweep once over all sites of all students."""
        reaction = _onsager(state.m, self.beta)[:, 0]
        m = np.array(state.m.T)  # a site's students side by side
        targets = np.empty_like(m)
        for i, row in enumerate(self.couplings.matrix):
            targets[i] = np.tanh(self.beta * (row @ m) - reaction * m[i])
            m[i] = (1 - DAMPING) * targets[i] + DAMPING * m[i]
        return TAPState(np.array(m.T)), _info(mean_change(targets.T, state.m))


@dataclass(frozen=True)
class SKAMP(DampsOnlyM):
    """m' = tanh(βJm - β²(1-q)m_prev): the index that the expansion of BP gives."""

    couplings: DenseCouplings
    beta: float

    def init(self, m: FloatArray) -> SKAMPState:
        """Start at ``m`` with nothing before it."""
        return SKAMPState(m, np.zeros_like(m))

    def step(self, state: SKAMPState) -> tuple[SKAMPState, StepInfo]:
        """Update all spins of all students at once."""
        m, m_prev = state
        new = np.tanh(self.beta * self.couplings.dot(m) - _onsager(m, self.beta) * m_prev)
        return SKAMPState(new, m), _info(mean_change(new, m))


def plot(results: Results) -> Figure:
    """Draw convergence, convergence away from m = 0, and the residual; a column a model."""
    figure = new_figure(n_panels=2, height=7.0)
    axes = figure.subplots(3, 2, sharex="col", sharey="row")
    for column, model in zip(axes.T, results.values("model"), strict=True):
        for k, (style, rule) in enumerate(zip(STYLES, RULES, strict=False)):
            # Hollow and of growing size: curves that coincide stay visible.
            look = {**style, "ms": 4 + 2 * k, "mfc": "none", "lw": 1}
            _draw_rule(column, results.where(model=model, rule=rule), look)
        for ax in column:
            ax.axvline(FREEZING[model], color="grey", lw=0.8, ls=":")
        column[0].set(title=MODELS[model], ylim=(-0.08, 1.08))
        column[1].set(ylim=(-0.08, 1.08))
        column[2].set(xlabel="T", yscale="log")
    axes[0, 0].set(ylabel="share that converges")
    axes[1, 0].set(ylabel="… and not to m = 0")
    axes[2, 0].set(ylabel="residual of TAP")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def _draw_rule(column: Sequence[Axes], mine: Results, style: dict[str, Any]) -> None:
    """Draw one rule; couplings, not starts, are what is independent."""
    T = mine.values("T")
    label = RULES[mine.rows[0].parameters["rule"]]
    for ax, name in zip(column, ("converged", "frozen"), strict=False):
        share = np.array([mine.column(name, T=t).mean() for t in T]) / N_STARTS
        error = np.sqrt(share * (1 - share) / len(mine.where(T=T[0])))
        ax.errorbar(T, share, error, **style, capsize=2, label=label)
    column[2].plot(T, [np.median(mine.column("residual", T=t)) for t in T], **style)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    N = results.rows[0].parameters["N"]
    n_sets = len(results.where(model="SK", rule="amp", T=TEMPERATURES["SK"][0]))
    return (
        f"Extra 1. TAP equations solved from random starts (|m| = 1) by the naive time index, in "
        f"parallel, in parallel with damping {DAMPING:g}, and in sequence with damping "
        f"{DAMPING:g}, and by parallel AMP. Left: SK model without field; right: Hopfield model "
        f"with P/N = {ALPHA:g}, outside retrieval. Top: share of runs that converge within "
        f"{MAX_ITER} steps (mean change below 0.001, residual of the TAP equations below 0.002); "
        f"middle: those of them with q > {FROZEN:g}; bottom: median residual. Dotted: spin-glass "
        f"temperature, 1 and 1 + √α. N = {N}, {n_sets} sets of couplings a point, {N_STARTS} "
        f"starts each; bars are binomial, a set counting once."
    )


def claims(results: Results) -> list[Claim]:
    """Answer the paper's open question, above freezing and below."""
    return [_above(results), _below(results)]


def _shares(results: Results, name: str, hot: bool) -> dict[str, dict[str, float]]:
    """Return the share of runs by model and rule above or below freezing."""
    shares: dict[str, dict[str, float]] = {}
    for model in MODELS:
        kept = [T for T in results.values("T", model=model) if (FREEZING[model] < T) == hot]
        shares[model] = {
            rule: float(
                np.mean([results.column(name, model=model, rule=rule, T=T) for T in kept])
                / N_STARTS
            )
            for rule in RULES
        }
    return shares


def _measured(shares: dict[str, dict[str, float]]) -> str:
    """Return the shares as text."""
    return "; ".join(
        f"{MODELS[model]}: " + ", ".join(f"{RULES[rule]} {share:.0%}" for rule, share in of.items())
        for model, of in shares.items()
    )


def _above(results: Results) -> Claim:
    """Judge where m = 0 is the solution: convergence is all there is to gain."""
    shares = _shares(results, "converged", hot=True)
    gained = max(of["sequential"] - of["parallel"] for of in shares.values()) > 0.1
    cured = min(of["sequential"] for of in shares.values()) >= 0.9
    verdict: Verdict = "holds with a limit" if gained else "does not hold"
    same = min(of["damped"] for of in shares.values()) >= 0.9
    return Claim(
        says="Open question: the naive index, in sequence and strongly damped, converges where its "
        "parallel form fails. Above the spin-glass temperature.",
        where="Appendix A, last paragraph",
        decided_by="share of random starts that converge",
        measured=_measured(shares)
        + (". Damping the parallel form does as well" if same and cured else ""),
        verdict="holds" if gained and cured else verdict,
    )


def _below(results: Results) -> Claim:
    """Judge where m = 0 is a solution but the wrong one."""
    converged, frozen = (_shares(results, name, hot=False) for name in ("converged", "frozen"))
    best = max(of["sequential"] for of in frozen.values())
    verdict: Verdict = "does not hold"
    if best > 0.1:
        verdict = "holds" if best >= 0.9 else "holds with a limit"
    return Claim(
        says="The same below the spin-glass temperature.",
        where="Appendix A, last paragraph",
        decided_by="share of random starts that converge to m ≠ 0: the paramagnet still solves the "
        "equations there, but is not the state",
        measured=f"converged: {_measured(converged)}. Not to m = 0: {_measured(frozen)}",
        verdict=verdict,
    )


EXPERIMENT = Experiment(
    name="extra1",
    title="The naive time index in sequence and damped, where its parallel form fails",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
