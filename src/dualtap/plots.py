"""Pictures of a recovery. Matplotlib is imported only when one is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dualtap.hopfield import HopfieldModel
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import DualTAP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "check_format",
    "learning_figure",
    "plot_learning",
    "plot_overlaps",
    "plot_progress",
    "plot_singular_values",
    "recovery_figure",
]


def plot_overlaps(model: DualTAP, teacher: HopfieldModel, ax: Axes) -> Axes:
    """Draw the absolute overlap of every round's best student with every teacher pattern (Fig. 2).

    Teacher patterns are ordered by the round that found them, so that a complete recovery is a
    diagonal.

    Parameters
    ----------
    model : DualTAP
        Fitted.
    teacher : HopfieldModel
    ax : Axes

    Returns
    -------
    Axes
    """
    o = model.history_.overlaps(teacher)
    order = np.argsort(np.argmax(o, axis=0), kind="stable")
    n_rounds, n_patterns = o.shape
    image = ax.imshow(
        o[:, order].T,
        origin="lower",
        aspect="auto",
        vmin=0,
        vmax=1,
        cmap="Blues",
        extent=(0.5, n_rounds + 0.5, 0.5, n_patterns + 0.5),
    )
    ax.figure.colorbar(image, ax=ax, label="|overlap|", shrink=0.85)
    _mark_last(model, ax)
    ax.locator_params(axis="y", integer=True)
    ax.set(
        xlabel="round τ",
        ylabel="teacher pattern (in order of discovery)",
        title="Best student of each round\nagainst the hidden patterns",
    )
    return ax


def plot_progress(model: DualTAP, teacher: HopfieldModel, ax: Axes) -> Axes:
    r"""Draw the relative error of J and the rescaled :math:`\hat{\mathcal L}` (Fig. 3).

    Parameters
    ----------
    model : DualTAP
        Fitted.
    teacher : HopfieldModel
    ax : Axes

    Returns
    -------
    Axes
    """
    history = model.history_
    rounds = np.arange(1, len(history.scores) + 1)
    errors = history.coupling_errors(teacher)
    ax.plot(rounds, errors, "o-", color="C1", ms=4, label="relative error of J")
    ax.plot(
        rounds,
        history.likelihood / history.likelihood[-1],
        "s--",
        color="C0",
        ms=4,
        label=r"$\hat{\mathcal{L}}$, rescaled",
    )
    _mark_last(model, ax)
    ax.set(xlabel="round τ", ylim=(0, None), title="Error of the couplings, and likelihood")
    ax.legend(frameon=False)
    return ax


def check_format(path: Path) -> str:
    """Return the picture format that a file name asks for; call it before long work.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dualtap.plots import check_format
    >>> check_format(Path("demo.svg"))
    'svg'
    """
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.filetypes
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in known:
        raise ValueError(
            f"cannot draw a picture to {path.name!r}; known are {', '.join('.' + k for k in known)}"
        )
    return suffix


def recovery_figure(model: DualTAP, teacher: HopfieldModel, n_samples: int) -> Figure:
    """Return both pictures side by side, titled with what was recovered.

    Parameters
    ----------
    model : DualTAP
        Fitted.
    teacher : HopfieldModel
    n_samples : int
        For the title.

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_overlaps(model, teacher, left)
    plot_progress(model, teacher, right)
    figure.suptitle(
        f"{model.n_patterns_} patterns recovered from {n_samples} samples of "
        f"{teacher.n_spins} spins (hidden: P = {teacher.n_patterns}, β = {teacher.beta:g}; "
        f"found: β = {model.beta_:.2f})"
    )
    return figure


def plot_learning(rbm: HopfieldRBM, ax: Axes) -> Axes:
    r"""Draw the pseudo-likelihood per spin and, with a teacher, the error of J (Fig. 5).

    Parameters
    ----------
    rbm : HopfieldRBM
        Fitted.
    ax : Axes

    Returns
    -------
    Axes
        Of the pseudo-likelihood; the error has a twin of it.
    """
    curve = rbm.history_
    ax.plot(curve.update, curve.pseudo_likelihood, "C0-", label="exact")
    ax.plot(curve.update, curve.pseudo_likelihood_one_step, "C0:", label="one-step estimate")
    ax.set(xlabel="update", ylabel="pseudo-likelihood per spin", title="Learning")
    handles, labels = ax.get_legend_handles_labels()
    if not np.isnan(curve.error).any():
        twin = ax.twinx()
        handles += twin.plot(curve.update, curve.error, "C1--")
        labels.append("relative error of J")
        twin.set(ylim=(0, None), ylabel="relative error of J")
    ax.legend(handles, labels, frameon=False, loc="center right")
    return ax


def plot_singular_values(rbm: HopfieldRBM, ax: Axes) -> Axes:
    """Draw the singular values of the weights as they emerge (Fig. 6).

    Parameters
    ----------
    rbm : HopfieldRBM
        Fitted.
    ax : Axes

    Returns
    -------
    Axes
    """
    curve, n = rbm.history_, rbm.n_patterns_
    lines = ax.plot(curve.update, curve.singular_values, color="0.6", lw=1)
    for line in lines[:n]:
        line.set(color="C0", lw=1.5)
    ax.set(
        xlabel="update",
        ylabel="singular value of W",
        ylim=(0, None),
        title=f"{n} of {len(lines)} singular values emerge",
    )
    return ax


def learning_figure(rbm: HopfieldRBM) -> Figure:
    """Return both pictures of a training side by side.

    Parameters
    ----------
    rbm : HopfieldRBM
        Fitted.

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_learning(rbm, left)
    plot_singular_values(rbm, right)
    return figure


def _mark_last(model: DualTAP, ax: Axes) -> None:
    """Mark where the rounds stop finding patterns."""
    ax.axvline(model.n_patterns_ + 0.5, color="black", lw=1, ls=":")
    ax.locator_params(axis="x", integer=True)
