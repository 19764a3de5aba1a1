"""Fig. 8: how often the iterations reach a pattern from a random start, the patterns known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtap.couplings import Couplings, FloatArray
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
from dualtap.schemes import TAP, OpperWinther, Scheme, SequentialAMP, SequentialTAP
from dualtap.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RULES = {
    "tap": "TAP, parallel",
    "amp-sequential": "AMP, sequential",
    "tap-sequential": "TAP, sequential",
    "ow-printed": "Opper–Winther, printed",
    "ow": "Opper–Winther, corrected",
}
PARALLEL = ("tap", "ow-printed", "ow")
SEQUENTIAL = ("amp-sequential", "tap-sequential")
ALPHAS = (0.01, 0.03)
TEMPERATURES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
DAMPING = 0.95
PATTERN = 0.7  # overlap that excludes mixtures, as in the paper
MAX_ITER = {**dict.fromkeys(PARALLEL, 1000), **dict.fromkeys(SEQUENTIAL, 3000)}
EXPERIMENTS = 20  # a trial


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return every rule, size, load and temperature; quick counts are small.

    A sweep in sequence costs more than a parallel step and damping takes twenty times as many:
    quick sequential points are few.
    """
    sizes = {500: 50, 1000: 50, 3000: 50} if full else {500: 2, 1000: 2, 3000: 1}
    slow_sizes = {500: 50, 1000: 50, 3000: 5} if full else {1000: 1}
    slow_loads = ALPHAS if full else ALPHAS[:1]
    slow_temperatures = TEMPERATURES if full else (0.3, 0.5, 0.7, 0.9)
    grids = (
        (PARALLEL, ALPHAS, TEMPERATURES, sizes),
        (SEQUENTIAL, slow_loads, slow_temperatures, slow_sizes),
    )
    return [
        ({"rule": rule, "alpha": alpha, "N": N, "T": T}, n_trials)
        for rules, loads, temperatures, counts in grids
        for rule in rules
        for alpha in loads
        for N, n_trials in counts.items()
        for T in temperatures
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Run a rule on several teachers, one random start each."""
    rule, alpha, N, T = (parameters[k] for k in ("rule", "alpha", "N", "T"))
    rng = np.random.default_rng(seed)
    reached = converged = overlapping = 0
    steps, residuals = [], []
    for _ in range(EXPERIMENTS):
        teacher = HopfieldModel.random(N, round(alpha * N), 1 / T, random_state=rng)
        J = teacher.coupling_operator()
        scheme = _scheme(rule, J, 1 / T)
        start = _magnitude(rule) * rng.choice([-1.0, 1.0], size=(1, N))
        solution = solve(scheme, start, max_iter=MAX_ITER[rule])
        found = np.abs(overlaps(solution.magnetizations, teacher.patterns)).max() > PATTERN
        converged += int(solution.converged[0])
        overlapping += int(found)
        if found and solution.converged[0]:
            reached += 1
            steps.append(int(solution.n_iter[0]))
            residuals.append(_tap_residual(scheme, solution.magnetizations, J, 1 / T))
    return {
        "reached": reached,
        "converged": converged,
        "overlapping": overlapping,
        "steps": float(np.median(steps)) if steps else -1.0,
        "residual": float(np.median(residuals)) if residuals else -1.0,
    }


def _scheme(rule: str, J: Couplings, beta: float) -> Scheme[Any]:
    """Return the update rule of this name."""
    if rule == "tap":
        return TAP(J, beta)
    if rule == "amp-sequential":
        return SequentialAMP(J, beta, damping=DAMPING)
    if rule == "tap-sequential":
        return SequentialTAP(J, beta, damping=DAMPING)
    return OpperWinther(J, beta, printed=rule == "ow-printed")


def _magnitude(rule: str) -> float:
    """Return |m| of the start: Opper–Winther needs a small one at low temperature."""
    return 0.1 if rule.startswith("ow") else 1.0


def _tap_residual(scheme: Scheme[Any], m: FloatArray, J: Couplings, beta: float) -> float:
    """Return how far the rule's own fixed point near ``m`` is from solving TAP's equations."""
    exact = solve(scheme, m, tol=1e-8, max_iter=300).magnetizations
    tap = TAP(J, beta)
    return float(tap.step(tap.init(exact))[1].residual[0])


def plot(results: Results) -> Figure:
    """Draw the probability of reaching a pattern: a column a rule, a row a load."""
    figure = new_figure(n_panels=4, width=3.1, height=5.4)
    axes = figure.subplots(len(ALPHAS), 4, sharex=True, sharey=True)
    columns = [("tap",), SEQUENTIAL, ("ow-printed",), ("ow",)]
    for row, alpha in zip(axes, ALPHAS, strict=True):
        for ax, rules in zip(row, columns, strict=True):
            _draw_rules(ax, results.where(alpha=alpha), rules)
            _draw_phases(ax, alpha)
        row[0].set(ylabel=f"$P_c$ at P/N = {alpha:g}")
    for ax, rules in zip(axes[0], columns, strict=True):
        ax.set(title=RULES[rules[0]] if len(rules) == 1 else f"sequential, d = {DAMPING:g}")
        ax.legend(frameon=False, fontsize=7, loc="center right")
    for ax in axes[-1]:
        ax.set(xlabel="T")
    return figure


def _draw_rules(ax: Axes, results: Results, rules: Sequence[str]) -> None:
    """Draw a curve for each rule and size, with binomial errors."""
    curves = [(rule, N) for rule in rules for N in results.values("N", rule=rule)]
    for style, (rule, N) in zip(STYLES, curves, strict=False):
        mine = results.where(rule=rule, N=N)
        T = mine.values("T")
        n = np.array([EXPERIMENTS * len(mine.where(T=t)) for t in T])
        p = np.array([mine.column("reached", T=t).sum() for t in T]) / n
        label = f"N = {N}" if len(rules) == 1 else f"{RULES[rule].split(',')[0]}, N = {N}"
        error = np.sqrt(p * (1 - p) / n)
        ax.errorbar(T, p, error, **style, ms=4, lw=1, capsize=2, label=label)
    if not curves:
        ax.text(0.5, 0.5, "only with --full", transform=ax.transAxes, ha="center", fontsize=8)


def _draw_phases(ax: Axes, alpha: float) -> None:
    """Mark where retrieval states appear, win, and where the spin glass melts."""
    for side, (name, T) in zip(("right", "left", "right"), _lines(alpha).items(), strict=True):
        ax.axvline(T, color="grey", lw=0.8, ls=":")
        ax.text(T, 1.07, f" ${name}$ ", ha=side, va="bottom", fontsize=8)
    ax.set(ylim=(-0.05, 1.18), yticks=[0, 0.5, 1])


def _lines(alpha: float) -> dict[str, float]:
    """Return the transition temperatures of the replica-symmetric theory."""
    from dualtap.theory.replica import (
        metastable_temperature,
        retrieval_temperature,
        spin_glass_temperature,
    )

    return {
        "T_R": retrieval_temperature(alpha),
        "T_M": metastable_temperature(alpha),
        "T_g": spin_glass_temperature(alpha),
    }


def caption(results: Results) -> str:
    """Say what the figure shows."""
    parallel, sequential = (_counts(results, rule) for rule in ("tap", "tap-sequential"))
    return (
        f"Fig. 8. Direct problem: probability P_c that an iteration from a random start converges "
        f"(mean change below 0.001) to a pattern (overlap above {PATTERN:g}), P/N = {ALPHAS[0]:g} "
        f"(top) and {ALPHAS[1]:g} (bottom). Parallel rules: {parallel}, "
        f"at most {MAX_ITER['tap']} steps; sequential "
        f"ones with damping {DAMPING:g}: {sequential}, at most "
        f"{MAX_ITER['tap-sequential']} sweeps. Each experiment has patterns and a start of its "
        f"own; |m| = 1 at the start, 0.1 for Opper–Winther. Bars are binomial. Dotted, by replica "
        f"theory: retrieval states are stable below T_R and metastable below T_M; the spin glass "
        f"melts at T_g = 1 + √(P/N). The paper prints no P/N."
    )


def _counts(results: Results, rule: str) -> str:
    """Return the number of experiments a point at every size, as text."""
    point = {"rule": rule, "alpha": ALPHAS[0], "T": 0.5}
    counts = {
        N: EXPERIMENTS * len(results.where(N=N, **point)) for N in results.values("N", **point)
    }
    return ", ".join(f"{n} experiments a point at N = {N}" for N, n in counts.items())


def claims(results: Results) -> list[Claim]:
    """Judge the four statements of the appendix about this figure."""
    return [
        _retrieval_claim(results),
        _amp_claim(results),
        _opper_winther_claim(results),
        _metastable_claim(results),
    ]


def _share(results: Results, temperatures: Sequence[float], **chosen: Any) -> float:
    """Return P_c over the temperatures at the chosen rule, load and size."""
    counts = [results.column("reached", T=T, **chosen) for T in temperatures]
    return float(np.concatenate(counts).mean() / EXPERIMENTS)


def _by_size(results: Results, temperatures: Sequence[float], alpha: float) -> dict[int, float]:
    """Return P_c of parallel TAP against N."""
    sizes = results.values("N", rule="tap")
    return {N: _share(results, temperatures, rule="tap", alpha=alpha, N=N) for N in sizes}


def _text(by_size: dict[int, float]) -> str:
    """Return P_c against N as text."""
    return ", ".join(f"{share:.2f} at N = {N}" for N, share in by_size.items())


def _between(low: float, high: float) -> list[float]:
    """Return the temperatures of the figure from ``low`` up to ``high``."""
    return [T for T in TEMPERATURES if low <= T < high]


def _retrieval_claim(results: Results) -> Claim:
    """Judge recovery by TAP in the retrieval phase, at every size."""
    shares = {a: _by_size(results, _between(0, _lines(a)["T_R"]), a) for a in ALPHAS}
    worst = min(min(of.values()) for of in shares.values())
    best = max(max(of.values()) for of in shares.values())
    verdict: Verdict = "does not hold" if best < 0.5 else "holds with a limit"
    return Claim(
        says="Parallel TAP from a random start converges to a pattern in the retrieval phase.",
        where="Appendix A, Fig. 8",
        decided_by="P_c of TAP over the temperatures below T_R, by P/N and N",
        measured="; ".join(f"P/N = {a:g}: {_text(of)}" for a, of in shares.items()),
        verdict="holds" if worst >= 0.9 else verdict,
    )


def _amp_claim(results: Results) -> Claim:
    """Judge sequential AMP, with sequential TAP beside it to tell the order from the rule."""
    rows = {rule: results.where(rule=rule, alpha=ALPHAS[0], N=1000) for rule in RULES}
    amp, tap = rows["amp-sequential"], rows["tap-sequential"]
    n_runs, n_reached = EXPERIMENTS * len(amp), int(amp.column("reached").sum())
    steps = {rule: rows[rule].column("steps", T=0.5).mean() for rule in ("tap", "tap-sequential")}
    cold = _share(tap, [T for T in tap.values("T") if T <= 0.5])
    warm = _share(tap, [0.7])
    ratio = steps["tap-sequential"] / steps["tap"]
    verdict: Verdict = "does not hold" if n_reached < 0.1 * n_runs else "holds with a limit"
    return Claim(
        says="Sequential AMP with damping 0.95 reaches patterns as well as TAP, only much slower.",
        where="Appendix A, Fig. 8",
        decided_by=f"runs that reach a pattern at P/N = {ALPHAS[0]:g}, N = 1000",
        measured=f"AMP: {n_reached} of {n_runs} ({int(amp.column('overlapping').sum())} if "
        f"convergence is not asked for); TAP in the same sequential, damped form: {cold:.2f} at "
        f"T ≤ 0.5, in {ratio:.0f} times the steps of the parallel form at T = 0.5, and {warm:.2f} "
        f"at T = 0.7",
        verdict=verdict,
        slip="AMP as printed cannot do it in the direct problem: a pattern grows from m ≈ 0 only "
        "where u = β(1 - q) > 1, and there 1/(1 - u) is negative and turns the damped flow round.",
    )


def _opper_winther_claim(results: Results) -> Claim:
    """Judge both forms of Opper–Winther: where they go, and whether TAP's equations hold there."""
    cold = _between(0, _lines(ALPHAS[0])["T_R"])
    mean = {rule: _share(results, cold, rule=rule, alpha=ALPHAS[0]) for rule in PARALLEL}
    residual = {}
    for rule in PARALLEL[1:]:
        column = results.column("residual", rule=rule, alpha=ALPHAS[0], T=max(cold))
        residual[rule] = float(np.median(column[column >= 0]))
    alike = min(mean["ow"], mean["ow-printed"]) > mean["tap"] - 0.05
    return Claim(
        says="The Opper–Winther iteration reaches patterns as well as TAP does.",
        where="Appendix A, Fig. 8",
        decided_by=f"P_c below T_R at P/N = {ALPHAS[0]:g}, all N; TAP residual at its fixed points",
        measured=f"P_c: printed {mean['ow-printed']:.2f}, corrected {mean['ow']:.2f}, TAP "
        f"{mean['tap']:.2f}; residual at T = {max(cold):g}: printed "
        f"{residual['ow-printed']:.1e}, corrected {residual['ow']:.1e}",
        verdict="holds" if alike else "holds with a limit",
        slip="The printed A = β/(1 + αu) and memory coefficient α(1 - q) have TAP's fixed points "
        "only to first order in αu; A = β(1 - αu/(1 - u)) and 1/A - 1/β have them exactly.",
    )


def _metastable_claim(results: Results) -> Claim:
    """Judge small sizes between the two retrieval lines."""
    alpha = ALPHAS[1]
    lines = _lines(alpha)
    T = _between(lines["T_R"], lines["T_M"])
    shares = _by_size(results, T, alpha)
    small, large = shares[min(shares)], shares[max(shares)]
    verdict: Verdict = "holds" if small > 0.2 and large < small / 2 else "does not hold"
    return Claim(
        says="At small N convergence to patterns extends into the metastable retrieval phase.",
        where="Appendix A, Fig. 8",
        decided_by=f"P_c of TAP between T_R and T_M at P/N = {alpha:g} "
        f"(T = {', '.join(f'{t:g}' for t in T)}), by N",
        measured=_text(shares),
        verdict=verdict,
    )


EXPERIMENT = Experiment(
    name="fig8",
    title="Probability of reaching a pattern from a random start, by rule and temperature",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
