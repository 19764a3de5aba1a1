"""Pairs: the published algorithm against estimators of all couplings of a pairwise Ising model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    PseudoLikelihood,
)
from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    curve,
    exact,
    judge,
    mean,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error
from dualtap.published import DualTAP

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLATTERING = (1.0, 2.2, 4.6)  # regularisations among which the truth itself may choose
METHODS = {
    "tap": "published TAP",
    "held_out": "pseudo-likelihood, λ held out",
    "flattered": "pseudo-likelihood, λ by the truth",
    "decimated": "pseudo-likelihood, decimated",
    "rise": "RISE, λ held out",
    "log_rise": "logRISE, λ held out",
}
_HATCHES = ("", "//", "..", "xx", "--", "\\\\")
DECIMATION: dict[str, Any] = {"regularization": 0.1, "removed": 0.4}
SCREENING: dict[str, Any] = {"tol": 1e-5, "max_iter": 200}


def points(
    full: bool,
    *,
    N: Sequence[int] | None = None,
    beta: Sequence[float] = (2.0,),
    ratio: Sequence[int] = (10, 50),
) -> Sequence[tuple[Parameters, int]]:
    """Return two numbers of samples per pattern, P = N/50; quick systems are smaller."""
    return [
        ({"N": n, "P": n // 50, "beta": b, "M": n // 50 * r}, 3 if full else 1)
        for n in N or (1000 if full else 200,)
        for b in beta
        for r in ratio
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Infer the couplings by every method, and compare with the teacher's."""
    N, P, beta, M = (parameters[k] for k in ("N", "P", "beta", "M"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    start = time.perf_counter()
    tap = DualTAP(P, beta=beta, random_state=seed + 2).fit(X)
    outcome: dict[str, Any] = {
        "tap": coupling_error(tap.magnetizations_, teacher.patterns).relative,
        "tap_seconds": time.perf_counter() - start,
    }
    truth = teacher.patterns.T @ teacher.patterns.astype(np.float64) / N
    rivals: dict[str, Any] = {
        "held_out": PseudoLikelihood(random_state=seed + 3),
        "decimated": DecimatedPseudoLikelihood(**DECIMATION),
        "rise": InteractionScreening(**SCREENING, random_state=seed + 3),
        "log_rise": InteractionScreening(logarithm=True, **SCREENING, random_state=seed + 3),
    }
    for name, rival in rivals.items():
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rival.fit(X)
        outcome[f"{name}_seconds"] = time.perf_counter() - start
        outcome[name] = _relative(rival.couplings_ / beta, truth)
    outcome["regularization"] = float(rivals["held_out"].regularization_)
    flattered = [PseudoLikelihood(value).fit(X).couplings_ for value in FLATTERING]
    outcome["flattered"] = min(_relative(J / beta, truth) for J in flattered)
    return outcome


def _relative(J: NDArray[np.floating], truth: NDArray[np.float64]) -> float:
    """Return the relative error over pairs."""
    pairs = np.triu_indices(len(truth), k=1)
    return float(np.linalg.norm(J[pairs] - truth[pairs]) / np.linalg.norm(truth[pairs]))


def plot(results: Results) -> Figure:
    """Draw the errors side by side, and the times."""
    figure = new_figure(n_panels=2)
    axes = figure.subplots(1, 2)
    sizes = results.values("M")
    for k, (name, label) in enumerate(METHODS.items()):
        _, heights, errors = curve(results, name)
        look = {"color": STYLES[k]["color"], "hatch": _HATCHES[k], "edgecolor": "white"}
        place = np.arange(len(sizes)) + 0.14 * (k - 2.5)
        axes[0].bar(place, heights, yerr=errors, width=0.13, **look, label=label)
        if f"{name}_seconds" in results.rows[0].results:
            seconds = [results.column(f"{name}_seconds", M=M).mean() for M in sizes]
            axes[1].bar(place, seconds, width=0.13, **look)
    for ax in axes:
        ax.set_xticks(range(len(sizes)), [f"M = {M}" for M in sizes])
    axes[1].set(yscale="log")
    axes[0].set_yscale("symlog", linthresh=0.1)  # errors of zero are drawn, too
    axes[0].axhline(1, color="grey", lw=0.8, ls=":")
    axes[0].set(ylabel="relative error of J")
    axes[1].set(ylabel="seconds")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    letter(axes)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    return (
        "Pairs. (a) Relative error of the couplings by the published algorithm and by estimators "
        "of a pairwise Ising model: L2-regularised pseudo-likelihood, its strength λ chosen by "
        f"held-out samples or, flatteringly, by the truth among {FLATTERING}; decimated "
        f"pseudo-likelihood (λ = {DECIMATION['regularization']:g}, "
        f"{DECIMATION['removed']:.0%} of the couplings removed per step); interaction screening "
        "with an L1 penalty, λ by held-out samples. Dotted: no couplings at all. (b) Their times, "
        f"one process. N = {p['N']}, P = {p['P']}, β = {p['beta']:g}; {results.n_trials()} "
        "trial(s) per point; bars are standard errors."
    )


def _lead(results: Results, rivals: Sequence[str]) -> Estimate:
    """Return the smallest error of a rival less TAP's, over trials."""
    return exact(min((results.column(name) - results.column("tap")).min() for name in rivals))


def _said(results: Results, names: Sequence[str]) -> str:
    """Return errors and times as text."""
    parts = []
    for M in results.values("M"):
        errors = [
            f"{METHODS[name]} {mean(results.column(name, M=M))}"
            + (f" in {results.column(f'{name}_seconds', M=M).mean():.1f} s"
               if f"{name}_seconds" in results.rows[0].results else "")
            for name in names
        ]  # fmt: skip
        parts.append(f"M = {M}: " + ", ".join(errors))
    return "; ".join(parts)


@judge("pairs.pseudo_likelihood")
def _pseudo_likelihood(results: Results) -> Evidence:
    """Measure errors and times of the pseudo-likelihood against TAP's."""
    slower = (results.column("held_out_seconds") / results.column("tap_seconds")).min()
    return Evidence(
        {
            "error": _lead(results, ("held_out", "flattered")),
            "time": exact(slower),
        },
        _said(results, ("tap", "held_out", "flattered")),
    )


@judge("pairs.others")
def _others(results: Results) -> Evidence:
    """Measure errors of decimation and of interaction screening against TAP's."""
    others = ("decimated", "rise", "log_rise")
    return Evidence(
        {"error": _lead(results, others)},
        _said(results, ("tap", *others)),
    )


EXPERIMENT = Experiment(
    name="pairs",
    title="Estimators of a pairwise Ising model",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_pseudo_likelihood, _others),
)
