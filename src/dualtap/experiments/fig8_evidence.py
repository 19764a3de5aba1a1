"""What Fig. 8 compares, and what it measures for the claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dualtap.experiments.experiment import MissingTrialsError, Results
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
from dualtap.experiments.rules.rule import Estimate
from dualtap.experiments.transitions import transitions

RULES = {
    "tap": "TAP, parallel",
    "amp": "AMP, sequential, field damped",
    "ow-printed": "Opper–Winther, printed",
    "ow": "Opper–Winther, corrected",
    "amp-printed": "AMP, sequential, m damped",
    "tap-sequential": "TAP, sequential",
}
FIGURE = ("tap", "amp", "ow-printed", "ow")
BESIDE = ("amp-printed", "tap-sequential")
SEQUENTIAL = ("amp", *BESIDE)
ALPHAS = (0.01, 0.03)
SIZES = (500, 1000, 3000)
TEMPERATURES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FEW_TEMPERATURES = (0.3, 0.5, 0.7, 0.9)
STARTS = (0.1, 1.0)
START_POINT: dict[str, Any] = {"alpha": 0.01, "N": 1000}
START_TEMPERATURES = (0.2, 0.3, 0.4, 0.5)


def usual_start(rule: str) -> float:
    """Return |m| of the start as in the paper: Opper–Winther needs a small one when it is cold."""
    return 0.1 if rule.startswith("ow") else 1.0


def usual_trials(results: Results) -> Results:
    """Return the trials from the paper's starts."""
    return Results(
        [r for r in results if r.parameters["start"] == usual_start(r.parameters["rule"])]
    )


def _share(results: Results, temperatures: Sequence[float], **chosen: Any) -> Estimate:
    """Return P_c over the temperatures at the chosen rule, load and size."""
    mine = [results.where(T=T, **chosen) for T in temperatures]
    rows = Results([row for part in mine for row in part])
    return proportion(
        rows.column("reached").sum() if len(rows) else 0,
        int(sum(row.results["experiments"] for row in rows)),
    )


def _below(line: float, results: Results, rule: str) -> list[float]:
    """Return the temperatures below a line at which there are trials of a rule."""
    return [T for T in results.values("T", rule=rule) if line > T]


@judge("fig8.tap")
def _tap(results: Results) -> Evidence:
    """Measure TAP in the retrieval phase, at every load and size."""
    shown = usual_trials(results)
    shares = {
        (alpha, N): _share(shown, _below(transitions(alpha).T_R, shown, "tap"), rule="tap",
                           alpha=alpha, N=N)
        for alpha in shown.values("alpha", rule="tap")
        for N in shown.values("N", rule="tap")
    }  # fmt: skip
    text = "; ".join(f"P/N = {a:g}, N = {N}: {share}" for (a, N), share in shares.items())
    return Evidence({"lowest": lowest(shares), "highest": highest(shares)}, text)


def _against_tap(results: Results, rule: str) -> dict[str, tuple[Estimate, Estimate]]:
    """Return P_c of a rule and of TAP below T_R, at the temperatures and sizes that both have."""
    shown = usual_trials(results)
    pairs = {}
    for alpha in shown.values("alpha", rule=rule):
        mine, tap = shown.where(rule=rule, alpha=alpha), shown.where(rule="tap", alpha=alpha)
        cold = [T for T in _below(transitions(alpha).T_R, mine, rule) if T in tap.values("T")]
        for N in mine.values("N"):
            pairs[f"P/N = {alpha:g}, N = {N}"] = (_share(mine, cold, N=N), _share(tap, cold, N=N))
    if not pairs:
        raise MissingTrialsError(f"there is no trial of {RULES[rule]}")
    return pairs


def _compared(pairs: dict[str, tuple[Estimate, Estimate]]) -> str:
    return "; ".join(f"{where}: {mine}, TAP {tap}" for where, (mine, tap) in pairs.items())


def _worst_difference(pairs: dict[str, tuple[Estimate, Estimate]]) -> Estimate:
    """Return the smallest P_c relative to TAP's, with the error of both."""
    differences = {
        where: Estimate(mine.value - tap.value, mine.low - tap.high, mine.high - tap.low, where)
        for where, (mine, tap) in pairs.items()
    }
    return lowest(differences)


