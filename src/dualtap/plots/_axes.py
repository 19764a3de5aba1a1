"""Where pictures are drawn, and words they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes, or those of a new figure, which a notebook then shows."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def count_patterns(n: int) -> str:
    """Return "3 patterns", or how else it is said."""
    return f"{n or 'no'} pattern{'s' if n > 1 else ''}"
