"""Fig. 3: error of the couplings and simplified likelihood, round by round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import Claim, Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import grade, mean_and_error
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error, match
from dualtap.recovery import DualTAP
from dualtap.recovery.published.stopping import kink

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINT = {"N": 1000, "P": 20, "students": 25, "beta": 2.0}
COUNTS = (100, 200, 500, 1000)


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return the paper's four numbers of samples; quick trials are fewer."""
    return [({**POINT, "M": M}, 100 if full else 6) for M in COUNTS]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns by the published algorithm, all P' rounds."""
    N, P, n_students, M, beta = (parameters[k] for k in ("N", "P", "students", "M", "beta"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    model = DualTAP(
        P, beta=beta, n_students=n_students, n_steps=n_students, random_state=seed + 2
    ).fit(X)
    history = model.history_
    soft = coupling_error(model.magnetizations_, teacher.patterns)
    return {
        "errors": history.coupling_errors(teacher),
        "likelihood": history.likelihood,
        "error": soft.relative,
        "error_printed": soft.printed,
        "error_signs": coupling_error(model.patterns_, teacher.patterns).relative,
        "recovered": match(model.patterns_, teacher.patterns).n_recovered(0.97),
        # 0 stands for no kink: JSON keeps one type a column.
        "kink": kink(history.gains) or 0,
    }


def _path(results: Results, name: str, M: int) -> NDArray[np.float64]:
    """Return a quantity of every trial (rows) after every round (columns)."""
    return np.array([row.array(name) for row in results.where(M=M)])


def _scaled_likelihood(results: Results, M: int) -> NDArray[np.float64]:
    """Return 2 L̂/(NM): squared overlaps with the students, summed, in the mean over samples."""
    n_spins = results.rows[0].parameters["N"]
    scaled: NDArray[np.float64] = 2 * _path(results, "likelihood", M) / (n_spins * M)
    return scaled


def _pairs(results: Results) -> float:
    """Return N(N-1)/2, the factor between the relative error and the printed ε."""
    n_spins: int = results.rows[0].parameters["N"]
    return n_spins * (n_spins - 1) / 2


def plot(results: Results) -> Figure:
    """Draw the error on the left and the scaled likelihood on the right, against the round."""
    figure = new_figure(2)
    left, right = figure.subplots(1, 2)
    for M, style in zip(results.values("M"), STYLES, strict=False):
        look = {**style, "ms": 3.5, "lw": 1.2, "capsize": 2, "label": f"M = {M}"}
        for ax, paths in (
            (left, _path(results, "errors", M)),
            (right, _scaled_likelihood(results, M)),
        ):
            mean, error = mean_and_error(paths)
            ax.errorbar(np.arange(1, len(mean) + 1), mean, error, **look)
    P, pairs = results.rows[0].parameters["P"], _pairs(results)
    for ax in (left, right):
        ax.axvline(P, color="black", lw=0.8, ls=":")
        ax.set_xlabel("round τ")
    # On a linear scale the M differ in one point only, the one that matters.
    left.set(yscale="log", ylabel="relative error of J", yticks=(0.05, 0.1, 0.2, 0.5, 1))
    left.set_yticklabels(["0.05", "0.1", "0.2", "0.5", "1"])
    left.minorticks_off()
    right.set(ylim=(0, None), ylabel="2 L̂ / (N M)")
    printed = left.secondary_yaxis("right", functions=(lambda e: e / pairs, lambda e: e * pairs))
    printed.set_ylabel("ε as printed")
    left.legend(frameon=False, fontsize=8, loc="lower left")
    right.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    counts = ", ".join(str(M) for M in results.values("M"))
    errors = ", ".join(f"{results.column('error', M=M).mean():.3f}" for M in results.values("M"))
    return (
        f"Fig. 3. Left: relative error of the couplings rebuilt from the first τ rounds; the "
        f"paper's ε is this over N(N−1)/2 (right scale). Right: simplified likelihood L̂ over "
        f"NM/2. N = {p['N']}, P = {p['P']} (dotted line), P' = {p['students']}, "
        f"β = {p['beta']:g}, M = {counts}; published algorithm, γ = M/P. Means of "
        f"{len(results.where(M=p['M']))} trials each, with standard errors. Relative error after "
        f"{p['P']} rounds: {errors}."
    )


def claims(results: Results) -> list[Claim]:
    """Judge the error, the likelihood and its kink."""
    return [_turn(results), _zero(results), _collapse(results), _kinks(results)]


def _turn(results: Results) -> Claim:
    """Judge the fall of the error to round P, and its rise afterwards."""
    P = results.rows[0].parameters["P"]
    lowest = [
        (M, int(np.sum(np.argmin(_path(results, "errors", M), axis=1) + 1 == P)))
        for M in results.values("M")
    ]
    share = sum(count for _, count in lowest) / len(results)
    return Claim(
        says="The error falls while patterns are learnt and rises when noise is learnt after them.",
        where="Fig. 3 and its discussion",
        decided_by=f"the error is smallest after round P = {P} in nine trials of ten",
        measured=", ".join(
            f"{count} of {len(results.where(M=M))} (M = {M})" for M, count in lowest
        ),
        verdict=grade(share >= 0.9, share >= 0.5),
    )


def _zero(results: Results) -> Claim:
    """Judge the error at the largest M."""
    counts = results.values("M")
    P = results.rows[0].parameters["P"]
    soft = {M: mean_and_error(results.column("error", M=M)) for M in counts}
    signs = results.column("error_signs", M=max(counts)).mean()
    # Neighbours may lie closer than trials can tell: a rise counts beyond the errors of both.
    falls = all(soft[b][0] - soft[a][0] < soft[a][1] + soft[b][1] for a, b in pairwise(counts))
    last = soft[max(counts)][0]
    complete = int(np.sum(results.column("recovered", M=max(counts)) == P))
    return Claim(
        says="The error falls with M and is zero at M = 1000.",
        where="Fig. 3",
        decided_by=f"relative error of J after {P} rounds: falls with M, and is below 0.005 at the "
        "last",
        measured=", ".join(
            f"{mean:.3f} ± {error:.3f} (M = {M})" for M, (mean, error) in soft.items()
        )
        + f"; with signs {signs:.3f} at the last, where {complete} of "
        f"{len(results.where(M=max(counts)))} trials have all patterns above overlap 0.97. The "
        f"printed ε is {results.column('error_printed', M=max(counts)).mean():.1e} there: zero on "
        f"any axis, but so is the {1 / _pairs(results):.1e} of J = 0",
        verdict=grade(falls and last < 0.005, falls and last < 0.1),
        slip="ε is printed with a factor 1/[N(N−1)/2] before a ratio that is already relative: at "
        "N = 1000 it is 2e-6 even when nothing is learnt. We report the ratio.",
    )


def _collapse(results: Results) -> Claim:
    """Judge how little the scaled likelihood depends on M."""
    curves = np.array([_scaled_likelihood(results, M).mean(axis=0) for M in results.values("M")])
    P = results.rows[0].parameters["P"]
    spread = np.ptp(curves, axis=0) / curves.mean(axis=0)
    before, after = float(spread[:P].max()), float(spread[P:].max())
    return Claim(
        says="Rescaled, the simplified likelihood hardly depends on M.",
        where="Fig. 3",
        decided_by="largest spread of L̂/M between the M, relative to its mean, below 0.05",
        measured=f"{before:.3f} up to round {P}, {after:.3f} after it",
        verdict=grade(max(before, after) < 0.05, min(before, after) < 0.05),
    )


def _kinks(results: Results) -> Claim:
    """Judge the kink as a rule to stop."""
    P = results.rows[0].parameters["P"]
    found = {M: int(np.sum(results.column("kink", M=M) == P)) for M in results.values("M")}
    share = sum(found.values()) / len(results)
    return Claim(
        says="The simplified likelihood has a kink where all patterns are learnt, which can stop "
        "the algorithm.",
        where="Fig. 3 and its discussion",
        decided_by=f"the first round that gains at most half of the median gain is P + 1 = {P + 1}",
        measured=", ".join(f"{n} of {len(results.where(M=M))} (M = {M})" for M, n in found.items()),
        verdict=grade(share >= 0.9, share >= 0.5),
    )


EXPERIMENT = Experiment(
    name="fig3",
    title="Error of the couplings and simplified likelihood, round by round",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
