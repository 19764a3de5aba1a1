"""What a person sees of a result on a terminal; plain text when piped."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_PER_PATTERN = {
    "weights": ("share of samples", "{:.1%}"),
    "mean_confidence": ("mean |m|", "{:.3f}"),
    "unsure_bits": ("bits with |m| < 0.8", "{:d}"),
}
_TABLES = {*_PER_PATTERN, "learning_curve", "singular_values", "spectrum"}
_MOST_ROWS = 30
_CURVE_ROWS = 12
_BAR_WIDTH = 40
_BEYOND = 5  # values of the spectrum shown after those of the patterns
_MOST_EDGES = 8.0  # longer bars are cut, or the edge of noise could not be seen beside them


def print_result(result: dict[str, Any], headline: str) -> None:
    """Print what matters in a line, scalars as a list, the values of each pattern as a table.

    Examples
    --------
    >>> from dualtap._terminal import print_result
    >>> print_result({"n_spins": 9, "mean_overlap": 0.98765}, "Two patterns found.")
    Two patterns found.
    n spins       9
    mean overlap  0.9877
    """
    console = Console(highlight=False)
    console.print(f"[bold green]{escape(headline)}[/bold green]", soft_wrap=not console.is_terminal)
    _print_scalars(result, console)
    if result.get("n_patterns") and "weights" in result:
        console.print(_pattern_table(result))
    if "learning_curve" in result:
        console.print(_curve_table(result["learning_curve"]))
    if "singular_values" in result:
        console.print(_bars("singular value", result["singular_values"]))
    if "spectrum" in result:
        console.print(_spectrum_table(result["spectrum"], result["n_patterns"]))


def _print_scalars(result: dict[str, Any], console: Console) -> None:
    """Print a name and a value a line; a terminal gets long values folded beside their name."""
    left_out = _TABLES if result.get("n_patterns", 1) else {*_TABLES, "reason"}  # in the headline
    scalars = {key: v for key, v in result.items() if key not in left_out and v != ""}
    width = max(len(key) for key in scalars)
    for key, value in scalars.items():
        text = _format(value)
        if console.is_terminal:
            lines = textwrap.wrap(text, max(console.width - width - 2, 20), break_long_words=False)
            text = ("\n" + " " * (width + 2)).join(lines)
        console.print(f"[bold]{_words(key):<{width}}[/bold]  {escape(text)}", soft_wrap=True)


def _pattern_table(result: dict[str, Any]) -> Table:
    columns = {key: spec for key, spec in _PER_PATTERN.items() if key in result}
    n_patterns = result["n_patterns"]
    shown = min(n_patterns, _MOST_ROWS)
    more = f"first {shown} of {n_patterns} patterns" if shown < n_patterns else None
    table = Table("pattern", caption=more, box=None, pad_edge=False)
    for title, _ in columns.values():
        table.add_column(title, justify="right")
    for k in range(shown):
        table.add_row(str(k), *(form.format(result[key][k]) for key, (_, form) in columns.items()))
    return table


def _curve_table(curve: dict[str, list[float]]) -> Table:
    """Return a dozen looks, evenly spread from the first to the last."""
    table = Table(*(_words(key) for key in curve), box=None, pad_edge=False, title_justify="left")
    for column in table.columns:
        column.justify = "right"
    n_looks = len(curve["update"])
    rows = dict.fromkeys(round(k * (n_looks - 1) / (_CURVE_ROWS - 1)) for k in range(_CURVE_ROWS))
    for row in rows if n_looks else ():
        table.add_row(*(_format(values[row]) for values in curve.values()))
    return table


def _bars(title: str, values: list[float]) -> Table:
    table = Table(title, box=None, pad_edge=False)
    table.add_column("")
    longest = max(values) or 1.0
    for value in values[:_MOST_ROWS]:
        table.add_row(f"{value:.3f}", "█" * round(_BAR_WIDTH * value / longest))
    return table


def _spectrum_table(values: list[float], n_patterns: int) -> Table:
    """Return bars of the leading values; a line through them marks the edge of noise, 1."""
    shown = values[: min(n_patterns + _BEYOND, _MOST_ROWS)]
    longest = min(max(*shown, 1.0), _MOST_EDGES)
    edge = round(_BAR_WIDTH / longest)
    table = Table("spectrum", box=None, pad_edge=False)
    table.add_column(" " * edge + "│ edge of noise", no_wrap=True)
    for rank, value in enumerate(shown):
        bar = "█" * round(_BAR_WIDTH * min(value / longest, 1))
        bar = f"{bar[:edge]:<{edge}}│{bar[edge:]}" + ("▶" if value > longest else "")
        table.add_row(f"{value:.3f}", bar, style="dim" if rank >= n_patterns else None)
    return table


def _words(key: str) -> str:
    return key.replace("_", " ")


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
