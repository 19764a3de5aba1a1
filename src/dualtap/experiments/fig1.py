"""Fig. 1: overlap with the one hidden pattern against the number of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import Claim, Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import grade, mean_and_error
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import overlaps
from dualtap.recovery import DualTAP
from dualtap.theory import paramagnetic_limit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

N = 1000
# Near β = 1 a chain forgets its start in 1/|1-β| sweeps.
N_SWEEPS = 200
COLD = (1.2, 1.5, 2.0)
WARM = (0.5, 0.7, 0.8, 0.9)


def critical_samples(beta: float, n_spins: int = N) -> float:
    """Return M_c = N (1/β - 1)², below which no method finds the pattern at β < 1."""
    return n_spins * (1 / beta - 1) ** 2


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return counts of samples around M_c where β < 1, and from one on where β > 1."""
    multiples: Sequence[float] = (0.25, 0.5, 1, 2, 4, 8)
    counts: Sequence[int] = (1, 2, 5, 10, 20, 50, 100)
    if full:
        multiples = (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 2.8, 4, 5.6, 8, 16)
        counts = (1, 2, 3, 5, 7, 10, 20, 30, 50, 100, 200, 500)
    grid = [(beta, round(k * critical_samples(beta))) for beta in WARM for k in multiples]
    grid += [(beta, n_samples) for beta in COLD for n_samples in counts]
    n_trials = 100 if full else 4
    return [({"N": N, "beta": beta, "M": M, "sweeps": N_SWEEPS}, n_trials) for beta, M in grid]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Look for the pattern by the printed iteration and by the safe one, in the same samples."""
    n_spins, beta, M = (parameters[k] for k in ("N", "beta", "M"))
    teacher = HopfieldModel.random(n_spins, 1, beta, random_state=seed)
    X = teacher.sample(M, n_sweeps=parameters["sweeps"], random_state=seed + 1)
    models = {
        "printed": DualTAP(1, beta=beta, random_state=seed + 2).fit(X),
        "safe": DualTAP(1, beta, start="spectral", damping="auto", random_state=seed + 2).fit(X),
    }
    outcome: dict[str, Any] = {}
    for name, model in models.items():
        outcome[f"soft_{name}"] = _overlap(model.magnetizations_, teacher)
        outcome[f"sign_{name}"] = _overlap(model.patterns_, teacher)
        outcome[f"converged_{name}"] = int(model.history_.n_converged[0])
    return outcome


def _overlap(found: ArrayLike, teacher: HopfieldModel) -> float:
    """Return the overlap with the only pattern, up to sign."""
    return float(abs(overlaps(found, teacher.patterns)[0, 0]))


def curve(results: Results, name: str, beta: float) -> NDArray[np.float64]:
    """Return M, the mean of a result and its standard error, a row each."""
    counts = results.values("M", beta=beta)
    pairs = [mean_and_error(results.column(name, beta=beta, M=M)) for M in counts]
    return np.array([(M, *pair) for M, pair in zip(counts, pairs, strict=True)]).T


def plot(results: Results) -> Figure:
    """Draw m·ζ/N above and the sign overlap below, β < 1 on the left and β > 1 on the right."""
    figure = new_figure(2, height=6.2)
    axes = figure.subplots(2, 2, sharex="col", sharey=True)
    betas = results.values("beta")
    for row, (kind, label) in enumerate(
        (("soft", "overlap q = m·ζ/N"), ("sign", "overlap of sign(m) with ζ"))
    ):
        for column, ax in enumerate(axes[row]):
            chosen = [i for i, beta in enumerate(betas) if (beta > 1) == bool(column)]
            for i in chosen:
                _draw(ax, results, betas[i], kind, STYLES[i % len(STYLES)])
            ax.set(xscale="log", ylim=(-0.03, 1.05))
        axes[row, 0].set_ylabel(label)
    for ax, title in zip(axes[0], ("paramagnet, β < 1", "ferromagnet, β > 1"), strict=True):
        ax.set_title(title, fontsize=10)
        # Rings have no label of their own: an empty one in black says what they are.
        ring = {"linestyle": "none", "marker": "o", "ms": 8, "markerfacecolor": "none"}
        ax.plot([], [], color="black", **ring, label="ring: as printed")
        ax.legend(frameon=False, fontsize=8)
    for ax in axes[1]:
        ax.set_xlabel("samples M")
    return figure


def _draw(ax: Axes, results: Results, beta: float, kind: str, style: dict[str, Any]) -> None:
    """Draw one β: filled markers for the safe iteration, rings for the printed one."""
    M, mean, error = curve(results, f"{kind}_safe", beta)
    line = dict(style)
    if beta < 1:
        # The line is the limit here, so that points off it are seen to be off it.
        line["linestyle"] = "none"
        _draw_limit(ax, results, beta, kind, style)
    ax.errorbar(M, mean, error, **line, ms=4, lw=1.2, capsize=2, label=f"β = {beta:g}")
    M, mean, error = curve(results, f"{kind}_printed", beta)
    ring = {"linestyle": "none", "markerfacecolor": "none", "marker": style["marker"]}
    ax.errorbar(M, mean, error, **ring, color=style["color"], ms=8, lw=0.8, capsize=2)


def _draw_limit(ax: Axes, results: Results, beta: float, kind: str, style: dict[str, Any]) -> None:
    """Draw the Bayes limit and M_c."""
    n_spins = results.rows[0].parameters["N"]
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
    n_trials = len(results.column("soft_safe", beta=p["beta"], M=p["M"]))
    return (
        f"Fig. 1. Overlap of the recovered pattern with the teacher's only one against the number "
        f"of samples: magnetizations above, their signs below. N = {p['N']}, P = 1, P' = 25 "
        f"students, β = {betas}; samples after {p['sweeps']} Glauber sweeps, started at random for "
        f"β < 1 and at the pattern for β > 1. Rings: the printed parallel TAP iteration from "
        f"random starts. Filled markers: the same equations with the damping chosen for "
        f"stability and one student started at the leading eigenvector. Left: curves are the Bayes "
        f"limit for N → ∞, thin vertical lines M_c = N(1/β−1)². Right: lines guide the eye. Means "
        f"of {n_trials} trials with standard errors."
    )


def claims(results: Results) -> list[Claim]:
    """Judge the threshold, the printed iteration above it, and few samples at β > 1."""
    warm = [beta for beta in results.values("beta") if beta < 1]
    cold = [beta for beta in results.values("beta") if beta > 1]
    return [
        _threshold(results, warm),
        _printed_scheme(results, warm),
        _one_sample(results, cold),
        _few_samples(results, cold),
    ]


def _around(results: Results, beta: float, kind: str) -> NDArray[np.float64]:
    """Return M/M_c and the mean of a result, a row each."""
    M, mean, _ = curve(results, kind, beta)
    return np.array([M / critical_samples(beta, results.rows[0].parameters["N"]), mean])


def _threshold(results: Results, betas: Sequence[float]) -> Claim:
    """Judge the threshold: nothing at half of M_c, the Bayes limit from four times M_c on."""
    n_spins = results.rows[0].parameters["N"]
    below, gaps = [], []
    for beta in betas:
        multiple, soft = _around(results, beta, "soft_safe")
        below.append(soft[multiple < 0.6].max())
        M, mean, _ = curve(results, "sign_safe", beta)
        limit = [paramagnetic_limit(beta, count / n_spins, tol=1e-7).sign for count in M]
        gaps.append(np.abs(mean - limit)[multiple > 3.5].max())
    clear = max(below) < 0.1
    return Claim(
        says="At β < 1 there is a critical number of samples, a fraction of N, below which the "
        "pattern cannot be inferred; it is where the paramagnet of the direct problem ends.",
        where="Fig. 1 and its discussion",
        decided_by="safe iteration: m·ζ/N below 0.1 up to M_c/2, sign overlap within 0.1 of the "
        "Bayes limit from 4 M_c on, M_c = N(1/β−1)²",
        measured="largest m·ζ/N up to M_c/2: " + _listed(betas, below) + "; largest distance from "
        "the limit from 4 M_c on: " + _listed(betas, gaps),
        verdict=grade(clear and max(gaps) < 0.1, clear or max(gaps) < 0.1),
        slip="α is printed as P/N beside a J built from M samples; in the dual model it is M/N. "
        "The sum in J is over s_i s_j, not s_i s_i.",
    )


def _printed_scheme(results: Results, betas: Sequence[float]) -> Claim:
    """Judge the printed iteration: where it finds less than half of what the safe one finds."""
    failed, n_above = [], 0
    for beta in betas:
        multiple, safe = _around(results, beta, "soft_safe")
        printed = _around(results, beta, "soft_printed")[1]
        above = multiple > 1.5
        n_above += int(above.sum())
        failed += [
            f"β = {beta:g} at {multiple[i]:.2g} M_c ({printed[i]:.2f}, safe {safe[i]:.2f})"
            for i in np.flatnonzero(above & (printed < safe / 2))
        ]
    share = len(failed) / n_above
    return Claim(
        says="The naive parallel iteration finds the pattern at β < 1 above the threshold.",
        where="Eq. (TAP, naive index) and Fig. 1",
        decided_by="m·ζ/N at least half of the safe iteration's, on the same samples, from 2 M_c "
        "on",
        measured=f"falls short at {len(failed)} of {n_above} points"
        + (": " + ", ".join(failed) if failed else ""),
        verdict=grade(not failed, share < 1),
    )


def _one_sample(results: Results, betas: Sequence[float]) -> Claim:
    """Judge a single sample at β > 1."""
    soft = [results.column("soft_printed", beta=beta, M=1).mean() for beta in betas]
    sign = [results.column("sign_printed", beta=beta, M=1).mean() for beta in betas]
    # The overlap of a random vector is 1/√N: five of these are no accident.
    chance = 5 / np.sqrt(results.rows[0].parameters["N"])
    return Claim(
        says="In the ferromagnet one sample is enough to find a pattern correlated with the "
        "teacher's.",
        where="Fig. 1 and its discussion",
        decided_by=f"printed iteration, M = 1: m·ζ/N and sign overlap above 5/√N = {chance:.2f}",
        measured="m·ζ/N " + _listed(betas, soft) + "; sign overlap " + _listed(betas, sign),
        verdict=grade(min(soft + sign) > chance, max(soft) > chance),
    )


def _few_samples(results: Results, betas: Sequence[float]) -> Claim:
    """Judge how many samples a perfect reconstruction takes at β > 1."""
    needed = []
    for beta in betas:
        M, sign, _ = curve(results, "sign_printed", beta)
        enough = M[sign > 0.99]
        needed.append(float(enough.min()) if len(enough) else np.inf)
    return Claim(
        says="In the ferromagnet a small number of samples gives a perfect reconstruction.",
        where="Fig. 1 and its discussion",
        decided_by="printed iteration: smallest M of the grid with a sign overlap above 0.99",
        measured="M = " + _listed(betas, needed, ".0f"),
        verdict=grade(max(needed) <= 100, min(needed) <= 100),
    )


def _listed(betas: Sequence[float], values: Sequence[float], form: str = ".2f") -> str:
    return ", ".join(f"{v:{form}} (β = {b:g})" for b, v in zip(betas, values, strict=True))


EXPERIMENT = Experiment(
    name="fig1",
    title="Overlap with the one hidden pattern against the number of samples",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
