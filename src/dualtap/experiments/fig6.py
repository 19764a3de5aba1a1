"""Fig. 6: singular values of the weights while an RBM learns, and the data modes they span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtap.experiments import fig5
from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import Claim, Experiment, Outcome, Parameters, Results, Verdict
from dualtap.metrics import match
from dualtap.rbm.monitors import data_modes, mode_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINT = fig5.POINT | {"M": 1000, "modes": 20}
INSIDE, OUTSIDE = 0.25, 0.9
FOUND = 0.95


def points(full: bool) -> Sequence[tuple[Parameters, int]]:
    """Return one number of samples; quick trials are fewer."""
    return [(POINT, 20 if full else 5)]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Train as in Fig. 5, on samples of its own; measure modes and patterns in the weights."""
    teacher, X, rbm = fig5.learned(parameters, seed)
    _, _, untrained = fig5.learned({**parameters, "updates": 1}, seed)
    modes = data_modes(X, parameters["modes"])
    curve = rbm.history_
    values = curve.singular_values[-1]
    units = match(np.sign(rbm.components_), teacher.patterns)
    read_off = match(rbm.patterns_, teacher.patterns)
    P = parameters["P"]
    return {
        "update": curve.update,
        "singular_values": curve.singular_values,
        "t_start": mode_errors(untrained.components_, modes),
        "t_end": mode_errors(rbm.components_, modes),
        "emerged": int(np.argmax(values[:-1] / values[1:])) + 1,
        "smallest_emerged": values[P - 1],
        "largest_idle": values[P],
        "largest_idle_start": curve.singular_values[0, P],
        "unit_recovered": units.n_recovered(FOUND),
        "unit_overlap": units.mean_overlap,
        "largest_unit_overlap": float(units.overlaps.max()),
        "recovered": read_off.n_recovered(FOUND),
        "smallest_overlap": float(read_off.overlaps.min()),
    }


def plot(results: Results) -> Figure:
    """Draw the first trial: singular values against updates, and the errors of data modes."""
    row = results.rows[0]
    figure = new_figure(n_panels=2)
    left, right = figure.subplots(1, 2)
    P = row.parameters["P"]
    values = row.array("singular_values")
    _lines(left, row.array("update"), values[:, :P], f"first {P}", STYLES[0])
    _lines(left, row.array("update"), values[:, P:], f"other {values.shape[1] - P}", STYLES[1])
    left.set(xlabel="updates", ylabel="singular values σ of W", ylim=(0, None))
    alpha = np.arange(1, row.parameters["modes"] + 1)
    right.plot(alpha, row.array("t_start"), label="start of learning", **STYLES[0])
    right.plot(alpha, row.array("t_end"), label="end of learning", **STYLES[1])
    right.axvline(P + 0.5, color="black", lw=1, ls=":")
    right.set(xlabel="mode α of the data", ylabel="error $t_α$", ylim=(0, 1.1))
    right.set_xticks(alpha[4::5])
    left.legend(frameon=False, loc="center right")
    right.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 0.3))
    return figure


def _lines(ax: Axes, x: Any, columns: Any, label: str, style: dict[str, Any]) -> None:
    """Draw every column in one style, with one entry in the legend."""
    lines = ax.plot(x, columns, lw=1, markevery=20, markersize=4, **style)
    lines[0].set_label(label)


def caption(results: Results) -> str:
    """Say what the figure shows."""
    p = results.rows[0].parameters
    complete = int(np.sum(results.column("emerged") == p["P"]))
    return (
        f"Fig. 6. Left: singular values of the weights of an RBM with {p['hidden']} Gaussian "
        f"hidden units during learning. N = {p['N']}, P = {p['P']}, β = {p['beta']:g}, "
        f"M = {p['M']}; PCD-10, mini-batches of 100, 100 chains, learning rate 0.05 over the "
        f"largest second moment of the data, {p['updates']} updates. Right: part t of each of the "
        f"first {p['modes']} singular vectors of the data that lies outside the span of the "
        f"weights, after the first update and after the last. One trial of {len(results)}; "
        f"exactly {p['P']} singular values emerge in {complete}."
    )


def claims(results: Results) -> list[Claim]:
    """Judge the number of modes, the subspace, and the rotation inside it."""
    return [_modes_emerge(results), _subspace_is_learned(results), _patterns_are_not(results)]


def _modes_emerge(results: Results) -> Claim:
    P = results.rows[0].parameters["P"]
    exact = results.column("emerged") == P
    gap = results.column("smallest_emerged") / results.column("largest_idle")
    growth = results.column("largest_idle") / results.column("largest_idle_start")
    return Claim(
        says=f"As many modes emerge in the weights as there are patterns, P = {P}.",
        where="Fig. 6",
        decided_by=f"widest gap between successive singular values lies below the {P}th",
        measured=f"{int(exact.sum())} of {len(results)} trials; σ_{P}/σ_{P + 1} from "
        f"{gap.min():.1f} to {gap.max():.1f}; σ_{P + 1} grows by a factor of at most "
        f"{growth.max():.2f}",
        verdict="holds" if exact.all() else "holds with a limit",
    )


def _subspace_is_learned(results: Results) -> Claim:
    P = results.rows[0].parameters["P"]
    start = np.array([row.array("t_start") for row in results])
    end = np.array([row.array("t_end") for row in results])
    learned = end[:, :P].max() < INSIDE and end[:, P:].min() > OUTSIDE
    return Claim(
        says=f"The weights come to span the first {P} singular vectors of the data.",
        where="Fig. 6, RBM appendix",
        decided_by=f"t below {INSIDE} for the first {P} data modes at the end, above {OUTSIDE} for "
        "the next",
        measured=f"first {P}: {start[:, :P].min():.2f}-{start[:, :P].max():.2f} at the start, "
        f"{end[:, :P].min():.2f}-{end[:, :P].max():.2f} at the end; next: "
        f"{end[:, P:].min():.2f}-{end[:, P:].max():.2f} at the end",
        verdict="holds" if learned else "does not hold",
    )


def _patterns_are_not(results: Results) -> Claim:
    P = results.rows[0].parameters["P"]
    shown, found = results.column("unit_recovered"), results.column("recovered")
    # What the weights do not show can still be in them: the rotation can be undone.
    limit: Verdict = "holds with a limit" if max(shown.max(), found.max()) > 0 else "holds"
    return Claim(
        says="The weights do not reproduce the patterns: the RBM learns at most the subspace that "
        "they span.",
        where="RBM section and appendix",
        decided_by=f"patterns with overlap above {FOUND} among the signs of the hidden units' "
        "weights (limit: independence over sites undoes the rotation)",
        measured=f"hidden units: {shown.mean():.1f} of {P} patterns a trial, overlap "
        f"{results.column('unit_overlap').mean():.2f} on average, "
        f"{results.column('largest_unit_overlap').max():.2f} at most; rotated back: "
        f"{found.mean():.1f} of {P}, overlap {results.column('smallest_overlap').min():.3f} at "
        "least",
        verdict=limit if shown.max() < P else "does not hold",
    )


EXPERIMENT = Experiment(
    name="fig6",
    title="Singular values of the weights while an RBM learns",
    version=1,
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims,
)
