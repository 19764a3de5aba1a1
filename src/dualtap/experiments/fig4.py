"""Fig. 4: error of the couplings against samples a pattern, across the phases."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dualtap.experiments.drawing import STYLES, letter, new_figure, within
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
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
    proportion,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.experiments.transitions import Phase, transitions
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error, match, overlaps
from dualtap.published import DualTAP
from dualtap.published.stopping import kink

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATIOS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50)
PHASES: dict[Phase, str] = {"retrieval": "", "metastable": ", metastable", "none": ", T > $T_M$"}


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (10, 30),
    T: Sequence[float] = (0.3, 0.5, 0.7, 0.9, 1.3),
    ratio: Sequence[int] | None = None,
    sweeps: Sequence[int] = (200,),
) -> Sequence[tuple[Parameters, int]]:
    """Return temperatures from deep in retrieval to the paramagnet, at two loads."""
    # At P = 30 the last point takes as long as all others: quick runs leave it out.
    quick = {10: (2, 5, 10, 20, 50), 30: (2, 5, 10, 20)}
    return [
        (
            {"N": n, "P": p, "students": 2 * p, "T": t, "M": round(r * p), "sweeps": s},
            100 if full else 2,
        )
        for n in N
        for p in P
        for t in T
        for r in ratio or (RATIOS if full else quick.get(p, RATIOS))
        for s in sweeps
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover patterns by the published algorithm, which is not given P and stops at the kink."""
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


def plot(results: Results) -> Figure:
    """Draw a panel for each number of patterns and a curve for each temperature."""
    N, loads = results.only("N"), results.values("P")
    figure = new_figure(len(loads))
    axes = figure.subplots(1, len(loads), sharey=True, squeeze=False)[0]
    for ax, P in zip(axes, loads, strict=True):
        for T, style in zip(results.values("T", P=P), STYLES, strict=False):
            M, error, bar = curve(results, "error", P=P, T=T)
            label = f"T = {T:g}{PHASES[transitions(P / N).phase(T)]}"
            bars = within(error, bar, high=np.inf)
            ax.errorbar(M / P, error, bars, **style, ms=4, lw=1.2, capsize=2, label=label)
        ticks = sorted({M / P for M in results.values("M", P=P)})
        ax.set(xscale="log", xlabel="samples per pattern M/P", ylim=(-0.03, None))
        ax.set_title(f"P = {P}", fontsize=10)
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize=7)
    axes[0].set_ylabel("relative error of J")
    letter(axes)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    loads = results.values("P")
    temperatures = ", ".join(f"{T:g}" for T in results.values("T"))
    lines = "; ".join(
        f"T_R = {found.T_R:.3f}, T_M = {found.T_M:.3f} (P = {P})"
        for P, found in ((P, transitions(P / p["N"])) for P in loads)
    )
    return (
        f"Fig. 4. Relative error of the couplings against samples per pattern; the paper's ε is "
        f"this over N(N−1)/2. N = {p['N']}, P = {' and '.join(map(str, loads))}, P' = 2P, "
        f"T = 1/β = {temperatures}; samples after {p['sweeps']} Glauber sweeps, started equally "
        f"at the patterns for T < 1 and at random above. Published algorithm, β known, P not: γ "
        f"is the Rayleigh value, and rounds stop at the kink of the gains ½ m·J^τ m or after 2P. "
        f"Means of {results.n_trials()} trials per point with standard errors. A kink was found "
        f"in {proportion(results.column('kink_found'))} of all fits. Retrieval states are stable "
        f"below T_R and metastable below T_M, by replica theory: {lines}."
    )


def _points_in(results: Results, phase: Phase) -> list[tuple[int, float]]:
    """Return the P and T in a phase of the replica-symmetric theory."""
    N = results.only("N")
    return [
        (P, T)
        for P in results.values("P")
        for T in results.values("T", P=P)
        if transitions(P / N).phase(T) == phase
    ]


def _errors(results: Results, P: int, T: float) -> dict[float, Estimate]:
    """Return the mean error by M/P."""
    counts = results.values("M", P=P, T=T)
    return {M / P: mean(results.column("error", P=P, T=T, M=M)) for M in counts}


def _place(point: tuple[int, float]) -> str:
    return f"P = {point[0]}, T = {point[1]:g}"


@judge("fig4.inside")
def _inside(results: Results) -> Evidence:
    """Measure the error at most samples in retrieval, and beside it where it is metastable."""
    last, said = {}, []
    for point in _points_in(results, "retrieval"):
        P, T = point
        errors = _errors(results, P, T)
        most = max(errors)
        last[point] = errors[most]
        found = mean(results.column("recovered", P=P, T=T, M=round(most * P)), 1)
        said.append(f"{_place(point)}: {errors[most]} at M/P = {most:g}, {found} patterns found")
    between = {
        _place(point): errors[max(errors)]
        for point in _points_in(results, "metastable")
        for errors in [_errors(results, *point)]
    }
    text = "; ".join(said) + (f". Where it is metastable: {listed(between)}" if between else "")
    return Evidence({"all": highest(last), "any": lowest(last)}, text)


@judge("fig4.outside")
def _outside(results: Results) -> Evidence:
    """Measure the smallest error where retrieval states are metastable, and where there is none."""
    smallest = {
        phase: {
            _place(point): lowest(_errors(results, *point)) for point in _points_in(results, phase)
        }
        for phase in ("none", "metastable")
    }
    found = highest(
        {
            (P, T): exact(results.column("recovered", P=P, T=T).max())
            for P, T in _points_in(results, "none")
        }
    )
    return Evidence(
        {"unstable": lowest(smallest["none"]), "metastable": lowest(smallest["metastable"])},
        f"smallest error at any M/P, T > T_M: {listed(smallest['none'])}, with at most {found} "
        f"patterns of a trial above overlap 0.9; T_R < T < T_M: {listed(smallest['metastable'])}. "
        "This is a limit of the algorithm at these M, not shown to be one of the data",
    )


@judge("fig4.stop")
def _stopping(results: Results) -> Evidence:
    """Measure how often the kink gives the number of patterns in retrieval."""
    shares = {
        (P, T): proportion(results.column("n_patterns", P=P, T=T) == P)
        for P, T in _points_in(results, "retrieval")
    }
    text = ", ".join(f"{share} ({_place(point)})" for point, share in shares.items())
    return Evidence({"all": lowest(shares), "any": highest(shares)}, text)


EXPERIMENT = Experiment(
    name="fig4",
    title="Error of the couplings against samples per pattern, across the phases",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_inside, _outside, _stopping),
)
