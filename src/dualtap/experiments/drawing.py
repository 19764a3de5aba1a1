"""How figures look: readable in black and white, in a column, with their caption."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A colour, a marker and a dash pattern each: any of the three tells curves apart.
STYLES: list[dict[str, Any]] = [
    {"color": "#0072b2", "marker": "o", "linestyle": "-"},
    {"color": "#d55e00", "marker": "s", "linestyle": "--"},
    {"color": "#009e73", "marker": "^", "linestyle": "-."},
    {"color": "#cc79a7", "marker": "D", "linestyle": ":"},
    {"color": "#000000", "marker": "v", "linestyle": (0, (5, 1))},
    {"color": "#e69f00", "marker": "P", "linestyle": (0, (3, 1, 1, 1))},
    {"color": "#56b4e9", "marker": "X", "linestyle": (0, (1, 1))},
]
LEGEND: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "framealpha": 1}
"""Of a legend that thin lines pass behind."""
_CAPTION_WIDTH = 110


def new_figure(n_panels: int = 1, width: float = 4.6, height: float = 3.6) -> Figure:
    """Return an empty figure with room for panels side by side."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width * n_panels, height), layout="constrained")


def letter(axes: Any) -> None:
    """Write (a), (b), … above the left corner of every panel, row by row."""
    for k, ax in enumerate(np.asarray(axes).flat):
        ax.set_title(f"({chr(ord('a') + k)})", loc="left", fontsize=10, fontweight="bold")


def within(
    values: ArrayLike, errors: ArrayLike, low: float = 0.0, high: float = 1.0
) -> NDArray[np.float64]:
    """Return error bars below and above that do not leave the range of the values.

    Examples
    --------
    >>> from dualtap.experiments.drawing import within
    >>> within([0.1, 0.9], [0.2, 0.2]).round(2)
    array([[0.1, 0.2],
           [0.2, 0.1]])
    """
    y, bar = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    below, above = np.maximum(y - low, 0), np.maximum(high - y, 0)
    return np.array([np.minimum(bar, below), np.minimum(bar, above)])


def save_figure(figure: Figure, caption: str, folder: Path, name: str) -> list[Path]:
    """Write ``name.png``, ``name.svg`` and the caption as ``name.txt``; return the paths."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg", "txt")]
    # Text stays text in SVG, and the same figure gives the same file.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        for path in paths[:2]:
            kind = path.suffix[1:]
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            with atomic_write(path, force=True) as file:
                figure.savefig(file, format=kind, dpi=130, metadata=metadata)
    with atomic_write(paths[2], force=True) as file:
        file.write((textwrap.fill(caption, _CAPTION_WIDTH) + "\n").encode())
    return paths
