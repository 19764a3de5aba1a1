"""What figures of a report are made of: plain dicts for Plotly.

Colours are names such as ``"$accent"``; the page puts in those of the theme in use, so that a
figure can be drawn again in the dark. Text that comes from files is escaped here: Plotly reads
some tags in the text it draws.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Figure = dict[str, Any]


class Chart(NamedTuple):
    """A figure, where it goes, and what it says in words."""

    key: str
    title: str
    caption: str
    alt: str
    figure: Figure
    wide: bool = False


def histogram(bins: dict[str, Any], what: str, of: str) -> dict[str, Any]:
    """Return bars of counts between edges."""
    left, right = bins["edges"][:-1], bins["edges"][1:]
    return {
        "type": "bar",
        "x": (left + right) / 2,
        "width": right - left,
        "y": bins["counts"],
        "customdata": np.stack([left, right], axis=1),
        "marker": {"color": "$accent", "line": {"width": 1, "color": "$surface"}},
        "hovertemplate": f"{what} %{{customdata[0]:.3f}} to %{{customdata[1]:.3f}}: "
        f"%{{y}} {of}<extra></extra>",
    }


def lines(x: Any, rows: Any, colours: list[str]) -> list[dict[str, Any]]:
    """Return a line per row."""
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "line": {"color": colour, "width": 2},
            "hovertemplate": "%{x}: %{y:.4g}<extra></extra>",
        }
        for y, colour in zip(rows, colours, strict=True)
    ]
