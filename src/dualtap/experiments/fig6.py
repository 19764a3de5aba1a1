"""Fig. 6: singular values of the weights while an RBM learns, and the data modes they span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap.experiments import fig5
from dualtap.experiments.drawing import STYLES, letter, new_figure
from dualtap.experiments.experiment import Experiment, Outcome, Parameters, Results
from dualtap.experiments.judging import (
    Evidence,
    claims_of,
    exact,
    judge,
    mean,
    mean_and_error,
    proportion,
)
from dualtap.metrics import match
from dualtap.rbm.estimator import HopfieldRBM
from dualtap.rbm.patterns import data_modes, mode_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOUND = 0.95
EMERGED = 2.0  # times its first value, a singular value has emerged


def points(
    full: bool,
    *,
    N: Sequence[int] = (1000,),
    P: Sequence[int] = (10,),
    M: Sequence[int] = (1000,),
    beta: Sequence[float] = (2.0,),
    hidden: Sequence[int] = (15,),
    updates: Sequence[int] = (600,),
) -> Sequence[tuple[Parameters, int]]:
    """Return one number of samples, twice as many data modes as patterns; quick has fewer."""
    return [
        ({**parameters, "modes": 2 * parameters["P"]}, 100 if full else 5)
        for parameters, _ in fig5.points(
            full, N=N, P=P, M=M, beta=beta, hidden=hidden, updates=updates
        )
    ]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Train as in Fig. 5, on samples of its own; follow modes, and look for patterns at the end."""
    teacher, X = fig5.samples(parameters, seed)
    modes = data_modes(X, parameters["modes"])
    errors: list[NDArray[np.float64]] = []

    def look(rbm: HopfieldRBM) -> None:
        errors.append(mode_errors(rbm.components_, modes))

    rbm = fig5.untrained(parameters, seed).fit(X, callbacks=[look])
    curve, t = rbm.history_, np.array(errors)
    values = curve.singular_values[-1]
    units = match(np.sign(rbm.components_), teacher.patterns)
    read_off = match(rbm.patterns_, teacher.patterns)
    P = parameters["P"]
    return {
        "update": curve.update,
        "singular_values": curve.singular_values.astype(np.float32),
        "t": t.astype(np.float32),
        **_when(curve.update, curve.singular_values[:, :P], t[:, :P]),
        "emerged": int(np.argmax(values[:-1] / values[1:])) + 1,
        "smallest_emerged": values[P - 1],
        "largest_idle": values[P],
        "largest_idle_start": curve.singular_values[0, P],
        "largest_t_inside": float(t[-1, :P].max()),
        "smallest_t_outside": float(t[-1, P:].min()),
        "unit_recovered": units.n_recovered(FOUND),
        "unit_overlap": units.mean_overlap,
        "largest_unit_overlap": float(units.overlaps.max()),
        "recovered": read_off.n_recovered(FOUND),
        "smallest_overlap": float(read_off.overlaps.min()),
    }


def _when(
    update: NDArray[np.int64], sigma: NDArray[np.float64], t: NDArray[np.float64]
) -> dict[str, float]:
    """Compare when σ_α emerges with when t_α has fallen half of its way, mode by mode."""
    emerges = update[np.argmax(sigma > EMERGED * sigma[0], axis=0)]
    falls = update[np.argmax(t < (t[0] + t[-1]) / 2, axis=0)]
    known = (emerges > 0) & (falls > 0)  # the others never do
    if known.sum() < 3:
        return {"when_ratio": float("nan"), "when_correlation": float("nan")}
    together = np.corrcoef(emerges[known], falls[known])[0, 1]
    return {
        "when_ratio": float(np.median(falls[known] / emerges[known])),
        "when_correlation": float(together),
    }


def plot(results: Results) -> Figure:
    """Draw a trial: singular values with the errors of data modes inset, and these in time."""
    for name in ("N", "P", "M", "beta", "hidden", "updates"):
        results.only(name)
    row = results.rows[0]
    figure = new_figure(n_panels=2)
    left, right = figure.subplots(1, 2)
    P, update = row.parameters["P"], row.array("update")
    values, t = row.array("singular_values"), row.array("t")
    _lines(left, update, values[:, :P], f"first {P}", STYLES[0])
    _lines(left, update, values[:, P:], f"other {values.shape[1] - P}", STYLES[1])
    left.set(xlabel="updates", ylabel="singular values σ of W", ylim=(0, 2.1 * values.max()))
    left.legend(frameon=False, loc="upper left", fontsize=8)
    _inset(left.inset_axes((0.42, 0.62, 0.55, 0.34)), t, P)
    _lines(right, update, t[:, :P], f"modes 1 to {P}", STYLES[0])
    _lines(right, update, t[:, P:], f"modes {P + 1} to {t.shape[1]}", STYLES[1])
    right.set(xlabel="updates", ylabel="error $t_α$", ylim=(0, 1.1))
    right.legend(frameon=False, fontsize=8, loc="center right")
    letter((left, right))
    return figure


