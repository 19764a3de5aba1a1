"""What a recovery found, against the noise and against a teacher."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match, overlaps
from dualtap.plots._axes import axes_or_new, count_patterns
from dualtap.published import DualTAP
from dualtap.recovery import HopfieldPatterns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEADING = 40


def plot_overlaps(
    model: HopfieldPatterns | DualTAP, teacher: HopfieldModel, ax: Axes | None = None
) -> Axes:
    """Draw the absolute overlap of every found pattern with every teacher pattern.

    For :class:`DualTAP` there is a column for every round, also those after the last pattern
    (Fig. 2).
    Teacher patterns are ordered by what found them, so that a complete recovery is a diagonal.

    Parameters
    ----------
    model : HopfieldPatterns or DualTAP
        Fitted.
    teacher : HopfieldModel
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
    if not model.n_patterns_:
        return _say_nothing_found(model, ax)
    if isinstance(model, DualTAP):
        o = model.history_.overlaps(teacher)
        _draw_overlaps(o[:, np.argsort(np.argmax(o, axis=0), kind="stable")], ax)
        _mark_last(model, ax)
        xlabel, title = "round τ", "Best student of each round\nagainst the hidden patterns"
    else:
        o = np.abs(overlaps(model.patterns_, teacher.patterns))
        partner = match(model.patterns_, teacher.patterns).index
        missed_last = np.where(partner < 0, len(o), partner)
        _draw_overlaps(o[:, np.argsort(missed_last, kind="stable")], ax)
        xlabel, title = "found pattern", "Found patterns against the hidden ones"
    ax.set(xlabel=xlabel, ylabel="teacher pattern (in order of discovery)", title=title)
    return ax


def _draw_overlaps(o: NDArray[np.float64], ax: Axes) -> None:
    n_found, n_hidden = o.shape
    image = ax.imshow(
        o.T,
        origin="lower",
        aspect="auto",
        vmin=0,
        vmax=1,
        cmap="Blues",
        extent=(0.5, n_found + 0.5, 0.5, n_hidden + 0.5),
    )
    ax.figure.colorbar(image, ax=ax, label="|overlap|", shrink=0.85)
    ax.locator_params(integer=True, min_n_ticks=1)


def _say_nothing_found(model: HopfieldPatterns | DualTAP, ax: Axes) -> Axes:
    text = textwrap.fill(model.reason_, 46)
    ax.text(0.5, 0.5, text, ha="center", va="center", color="0.3", transform=ax.transAxes)
    ax.set(xticks=[], yticks=[], title="No pattern found")
    return ax


def plot_progress(model: DualTAP, teacher: HopfieldModel, ax: Axes | None = None) -> Axes:
    r"""Draw the relative error of J and the rescaled :math:`\hat{\mathcal L}` (Fig. 3).

    Parameters
    ----------
    model : DualTAP
        Fitted.
    teacher : HopfieldModel
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes
    """
    ax = axes_or_new(ax)
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


def _mark_last(model: DualTAP, ax: Axes) -> None:
    """Mark where the rounds stop finding patterns."""
    ax.axvline(model.n_patterns_ + 0.5, color="black", lw=1, ls=":")
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)


def plot_spectrum(model: HopfieldPatterns, ax: Axes | None = None) -> Axes:
    """Draw the leading squared singular values of the samples, relative to the noise edge.

    As many as there are patterns are blue, the others grey. Independent random spins end at 1, the
    dotted line. The number of patterns is that which minimises the description length, not a count
    of these values: weak patterns can lie below the line, and means of spins above it.

    Parameters
    ----------
    model : HopfieldPatterns
        Fitted.
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.plots import plot_spectrum
    >>> teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(40, random_state=1))
    >>> plot_spectrum(model).get_title()
    'Spectrum of the samples: 3 patterns'
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    ax = axes_or_new(ax)
    n = model.n_patterns_
    values = model.spectrum_[: max(_LEADING, 2 * n)]
    # The last values of few samples may be zero, and a log scale would go down to rounding errors.
    floor = 0.7 * max(float(values.min()), 0.01)
    rank = np.arange(1, len(values) + 1)
    for part, color, label in (
        (slice(None, n), "C0", "patterns"),
        (slice(n, None), "0.7", "other directions"),
    ):
        if len(values[part]):
            height = np.maximum(values[part] - floor, 0)
            ax.bar(rank[part], height, bottom=floor, color=color, width=0.8, label=label)
    ax.axhline(1, color="black", lw=1, ls=":", label="noise edge")
    if n:
        ax.axvline(n + 0.5, color="0.3", lw=1)
    ax.set(
        yscale="log",
        ylim=(floor, 1.5 * max(float(values.max()), 1.0)),
        xlim=(0.3, len(values) + 0.7),
        xlabel="rank",
        ylabel="squared singular value / noise edge",
        title=f"Spectrum of the samples: {count_patterns(n)}",
    )
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # less than a decade has labels, too
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.legend(frameon=False)
    return ax


def recovery_figure(
    model: HopfieldPatterns | DualTAP, teacher: HopfieldModel, n_samples: int
) -> Figure:
    """Return overlaps beside the spectrum, or beside the rounds of :class:`DualTAP`.

    Parameters
    ----------
    model : HopfieldPatterns or DualTAP
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
    if isinstance(model, DualTAP):
        plot_progress(model, teacher, right)
    else:
        plot_spectrum(model, right)
    n = model.n_patterns_
    found = "" if np.isnan(model.beta_) else f"; found: β = {model.beta_:.2f}"
    figure.suptitle(
        f"{count_patterns(n)} recovered from {n_samples} samples of "
        f"{teacher.n_spins} spins (hidden: P = {teacher.n_patterns}, β = {teacher.beta:g}{found})"
    )
    return figure
