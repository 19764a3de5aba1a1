"""Theory 1: the log-partition function of two patterns, with enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.judging import Evidence, claims_of, exact, judge
from dualtap.theory import two_pattern_log_partition, two_pattern_log_partition_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_ENUMERATED = 12


def points(
    full: bool,
    *,
    beta: Sequence[float] = (0.5, 1.0, 1.5, 2.0),
    N: Sequence[int] = (N_ENUMERATED,),
) -> Sequence[tuple[Parameters, int]]:
    """Return inverse temperatures; nothing here is random."""
    return [({"beta": b, "N": n}, 1) for b in beta for n in N]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Compute φ(q) in the limit, and for N spins by formula and by enumeration."""
    beta, n = parameters["beta"], parameters["N"]
    s = np.array(list(product([-1, 1], repeat=n)))
    q_finite = 2 * np.arange(n + 1) / n - 1
    enumerated = []
    for n_equal in range(n + 1):
        xi = np.ones((2, n))
        xi[1, n_equal:] = -1
        enumerated.append(logsumexp(beta / (2 * n) * np.square(s @ xi.T).sum(axis=1)) / n)
    exact = [two_pattern_log_partition_exact(q, beta, n) for q in q_finite]
    q = np.linspace(-1, 1, 201)
    phi = two_pattern_log_partition(q, beta)
    return {
        "q": q,
        "phi": phi,
        "q_finite": q_finite,
        "enumerated": np.array(enumerated),
        "largest_difference": float(np.max(np.abs(np.array(exact) - enumerated))),
        "curvature": float(np.min(np.diff(phi, 2))),
        "minimum_at": float(q[np.argmin(phi)]),
    }


def plot(results: Results) -> Figure:
    """Draw φ(q) less its minimum for every β, with the finite system as dots."""
    figure = new_figure(width=5.2, height=3.8)
    ax = figure.subplots()
    for row, style in zip(results, STYLES, strict=False):
        line = {key: style[key] for key in ("color", "linestyle")}
        ax.plot(row.array("q"), row.array("phi"), **line, label=f"β = {row.parameters['beta']:g}")
        ax.plot(
            row.array("q_finite"),
            row.array("enumerated"),
            color=style["color"],
            marker=style["marker"],
            linestyle="",
            ms=4,
        )
    ax.set(xlabel="overlap q of the two patterns", ylabel="φ(q) = (1/N) log Z")
    ax.legend(frameon=False)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    betas = ", ".join(f"{row.parameters['beta']:g}" for row in results)
    worst = results.column("largest_difference").max()
    return (
        f"Theory 1. Log-partition function per spin of two patterns with overlap q, β = {betas}. "
        f"Lines: N → ∞; symbols: all states of N = {results.only('N')} spins enumerated (the "
        f"factorised formula for finite N differs from them by at most {worst:.0e}). It is "
        "smallest for orthogonal patterns, so -M log Z drives patterns apart."
    )


@judge("theory1.orthogonal")
def _orthogonal(results: Results) -> Evidence:
    """Measure convexity, the place of the minimum, and the difference from enumeration."""
    worst = results.column("largest_difference").max()
    at_zero = [abs(row.results["minimum_at"]) for row in results if row.parameters["beta"] > 1]
    if not at_zero:
        raise MissingTrialsError("there is no trial at β > 1")
    return Evidence(
        {
            "convex": exact(results.column("curvature").min()),
            "minimum": exact(max(at_zero)),
            "enumeration": exact(worst),
        },
        f"minimum at |q| ≤ {max(at_zero):.0e} for β > 1; flat at log 2 while β(1+|q|) ≤ 1; "
        f"difference from enumeration {worst:.0e}",
    )


EXPERIMENT = Experiment(
    name="theory1",
    title="Log-partition function of two patterns",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_orthogonal),
)
