"""Fig. 7: trajectories of TAP and parallel AMP in the direct problem with one pattern."""

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
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    exact,
    highest,
    judge,
    listed,
    lowest,
    proportion,
)
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP
from dualtap.schemes._base import SINGULARITY
from dualtap.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = (0.4, 0.7, 1.5)
BESIDE = (0.45, 0.55, 0.95, 1.05)  # on both sides of 1/2 and 1, for the claims
SCHEMES: dict[str, Any] = {"TAP": TAP, "AMP": AMP}
DRAWN_STEPS = 80
SETTLED = 5
AWAY = 0.1
GROWTH = 3
STILL = 1e-3


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    beta: Sequence[float] = SHOWN,
    iterations: Sequence[int] = (300,),
) -> Sequence[tuple[Parameters, int]]:
    """Return the temperatures that are drawn and those next to the thresholds.

    Single spins are kept of one trial for each temperature that is drawn.
    """
    drawn = [{"N": n, "beta": b, "iterations": i, "spins": n}
             for n in N for b in beta for i in iterations]  # fmt: skip
    others = sorted({*beta, *BESIDE})
    judged = [{"N": n, "beta": b, "iterations": i, "spins": 0}
              for n in N for b in others for i in iterations]  # fmt: skip
    return [*((point, 1) for point in drawn), *((point, 100 if full else 5) for point in judged)]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Follow both schemes from one random start of spins ±1, in float64."""
    N, beta = parameters["N"], parameters["beta"]
    pattern = HopfieldModel.random(N, 1, beta, random_state=seed).patterns.astype(np.float64)
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
        m = path[:, 0] * towards
        outcome |= {f"{name}_{k}": v for k, v in _followed(m).items()}
        if parameters["spins"]:
            outcome |= {f"{name}_{k}": v for k, v in _drawn(m, parameters["spins"]).items()}
    return outcome


def _drawn(m: NDArray[Any], n_spins: int) -> dict[str, NDArray[Any]]:
    """Return what is drawn of a trajectory: spins, to the precision of a line, and two means."""
    shown = m[: DRAWN_STEPS + 1]
    return {
        "spins": shown[:, :n_spins].astype(np.float16),
        "overlap": shown.mean(axis=1),
        "size": np.sqrt(np.square(shown).mean(axis=1)),
    }


def _followed(m: NDArray[Any]) -> dict[str, Any]:
    """Return what a trajectory did, spins being turned along the pattern."""
    size = np.sqrt(np.square(m).mean(axis=1))
    overlap = m.mean(axis=1)
    away = size > AWAY
    away[:SETTLED] = False  # the start itself is forgotten in the first steps
    end = int(np.argmax(away)) if away.any() else len(m) - 1
    turns = np.einsum("ti,ti->t", m[end - GROWTH : end], m[end - GROWTH + 1 : end + 1]) < 0
    return {
        "left": int(away.any()),
        "cosine": float(abs(overlap[end]) / size[end]) if away.any() else 0.0,
        "turns": float(turns.mean()),
        "last_overlap": float(abs(overlap[-1])),
        "at_rest": int(size[-1] > AWAY and np.abs(m[-1] - m[-2]).mean() < STILL),
    }


def plot(results: Results) -> Figure:
    """Draw one trial at every temperature: TAP above, AMP below."""
    rows = [row for row in results if row.parameters["spins"]]
    if not rows:
        raise MissingTrialsError("there is no trial whose single spins were kept")
    figure = new_figure(n_panels=len(rows), width=3.4, height=5.2)
    axes = figure.subplots(len(SCHEMES), len(rows), sharex=True, sharey=True, squeeze=False)
    for line, name in zip(axes, SCHEMES, strict=True):
        for ax, row in zip(line, rows, strict=True):
            _panel(ax, row, name)
            ax.set_title(f"{name}, β = {row.parameters['beta']:g}", fontsize=10)
        line[0].set_ylabel("m along the pattern")
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
    axes[0, 0].legend(frameon=False, fontsize=8)
    letter(axes)
    return figure


def _panel(ax: Axes, row: Row, name: str) -> None:
    """Draw all spins, their mean and their root mean square."""
    # As pixels: a thousand lines in every panel would be megabytes of vectors.
    spins = ax.plot(row.array(f"{name}_spins"), color="0.6", lw=0.3, alpha=0.5, rasterized=True)
    spins[0].set_label("single spins")
    often: dict[str, Any] = {"markersize": 4, "markevery": 8}
    ax.plot(row.array(f"{name}_overlap"), label="overlap", **STYLES[0], **often)
    ax.plot(row.array(f"{name}_size"), label=r"$\sqrt{q}$", **STYLES[1], **often)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    betas = _betas(sorted({r.parameters["beta"] for r in results if r.parameters["spins"]}))
    return (
        f"Fig. 7. Trajectories of TAP (naive index) and of parallel AMP in the direct problem. "
        f"N = {p['N']}, P = 1, β = {betas} (the paper does not print its three values); "
        f"no damping, float64, one random start with |m| = 1 for both. Grey: all {p['N']} "
        f"spins, turned so that the pattern is +1; circles: overlap with the pattern; squares: "
        f"root of the mean square magnetization. First {DRAWN_STEPS} of {p['iterations']} "
        f"iterations, one trial for each β. AMP takes some dozens of steps to leave "
        f"m = 0 because |m| = 1 starts it almost exactly on its stable multiplier −αβ/(1−β); the "
        f"unstable one is −β/(1−β)."
    )


def _judged(results: Results) -> Results:
    """Return the trials that are counted: those that are drawn were not chosen by luck."""
    return Results([row for row in results if not row.parameters["spins"]])


def _all(results: Results, column: str, betas: Sequence[float]) -> NDArray[Any]:
    """Return a result of all trials at these temperatures."""
    if not betas:
        raise MissingTrialsError("there is no β on one side of the threshold")
    return np.concatenate([results.column(column, beta=beta) for beta in betas])


def _sides(results: Results, threshold: float) -> tuple[list[float], list[float]]:
    """Return the inverse temperatures below and above a threshold."""
    betas = results.values("beta")
    return [b for b in betas if b < threshold], [b for b in betas if b > threshold]


@judge("fig7.tap")
def _tap_leaves(results: Results) -> Evidence:
    """Measure where TAP leaves m = 0, and where to."""
    judged = _judged(results)
    # Of 1000 spins one start in forty has no overlap at all: nothing but rounding can grow there.
    leaning = Results([row for row in judged if row.results["start_overlap"] > 0])
    below, above = _sides(leaning, 1.0)
    stays = proportion(_all(leaning, "TAP_left", below) == 0)
    leaves = proportion(_all(leaning, "TAP_left", above))
    cosine = exact(_all(leaning, "TAP_cosine", above).min())
    rest = {beta: proportion(leaning.column("TAP_at_rest", beta=beta)) for beta in above}
    return Evidence(
        {"stays": stays, "leaves": leaves, "cosine": cosine, "rest": lowest(rest)},
        f"stays in {stays} trials at β = {_betas(below)}; leaves in {leaves} at "
        f"β = {_betas(above)}, cosine at least {cosine}; at rest on it at the end: "
        f"{listed(rest, 'β = {:g}')}; {len(judged) - len(leaning)} of {len(judged)} trials set "
        f"aside. 1 − u is kept from 0 by {SINGULARITY:g}, as much as α: a step there can also put "
        "m back to 0",
    )


@judge("fig7.amp")
def _amp_leaves(results: Results) -> Evidence:
    """Measure where AMP leaves m = 0, and where to."""
    judged = _judged(results)
    below, above = _sides(judged, 0.5)
    stays = proportion(_all(judged, "AMP_left", below) == 0)
    leaves = proportion(_all(judged, "AMP_left", above))
    cosine = exact(_all(judged, "AMP_cosine", above).max())
    last = highest({b: exact(judged.column("AMP_last_overlap", beta=b).max()) for b in above})
    rest = proportion(_all(judged, "AMP_at_rest", above))
    return Evidence(
        {"stays": stays, "leaves": leaves, "cosine": cosine, "last": last},
        f"stays in {stays} trials at β = {_betas(below)}; leaves in {leaves} at "
        f"β = {_betas(above)}, cosine with the pattern at most {cosine}; at rest away from "
        f"m = 0 at the end: {rest}; overlap with the pattern at the end at most {last}",
    )


@judge("fig7.oscillates")
def _amp_oscillates(results: Results) -> Evidence:
    """Measure how often m changes sign from step to step as it grows."""
    judged = _judged(results)
    between = [beta for beta in judged.values("beta") if 0.5 < beta < 1]
    above = [beta for beta in judged.values("beta") if beta > 1]
    turns, straight = (_all(judged, "AMP_turns", betas).mean() for betas in (between, above))
    return Evidence(
        {"turns": exact(turns)},
        f"{turns:.0%} of these steps at β = {_betas(between)}, {straight:.0%} at "
        f"β = {_betas(above)}, where the multiplier −β/(1−β) is positive",
    )


def _betas(betas: Sequence[float]) -> str:
    return ", ".join(f"{beta:g}" for beta in betas)


EXPERIMENT = Experiment(
    name="fig7",
    title="Trajectories of TAP and parallel AMP with one pattern",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_tap_leaves, _amp_leaves, _amp_oscillates),
)
