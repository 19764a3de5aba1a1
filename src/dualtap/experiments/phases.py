"""Phases: where patterns are recovered, blind and with help, and where the data allow it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from dualtap.experiments.drawing import letter, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.judging import Evidence, claims_of, judge, proportion
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match, overlaps
from dualtap.published import DualTAP
from dualtap.recovery import HopfieldPatterns
from dualtap.theory import critical_samples, paramagnetic_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# None at β = 1, where samples are neither: chains forget their start too slowly to tell.
BETAS = (0.3, 0.4, 0.5, 0.7, 0.85, 1.2, 1.5, 2.0, 3.0)
RATIOS = (0.05, 0.12, 0.3, 0.8, 2.0, 5.0)
N_SWEEPS = 200
METHODS = {
    "ours": "dualtap, blind",
    "paper": "published, β and P given",
    "kmeans": "k-means, P given",
    "limit": "limit of the data",
}
# Below, samples have left the pattern they started from: a vote by their start bounds nothing.
OWN_OVERLAP = 0.5
NEAR_LIMIT = 0.1
NEAR_RIVAL = 0.05


def points(
    full: bool,
    *,
    N: Sequence[int] | None = None,
    P: Sequence[int] = (1, 5, 20),
    beta: Sequence[float] = BETAS,
    ratio: Sequence[float] = RATIOS,
    sweeps: Sequence[int] = (N_SWEEPS,),
) -> Sequence[tuple[Parameters, int]]:
    """Return temperatures on both sides of β = 1 against samples per spin, at three P."""
    return [
        ({"N": n, "P": p, "beta": b, "M": round(r * n), "sweeps": s}, 5 if full else 1)
        for n in N or ((1000,) if full else (500,))
        for p in P
        for b in beta
        for r in ratio
        for s in sweeps
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Recover the patterns of one data set in three ways, and say how well they can be."""
    N, P, beta, M = (parameters[k] for k in ("N", "P", "beta", "M"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X, start = teacher.sample(
        M, n_sweeps=parameters["sweeps"], random_state=seed + 1, return_start=True
    )
    with warnings.catch_warnings():
        # Data without a trace of patterns are half of the diagram: no news here.
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = HopfieldPatterns(random_state=seed + 2).fit(X)
        paper = DualTAP(n_patterns=P, beta=beta, random_state=seed + 2).fit(X)
        # A lone pattern makes two clusters where samples have either sign.
        kmeans = KMeans(min(max(P, 2), M), n_init=10, random_state=seed + 3)
        kmeans.fit(X.astype(np.float32))
    estimates = {
        "ours": ours.patterns_,
        "paper": paper.patterns_,
        "kmeans": np.sign(kmeans.cluster_centers_),
        "chance": np.random.default_rng(seed + 4).choice([-1, 1], size=(P, N)),
    }
    accuracy = {k: match(v, teacher.patterns).mean_overlap for k, v in estimates.items()}
    limit = paramagnetic_limit(beta, M / N).sign if beta < 1 else _vote(X, start, teacher.patterns)
    return {**accuracy, "limit": limit, "n_patterns": ours.n_patterns_}


def _vote(X: NDArray[np.int8], start: NDArray[np.int8], patterns: NDArray[np.int8]) -> float:
    """Return the mean overlap of each pattern with the majority of the samples started at it."""
    began_at = (overlaps(start, patterns) == 1).T.astype(np.float64)
    stayed = began_at @ np.mean(X * start, axis=1) / np.maximum(began_at.sum(axis=1), 1)
    if stayed.min() < OWN_OVERLAP:
        return float("nan")
    # The sign of a tie is 0: right in half of the cases.
    return float(np.mean(np.sign(began_at @ X) * patterns))


def _grid(results: Results, name: str, P: int) -> NDArray[np.float64]:
    """Return means over trials, a row for each β and a column for each M."""
    return np.array(
        [
            [results.column(name, P=P, beta=beta, M=M).mean() for M in results.values("M")]
            for beta in results.values("beta")
        ],
        dtype=np.float64,
    )


def plot(results: Results) -> Figure:
    """Draw a map for each number of patterns and each method, all on one scale of colour."""
    loads = results.values("P")
    figure = new_figure(width=11, height=2.6 * len(loads) + 0.6)
    axes = figure.subplots(len(loads), len(METHODS), sharex=True, sharey=True, squeeze=False)
    for row, P in zip(axes, loads, strict=True):
        for ax, name in zip(row, METHODS, strict=True):
            colours = _map(ax, results, name, P)
        row[0].set_ylabel("inverse temperature β")
        row[0].annotate(
            f"P = {P}", (-0.36, 0.5), xycoords="axes fraction", rotation=90, va="center", size=12
        )
    for ax, title in zip(axes[0], METHODS.values(), strict=True):
        ax.set_title(title, fontsize=10)
    for ax in axes[-1]:
        ax.set_xlabel("samples per spin M/N")
    # P = 1: both phases are there whatever the sizes.
    for y, text, colour in ((0.75, "samples cluster", "black"), (0.1, "too few samples", "white")):
        axes[0, -1].text(0.06, y, text, transform=axes[0, -1].transAxes, color=colour, size=9)
    letter(axes)
    figure.colorbar(
        colours, ax=axes, label="mean overlap with the hidden patterns", aspect=40, pad=0.015
    )
    return figure


def _map(ax: Axes, results: Results, name: str, P: int) -> Any:
    """Draw one map with the threshold; return its colours."""
    n_spins = results.only("N")
    betas, ratios = results.values("beta"), [M / n_spins for M in results.values("M")]
    x, y = _edges(ratios), _edges(betas)
    ax.set_facecolor("0.85")  # shows where there is no value
    colours = ax.pcolormesh(x, y, _grid(results, name, P), vmin=0, vmax=1, cmap="viridis")
    warm = np.linspace(y[0], 0.99, 200)
    ax.plot([critical_samples(beta, 1) for beta in warm], warm, color="white", lw=2)
    ax.axhline(1, color="white", lw=1.2, ls=":")
    ax.set(xscale="log", yscale="log", xlim=x[[0, -1]], ylim=y[[0, -1]])
    ax.set_xticks(ratios, [f"{ratio:g}" for ratio in ratios])
    ax.set_yticks(betas, [f"{beta:g}" for beta in betas])
    ax.minorticks_off()
    ax.tick_params(labelsize=9)
    return colours


def _edges(centres: Sequence[float]) -> NDArray[np.float64]:
    """Return the edges of cells around centres, in the middle on a logarithmic scale."""
    if len(centres) < 2:
        raise MissingTrialsError("a map takes two values of β and two of M")
    log = np.log(centres)
    middle = (log[1:] + log[:-1]) / 2
    ends = 2 * log[[0, -1]] - middle[[0, -1]]
    edges: NDArray[np.float64] = np.exp(np.r_[ends[0], middle, ends[1]])
    return edges


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    chance = ", ".join(
        f"{results.column('chance', P=P).mean():.2f} (P = {P})" for P in results.values("P")
    )
    return (
        "Phases. Overlap with the hidden patterns, matched one to one and averaged over them, of "
        "dualtap with default parameters, of the published algorithm given β "
        "and P, and of k-means given P (two clusters for P = 1; signs of the best centres "
        f"of 10 runs). N = {p['N']}; samples after {p['sweeps']} Glauber sweeps, started equally "
        "at the patterns for β > 1 and at random below; "
        f"trials per point: {results.n_trials()}. Last column, β < 1: the Bayes limit of one "
        "pattern for N → ∞; β > 1: majority of the samples that started at a pattern, grey where "
        f"those of some pattern keep an overlap below {OWN_OVERLAP:g} with it. White line: "
        "M_c = N(1/β−1)², to the left of which, for N → ∞, no method recovers anything; dotted: "
        f"β = 1. Random signs score {chance}."
    )


def _flat(results: Results, name: str) -> NDArray[np.float64]:
    """Return the means of all points in one row, in the order of P, β and M."""
    return np.concatenate([_grid(results, name, P).ravel() for P in results.values("P")])


def _places(results: Results) -> list[tuple[int, float, float]]:
    """Return P, β and M/N in the same order."""
    N = results.only("N")
    return [
        (P, beta, M / N)
        for P in results.values("P")
        for beta in results.values("beta")
        for M in results.values("M")
    ]


def _said(place: tuple[int, float, float]) -> str:
    P, beta, ratio = place
    return f"P = {P}, β = {beta:g}, M/N = {ratio:g}"


@judge("phases.limit")
def _against_limit(results: Results) -> Evidence:
    """Compare a blind fit with the limit where there are samples enough."""
    places, limit = _places(results), _flat(results, "limit")
    enough = [beta > 1 or ratio >= 2 * critical_samples(beta, 1) for _, beta, ratio in places]
    # A point without a limit loses nothing: it is not judged.
    judged = np.array(enough) & np.isfinite(limit)
    loss = np.where(judged, np.nan_to_num(limit - _flat(results, "ours")), -np.inf)
    near = proportion(loss[judged] <= NEAR_LIMIT)
    worst = int(np.argmax(loss))
    return Evidence(
        {"near": near},
        f"{near} points; largest distance {loss[worst]:.2f} ({_said(places[worst])})",
    )


@judge("phases.rivals")
def _against_rivals(results: Results) -> Evidence:
    """Compare a blind fit with methods that are given more."""
    places = _places(results)
    # Random signs overlap a little with anything; to return none is not worse than that.
    own = np.maximum(_flat(results, "ours"), _flat(results, "chance"))
    leads = {name: _flat(results, name) - own for name in ("paper", "kmeans")}
    lead = np.maximum(leads["paper"], leads["kmeans"])
    behind = {name: int(np.sum(values > NEAR_RIVAL)) for name, values in leads.items()}
    not_behind = proportion(lead <= NEAR_RIVAL)
    worst = int(np.argmax(lead))
    return Evidence(
        {"not_behind": not_behind},
        f"{not_behind} points; behind the published algorithm at {behind['paper']}, behind k-means "
        f"at {behind['kmeans']}; largest lead of either {lead[worst]:.2f} ({_said(places[worst])})",
    )


EXPERIMENT = Experiment(
    name="phases",
    title="Where patterns are recovered, and where the data allow it",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_against_limit, _against_rivals),
)
