"""Students: other iterations than TAP's for one pattern at β < 1, on the same samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dualtap.experiments.drawing import STYLES, letter, new_figure, within
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.fig1 import relaxed_after
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    curve,
    highest,
    judge,
    mean,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import overlaps
from dualtap.published import DualTAP
from dualtap.theory import critical_samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCHEMES = {
    "tap": "TAP",
    "opper-winther": "Opper–Winther, corrected",
    "opper-winther-printed": "Opper–Winther, printed",
    "amp": "AMP, parallel",
    "sequential-amp": "AMP, sequential",
}
MAX_ITER = 1000  # what sequential students need; the others are done long before


def points(
    full: bool,
    *,
    N: Sequence[int] = (500,),
    beta: Sequence[float] = (0.5, 0.7, 0.8, 0.9),
    multiple: Sequence[float] | None = None,
) -> Sequence[tuple[Parameters, int]]:
    """Return multiples of the critical number of samples; quick trials are fewer."""
    return [
        ({"N": n, "beta": b, "M": round(k * critical_samples(b, n))}, 50 if full else 2)
        for n in N
        for b in beta
        for k in multiple or ((1, 2, 4, 8) if full else (2, 8))
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover the pattern of one data set with students of every kind."""
    N, beta, M = (parameters[k] for k in ("N", "beta", "M"))
    teacher = HopfieldModel.random(N, 1, beta, random_state=seed)
    X = teacher.sample(M, n_sweeps=relaxed_after(beta), random_state=seed + 1)
    outcome: dict[str, Any] = {}
    for scheme in SCHEMES:
        model = DualTAP(1, beta, scheme=scheme, max_iter=MAX_ITER, random_state=seed + 2)
        model.fit(X)
        outcome[scheme] = float(abs(overlaps(model.patterns_, teacher.patterns)[0, 0]))
        outcome[f"{scheme}_steps"] = model.n_iter_
    return outcome


def plot(results: Results) -> Figure:
    """Draw the mean overlap against M, a panel for each temperature, a curve for each scheme."""
    results.only("N")
    betas = results.values("beta")
    figure = new_figure(n_panels=len(betas), width=3.0, height=3.2)
    axes = figure.subplots(1, len(betas), sharey=True, squeeze=False)[0]
    for ax, beta in zip(axes, betas, strict=True):
        mine = results.where(beta=beta)
        counts = mine.values("M")
        for k, (style, scheme) in enumerate(zip(STYLES, SCHEMES, strict=False)):
            M, overlap, error = curve(mine, scheme)
            # Hollow and of growing size: curves that coincide stay visible.
            look = {**style, "ms": 3 + 1.5 * k, "mfc": "none", "lw": 1, "capsize": 2}
            ax.errorbar(M, overlap, within(overlap, error), **look, label=SCHEMES[scheme])
        ax.set(xlabel="samples M", xscale="log", ylim=(-0.05, 1.08))
        ax.set_xticks(counts, [str(M) for M in counts])
        ax.minorticks_off()
        ax.set_title(f"β = {beta:g}", fontsize=9)
    axes[0].set_ylabel("overlap with the pattern")
    axes[0].legend(frameon=False, fontsize=7, loc="upper left")
    letter(axes)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    multiples = sorted(
        {
            round(r.parameters["M"] / critical_samples(r.parameters["beta"], results.only("N")))
            for r in results
        }
    )
    return (
        f"Students. Overlap of the recovered pattern's signs with the teacher's only one at β < 1 "
        f"by the published algorithm (25 students from random starts, at most {MAX_ITER} steps) "
        f"with different iterations of its students, on the same samples; M = "
        f"{', '.join(map(str, multiples))} M_c, M_c = N(1/β−1)². N = {results.only('N')}; "
        f"sequential AMP with damping 0.95 of the field. Means of {results.n_trials()} trials per "
        f"point with standard errors."
    )


def _largest_gain(results: Results, *schemes: str) -> tuple[Estimate, str]:
    """Return by how much schemes exceed TAP's overlap where they do so most, and where that is."""
    gains = {
        (beta, M, scheme): mean(
            results.column(scheme, beta=beta, M=M) - results.column("tap", beta=beta, M=M), 2
        )
        for beta in results.values("beta")
        for M in results.values("M", beta=beta)
        for scheme in schemes
    }
    best = highest(gains)
    beta, M, scheme = next(key for key, gain in gains.items() if gain == best)
    return best, f"{best} ({SCHEMES[scheme]}, β = {beta:g}, M = {M})"


@judge("students.warm")
def _no_gain(results: Results) -> Evidence:
    """Measure what other iterations gain over TAP."""
    amp, said = _largest_gain(results, "sequential-amp")
    ow, also = _largest_gain(results, "opper-winther", "opper-winther-printed")
    overall = {scheme: mean(results.column(scheme), 2) for scheme in SCHEMES}
    text = ", ".join(f"{SCHEMES[scheme]} {overlap}" for scheme, overlap in overall.items())
    return Evidence(
        {"amp": amp, "opper_winther": ow},
        f"largest gains over TAP: {said}, {also}. Mean overlap over all points: {text}",
    )


EXPERIMENT = Experiment(
    name="students",
    title="Other iterations of the students for one pattern at β < 1",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_no_gain),
)
