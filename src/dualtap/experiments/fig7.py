"""Fig. 7: trajectories of TAP and parallel AMP in the direct problem with one pattern."""

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
    Row,
    Verdict,
)
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP
from dualtap.schemes._base import SINGULARITY
from dualtap.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINT = {"N": 1000, "P": 1, "iterations": 300}
SHOWN = (0.4, 0.7, 1.5)
BESIDE = (0.45, 0.55, 0.95, 1.05)  # on both sides of 1/2 and 1, for the claims
SCHEMES: dict[str, Any] = {"TAP": TAP, "AMP": AMP}
DRAWN_STEPS, DRAWN_SPINS = 80, 30
SETTLED = 5
AWAY = 0.1
GROWTH = 3
STILL = 1e-3
RETRIEVED, ACROSS = 0.7, 0.2


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return the temperatures that are drawn and those next to the thresholds."""
    return [(POINT | {"beta": beta}, 100 if full else 5) for beta in sorted(SHOWN + BESIDE)]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Follow both schemes from one random start of spins ±1, in float64."""
    N, P, beta = (parameters[k] for k in ("N", "P", "beta"))
    pattern = HopfieldModel.random(N, P, beta, random_state=seed).patterns.astype(np.float64)
    start = np.random.default_rng(seed + 1).choice([-1.0, 1.0], size=(1, N))
    couplings = HebbianCouplings(pattern, dtype=np.float64)
    # Of ζ and -ζ, which are alike, the one that the start leans to.
    towards = pattern[0] * (1 if start[0] @ pattern[0] >= 0 else -1)
    outcome: dict[str, Any] = {"start_overlap": float(start[0] @ towards) / N}
    for name, scheme in SCHEMES.items():
        path = solve(
            scheme(couplings, beta), start, tol=0.0, max_iter=parameters["iterations"], record=True
        ).trajectory
        assert path is not None
        outcome |= {f"{name}_{k}": v for k, v in _followed(path[:, 0] * towards).items()}
    return outcome


def _followed(m: NDArray[Any]) -> dict[str, Any]:
    """Return what a trajectory did, spins being turned along the pattern."""
    size = np.sqrt(np.square(m).mean(axis=1))
    overlap = m.mean(axis=1)
    away = size > AWAY
    away[:SETTLED] = False  # the start itself is forgotten in the first steps
    end = int(np.argmax(away)) if away.any() else len(m) - 1
    turns = np.einsum("ti,ti->t", m[end - GROWTH : end], m[end - GROWTH + 1 : end + 1]) < 0
    return {
        "spins": m[: DRAWN_STEPS + 1, :DRAWN_SPINS].astype(np.float32),
        "overlap": overlap[: DRAWN_STEPS + 1],
        "size": size[: DRAWN_STEPS + 1],
        "left": int(away.any()),
        "cosine": float(abs(overlap[end]) / size[end]) if away.any() else 0.0,
        "turns": float(turns.mean()),
        "last_overlap": float(abs(overlap[-1])),
        "at_rest": int(size[-1] > AWAY and np.abs(m[-1] - m[-2]).mean() < STILL),
    }


def plot(results: Results) -> Figure:
    """Draw the first trial at three temperatures: TAP above, AMP below."""
    figure = new_figure(n_panels=3, width=3.4, height=5.2)
    axes = figure.subplots(len(SCHEMES), len(SHOWN), sharex=True, sharey=True)
    for line, name in zip(axes, SCHEMES, strict=True):
        for ax, beta in zip(line, SHOWN, strict=True):
            _panel(ax, results.where(beta=beta).rows[0], name)
            ax.set_title(f"{name}, β = {beta:g}")
        line[0].set_ylabel("m along the pattern")
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
    axes[0, 0].legend(frameon=False)
    return figure


def _panel(ax: Axes, row: Row, name: str) -> None:
    """Draw single spins, their mean and their root mean square."""
    spins = ax.plot(row.array(f"{name}_spins"), color="0.6", lw=0.5)
    spins[0].set_label("single spins")
    often: dict[str, Any] = {"markersize": 4, "markevery": 8}
    ax.plot(row.array(f"{name}_overlap"), label="overlap", **STYLES[0], **often)
    ax.plot(row.array(f"{name}_size"), label=r"$\sqrt{q}$", **STYLES[1], **often)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    n_trials = len(results) // len(results.values("beta"))
    betas = ", ".join(f"{beta:g}" for beta in SHOWN)
    return (
        f"Fig. 7. Trajectories of TAP (naive index) and of parallel AMP in the direct problem. "
        f"N = {p['N']}, P = {p['P']}, β = {betas} (the paper does not print its three values); "
        f"no damping, float64, one random start with |m| = 1 for both. Grey: {DRAWN_SPINS} of the "
        f"spins, turned so that the pattern is +1; circles: overlap with the pattern; squares: "
        f"root of the mean square magnetization. First {DRAWN_STEPS} of {p['iterations']} "
        f"iterations, one trial of {n_trials} for each β. AMP takes some dozens of steps to leave "
        f"m = 0 because |m| = 1 starts it almost exactly on its stable multiplier -αβ/(1-β); the "
        f"unstable one is -β/(1-β)."
    )


