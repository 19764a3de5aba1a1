"""Theory 2: how fast TAP, AMP and Opper–Winther leave m = 0, predicted and simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import HebbianCouplings
from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
    Row,
)
from dualtap.experiments.judging import Evidence, claims_of, exact, judge
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP, OpperWinther, Scheme
from dualtap.theory import (
    amp_modes,
    marchenko_pastur_edges,
    opper_winther_modes,
    tap_multiplier,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHAS = (0.01, 0.1)
SCHEMES = {
    "tap": "TAP",
    "amp": "AMP",
    "ow": "Opper–Winther, corrected",
    "ow-printed": "Opper–Winther, printed",
}
PARTS = {"edge": "largest λ", "null": "λ = 0"}
NEAR_ONE = 2.0
"""Multiple of α: 1 − β below it is no longer large against α, which the analysis asks for."""
_STEPS = 10
_SMALL = 1e-20  # after ten steps of the fastest growth still far from saturation


def points(
    full: bool,
    *,
    N: Sequence[int] = (400,),
    alpha: Sequence[float] = ALPHAS,
    beta: Sequence[float] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return temperatures below the pole at β = 1, for a few loads."""
    grid = np.round(np.arange(0.1, 0.96, 0.05 if full else 0.1), 3).tolist()
    return [
        ({"N": n, "alpha": a, "beta": b}, 3 if full else 1)
        for n in N
        for a in alpha
        for b in (grid if beta is None else beta)
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Measure the factor per step for the largest eigenvector of J and one orthogonal to all."""
    n, alpha, beta = parameters["N"], parameters["alpha"], parameters["beta"]
    patterns = HopfieldModel.random(n, round(alpha * n), 1.0, random_state=seed).patterns
    values, vectors = np.linalg.eigh(patterns.T @ patterns.astype(float) / n)
    J = HebbianCouplings(patterns, dtype=np.float64)
    rules: dict[str, Scheme[Any]] = {
        "tap": TAP(J, beta),
        "amp": AMP(J, beta),
        "ow": OpperWinther(J, beta),
        "ow-printed": OpperWinther(J, beta, printed=True),
    }
    outcome: dict[str, Any] = {}
    for part, k in (("edge", -1), ("null", 0)):
        for name, rule in rules.items():
            outcome[f"{name}_{part}"] = _growth(rule, vectors[:, k], 1 if name == "tap" else 2)
            outcome[f"{name}_{part}_predicted"] = predicted(name, values[k], beta, J.alpha)
    return outcome


def predicted(scheme: str, eigenvalue: float, beta: float, alpha: float) -> float:
    """Return the largest modulus of the multipliers of a mode."""
    if scheme == "tap":
        return abs(float(tap_multiplier(eigenvalue, beta, alpha)))
    if scheme == "amp":
        return float(amp_modes(eigenvalue, beta, alpha).radius)
    printed = scheme == "ow-printed"
    return float(opper_winther_modes(eigenvalue, beta, alpha, printed=printed).radius)


def _growth(scheme: Scheme[Any], v: NDArray[np.float64], order: int) -> float:
    """Return the largest factor of the linear recursion of m·v, fitted to a few steps.

    A few only: rounding puts a trace of m into every other mode, and the fastest takes over.
    """
    state: Any = scheme.init(_SMALL * v[None])
    sizes = []
    for _ in range(_STEPS):
        state, _ = scheme.step(state)
        sizes.append(float(state.m[0] @ v))
    x = np.array(sizes)
    past = np.column_stack([x[order - 1 - k : len(x) - 1 - k] for k in range(order)])
    weight = 1 / np.abs(past).max(axis=1)
    coefficients = np.linalg.lstsq(weight[:, None] * past, weight * x[order:], rcond=1e-9)[0]
    return float(np.abs(np.roots([1.0, *-coefficients])).max())


def plot(results: Results) -> Figure:
    """Draw the size of multipliers against β: lines predicted, symbols simulated."""
    figure = new_figure(len(SCHEMES), width=3.6, height=3.8)
    axes = figure.subplots(1, len(SCHEMES), sharey=True)
    for ax, scheme in zip(axes, SCHEMES, strict=True):
        _panel(ax, results, scheme)
    axes[0].set(ylabel="factor per step")
    axes[0].legend(frameon=False, fontsize=8)
    letter(axes)
    return figure


def _panel(ax: Axes, results: Results, scheme: str) -> None:
    """Draw one iteration: a line for each load and part of the spectrum."""
    styles = iter(STYLES)
    betas = np.linspace(0.05, 0.95, 181)
    for alpha in results.values("alpha"):
        rows = results.where(alpha=alpha)
        eigenvalues = {"edge": marchenko_pastur_edges(alpha).upper, "null": 0.0}
        for part, label in PARTS.items():
            style = next(styles)
            line = [predicted(scheme, eigenvalues[part], b, alpha) for b in betas]
            look = {"color": style["color"], "linestyle": style["linestyle"]}
            ax.plot(betas, line, **look, label=f"α = {alpha:g}, {label}")
            x = [row.parameters["beta"] for row in rows]
            y = rows.column(f"{scheme}_{part}")
            ax.plot(x, y, color=style["color"], marker=style["marker"], linestyle="", ms=4)
    ax.axhline(1, color="0.5", lw=0.8)
    ax.set(xlabel="β", ylim=(0, 3))
    ax.set_title(SCHEMES[scheme], fontsize=10)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    n = results.rows[0].parameters["N"]
    return (
        "Theory 2. Factor by which one parallel step changes a small m along an eigenvector of J, "
        "for the largest eigenvalue λ and for λ = 0 (orthogonal to every pattern). Lines: "
        "linear theory at finite α = P/N for N → ∞, the larger modulus where there are two; "
        f"symbols: simulated, N = {n}, {_STEPS} steps from a size of {_SMALL:g}. Along patterns "
        "TAP reaches 1 at β = 1/(1+√α); along λ = 0 its factor is of order α until β comes as "
        "close to 1. AMP leaves m = 0 first along λ = 0, at β = 1/2 whatever α, changing sign at "
        "every step. For Opper–Winther that factor vanishes with α, too."
    )


def _largest_error(results: Results, schemes: Sequence[str]) -> float:
    """Return the largest relative difference of simulated and predicted factors."""
    errors = [
        abs(row.results[f"{scheme}_{part}"] / row.results[f"{scheme}_{part}_predicted"] - 1)
        for row in results
        for scheme in schemes
        for part in PARTS
    ]
    if not errors:
        raise MissingTrialsError("there is no trial")
    return float(max(errors))


def _far_from_one(row: Row) -> bool:
    """Tell whether 1 − β is large against α."""
    return bool(1 - row.parameters["beta"] > NEAR_ONE * row.parameters["alpha"])


@judge("theory2.amp")
def _amp_unstable(results: Results) -> Evidence:
    """Measure where AMP's modes orthogonal to the patterns grow."""
    worst = _largest_error(results, ["amp"])
    grow = [row.parameters["beta"] for row in results if row.results["amp_null"] > 1.001]
    shrink = [row.parameters["beta"] for row in results if row.results["amp_null"] <= 1.001]
    if not grow or not shrink:
        raise MissingTrialsError("there is no β on one side of 1/2")
    return Evidence(
        {"agreement": exact(worst), "grows": exact(min(grow)), "shrinks": exact(max(shrink))},
        f"grows from β = {min(grow):g} on, not up to {max(shrink):g}; largest difference of "
        f"simulated and predicted factors {worst:.1%}",
    )


@judge("theory2.tap")
def _tap_towards_patterns(results: Results) -> Evidence:
    """Compare TAP's factors along patterns and across them, at every β."""
    if not results:
        raise MissingTrialsError("there is no trial")
    behind = [row for row in results if row.results["tap_null"] >= row.results["tap_edge"]]
    near = [row for row in behind if _far_from_one(row)]
    places = "; ".join(
        f"α = {row.parameters['alpha']:g}, β = {row.parameters['beta']:g}: "
        f"{row.results['tap_null']:.3f} against {row.results['tap_edge']:.3f}"
        for row in behind
    )
    return Evidence(
        {"near": exact(len(near)), "everywhere": exact(len(behind))},
        f"along λ = 0 the factor is below that of the patterns in {len(results) - len(behind)} of "
        f"{len(results)} trials" + (f", not at {places}" if behind else ""),
    )


@judge("theory2.opper_winther")
def _opper_winther_stable(results: Results) -> Evidence:
    """Measure Opper–Winther's factors along λ = 0, as the load falls, where AMP's grow."""
    worst = _largest_error(results, ["ow", "ow-printed"])
    loads = sorted(results.values("alpha"))
    if len(loads) < 2:
        raise MissingTrialsError("there is one load only")
    judged = [
        row
        for row in results.where(alpha=loads[0])
        if row.results["amp_null"] > 1.001 and _far_from_one(row)
    ]
    if not judged:
        raise MissingTrialsError("there is no β between 1/2 and 1")
    null = {
        name: max(row.results[f"{name}_null"] for row in judged) for name in ("ow", "ow-printed")
    }
    betas = {row.parameters["beta"] for row in judged}
    falls = max(
        results.column(f"{name}_null", alpha=loads[0], beta=beta).max()
        / results.column(f"{name}_null", alpha=loads[-1], beta=beta).min()
        for name in null
        for beta in betas
    )
    amp = max(row.results["amp_null"] for row in judged)
    return Evidence(
        {
            "agreement": exact(worst),
            "null": exact(max(null.values())),
            "falls": exact(falls),
        },
        f"α = {loads[0]:g}, β = {min(betas):g} to {max(betas):g}: at most {null['ow-printed']:.3f} "
        f"as printed, {null['ow']:.3f} corrected, where AMP's reach {amp:.2f}; at most {falls:.2f} "
        f"of the factor at α = {loads[-1]:g}; simulated and predicted factors differ by at most "
        f"{worst:.1%}",
    )


EXPERIMENT = Experiment(
    name="theory2",
    title="How TAP, AMP and Opper–Winther leave m = 0",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_amp_unstable, _tap_towards_patterns, _opper_winther_stable),
)
