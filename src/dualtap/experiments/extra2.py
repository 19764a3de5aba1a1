"""Extra 2: other iterations than TAP on the dual problem, for one pattern and for many."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.couplings import HebbianCouplings
from dualtap.experiments.drawing import STYLES, letter, new_figure, within
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
    exact,
    highest,
    judge,
    mean,
    mean_and_error,
    wilson_bars,
)
from dualtap.experiments.rules.rule import Estimate
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import coupling_error, n_recovered, overlaps
from dualtap.published import DualTAP
from dualtap.schemes import AMP, TAP, Scheme
from dualtap.solve import solve
from dualtap.theory import critical_samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BETAS = (0.5, 0.6, 0.7, 0.8, 0.9)
MULTIPLES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
MAX_LOAD = 3.0  # samples a spin: beyond it every rule succeeds and sampling takes all the time
N_STARTS = 10
MAX_ITER = 300
CHANCE = 5.0  # standard deviations, 1/√N each, that an overlap must exceed
SCHEMES = {
    "tap": "TAP",
    "amp": "AMP",
    "opper-winther-printed": "Opper–Winther, printed",
    "opper-winther": "Opper–Winther, corrected",
    "sequential-amp": "AMP, sequential",
}
STUDENTS_BETA = 2.0
STUDENTS_MAX_ITER = 1000


def points(
    full: bool, *, N: Sequence[int] | None = None, beta: Sequence[float] = BETAS
) -> Sequence[tuple[Parameters, int]]:
    """Return M = multiples of M_c = N (1/β − 1)² at every β, and many patterns for the students.

    Quick ones are smaller and fewer.
    """
    usual, n_trials = (1000, 50) if full else (400, 3)
    loads = [(b, x * critical_samples(b, 1)) for b in beta if b < 1 for x in MULTIPLES]
    # Rounding makes the smallest numbers of samples equal in a small system.
    places = dict.fromkeys(
        (n, b, max(2, round(n * load)))
        for n in N or (usual,)
        for b, load in loads
        if load <= MAX_LOAD
    )
    starts = [({"kind": "starts", "N": n, "beta": b, "M": M}, n_trials) for n, b, M in places]
    # As in Fig. 2, P = N/50, from ten samples per pattern down to where TAP begins to fail.
    students = [
        ({"kind": "students", "scheme": scheme, "N": n, "P": n // 50, "M": n // 50 * ratio,
          "beta": STUDENTS_BETA}, 10 if full else 2)
        for scheme in SCHEMES
        for n in N or (1000 if full else 200,)
        for ratio in (3, 10)
    ]  # fmt: skip
    return [*starts, *students]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Make a trial of the one kind or the other."""
    return (_students if parameters["kind"] == "students" else _starts)(parameters, seed)


