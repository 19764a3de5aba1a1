"""How an RBM learns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualtap.plots._axes import axes_or_new
from dualtap.rbm import HopfieldRBM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_learning(rbm: HopfieldRBM, ax: Axes | None = None) -> Axes:
    r"""Draw the pseudo-likelihood per spin and, with a teacher, the error of J (Fig. 5).

    Parameters
    ----------
    rbm : HopfieldRBM
        Fitted.
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes
        Of the pseudo-likelihood; the error has a twin of it.
    """
    ax = axes_or_new(ax)
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


def plot_singular_values(rbm: HopfieldRBM, ax: Axes | None = None) -> Axes:
    """Draw the singular values of the weights as they emerge (Fig. 6).

    Parameters
    ----------
    rbm : HopfieldRBM
        Fitted.
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
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
