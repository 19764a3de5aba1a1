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


CATEGORIES = {"type": "category", "showgrid": False}
"""The axis of the patterns."""


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with a title."""
    return {"title": {"text": title}, **more}


def bars(y: Any, colours: Any, hover: str, **more: Any) -> dict[str, Any]:
    """Return bars of one colour or one each; without other ``x``, one bar per pattern."""
    return {
        "type": "bar",
        "x": [str(k) for k in range(len(y))],
        "y": y,
        "marker": {"color": colours},
        "hovertemplate": f"{hover}<extra></extra>",
        **more,
    }


def guide(**ends: Any) -> dict[str, Any]:
    """Return a dotted line to compare with."""
    return {"type": "line", "line": {"color": "$muted", "width": 1, "dash": "dot"}, **ends}


def on_the_right(title: str, **more: Any) -> dict[str, Any]:
    """Return a second vertical axis."""
    return axis(title, overlaying="y", side="right", showgrid=False, **more)


def histogram(bins: dict[str, Any], what: str, of: str) -> dict[str, Any]:
    """Return bars of counts between edges."""
    left, right = bins["edges"][:-1], bins["edges"][1:]
    return bars(
        bins["counts"],
        None,
        f"{what} %{{customdata[0]:.3f}} to %{{customdata[1]:.3f}}: %{{y}} {of}",
        x=(left + right) / 2,
        width=right - left,
        customdata=np.stack([left, right], axis=1),
        marker={"color": "$accent", "line": {"width": 1, "color": "$surface"}},
    )


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
