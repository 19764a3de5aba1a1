"""The score over the number of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualtap.plots._axes import axes_or_new
from dualtap.recovery import HopfieldPatterns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_path(model: HopfieldPatterns, ax: Axes | None = None) -> Axes:
    """Draw the description length and the held-out score over the number of patterns.

    A dotted line marks the number of patterns of the model.

    Parameters
    ----------
    model : HopfieldPatterns
        Fitted, with a ``path_``.
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes
        Of the description length; the held-out score has a twin of it.

    Raises
    ------
    ValueError
        If ``path_`` is None.

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.plots import plot_path
    >>> teacher = dt.HopfieldModel.random(200, 2, beta=2.0, random_state=0)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(40, random_state=1))
    >>> model.path_ = {"n_patterns": np.arange(3), "objective": np.array([5545.0, 3900.0, 2500.0]),
    ...                "held_out": np.array([-0.69, -0.48, -0.28])}
    >>> plot_path(model).get_xlabel()
    'number of patterns'
    """
    path = model.path_
    if path is None:
        raise ValueError("path_ of the model is None: no score over the number of patterns")
    ax = axes_or_new(ax)
    n_patterns = path["n_patterns"]
    (length,) = ax.plot(n_patterns, path["objective"], "o-", color="C0", ms=4)
    lines, labels = [length], ["description length"]
    ax.set(
        xlabel="number of patterns",
        ylabel="description length (nats)",
        title="Score over the number of patterns",
    )
    if not np.isnan(path["held_out"]).all():
        twin = ax.twinx()
        lines += twin.plot(n_patterns, path["held_out"], "s--", color="C1", ms=4)
        labels.append("held-out score")
        twin.set_ylabel("held-out log pseudo-likelihood per spin")
    ax.axvline(model.n_patterns_, color="0.3", lw=1, ls=":")
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.legend(lines, labels, frameon=False, loc="center right")
    return ax