def _inset(ax: Axes, t: NDArray[np.float32], P: int) -> None:
    """Draw the errors of all modes at the start and at the end of learning."""
    alpha = np.arange(1, t.shape[1] + 1)
    ax.plot(alpha, t[0], **STYLES[0], ms=3, lw=0.8)
    ax.plot(alpha, t[-1], **STYLES[1], ms=3, lw=0.8)
    ax.axvline(P + 0.5, color="black", lw=0.8, ls=":")
    ax.set(ylim=(0, 1.15))
    ax.set_xlabel("mode α", fontsize=7, labelpad=1)
    ax.set_ylabel("$t_α$", fontsize=7, labelpad=1)
    ax.tick_params(labelsize=7)
    ax.annotate("start", (0.04, 0.72), xycoords="axes fraction", fontsize=7)
    ax.annotate("end", (0.04, 0.2), xycoords="axes fraction", fontsize=7)


def _lines(ax: Axes, x: Any, columns: Any, label: str, style: dict[str, Any]) -> None:
    """Draw every column in one style, with one entry in the legend."""
    lines = ax.plot(x, columns, lw=1, markevery=20, markersize=4, **style)
    lines[0].set_label(label)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    complete = proportion(results.column("emerged") == p["P"])
    return (
        f"Fig. 6. (a) Singular values of the weights of an RBM with {p['hidden']} Gaussian "
        f"hidden units during learning. N = {p['N']}, P = {p['P']}, β = {p['beta']:g}, "
        f"M = {p['M']}; PCD-10, mini-batches of 100, 100 chains, learning rate 0.05 over the "
        f"largest second moment of the data, {p['updates']} updates. Inset: part t of each of the "
        f"first {p['modes']} singular vectors of the data that lies outside the span of the "
        f"weights, before the first update and after the last. (b) The same against updates. One "
        f"trial is drawn; exactly {p['P']} singular values emerge in {complete} trials."
    )


@judge("fig6.modes")
def _modes_emerge(results: Results) -> Evidence:
    """Count the modes that emerge."""
    P = results.only("P")
    exactly = proportion(results.column("emerged") == P)
    gap = results.column("smallest_emerged") / results.column("largest_idle")
    growth = results.column("largest_idle") / results.column("largest_idle_start")
    return Evidence(
        {"exact": exactly},
        f"{exactly} trials; σ_{P}/σ_{P + 1} from {gap.min():.1f} to {gap.max():.1f}; σ_{P + 1} "
        f"grows by a factor of at most {growth.max():.2f}",
    )


@judge("fig6.span")
def _subspace_is_learned(results: Results) -> Evidence:
    """Measure the data modes that the weights span at the end."""
    P = results.only("P")
    inside = exact(results.column("largest_t_inside").max())
    outside = exact(results.column("smallest_t_outside").min())
    average, _ = mean_and_error(results.stacked("t"))
    return Evidence(
        {"inside": inside, "outside": outside},
        f"{len(results)} trials, first {P} modes: {average[0, :P].mean():.2f} on average at the "
        f"start, {average[-1, :P].mean():.2f} at the end, at most {inside}; next modes: at least "
        f"{outside} at the end",
    )


@judge("fig6.when")
def _when_they_emerge(results: Results) -> Evidence:
    """Compare the times of σ_α and t_α."""
    ratio, together = results.column("when_ratio"), results.column("when_correlation")
    known = np.isfinite(ratio)
    middle, correlation = mean(ratio[known], 2), mean(together[known], 2)
    return Evidence(
        {"ratio": exact(abs(np.log2(middle.value))), "correlation": correlation},
        f"update where t_α has fallen half of its way over that where σ_α has doubled, median over "
        f"modes: {middle}; correlation of the two over modes: {correlation}",
    )


@judge("fig6.patterns")
def _patterns_are_not(results: Results) -> Evidence:
    """Count patterns that the weights show, and those that are in them."""
    P = results.only("P")
    shown, found = results.column("unit_recovered"), mean(results.column("recovered") / P, 2)
    largest = results.column("largest_unit_overlap").max()
    # What the weights do not show can still be in them: the rotation can be undone.
    return Evidence(
        {"shown": exact(shown.max() / P), "rotated": found},
        f"hidden units: {mean(shown, 1)} of {P} patterns per trial, overlap "
        f"{mean(results.column('unit_overlap'), 2)}, {largest:.2f} at most; rotated back: share "
        f"{found}, overlap {results.column('smallest_overlap').min():.3f} at least",
    )


EXPERIMENT = Experiment(
    name="fig6",
    title="Singular values of the weights while an RBM learns",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_modes_emerge, _subspace_is_learned, _when_they_emerge, _patterns_are_not),
)
