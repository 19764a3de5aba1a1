"""Extra 1: the naive time index in sequence and damped, where its parallel form fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dualtap.couplings import DenseCouplings, FloatArray
from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.judging import Evidence, claims_of, exact, judge, wilson_bars
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


def points(
    full: bool,
    *,
    model: Sequence[str] = tuple(MODELS),
    N: Sequence[int] | None = None,
    T: Sequence[float] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return both models at temperatures around freezing; quick ones are smaller and fewer."""
    usual, n_trials = (500, 20) if full else (200, 3)
    return [
        ({"model": kind, "rule": rule, "N": n, "T": t}, n_trials)
        for kind in model
        for rule in RULES
        for n in N or (usual,)
        for t in T or TEMPERATURES[kind]
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
    models = results.values("model")
    axes = figure.subplots(3, len(models), sharex="col", sharey="row", squeeze=False)
    for column, model in zip(axes.T, models, strict=True):
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
    letter(axes)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def _draw_rule(column: Sequence[Axes], mine: Results, style: dict[str, Any]) -> None:
    """Draw one rule; couplings, not starts, are what is independent."""
    if not mine:
        raise MissingTrialsError("every rule must have trials")
    T = mine.values("T")
    label = RULES[mine.rows[0].parameters["rule"]]
    for ax, name in zip(column, ("converged", "frozen"), strict=False):
        share = np.array([mine.column(name, T=t).mean() for t in T]) / N_STARTS
        n = np.array([len(mine.where(T=t)) for t in T])
        ax.errorbar(T, share, wilson_bars(share * n, n), **style, capsize=2, label=label)
    column[2].plot(T, [np.median(mine.column("residual", T=t)) for t in T], **style)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    N = results.rows[0].parameters["N"]
    return (
        f"Extra 1. TAP equations solved from random starts (|m| = 1) by the naive time index, in "
        f"parallel, in parallel with damping {DAMPING:g}, and in sequence with damping "
        f"{DAMPING:g}, and by parallel AMP. Left: SK model without field; right: Hopfield model "
        f"with P/N = {ALPHA:g}, outside retrieval. Top: share of runs that converge within "
        f"{MAX_ITER} steps (mean change below 0.001, residual of the TAP equations below 0.002); "
        f"middle: those of them with q > {FROZEN:g}; bottom: median residual. Dotted: spin-glass "
        f"temperature, 1 and 1 + √α. N = {N}, {results.n_trials()} sets of couplings per "
        f"point, {N_STARTS} starts each; bars are Wilson's 95 % intervals, a set counting once."
    )


def _shares(results: Results, name: str, hot: bool) -> dict[str, dict[str, float]]:
    """Return the share of runs by model and rule above or below freezing."""
    shares: dict[str, dict[str, float]] = {}
    if not results:
        raise MissingTrialsError("there is no trial")
    for model in results.values("model"):
        kept = [T for T in results.values("T", model=model) if (FREEZING[model] < T) == hot]
        if not kept:
            raise MissingTrialsError(f"there is no T on one side of freezing for {MODELS[model]}")
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


@judge("extra1.above")
def _above(results: Results) -> Evidence:
    """Measure where m = 0 is the solution: convergence is all there is to gain."""
    shares = _shares(results, "converged", hot=True)
    gained = max(of["sequential"] - of["parallel"] for of in shares.values())
    cured = min(of["sequential"] for of in shares.values())
    same = cured >= 0.9 and min(of["damped"] for of in shares.values()) >= 0.9
    return Evidence(
        {"gained": exact(gained), "cured": exact(cured)},
        f"{results.n_trials()} sets of couplings per point, {N_STARTS} starts each: "
        + _measured(shares)
        + (". Damping the parallel form does as well" if same else ""),
    )


@judge("extra1.below")
def _below(results: Results) -> Evidence:
    """Measure where m = 0 is a solution but the wrong one."""
    converged, frozen = (_shares(results, name, hot=False) for name in ("converged", "frozen"))
    return Evidence(
        {"frozen": exact(max(of["sequential"] for of in frozen.values()))},
        f"{results.n_trials()} sets of couplings per point, {N_STARTS} starts each, converged: "
        f"{_measured(converged)}. Not to m = 0: {_measured(frozen)}",
    )


EXPERIMENT = Experiment(
    name="extra1",
    title="The naive time index in sequence and damped, where its parallel form fails",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_above, _below),
)
