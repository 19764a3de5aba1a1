"""The patterns themselves: pictures, or rows of a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualtap._validation import image_shape
from dualtap.fitted.learned import LearnedPatterns
from dualtap.plots._axes import axes_or_new, count_patterns
from dualtap.rbm import HopfieldRBM

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MOST_PICTURES = 100
_MOST_NAMES = 60
_MOST_STRENGTHS = 40
_NO_PART = "0.86"
_COLOURS: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -1.3, "vmax": 1.3}  # its ends are too dark


def plot_patterns(
    model: LearnedPatterns | HopfieldRBM, shape: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the patterns: as pictures if spins are pixels, else one row per pattern.

    Red is +1, blue -1; the paler, the less certain; grey where a spin is not in the pattern. Images
    are numbered, with the share of samples nearest to each; past a hundred they are left out.
    Strengths are written beside the patterns if they differ, and repulsive patterns are marked.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted.
    shape : (height, width), optional
        Of a sample as a picture, row after row.
    ax : Axes, optional
        A new figure of pyplot when not given.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.plots import plot_patterns
    >>> teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(teacher.sample(40, random_state=1))
    >>> plot_patterns(model, shape=(10, 20)).get_title()
    '3 patterns'
    """
    ax = axes_or_new(ax)
    n = model.n_patterns_
    m = getattr(model, "magnetizations_", model.patterns_)
    if not n:
        ax.set(xticks=[], yticks=[], title="No pattern found")
        return ax
    if shape is None:
        image = ax.imshow(m, aspect="auto", interpolation="nearest", **_COLOURS)
        ax.set(xlabel="spin", ylabel="pattern", title=count_patterns(n))
        ax.locator_params(integer=True, min_n_ticks=1)
        _draw_no_part(model.patterns_ == 0, ax)
        strengths = getattr(model, "strengths_", np.empty(0))
        if len(set(strengths)) > 1 and n <= _MOST_STRENGTHS:
            marks = [f"{k} (g = {g:.2g}{_kind(g)})" for k, g in enumerate(strengths)]
            ax.set_yticks(range(n), marks, fontsize="small")
            ax.set_ylabel("pattern (strength g)")
        names = getattr(model, "feature_names_in_", ())
        if 0 < len(names) <= _MOST_NAMES:  # more could not be read; $ is not mathematics here
            labels = [str(name).replace("$", r"\$") for name in names]
            ax.set_xticks(range(len(names)), labels, rotation=90, fontsize="small")
            ax.set_xlabel("")
    else:
        tiles = m[:_MOST_PICTURES].reshape(-1, *image_shape(shape, m.shape[1]))
        image = _draw_tiles(tiles, model.patterns_ == 0, _captions(model, len(tiles)), ax)
        left_out = f"first {len(tiles)} of " if len(tiles) < n else ""
        ax.set(title=left_out + count_patterns(n))
    bar = ax.figure.colorbar(image, ax=ax, label="magnetization m", shrink=0.85)
    bar.ax.set(ylim=(-1, 1), yticks=[-1, 0, 1])
    return ax


def _captions(model: LearnedPatterns | HopfieldRBM, n: int) -> list[str]:
    """Return number, share of samples and, if it is repulsive, that of each pattern."""
    if isinstance(model, HopfieldRBM):
        return [str(k) for k in range(n)]
    numbers = enumerate(zip(model.weights_[:n], model.strengths_[:n], strict=True))
    return [f"{k} · {share:.0%}{_kind(g)}" for k, (share, g) in numbers]


def _kind(strength: float) -> str:
    return ", repulsive" if strength < 0 else ""


def _draw_no_part(where: NDArray[np.bool_], ax: Axes) -> None:
    """Cover entries that are 0 with a neutral colour, and say what it means."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    if not where.any():
        return
    cover = np.ma.masked_where(~where, np.ones(where.shape))
    colours = ListedColormap([_NO_PART])
    ax.imshow(cover, aspect=ax.get_aspect(), interpolation="nearest", cmap=colours)
    ax.legend(
        handles=[Patch(color=_NO_PART, label="not in the pattern")],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        fontsize="small",
        frameon=False,
    )


def _draw_tiles(
    tiles: NDArray[Any], no_part: NDArray[np.bool_], captions: list[str], ax: Axes
) -> AxesImage:
    """Draw pictures side by side in a grid about as wide as high, a line of text below each."""
    n, height, width = tiles.shape
    n_columns = min(n, max(1, round(np.sqrt(n * 1.4 * height / width))))
    n_rows = -(-n // n_columns)
    gap = max(1, width // 12)
    caption = max(1, round(0.22 * height))
    step_y, step_x = height + caption + gap, width + gap
    canvas = np.full((n_rows * step_y - gap, n_columns * step_x - gap), np.nan)
    neutral = np.zeros(canvas.shape, dtype=np.bool_)
    for k, tile in enumerate(tiles):
        y, x = (k // n_columns) * step_y, (k % n_columns) * step_x
        pixels = slice(y, y + height), slice(x, x + width)
        canvas[pixels] = tile
        neutral[pixels] = no_part[k].reshape(height, width)
        at = (x + (width - 1) / 2, y + height - 0.2)
        ax.text(*at, captions[k], ha="center", va="top", color="0.3", fontsize="x-small")
    image = ax.imshow(canvas, interpolation="nearest", **_COLOURS)
    _draw_no_part(neutral, ax)
    ax.set_axis_off()
    return image
