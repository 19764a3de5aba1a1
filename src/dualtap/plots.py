"""Pictures of a recovery. Matplotlib is imported only when one is drawn."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match, overlaps
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
    "plot_spectrum",
    "recovery_figure",
]

_LEADING = 40


def plot_overlaps(model: DualTAP, teacher: HopfieldModel, ax: Axes) -> Axes:
    """Draw the absolute overlap of every found pattern with every teacher pattern.

    After deflation there is a column for every round, also those after the last pattern (Fig. 2).
    Teacher patterns are ordered by what found them, so that a complete recovery is a diagonal.

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
    if not model.n_patterns_:
        return _say_nothing_found(model, ax)
    if hasattr(model, "history_"):
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


def _say_nothing_found(model: DualTAP, ax: Axes) -> Axes:
    text = textwrap.fill(model.reason_, 46)
    ax.text(0.5, 0.5, text, ha="center", va="center", color="0.3", transform=ax.transAxes)
    ax.set(xticks=[], yticks=[], title="No pattern found")
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


def plot_spectrum(model: DualTAP, ax: Axes) -> Axes:
    """Draw the leading squared singular values of the samples over the edge of noise.

    Those of the patterns are blue, what is left is grey. Fair coins end at 1, the dotted line;
    strong patterns leave less noise than that, so that weaker ones can show below the line.

    Parameters
    ----------
    model : DualTAP
        Fitted with ``scheme="joint"``.
    ax : Axes

    Returns
    -------
    Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> import dualtap as dt
    >>> from dualtap.plots import plot_spectrum
    >>> teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)
    >>> model = dt.DualTAP(random_state=0).fit(teacher.sample(40, random_state=1))
    >>> plot_spectrum(model, Figure().subplots()).get_title()
    'Spectrum of the samples: 3 patterns'
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    n = model.n_patterns_
    values = model.spectrum_[: max(_LEADING, 2 * n)]
    # The last values of few samples may be zero, and a log scale would go down to rounding errors.
    floor = 0.7 * max(float(values.min()), 0.01)
    rank = np.arange(1, len(values) + 1)
    for part, color, label in (
        (slice(None, n), "C0", "patterns"),
        (slice(n, None), "0.7", "the rest"),
    ):
        if len(values[part]):
            height = np.maximum(values[part] - floor, 0)
            ax.bar(rank[part], height, bottom=floor, color=color, width=0.8, label=label)
    ax.axhline(1, color="black", lw=1, ls=":", label="edge of noise")
    if n:
        ax.axvline(n + 0.5, color="0.3", lw=1)
    ax.set(
        yscale="log",
        ylim=(floor, 1.5 * max(float(values.max()), 1.0)),
        xlim=(0.3, len(values) + 0.7),
        xlabel="rank",
        ylabel="squared singular value / edge of noise",
        title=f"Spectrum of the samples: {_patterns(n)}",
    )
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))  # less than a decade has labels, too
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
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
    """Return overlaps beside the rounds, or the spectrum if there are none, and a title.

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
    if hasattr(model, "history_"):
        plot_progress(model, teacher, right)
    else:
        plot_spectrum(model, right)
    n = model.n_patterns_
    found = f"; found: β = {model.beta_:.2f}" if n else ""
    figure.suptitle(
        f"{_patterns(n)} recovered from {n_samples} samples of "
        f"{teacher.n_spins} spins (hidden: P = {teacher.n_patterns}, β = {teacher.beta:g}{found})"
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
    ax.locator_params(axis="x", integer=True, min_n_ticks=1)


def _patterns(n: int) -> str:
    return f"{n or 'no'} pattern{'s' if n > 1 else ''}"
