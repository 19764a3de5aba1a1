"""Theory 3: the phase diagram of the Hopfield model, replica symmetric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualtap.experiments.drawing import STYLES, new_figure
from dualtap.experiments.experiment import (
    Experiment,
    MissingTrialsError,
    Outcome,
    Parameters,
    Results,
)
from dualtap.experiments.judging import Evidence, claims_of, exact, judge
from dualtap.theory import metastable_capacity, retrieval_capacity, spin_glass_temperature

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KNOWN = (0.138, 0.051)  # T_M and T_R: Amit, Gutfreund, Sompolinsky, T = 0


def points(full: bool, *, T: Sequence[float] | None = None) -> Sequence[tuple[Parameters, int]]:
    """Return temperatures; nothing here is random."""
    grid = np.linspace(0, 0.99, 100 if full else 34) if T is None else T
    return [({"T": round(float(t), 4)}, 1) for t in grid]


def trial(parameters: Parameters, seed: int) -> Outcome:
    """Compute the loads at which retrieval states appear, and at which they take over."""
    T = parameters["T"]
    return {"metastable": metastable_capacity(T), "retrieval": retrieval_capacity(T)}


def plot(results: Results) -> Figure:
    """Draw the three lines and the known points."""
    figure = new_figure(width=5.2, height=3.8)
    ax = figure.subplots()
    T = np.array([row.parameters["T"] for row in results])
    alpha = np.linspace(0, 0.16, 200)
    lines: list[tuple[Any, Any, str]] = [
        (alpha, [spin_glass_temperature(a) for a in alpha], "$T_g$: spin glass below"),
        (results.column("metastable"), T, "$T_M$: retrieval states exist below"),
        (results.column("retrieval"), T, "$T_R$: retrieval states are stable below"),
    ]
    for (x, y, label), style in zip(lines, STYLES, strict=False):
        ax.plot(x, y, color=style["color"], linestyle=style["linestyle"], label=label)
    for value, style in zip(KNOWN, STYLES[1:], strict=False):
        ax.plot(
            value, 0, color=style["color"], marker=style["marker"], ls="", clip_on=False, zorder=3
        )
        ax.annotate(
            f"α = {value:g}",
            (value, 0),
            (-6, 6),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
    ax.set(xlabel="load α = P/N", ylabel="temperature T", xlim=(0, 0.16), ylim=(0, 1.5))
    ax.legend(frameon=False, fontsize=8)
    return figure


def caption(results: Results) -> str:
    """Say what the figure shows."""
    known = "the values of Amit, Gutfreund and Sompolinsky at T = 0, 0.138 and 0.051"
    if results.where(T=0.0):
        zero = _at_zero(results)
        known += f"; computed here: {zero['metastable']:.4f} and {zero['retrieval']:.4f}"
    return (
        "Theory 3. Phase diagram of the Hopfield model, replica symmetric. T_g = 1+√α; T_M: "
        f"retrieval states appear; T_R: they have the lowest free energy. Symbols: {known}. "
        f"{len(results)} temperatures."
    )


@judge("theory3.capacity")
def _capacity(results: Results) -> Evidence:
    """Measure the loads at T = 0 against the known ones."""
    zero = _at_zero(results)
    return Evidence(
        {
            "metastable": exact(abs(zero["metastable"] - 0.138)),
            "retrieval": exact(abs(zero["retrieval"] - 0.0515)),
        },
        f"{zero['metastable']:.4f} and {zero['retrieval']:.4f} (the literature truncates the "
        "second to 0.051)",
    )


def _at_zero(results: Results) -> Outcome:
    """Return the loads at T = 0."""
    rows = results.where(T=0.0).rows
    if not rows:
        raise MissingTrialsError("there is no trial with T = 0")
    return rows[0].results


EXPERIMENT = Experiment(
    name="theory3",
    title="Phase diagram of the Hopfield model",
    trial=trial,
    points=points,
    plot=plot,
    caption=caption,
    claims=claims_of(_capacity),
)
