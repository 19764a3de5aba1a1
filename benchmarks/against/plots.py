"""Pictures of the tables."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.against.tables import Rows, by_case

_MARKERS = "osD^v<>PX*hpd"
_MOST_COLUMNS = 5


def save_scatter(path: Path, rows: Rows, mark: str, label: str, *, log: bool = False) -> Path:
    """Draw a mark against the time, a panel a case; ours is filled, in the first colours."""
    cases = by_case(rows)
    styles = _styles(rows)
    n_columns = min(len(cases), _MOST_COLUMNS)
    n_lines = -(-len(cases) // n_columns)
    figure = Figure(figsize=(max(2.6 * n_columns, 6), 2.3 * n_lines + 1.4), layout="constrained")
    axes = figure.subplots(n_lines, n_columns, squeeze=False, sharex=True, sharey=True).ravel()
    for k, (ax, (case, own)) in enumerate(zip(axes, cases.items(), strict=False)):
        for row in reversed(own):  # the first on top
            if row["marks"]:
                ax.plot(row["median_s"], row["marks"][mark], **styles[row["contender"]])
        ax.set_title(_broken(case), fontsize=8)
        ax.set(xscale="log", yscale="log" if log else "linear")
        ax.tick_params(which="both", labelsize=8, labelbottom=k + n_columns >= len(cases))
        ax.grid(alpha=0.3)
    for ax in axes[len(cases) :]:
        ax.axis("off")
    handles = [axes[0].plot([], [], label=name, **style)[0] for name, style in styles.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.suptitle(f"{label} against seconds", fontsize=10)
    figure.savefig(path, dpi=120)
    return path


def _styles(rows: Rows) -> dict[str, dict[str, Any]]:
    """Return the look of every contender's points."""
    names = dict.fromkeys(row["contender"] for row in rows)
    return {
        name: {
            "marker": marker,
            "color": f"C{k}",
            "linestyle": "none",
            "fillstyle": "full" if "dualtap" in name else "none",
        }
        for k, (name, marker) in enumerate(zip(names, cycle(_MARKERS), strict=False))
    }


def _broken(case: str) -> str:
    """Return the name of a case on two lines if it has an extra."""
    return case.replace(", ", "\n", 1)


def save_bars(path: Path, values: Mapping[tuple[str, str], float], label: str) -> Path:
    """Draw horizontal bars of (contender, group) on a logarithmic scale, told in millions."""
    names = list(dict.fromkeys(name for name, _ in values))
    groups = list(dict.fromkeys(group for _, group in values))
    figure = Figure(figsize=(8, 0.5 * len(names) + 1.4), layout="constrained")
    ax = figure.subplots()
    height = 0.8 / len(groups)
    for g, group in enumerate(groups):
        own = [(k, values[name, group]) for k, name in enumerate(names) if (name, group) in values]
        y = np.array([k for k, _ in own]) + (g - (len(groups) - 1) / 2) * height
        bars = ax.barh(y, [value for _, value in own], height, label=group, color=f"C{g}")
        ax.bar_label(bars, [f"{value / 1e6:.3g} M" for _, value in own], padding=3, fontsize=8)
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.set(xscale="log", xlabel=label)
    ax.margins(x=0.15)
    ax.legend(frameon=False)
    figure.savefig(path, dpi=120)
    return path