def claims(results: Results) -> list[Claim]:
    """Judge where each scheme leaves m = 0, how, and where to."""
    return [_tap_leaves(results), _amp_leaves(results), _amp_oscillates(results)]


def _share(results: Results, column: str, betas: Sequence[float]) -> float:
    """Return the mean of a result over all trials at these temperatures."""
    return float(np.mean([results.column(column, beta=beta).mean() for beta in betas]))


def _sides(results: Results, threshold: float) -> tuple[list[float], list[float]]:
    """Return the inverse temperatures below and above a threshold."""
    betas = results.values("beta")
    return [b for b in betas if b < threshold], [b for b in betas if b > threshold]


def _tap_leaves(results: Results) -> Claim:
    # Of 1000 spins one start in forty has no overlap at all: nothing but rounding can grow there.
    leaning = Results([row for row in results if row.results["start_overlap"] > 0])
    below, above = _sides(leaning, 1.0)
    stay, leave = 1 - _share(leaning, "TAP_left", below), _share(leaning, "TAP_left", above)
    cosine = min(leaning.column("TAP_cosine", beta=beta).min() for beta in above)
    rest = {beta: _share(leaning, "TAP_at_rest", [beta]) for beta in above}
    verdict: Verdict = "does not hold"
    if stay == leave == 1 and cosine > RETRIEVED:
        verdict = "holds" if min(rest.values()) == 1 else "holds with a limit"
    return Claim(
        says="TAP leaves m = 0 only for β > 1, and towards the pattern.",
        where="Fig. 7, appendix on stability",
        decided_by=f"root mean square magnetization above {AWAY} after step {SETTLED} at no β < 1 "
        f"and at every β > 1, with a cosine above {RETRIEVED} then; starts exactly at right angles "
        "to the pattern set aside (limit: next to β = 1 it does not come to rest, for the reaction "
        f"term is singular at q = 1-1/β; kept from that by {SINGULARITY:g}, as much as α, a step "
        "there can also put m back to 0)",
        measured=f"stays in {stay:.0%} of trials at β = {_listed(below)}; leaves in {leave:.0%} at "
        f"β = {_listed(above)}, cosine at least {cosine:.3f}; at rest on it at the end: "
        + ", ".join(f"{share:.0%} at β = {beta:g}" for beta, share in rest.items())
        + f"; {len(results) - len(leaning)} of {len(results)} trials set aside",
        verdict=verdict,
        slip='the critical point 1/(1+√α) is printed as "T_c"; it is β_c.',
    )


def _amp_leaves(results: Results) -> Claim:
    below, above = _sides(results, 0.5)
    stay, leave = 1 - _share(results, "AMP_left", below), _share(results, "AMP_left", above)
    cosine = max(results.column("AMP_cosine", beta=beta).max() for beta in above)
    rest = _share(results, "AMP_at_rest", above)
    last = max(results.column("AMP_last_overlap", beta=beta).max() for beta in above)
    return Claim(
        says="Parallel AMP leaves m = 0 already for β > 1/2, across the pattern, and does not "
        "find it.",
        where="Fig. 7, appendix on stability",
        decided_by=f"root mean square magnetization above {AWAY} after step {SETTLED} at no β < "
        f"1/2 and at every β > 1/2; cosine then, and overlap at the end, below {ACROSS}",
        measured=f"stays in {stay:.0%} of trials at β = {_listed(below)}; leaves in {leave:.0%} at "
        f"β = {_listed(above)}, cosine with the pattern at most {cosine:.3f}; at rest away from "
        f"m = 0 at the end: {rest:.0%}; overlap with the pattern at the end at most {last:.2f}",
        verdict="holds" if stay == leave == 1 and max(cosine, last) < ACROSS else "does not hold",
        slip='the instability of AMP at 1/2 is printed as "T_c = 1/2"; it is β_c = 1/2.',
    )


def _amp_oscillates(results: Results) -> Claim:
    between = [beta for beta in results.values("beta") if 0.5 < beta < 1]
    above = [beta for beta in results.values("beta") if beta > 1]
    turns, straight = _share(results, "AMP_turns", between), _share(results, "AMP_turns", above)
    return Claim(
        says="For 1/2 < β < 1 AMP oscillates as it leaves m = 0.",
        where="Fig. 7, appendix on stability",
        decided_by=f"m(t)·m(t+1) < 0 in the last {GROWTH} steps before √q exceeds {AWAY}",
        measured=f"{turns:.0%} of these steps at β = {_listed(between)}, {straight:.0%} at "
        f"β = {_listed(above)}, where the multiplier -β/(1-β) is positive",
        verdict="holds" if turns > 0.95 else "does not hold",
    )


def _listed(betas: Sequence[float]) -> str:
    return ", ".join(f"{beta:g}" for beta in betas)


EXPERIMENT = Experiment(
    name="fig7",
    title="Trajectories of TAP and parallel AMP with one pattern",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