def _students(parameters: Parameters, seed: int) -> Outcome:
    """Run the published algorithm with students by one scheme."""
    N, P, M, beta = (parameters[k] for k in ("N", "P", "M", "beta"))
    teacher = HopfieldModel.random(N, P, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    model = DualTAP(
        P, beta, scheme=parameters["scheme"], max_iter=STUDENTS_MAX_ITER, random_state=seed + 2
    )
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    return {
        "recovered": n_recovered(model.patterns_, teacher.patterns) / P,
        "error": coupling_error(model.magnetizations_, teacher.patterns).relative,
        "iterations": float(model.history_.n_iter.mean()),
        "fit_seconds": seconds,
    }


def _starts(parameters: Parameters, seed: int) -> Outcome:
    """Draw one data set, and run AMP and TAP on it from the same random starts."""
    N, M, beta = (parameters[k] for k in ("N", "M", "beta"))
    teacher = HopfieldModel.random(N, 1, beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    J = HebbianCouplings(X, np.float64)
    start = np.random.default_rng(seed + 2).choice([-1.0, 1.0], size=(N_STARTS, N))
    _, singular, modes = np.linalg.svd(J.vectors, full_matrices=False)
    spectral = abs(overlaps(np.sign(modes[:1]), teacher.patterns)[0, 0])
    rules: dict[str, Scheme[Any]] = {"amp": AMP(J, beta), "tap": TAP(J, beta)}
    outcome: dict[str, Any] = {"lambda_max": singular[0] ** 2 / N, "spectral": spectral}
    for name, rule in rules.items():
        solution = solve(rule, start, max_iter=MAX_ITER)
        found = np.abs(overlaps(np.sign(solution.magnetizations), teacher.patterns)[:, 0])
        above_chance = found > CHANCE / np.sqrt(N)
        outcome[f"{name}_success"] = int(np.sum(solution.converged & above_chance))
        outcome[f"{name}_converged"] = int(np.sum(solution.converged))
        outcome[f"{name}_overlap"] = float(found.mean())
    return outcome


def plot(results: Results) -> Figure:
    """Draw the success of AMP and of TAP against λ_max, and what students of each scheme find."""
    figure = new_figure(n_panels=3)
    axes = figure.subplots(1, 3)
    starts = results.where(kind="starts")
    for ax, name in zip(axes, ("amp", "tap"), strict=False):
        for style, beta in zip(STYLES, starts.values("beta"), strict=False):
            _draw_success(ax, name, starts.where(beta=beta), {**style, "label": f"β = {beta:g}"})
        ax.axvline(2, color="black", lw=1, ls=":")
        ax.set(xscale="log", xlabel="$\\lambda_{max}$ of J", ylim=(-0.05, 1.08))
        ax.set(xticks=[1, 2, 4, 8, 16], xticklabels=["1", "2", "4", "8", "16"])
        ax.set_title(f"{name.upper()}, parallel", fontsize=10)
        ax.minorticks_off()
    axes[0].set(ylabel="share of starts that find the pattern")
    axes[0].legend(frameon=False, fontsize=8)
    _draw_students(axes[2], results.where(kind="students"))
    letter(axes)
    return figure


def _draw_students(ax: Axes, mine: Results) -> None:
    """Draw the share of patterns found against the time of a fit, hollow for few samples."""
    if not mine:
        raise MissingTrialsError("there is no trial of students of many patterns")
    counts = sorted(mine.values("M"))
    for style, scheme in zip(STYLES, mine.values("scheme"), strict=False):
        for M in counts:
            share, error = mean_and_error(mine.column("recovered", M=M, scheme=scheme))
            seconds = mine.column("fit_seconds", M=M, scheme=scheme).mean()
            look = {**style, "linestyle": "", "ms": 6, "capsize": 2}
            fill = {"mfc": "none"} if counts[-1] > M else {"label": SCHEMES[scheme]}
            ax.errorbar(seconds, share, within([share], [error]), **(look | fill))
    named = [f"{kind}: M = {M}" for kind, M in zip(("hollow", "filled"), counts, strict=False)]
    ax.set(xscale="log", xlabel="seconds per fit", ylabel="share of the patterns found")
    ax.set_title("students, many patterns", fontsize=10)
    ax.set(ylim=(min(0.85, ax.get_ylim()[0]), 1.02))  # what all find, enlarged
    ax.legend(title=", ".join(named), frameon=False, fontsize=7, title_fontsize=7, loc="lower left")


def _draw_success(ax: Axes, name: str, mine: Results, style: dict[str, Any]) -> None:
    """Draw one β with Wilson intervals; data sets, not starts, are what is independent."""
    loads = mine.values("M")
    lambdas = [mine.column("lambda_max", M=M).mean() for M in loads]
    share = np.array([mine.column(f"{name}_success", M=M).mean() for M in loads]) / N_STARTS
    n_sets = np.array([len(mine.where(M=M)) for M in loads])
    bars = wilson_bars(share * n_sets, n_sets)
    ax.errorbar(lambdas, share, bars, **style, ms=4, lw=1, capsize=2)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    starts, students = (results.where(kind=kind) for kind in ("starts", "students"))
    N, p = starts.only("N"), students.rows[0].parameters
    return (
        f"Extra 2. The dual problem. (a, b) P = 1, N = {N}, M from {MULTIPLES[0]:g} to "
        f"{MULTIPLES[-1]:g} M_c with M_c = N(1/β − 1)², M at most {MAX_LOAD:g} N. Share of random "
        f"starts (|m| = 1) that converge (mean change below 0.001 within {MAX_ITER} steps) with a "
        f"sign overlap above {CHANCE:g}/√N = {CHANCE / np.sqrt(N):.2f}, against the mean largest "
        f"eigenvalue of J = SᵀS/N; parallel AMP and parallel TAP on the same data and starts; "
        f"dotted: λ_max = 2. {starts.n_trials()} data sets per point, {N_STARTS} starts each; bars "
        f"are Wilson's 95 % intervals, a data set counting once. (c) The published algorithm with "
        f"students by several schemes, N = {p['N']}, P = {p['P']}, β = {p['beta']:g}, γ = M/P: "
        f"share of the patterns found (overlap above 0.9), {students.n_trials()} fits per point, "
        f"bars are standard errors."
    )


@judge("extra2.largest")
def _largest_eigenvalue(results: Results) -> Evidence:
    """Measure whether λ_max > 2, with enough signal, is what AMP needs."""
    starts = results.where(kind="starts")
    N = starts.only("N")
    beta, M = (np.array([row.parameters[k] for row in starts]) for k in ("beta", "M"))
    above = starts.column("lambda_max") > 2
    # 1.9, not 2: M is a whole number, and rounding may leave 2 M_c just short of itself.
    signal = np.array([1.9 * critical_samples(b, N) for b in beta]) <= M
    both, small, poor = (
        _share(starts, "amp", chosen)
        for chosen in (above & signal, ~above & signal, above & ~signal)
    )
    tap = _share(starts, "tap", ~above & signal)
    return Evidence(
        {"above": both, "below": small},
        f"P = 1, N = {N}; λ_max > 2: {both}; λ_max ≤ 2: {small} (TAP there {tap}); λ_max > 2 but "
        f"M < 2 M_c: {poor}: without any signal the bulk of J alone reaches (1 + √α)², above 2 "
        "from M/N = 0.17 on",
    )


def _share(results: Results, rule: str, chosen: NDArray[np.bool_]) -> Estimate:
    """Return the mean over the chosen data sets of the share of a rule's starts that succeed."""
    return mean(results.column(f"{rule}_success")[chosen] / N_STARTS)


@judge("extra2.students")
def _other_students(results: Results) -> Evidence:
    """Measure what students by other schemes find, and how long they take."""
    students = results.where(kind="students")
    if not {*SCHEMES} <= {*students.values("scheme")}:
        raise MissingTrialsError("there are no trials of every scheme")
    found = {s: mean(students.column("recovered", scheme=s)) for s in SCHEMES}
    seconds = {s: students.column("fit_seconds", scheme=s).mean() for s in SCHEMES}
    gain = {
        s: Estimate(f.value - found["tap"].value, f.low - found["tap"].high,
                    f.high - found["tap"].low, s)
        for s, f in found.items()
    }  # fmt: skip
    forms = {s: gain[s] for s in ("opper-winther", "opper-winther-printed")}
    return Evidence(
        {
            "amp": gain["sequential-amp"],
            "opper_winther": highest(forms),
            "slower": exact(seconds["sequential-amp"] / seconds["tap"]),
        },
        f"N = {students.only('N')}, P = {students.only('P')}, M = "
        + " and ".join(str(M) for M in students.values("M"))
        + ": "
        + "; ".join(f"{label}: {found[s]} in {seconds[s]:.2f} s" for s, label in SCHEMES.items()),
    )


EXPERIMENT = Experiment(
    name="extra2",
    title="Other iterations than TAP on the dual problem",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_largest_eigenvalue, _other_students),
)
