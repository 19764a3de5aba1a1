"""Fig. 1: overlap with the one hidden pattern against the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dualtap.experiments.drawing import LEGEND, STYLES, letter, new_figure, within
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
    listed,
    lowest,
    mean,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import overlaps
from dualtap.published import DualTAP
from dualtap.theory import critical_samples, paramagnetic_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BETAS = (0.5, 0.7, 0.8, 0.9, 1.2, 1.5, 2.0)
N_STUDENTS = 25
READINGS = {"printed": "α = M/N", "literal": "α = P/N"}
ENOUGH = 0.99  # overlap of signs that is a perfect reconstruction


def relaxed_after(beta: float) -> int:
    """Return twenty of the 1/|1-β| sweeps in which a chain of one pattern forgets its start."""
    return min(max(round(20 / max(abs(1 - beta), 0.01)), 40), 400)


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    beta: Sequence[float] = BETAS,
    multiple: Sequence[float] | None = None,
    M: Sequence[int] | None = None,
    sweeps: Sequence[int] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return counts of samples around M_c where β < 1, and from one on where β > 1.

    ``multiple`` of M_c are for β < 1; ``M``, if it is given, is for every β.
    """
    multiples: Sequence[float] = (0.25, 0.5, 1, 2, 4, 8)
    counts: Sequence[int] = (1, 2, 5, 10, 20, 50, 100)
    if full:
        multiples = (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 16)
        counts = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500)

    def samples(b: float, n: int) -> list[int]:
        if M is not None or b >= 1:
            return list(M or counts)
        return [round(k * critical_samples(b, n)) for k in multiple or multiples]

    return [
        ({"N": n, "beta": b, "M": m, "sweeps": s}, 100 if full else 4)
        for n in N
        for b in beta
        for m in samples(b, n)
        for s in sweeps or (relaxed_after(b),)
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Look for the pattern by both readings of the iteration and by the safe one, same samples."""
    n_spins, beta, M = (parameters[k] for k in ("N", "beta", "M"))
    teacher = HopfieldModel.random(n_spins, 1, beta, random_state=seed)
    X = teacher.sample(M, n_sweeps=parameters["sweeps"], random_state=seed + 1)
    options: dict[str, Any] = {"n_students": N_STUDENTS, "random_state": seed + 2}
    models = {
        "printed": DualTAP(1, beta, **options),
        "literal": DualTAP(1, beta, alpha="patterns", **options),
        "safe": DualTAP(1, beta, start="spectral", damping="auto", **options),
    }
    outcome: dict[str, Any] = {}
    for name, model in models.items():
        model.fit(X)
        outcome[f"soft_{name}"] = _overlap(model.magnetizations_, teacher)
        outcome[f"sign_{name}"] = _overlap(model.patterns_, teacher)
        outcome[f"converged_{name}"] = int(model.history_.n_converged[0])
    return outcome


def _overlap(found: ArrayLike, teacher: HopfieldModel) -> float:
    """Return the overlap with the only pattern, up to sign."""
    return float(abs(overlaps(found, teacher.patterns)[0, 0]))


def plot(results: Results) -> Figure:
    """Draw m·ζ/N above and the sign overlap below, β < 1 on the left and β > 1 on the right."""
    results.only("N")
    betas = results.values("beta")
    sides = [side for side in (False, True) if any((beta > 1) == side for beta in betas)]
    figure = new_figure(len(sides), height=6.2)
    axes = figure.subplots(2, len(sides), sharex="col", sharey=True, squeeze=False)
    kinds = (("soft", "overlap q = m·ζ/N"), ("sign", "overlap of sign(m) with ζ"))
    for row, (kind, label) in zip(axes, kinds, strict=True):
        for ax, side in zip(row, sides, strict=True):
            for i, beta in enumerate(betas):
                if (beta > 1) == side:
                    _draw(ax, results, beta, kind, STYLES[i % len(STYLES)])
            ax.set(xscale="log", ylim=(-0.03, 1.05))
        row[0].set_ylabel(label)
    for ax, side in zip(axes[0], sides, strict=True):
        ax.set_title("ferromagnet, β > 1" if side else "paramagnet, β < 1", fontsize=10)
        # Rings have no label of their own: an empty one in black says what they are.
        ring = {"linestyle": "none", "ms": 8, "markerfacecolor": "none", "color": "black"}
        ax.plot([], [], **ring, marker="o", label="rings: as printed, α = M/N")
        ax.plot([], [], **(ring | {"ms": 5}), marker="x", label="crosses: α = P/N")
        ax.legend(**LEGEND, fontsize=7)
    for ax in axes[1]:
        ax.set_xlabel("samples M")
    letter(axes)
    return figure


def _draw(ax: Axes, results: Results, beta: float, kind: str, style: dict[str, Any]) -> None:
    """Draw one β: filled markers for the safe iteration, rings and crosses for the printed one."""
    M, overlap, error = curve(results, f"{kind}_safe", beta=beta)
    line = dict(style)
    if beta < 1:
        # The line is the limit here, so that points off it are seen to be off it.
        line["linestyle"] = "none"
        _draw_limit(ax, results, beta, kind, style)
    line |= {"ms": 4, "lw": 1.2, "capsize": 2, "label": f"β = {beta:g}"}
    ax.errorbar(M, overlap, within(overlap, error), **line)
    M, overlap, error = curve(results, f"{kind}_printed", beta=beta)
    ring = {"linestyle": "none", "markerfacecolor": "none", "marker": style["marker"]}
    bars = within(overlap, error)
    ax.errorbar(M, overlap, bars, **ring, color=style["color"], ms=8, lw=0.8, capsize=2)
    M, overlap, _ = curve(results, f"{kind}_literal", beta=beta)
    ax.plot(M, overlap, marker="x", linestyle="none", color=style["color"], ms=5, mew=0.9)


def _draw_limit(ax: Axes, results: Results, beta: float, kind: str, style: dict[str, Any]) -> None:
    """Draw the Bayes limit and M_c."""
    n_spins = results.only("N")
    counts = results.values("M", beta=beta)
    grid = np.geomspace(min(counts), max(counts), 120)
    limits = [paramagnetic_limit(beta, M / n_spins, tol=1e-7) for M in grid]
    values = [limit.sign if kind == "sign" else limit.magnetization for limit in limits]
    look = {"color": style["color"], "linestyle": style["linestyle"]}
    ax.plot(grid, values, **look, lw=1.2)
    ax.axvline(critical_samples(beta, n_spins), **look, lw=0.6)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    betas = ", ".join(f"{beta:g}" for beta in results.values("beta"))
    lengths = sorted(results.values("sweeps"))
    sweeps = f"{lengths[0]} to {lengths[-1]}" if len(lengths) > 1 else f"{lengths[0]}"
    return (
        f"Fig. 1. Overlap of the recovered pattern with the teacher's only one against the number "
        f"of samples: (a, b) magnetizations, (c, d) their signs. N = {p['N']}, P = 1, "
        f"P' = {N_STUDENTS} students, β = {betas}; samples after "
        f"{sweeps} Glauber sweeps, started at random for β < 1 and at the pattern for β > 1. "
        f"Rings: the printed parallel TAP iteration from random starts, with α = M/N; crosses: "
        f"the same with α = P/N, as it is printed. Filled markers: the equations of the rings with "
        f"the damping chosen for stability and one student started at the leading eigenvector. "
        f"Left: curves are the Bayes limit for N → ∞, thin vertical lines M_c = N(1/β−1)². Right: "
        f"lines guide the eye. "
        f"Means of {results.n_trials()} trials per point with standard errors."
    )


def _warm(results: Results) -> list[float]:
    return [beta for beta in results.values("beta") if beta < 1]


def _cold(results: Results) -> list[float]:
    return [beta for beta in results.values("beta") if beta > 1]


def _by_multiple(results: Results, beta: float, name: str) -> dict[float, Estimate]:
    """Return the mean of a result by M/M_c."""
    M_c = critical_samples(beta, results.only("N"))
    counts = results.values("M", beta=beta)
    return {M / M_c: mean(results.column(name, beta=beta, M=M)) for M in counts}


@judge("fig1.threshold")
def _threshold(results: Results) -> Evidence:
    """Measure what is found below half of M_c, and the distance from the limit above 4 M_c."""
    n_spins = results.only("N")
    below, gaps = {}, {}
    for beta in _warm(results):
        soft, sign = (_by_multiple(results, beta, f"{kind}_safe") for kind in ("soft", "sign"))
        below[beta] = highest({k: e for k, e in soft.items() if k < 0.6})
        limits = {k: _limit(beta, k * critical_samples(beta, n_spins) / n_spins) for k in sign}
        gaps[beta] = highest(
            {k: exact(abs(e.value - limits[k])) for k, e in sign.items() if k > 3.5}
        )
    return Evidence(
        {"below": highest(below), "above": highest(gaps)},
        "largest m·ζ/N up to M_c/2: " + listed(below, "β = {:g}") + "; largest distance from the "
        "limit from 4 M_c on: " + listed(gaps, "β = {:g}"),
    )


def _limit(beta: float, load: float) -> float:
    """Return the sign overlap of the Bayes optimum at M/N samples."""
    return float(paramagnetic_limit(beta, load, tol=1e-7).sign)


def _against_safe(results: Results, reading: str) -> Evidence:
    """Count the points where a reading finds at least half of what the safe iteration finds."""
    failed, n_above = [], 0
    for beta in _warm(results):
        safe = _by_multiple(results, beta, "soft_safe")
        other = _by_multiple(results, beta, f"soft_{reading}")
        above = [k for k in safe if k > 1.5]
        n_above += len(above)
        failed += [
            f"β = {beta:g} at {k:.2g} M_c ({other[k].value:.2f}, safe {safe[k].value:.2f})"
            for k in above
            if other[k].value < safe[k].value / 2
        ]
    if not n_above:
        raise MissingTrialsError("there is no trial at β < 1 and M ≥ 2 M_c")
    share = (n_above - len(failed)) / n_above
    text = f"{READINGS[reading]} falls short at {len(failed)} of {n_above} points"
    return Evidence({"found": exact(share)}, text + (": " + ", ".join(failed) if failed else ""))


@judge("fig1.printed")
def _printed(results: Results) -> Evidence:
    """Measure the printed iteration with α = M/N."""
    return _against_safe(results, "printed")


@judge("fig1.literal")
def _literal(results: Results) -> Evidence:
    """Measure the printed iteration with α = P/N."""
    evidence = _against_safe(results, "literal")
    gains = {
        f"β = {beta:g}, {k:.2g} M_c": f"{literal.value:.2f} against {printed.value:.2f}"
        for beta in _warm(results)
        for (k, literal), printed in zip(
            _by_multiple(results, beta, "soft_literal").items(),
            _by_multiple(results, beta, "soft_printed").values(),
            strict=True,
        )
        if literal.value > printed.value + 0.1
    }
    text = evidence.text + "; it finds more than α = M/N at " + (listed(gains) or "no point")
    return Evidence(evidence.estimates, text)


@judge("fig1.one")
def _one_sample(results: Results) -> Evidence:
    """Measure the overlaps from a single sample at β > 1."""
    scale = np.sqrt(results.only("N"))
    columns = {
        kind: {b: mean(results.column(f"{kind}_printed", beta=b, M=1)) for b in _cold(results)}
        for kind in ("soft", "sign")
    }
    smallest = {k: exact(lowest(estimates).value * scale) for k, estimates in columns.items()}
    return Evidence(
        smallest,
        f"m·ζ/N {listed(columns['soft'], 'β = {:g}')}; overlap of signs "
        f"{listed(columns['sign'], 'β = {:g}')}; 5/√N is {5 / scale:.2f}",
    )


@judge("fig1.few")
def _few_samples(results: Results) -> Evidence:
    """Measure how many samples a perfect reconstruction takes at β > 1."""
    needed = {}
    for beta in _cold(results):
        M, sign, _ = curve(results, "sign_printed", beta=beta)
        needed[beta] = exact(M[sign > ENOUGH].min() if (sign > ENOUGH).any() else np.inf, ".0f")
    return Evidence({"samples": highest(needed)}, "M = " + listed(needed, "β = {:g}"))


EXPERIMENT = Experiment(
    name="fig1",
    title="Overlap with the one hidden pattern against the number of samples",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_threshold, _printed, _literal, _one_sample, _few_samples),
)