def _steps(results: Results, rule: str) -> float:
    """Return the median number of steps to a pattern at T = 0.5, P/N = 0.01, N = 1000."""
    steps = usual_trials(results).column("steps", rule=rule, T=0.5, **START_POINT)
    if not (steps >= 0).any():
        raise MissingTrialsError(f"{RULES[rule]} reached no pattern at T = 0.5")
    return float(np.median(steps[steps >= 0]))


@judge("fig8.amp")
def _amp(results: Results) -> Evidence:
    """Measure sequential AMP with its field damped against TAP."""
    pairs = _against_tap(results, "amp")
    sweeps, steps = _steps(results, "amp"), _steps(results, "tap")
    return Evidence(
        {"difference": _worst_difference(pairs), "slower": exact(sweeps / steps)},
        f"below T_R, with the field damped: {_compared(pairs)}; {sweeps:.0f} sweeps to a pattern "
        f"at T = 0.5, P/N = 0.01, N = 1000, against {steps:.0f} parallel steps",
    )


@judge("fig8.amp_printed")
def _amp_printed(results: Results) -> Evidence:
    """Measure sequential AMP with m damped, and TAP in the same form beside it."""
    pairs = _against_tap(results, "amp-printed")
    shown = usual_trials(results)
    printed = shown.where(rule="amp-printed")
    every = _share(printed, printed.values("T"))
    overlapping = int(printed.column("overlapping").sum())
    tap = _against_tap(results, "tap-sequential")
    return Evidence(
        {"difference": _worst_difference(pairs)},
        f"below T_R: {_compared(pairs)}; at all temperatures {every} ({overlapping} if convergence "
        "is not asked for). TAP itself, sequential and damped in the same way: "
        + "; ".join(f"{where}: {mine}" for where, (mine, _) in tap.items()),
    )


@judge("fig8.opper_winther")
def _opper_winther(results: Results) -> Evidence:
    """Measure both forms of Opper–Winther: where they go, and whether TAP's equations hold."""
    pairs = {rule: _against_tap(results, rule) for rule in ("ow-printed", "ow")}
    residual = {}
    for rule in pairs:
        column = usual_trials(results).column("residual", rule=rule, alpha=START_POINT["alpha"])
        residual[rule] = float(np.median(column[column >= 0])) if (column >= 0).any() else np.nan
    return Evidence(
        {
            "printed": _worst_difference(pairs["ow-printed"]),
            "corrected": _worst_difference(pairs["ow"]),
        },
        f"printed, {_compared(pairs['ow-printed'])}; corrected, {_compared(pairs['ow'])}; median "
        f"residual of TAP's equations at P/N = {START_POINT['alpha']:g}: printed "
        f"{residual['ow-printed']:.1e}, corrected {residual['ow']:.1e}",
    )


@judge("fig8.metastable")
def _metastable(results: Results) -> Evidence:
    """Measure TAP between the two retrieval lines, by size."""
    shown = usual_trials(results).where(rule="tap", alpha=ALPHAS[1])
    lines = transitions(ALPHAS[1])
    between = [T for T in shown.values("T") if lines.phase(T) == "metastable"]
    shares = {N: _share(shown, between, N=N) for N in sorted(shown.values("N"))}
    if len(shares) < 2:
        raise MissingTrialsError("there is one size only at the larger load")
    small, large = shares[min(shares)], shares[max(shares)]
    return Evidence(
        {"small": small, "ratio": exact(large.value / max(small.value, 1e-9))},
        f"T = {', '.join(f'{T:g}' for T in between)}: {listed(shares, 'N = {}')}",
    )


@judge("fig8.start")
def _start(results: Results) -> Evidence:
    """Measure what the size of the start changes, for each rule, when it is cold."""
    at = results.where(**START_POINT)
    shares = {}
    for rule in FIGURE:
        mine = at.where(rule=rule)
        both = set.intersection(*({*mine.values("T", start=s)} for s in STARTS))
        cold = [T for T in START_TEMPERATURES if T in both]
        shares[rule] = [_share(mine, cold, start=s) for s in STARTS]
    change = {rule: exact(large.value - small.value) for rule, (small, large) in shares.items()}
    return Evidence(
        {
            "tap": exact(abs(change["tap"].value)),
            "amp": exact(abs(change["amp"].value)),
            "opper_winther": change["ow-printed"],
        },
        "; ".join(
            f"{RULES[rule]}: {small} from |m| = 0.1, {large} from 1"
            for rule, (small, large) in shares.items()
        ),
    )


claims = claims_of(_tap, _amp, _amp_printed, _opper_winther, _metastable, _start)
