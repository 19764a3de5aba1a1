"""Fig. 4: error of the couplings against samples a pattern, across the phases."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import Claim, Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import grade, mean_and_error
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error, match, overlaps
from dualtap.recovery import DualTAP
from dualtap.recovery.published.stopping import kink

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 1000
N_SWEEPS = 200
PATTERNS = (10, 30)
TEMPERATURES = (0.3, 0.5, 0.7, 0.9, 1.3)
RATIOS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
# Samples in retrieval stay near their pattern; this is far from either side at the points above.
RETRIEVAL_OVERLAP = 0.6


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return temperatures from deep in retrieval to the paramagnet, at two loads."""
    # At P = 30 the last point takes as long as all others: quick runs leave it out.
    quick = {10: (2, 5, 10, 20, 50), 30: (2, 5, 10, 20)}
    return [
        (
            {"N": N, "P": P, "students": 2 * P, "T": T, "M": ratio * P, "sweeps": N_SWEEPS},
            100 if full else 2,
        )
        for P in PATTERNS
        for T in TEMPERATURES
        for ratio in (RATIOS if full else quick[P])
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns by the published algorithm, which is not told P and stops at the kink."""
    n_spins, P, n_students, T, M = (parameters[k] for k in ("N", "P", "students", "T", "M"))
    teacher = HopfieldModel.random(n_spins, P, 1 / T, random_state=seed)
    X = teacher.sample(M, n_sweeps=parameters["sweeps"], random_state=seed + 1)
    model = DualTAP(beta=1 / T, n_students=n_students, random_state=seed + 2)
    with warnings.catch_warnings():
        # A fit without a kink is a result here, and is recorded.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    error = coupling_error(model.magnetizations_, teacher.patterns)
    return {
        "error": error.relative,
        "error_printed": error.printed,
        "error_signs": coupling_error(model.patterns_, teacher.patterns).relative,
        "n_patterns": model.n_patterns_,
        "kink_found": int(kink(model.history_.gains) is not None),
        "recovered": match(model.patterns_, teacher.patterns).n_recovered(),
        "sample_overlap": float(np.abs(overlaps(X, teacher.patterns)).max(axis=1).mean()),
    }


def _curve(results: Results, P: int, T: float) -> NDArray[np.float64]:
    """Return M/P, the mean error and its standard error, a row each."""
    counts = results.values("M", P=P, T=T)
    pairs = [mean_and_error(results.column("error", P=P, T=T, M=M)) for M in counts]
    return np.array([(M / P, *pair) for M, pair in zip(counts, pairs, strict=True)]).T


def plot(results: Results) -> Figure:
    """Draw a panel for each number of patterns and a curve for each temperature."""
    loads = results.values("P")
    figure = new_figure(len(loads))
    axes = figure.subplots(1, len(loads), sharey=True, squeeze=False)[0]
    for ax, P in zip(axes, loads, strict=True):
        for T, style in zip(results.values("T", P=P), STYLES, strict=False):
            ratio, mean, error = _curve(results, P, T)
            ax.errorbar(ratio, mean, error, **style, ms=4, lw=1.2, capsize=2, label=f"T = {T:g}")
        ticks = sorted({M // P for M in results.values("M", P=P)})
        ax.set(xscale="log", xlabel="samples a pattern M/P", title=f"P = {P}", ylim=(-0.03, None))
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
    axes[0].set_ylabel("relative error of J")
    axes[-1].legend(frameon=False, fontsize=8)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    loads = " and ".join(str(P) for P in results.values("P"))
    temperatures = ", ".join(f"{T:g}" for T in results.values("T"))
    n_trials = len(results.where(**p))
    return (
        f"Fig. 4. Relative error of the couplings against samples a pattern; the paper's ε is "
        f"this over N(N−1)/2. N = {p['N']}, P = {loads}, P' = 2P, T = 1/β = {temperatures}; "
        f"samples after {p['sweeps']} Glauber sweeps, started equally at the patterns for T < 1 "
        f"and at random above. Published algorithm, β known, P not: γ is the Rayleigh value, and "
        f"rounds stop at the kink of L̂ or after 2P. Means of {n_trials} trials with standard "
        f"errors. A kink was found in {results.column('kink_found').mean():.0%} of all fits. "
        f"Samples keep an overlap above {RETRIEVAL_OVERLAP:g} with a pattern at "
        f"{_phase_text(results)}."
    )


def _in_retrieval(results: Results) -> dict[tuple[int, float], bool]:
    """Say of each P and T whether samples stay near a pattern."""
    return {
        (P, T): bool(results.column("sample_overlap", P=P, T=T).mean() > RETRIEVAL_OVERLAP)
        for P in results.values("P")
        for T in results.values("T", P=P)
    }


def _phase_text(results: Results) -> str:
    phases = _in_retrieval(results)
    return "; ".join(
        f"T = {', '.join(f'{T:g}' for p, T in phases if p == P and phases[p, T])} (P = {P})"
        for P in results.values("P")
    )


def _at_most_samples(results: Results, P: int, T: float, name: str) -> NDArray[Any]:
    """Return a result of the trials with the largest M."""
    return results.column(name, P=P, T=T, M=max(results.values("M", P=P, T=T)))


def claims(results: Results) -> list[Claim]:
    """Judge the error inside and outside retrieval, and the rule to stop."""
    phases = _in_retrieval(results)
    inside = [point for point, retrieval in phases.items() if retrieval]
    outside = [point for point, retrieval in phases.items() if not retrieval]
    return [_inside(results, inside), _outside(results, outside), _stopping(results, inside)]


def _inside(results: Results, inside: Sequence[tuple[int, float]]) -> Claim:
    """Judge whether the error goes to zero in retrieval."""
    said, vanishing = [], 0
    for P, T in inside:
        ratio, mean, error = _curve(results, P, T)
        recovered = _at_most_samples(results, P, T, "recovered").mean()
        vanishing += bool(mean[-1] < 0.02)
        said.append(
            f"P = {P}, T = {T:g}: {mean[-1]:.3f} ± {error[-1]:.3f} at M/P = {ratio[-1]:g}, "
            f"{recovered:.1f} patterns found (smallest {mean.min():.3f} "
            f"at M/P = {ratio[np.argmin(mean)]:g})"
        )
    return Claim(
        says="In the retrieval phase the error goes to zero with M.",
        where="Fig. 4",
        decided_by="relative error of J at the largest M/P below 0.02 wherever samples keep an "
        f"overlap above {RETRIEVAL_OVERLAP:g} with a pattern; found: overlap above 0.9",
        measured="; ".join(said),
        verdict=grade(vanishing == len(inside), vanishing > 0),
    )


def _outside(results: Results, outside: Sequence[tuple[int, float]]) -> Claim:
    """Judge whether reconstruction fails everywhere else."""
    smallest = {(P, T): _curve(results, P, T)[1].min() for P, T in outside}
    found = max(results.column("recovered", P=P, T=T).max() for P, T in outside)
    return Claim(
        says="Outside the retrieval phase there is no perfect reconstruction.",
        where="Fig. 4 and its discussion",
        decided_by="relative error of J above 0.5 at every M/P where samples keep no pattern",
        measured="smallest error "
        + ", ".join(f"{e:.2f} (P = {P}, T = {T:g})" for (P, T), e in smallest.items())
        + f"; at most {found} patterns of a trial above overlap 0.9. This is a limit of the "
        "algorithm at these M, not shown to be one of the data",
        verdict=grade(min(smallest.values()) > 0.5, min(smallest.values()) > 0.1),
    )


def _stopping(results: Results, inside: Sequence[tuple[int, float]]) -> Claim:
    """Judge how often the kink gives the number of patterns in retrieval."""
    shares, measured = [], []
    for P, T in inside:
        stops = results.column("n_patterns", P=P, T=T)
        shares.append(float(np.mean(stops == P)))
        measured.append(f"{np.sum(stops == P)} of {len(stops)} (P = {P}, T = {T:g})")
    return Claim(
        says="The kink tells when to stop, the number of patterns unknown.",
        where="Fig. 4 and its discussion",
        decided_by="rounds stop at P in nine fits of ten, all M/P together, at every P and T in "
        "retrieval",
        measured=", ".join(measured),
        verdict=grade(min(shares) >= 0.9, max(shares) >= 0.9),
    )


EXPERIMENT = Experiment(
    name="fig4",
    title="Error of the couplings against samples a pattern, across the phases",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
