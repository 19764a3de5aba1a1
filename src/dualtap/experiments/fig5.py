"""Fig. 5: pseudo-likelihood and error of the couplings while an RBM learns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    exact,
    highest,
    judge,
    listed,
    mean,
    proportion,
)
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error
from dualtap.published import DualTAP
from dualtap.rbm.estimator import HopfieldRBM
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import is_flat
from dualtap.rbm.priors import PRIORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 200  # samples up to which the flattening is asked to mark the smallest error


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (10,),
    M: Sequence[int] = (100, 200, 500, 1000, 2000),
    beta: Sequence[float] = (2.0,),
    hidden: Sequence[int] = (15,),
    updates: Sequence[int] = (600,),
) -> Sequence[tuple[Parameters, int]]:
    """Return the paper's model with every number of samples; quick has fewer trials."""
    return [
        ({"N": n, "P": p, "beta": b, "hidden": h, "updates": u, "M": m}, 20 if full else 2)
        for n in N
        for p in P
        for b in beta
        for h in hidden
        for u in updates
        for m in M
    ]


def samples(parameters: Parameters, seed: int) -> tuple[HopfieldModel, NDArray[np.int8]]:
    """Return a teacher and samples of it."""
    N, P, M, beta = (parameters[k] for k in ("N", "P", "M", "beta"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    return teacher, teacher.sample(M, random_state=seed + 1)


def untrained(parameters: Parameters, seed: int, **options: Any) -> HopfieldRBM:
    """Return the RBM of the figure, as the paper trains it."""
    # No early stop: the figure shows what comes after the best moment too.
    return HopfieldRBM.paper(
        parameters["hidden"],
        early_stopping=False,
        max_updates=parameters["updates"],
        look_every=5,
        random_state=seed + 2,
        **options,
    )


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Train an RBM, look at it every five updates, and compare with the published algorithm."""
    teacher, X = samples(parameters, seed)
    curve = untrained(parameters, seed).fit(X, teacher=teacher).history_
    flat = int(np.argmax(is_flat(curve.update, curve.pseudo_likelihood)))
    best = int(np.argmin(curve.error))
    tap = DualTAP(parameters["P"], beta=parameters["beta"], random_state=seed + 2).fit(X)
    return {
        "update": curve.update,
        "S": curve.pseudo_likelihood,
        "S_one_step": curve.pseudo_likelihood_one_step,
        "error": curve.error,
        "flat_at": int(curve.update[flat]),
        "best_at": int(curve.update[best]),
        "error_flat": curve.error[flat],
        "error_best": curve.error[best],
        "error_last": curve.error[-1],
        "error_tap": coupling_error(tap.magnetizations_, teacher.patterns).relative,
        "S_last": curve.pseudo_likelihood[-1],
        "S_one_step_last": curve.pseudo_likelihood_one_step[-1],
        **stationary_slopes(seed + 3),
    }


def stationary_slopes(seed: int) -> dict[str, float]:
    """Return the largest slopes of L and of S under endless data of a small teacher, enumerated.

    At the teacher's weights, and at weights a fifth larger.
    """
    s = np.array(list(product([-1.0, 1.0], repeat=8)))
    W = np.random.default_rng(seed).normal(scale=0.3, size=(2, 8))

    def model(weights: NDArray[np.float64]) -> RBM:
        return RBM(weights, np.zeros(8), PRIORS["gaussian"])

    def objectives(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        now = model(weights)
        F = now.free_energy(s)
        S = -np.logaddexp(0, -2 * now.aligned_fields(s)).mean(axis=1)
        return np.array([law @ (-F - logsumexp(-F)), law @ S])

    law = softmax(-model(W).free_energy(s))
    slopes = {}
    for name, center in (("teacher", W), ("elsewhere", 1.2 * W)):
        steps = 1e-5 * np.eye(W.size).reshape(-1, *W.shape)
        rises = [(objectives(center + e) - objectives(center - e)) / 2e-5 for e in steps]
        slopes[f"L_slope_{name}"], slopes[f"S_slope_{name}"] = np.abs(rises).max(axis=0).tolist()
    return slopes


def plot(results: Results) -> Figure:
    """Draw S and the error against updates, a curve for every M, averaged over trials."""
    for name in ("N", "P", "beta", "hidden", "updates"):
        results.only(name)
    figure = new_figure(n_panels=2)
    left, right = figure.subplots(1, 2)
    for style, M in zip(STYLES, results.values("M"), strict=False):
        own = results.where(M=M)
        _curve(left, own, "S", own.column("flat_at").mean(), style)
        _curve(right, own, "error", own.column("best_at").mean(), style)
    letter((left, right))
    worst = results.column("error_tap").max()
    right.axhline(worst, color="black", lw=1.5)
    right.annotate(
        "TAP, worst trial", (1, worst), (-4, 3), ha="right", fontsize=9,
        xycoords=right.get_yaxis_transform(), textcoords="offset points",
    )  # fmt: skip
    left.set(xlabel="updates", ylabel="pseudo-likelihood per spin")
    right.set(xlabel="updates", ylabel="relative error of J", ylim=(-0.03, 1.1))
    left.legend(frameon=False, loc="lower right")
    return figure


def _curve(ax: Axes, own: Results, name: str, special: float, style: dict[str, Any]) -> None:
    """Draw the mean of a curve over trials, with a large hollow marker at a special update."""
    update = own.rows[0].array("update")
    y = np.mean([row.array(name) for row in own], axis=0)
    ax.plot(
        update, y, label=f"M = {own.rows[0].parameters['M']}", markevery=12, markersize=4, **style
    )
    at = np.interp(special, update, y)
    hollow = {"markerfacecolor": "white", "markersize": 9, "linestyle": "none"}
    ax.plot([special], [at], zorder=3, **(style | hollow))


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    counts = ", ".join(str(M) for M in results.values("M"))
    return (
        f"Fig. 5. Learning of an RBM with {p['hidden']} Gaussian hidden units on samples of a "
        f"Hopfield model. N = {p['N']}, P = {p['P']}, β = {p['beta']:g}, M = {counts}; PCD-10, "
        f"mini-batches of 100, 100 chains, learning rate 0.05 over the largest second moment of "
        f"the data, {p['updates']} updates, a look every 5; mean over trials, {results.n_trials()} "
        f"for each M. (a) Exact pseudo-likelihood on 64 samples, per spin (the paper sums over "
        f"spins); large hollow markers: where it has flattened. (b) Relative error of J = WᵀW/β "
        f"(the paper's ε times N(N-1)/2); large hollow markers: where it is smallest. Black line: "
        f"the largest error of the published TAP algorithm in these trials."
    )


@judge("fig5.tap")
def _never_as_good(results: Results) -> Evidence:
    """Compare the smallest error of the RBM with TAP's, trial by trial."""
    rbm, tap = results.column("error_best"), results.column("error_tap")
    above = proportion(rbm > tap)
    by_samples = {
        M: f"{mean(results.column('error_best', M=M), 2)} against "
        f"{mean(results.column('error_tap', M=M))}"
        for M in results.values("M")
    }
    return Evidence({"above": above}, f"above in {above} trials: {listed(by_samples, 'M = {}')}")


@judge("fig5.flat")
def _smallest_where_flat(results: Results) -> Evidence:
    """Compare the update where S flattens with that where the error is smallest."""
    ratios = {
        M: mean(results.column("flat_at", M=M) / results.column("best_at", M=M), 2)
        for M in results.values("M")
    }
    away = {M: exact(abs(ratio.value - 1)) for M, ratio in ratios.items()}
    excess = results.column("error_flat") / results.column("error_best")
    return Evidence(
        {"few": highest({M: e for M, e in away.items() if M <= FEW}), "all": highest(away)},
        f"flat at / smallest at: {listed(ratios, 'M = {}')}; error where flat over smallest: "
        f"{excess.min():.2f} to {excess.max():.2f}",
    )


@judge("fig5.stationary")
def _same_stationary_point(results: Results) -> Evidence:
    """Compare slopes of L and S at the weights of a small teacher, and elsewhere."""
    bias = mean(results.column("S_one_step_last") - results.column("S_last"), 4)
    zero = max(results.column(f"{name}_slope_teacher").max() for name in "LS")
    other = min(results.column(f"{name}_slope_elsewhere").min() for name in "LS")
    return Evidence(
        {"teacher": exact(zero), "elsewhere": exact(other / zero)},
        f"at most {zero:.0e} at the teacher, at least {other:.0e} elsewhere; at the end of "
        f"learning the one-step estimate exceeds S by {bias} per spin",
    )


EXPERIMENT = Experiment(
    name="fig5",
    title="Pseudo-likelihood and error of the couplings while an RBM learns",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_never_as_good, _smallest_where_flat, _same_stationary_point),
)
