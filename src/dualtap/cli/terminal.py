"""What a person sees of a result on a terminal; plain text when piped."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from dualtap._validation import image_shape
from dualtap.report.facts import facts, label
from dualtap.report.facts import text as value_text

Pictures = tuple[NDArray[np.floating], Sequence[int]]
"""Magnetizations of shape (n_patterns, n_spins), and the height and width of a sample.

NaN where a spin is not in a pattern.
"""

_PER_PATTERN = {  # in two lines, to fit into 80 columns
    "weights": ("share of\nsamples", "{:.1%}"),
    "share_plus": ("on\n+ side", "{:.1%}"),
    "share_minus": ("on\n− side", "{:.1%}"),
    "strengths": ("strength", "{:.3g}"),
    "support": ("spins", "{:d}"),
    "mean_confidence": ("mean\n|m|", "{:.3f}"),
    "uncertain_bits": ("uncertain\nbits", "{:d}"),
    "returned": ("found\nagain", "{:.0%}"),
    "cosine": ("median\ncosine", "{:.2f}"),
    "bits": ("spins", "{:d}"),
    "stable_bits": ("stable\nspins", "{:d}"),
}
_MOST_ROWS = 30
_TRACE_ROWS = 12
_PATH = ("n_patterns", "objective", "held_out")
_CURVE_ROWS = 12
_BAR_WIDTH = 40
_BEYOND = 5  # values of the spectrum shown after those of the patterns
_LONGEST_NAME = 24
_UNCERTAIN = 0.8
_NO_PART = 2  # of a pixel whose spin is not in the pattern
_GAP = 2  # columns between pictures
_BLOCKS = {(1, 1): "█", (1, -1): "▀", (-1, 1): "▄", (-1, -1): " ", (0, -1): "░", (-1, 0): "░"}
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])")
_MOST_EDGES = 8.0  # longer bars are cut, or the noise edge could not be seen beside them


def print_result(result: dict[str, Any], headline: str, pictures: Pictures | None = None) -> None:
    """Print what matters in a line, scalars as a list, the values of each pattern as a table.

    Parameters
    ----------
    result : dict
        As :func:`dualtap.report.summary.describe` returns it.
    headline : str
    pictures : pair of array and shape, optional
        Magnetizations and (height, width), to print the patterns as pictures as well.

    Examples
    --------
    >>> from dualtap.cli.terminal import print_result
    >>> print_result({"n_spins": 9, "mean_overlap": 0.98765}, "Two patterns found.")
    Two patterns found.
    spins                                9
    mean overlap with the true patterns  0.9877
    """
    console = Console(highlight=False)
    console.print(
        f"[bold green]{escape(printable(headline))}[/bold green]", soft_wrap=not console.is_terminal
    )
    _print_scalars(result, console)
    if result.get("n_patterns") and ("weights" in result or "returned" in result):
        console.print(_pattern_table(result))
    if result.get("carried_by") and pictures is None:
        console.print(_names_table(result["carried_by"]))
    if pictures is not None and len(pictures[0]):
        print_pictures(*pictures, console, weights=result.get("weights"))
    if "learning_curve" in result:
        console.print(_curve_table(result["learning_curve"]))
    if "singular_values" in result:
        console.print(_bars("singular value", result["singular_values"]))
    if "spectrum" in result:
        console.print(_spectrum_table(result["spectrum"], result["n_patterns"]))
    if result.get("trace"):
        console.print(_trace_table(result["trace"]))
    if result.get("path"):
        console.print(_path_table(result["path"], result["n_patterns"]))


def _print_scalars(result: dict[str, Any], console: Console) -> None:
    """Print one label and value per line; a terminal gets long values folded beside their label."""
    named = {} if result.get("n_patterns", 1) else {"reason": ""}  # in the headline
    lines = facts(result | named)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        text = printable(value)
        if console.is_terminal:
            parts = textwrap.wrap(text, max(console.width - width - 2, 20), break_long_words=False)
            text = ("\n" + " " * (width + 2)).join(parts)
        console.print(
            f"[bold]{escape(printable(name)):<{width}}[/bold]  {escape(text)}", soft_wrap=True
        )


def _table(*texts: str, numbers: Iterable[str] = (), caption: str | None = None) -> Table:
    """Return an empty table with columns of texts, then of numbers."""
    table = Table(*texts, caption=caption, box=None, pad_edge=False)
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _pattern_table(result: dict[str, Any]) -> Table:
    columns = {key: spec for key, spec in _PER_PATTERN.items() if key in result}
    if len(set(result.get("strengths", ()))) <= 1:  # one β, printed above
        columns.pop("strengths", None)
    n_patterns = result["n_patterns"]
    shown = min(n_patterns, _MOST_ROWS)
    titles = [title for title, _ in columns.values()]
    table = _table("pattern", numbers=titles, caption=_left_out(shown, n_patterns))
    table.add_column("", no_wrap=True)
    for k in range(shown):
        values = [form.format(result[key][k]) for key, (_, form) in columns.items()]
        repulsive = "strengths" in result and result["strengths"][k] < 0
        table.add_row(str(k), *values, "repulsive" if repulsive else "")
    return table


def _left_out(shown: int, n_patterns: int) -> str | None:
    return f"first {shown} of {n_patterns} patterns" if shown < n_patterns else None


def _names_table(patterns: list[dict[str, list[tuple[str, float]]]]) -> Table:
    """Return names of spins by effect; as :class:`rich.text.Text` they are never read as markup."""
    heads = "pattern", "+ side: more often +1", "+ side: more often −1"
    table = _table(*heads)
    for k, spins in enumerate(patterns[:_MOST_ROWS]):
        names = (", ".join(map(_named, spins[key])) for key in ("plus", "minus"))
        table.add_row(str(k), *map(Text, names))
    return table


def _named(spin: tuple[str, float]) -> str:
    name, effect = spin
    return f"{_cut(printable(name))} {effect:+.2f}".replace(" -", " −")


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def printable(text: str) -> str:
    r"""Return text from a file without what could command a terminal.

    Escape sequences and invisible characters (control, direction, private) go; a tab or a new
    line becomes a space.

    Examples
    --------
    >>> from dualtap.cli.terminal import printable
    >>> printable("a\x1b[31mb\x07\tc")
    'ab c'
    """
    visible = re.sub(r"[\t\r\n]", " ", _ESCAPES.sub("", text))
    return "".join(c for c in visible if not unicodedata.category(c).startswith("C"))


def print_pictures(
    magnetizations: NDArray[np.floating],
    shape: Sequence[int],
    console: Console,
    weights: Sequence[float] | None = None,
) -> None:
    """Print patterns as pictures, two pixels per character, as many side by side as fit.

    A full block is +1, a blank -1, a shade an uncertain bit (absolute m below 0.8), a dot a spin
    that is not in the pattern (NaN). Images wider than the console are reduced by whole factors.

    Parameters
    ----------
    magnetizations : array of shape (n_patterns, n_spins)
    shape : (height, width)
    console : Console
    weights : sequence of n_patterns float, optional
        Shares of the samples, printed below.

    Examples
    --------
    >>> import numpy as np
    >>> from rich.console import Console
    >>> from dualtap.cli.terminal import print_pictures
    >>> m = np.array([[1, 1, -1, 1, -1, 1], [1, 0.1, 1, -1, 1, 1]])
    >>> print_pictures(m, (2, 3), Console(width=40), weights=[0.7, 0.3])
    █▀▄      ▀▒█
    0 · 70%  1 · 30%
    """
    shown = np.asarray(magnetizations)[:_MOST_ROWS]
    tiles = shown.reshape(-1, *image_shape(shape, shown.shape[1]))
    tiles = _smaller(tiles, -(-tiles.shape[2] // console.width))
    captions = [str(k) if weights is None else f"{k} · {weights[k]:.0%}" for k in range(len(tiles))]
    width = max(tiles.shape[2], *map(len, captions)) + _GAP
    per_row = max(1, (console.width + _GAP) // width)
    for first in range(0, len(tiles), per_row):
        row = slice(first, first + per_row)
        pictures = zip(*map(_characters, tiles[row]), strict=True)
        for line in (*pictures, captions[row]):
            joined = "".join(f"{part:<{width}}" for part in line).rstrip()
            console.print(Text(joined), soft_wrap=True)
    left_out = _left_out(len(tiles), len(magnetizations))
    if left_out is not None:
        console.print(left_out)


def _smaller(tiles: NDArray[np.floating], factor: int) -> NDArray[np.floating]:
    """Return the means over squares with sides of ``factor`` pixels, the last ones cut off.

    NaN where no spin of a square takes part.
    """
    if factor == 1:
        return tiles
    sums, counts = np.nan_to_num(tiles), (~np.isnan(tiles)).astype(float)
    for axis in (1, 2):
        starts = np.arange(0, tiles.shape[axis], factor)
        sums, counts = (np.add.reduceat(part, starts, axis=axis) for part in (sums, counts))
    means: NDArray[np.floating] = np.where(counts, sums / np.maximum(counts, 1), np.nan)
    return means


def _characters(tile: NDArray[np.floating]) -> list[str]:
    """Return the lines of one picture; a last odd row has nothing below it."""
    known = np.nan_to_num(tile)
    state = np.where(np.abs(known) < _UNCERTAIN, 0, np.sign(known)).astype(int)
    state[np.isnan(tile)] = _NO_PART
    if len(state) % 2:
        state = np.vstack([state, np.where(state[-1:] == _NO_PART, _NO_PART, -1)])
    return [
        "".join(_character(int(a), int(b)) for a, b in zip(top, bottom, strict=True))
        for top, bottom in zip(state[::2], state[1::2], strict=True)
    ]


def _character(top: int, bottom: int) -> str:
    """Return two pixels; beside one that is not in the pattern the other shows, if it is not -1."""
    if _NO_PART in (top, bottom):
        if {top, bottom} <= {_NO_PART, -1}:
            return "·"
        top, bottom = (-1 if pixel == _NO_PART else pixel for pixel in (top, bottom))
    return _BLOCKS.get((top, bottom), "▒")


def _curve_table(curve: dict[str, list[float]]) -> Table:
    """Return a dozen looks, evenly spread from the first to the last."""
    table = _table(numbers=map(label, curve))
    n_looks = len(curve["update"])
    rows = dict.fromkeys(round(k * (n_looks - 1) / (_CURVE_ROWS - 1)) for k in range(_CURVE_ROWS))
    for row in rows if n_looks else ():
        table.add_row(*(value_text(values[row]) for values in curve.values()))
    return table


def _bars(title: str, values: list[float]) -> Table:
    table = _table(title, "")
    longest = max(values) or 1.0
    for value in values[:_MOST_ROWS]:
        table.add_row(f"{value:.3f}", "█" * round(_BAR_WIDTH * value / longest))
    return table


def _spectrum_table(values: list[float], n_patterns: int) -> Table:
    """Return bars of the leading values; a line through them marks the noise edge, 1."""
    shown = values[: min(n_patterns + _BEYOND, _MOST_ROWS)]
    longest = min(max(*shown, 1.0), _MOST_EDGES)
    edge = round(_BAR_WIDTH / longest)
    table = _table("spectrum")
    table.add_column(" " * edge + "│ noise edge", no_wrap=True)
    for rank, value in enumerate(shown):
        bar = "█" * round(_BAR_WIDTH * min(value / longest, 1))
        bar = f"{bar[:edge]:<{edge}}│{bar[edge:]}" + ("▶" if value > longest else "")
        table.add_row(f"{value:.3f}", bar, style="dim" if rank >= n_patterns else None)
    return table


def _trace_table(trace: list[dict[str, Any]]) -> Table:
    """Return the steps of the search: those accepted, and of the others as many as fit."""
    spare = max(_TRACE_ROWS - sum(step["accepted"] for step in trace), 0)
    shown = []
    for step in trace:
        if not step["accepted"]:
            spare -= 1
        if step["accepted"] or spare >= 0:
            shown.append(step)
    shown = shown[:_MOST_ROWS]
    left_out = f"{len(shown)} of {len(trace)} steps" if len(shown) < len(trace) else None
    numbers = "patterns", "description length", "gain (nats)"
    table = _table("step", "move", "source", numbers=numbers, caption=left_out)
    table.add_column("")
    for step in shown:
        values = f"{step['n_patterns']}", f"{step['objective']:.1f}", f"{step['gain']:.1f}"
        table.add_row(
            str(step["step"]),
            *(Text(printable(str(step[key]))) for key in ("move", "source")),
            *(*values, "accepted" if step["accepted"] else "rejected"),
            style=None if step["accepted"] else "dim",
        )
    return table


def _path_table(path: dict[str, list[float | None]], n_patterns: int) -> Table:
    """Return description length and held-out score over the number of patterns."""
    table = _table(numbers=("patterns", "description length", "held-out score"))
    table.add_column("")
    for n, objective, score in zip(*(path[key] for key in _PATH), strict=True):
        values = (
            "" if value is None else form.format(value)
            for value, form in ((objective, "{:.1f}"), (score, "{:.4f}"))
        )
        table.add_row(str(n), *values, "← chosen" if n == n_patterns else "")
    return table
