"""What a person sees of a result on a terminal; plain text when piped."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_PER_PATTERN = {
    "weights": ("share of samples", "{:.1%}"),
    "mean_confidence": ("mean |m|", "{:.3f}"),
    "unsure_bits": ("bits with |m| < 0.8", "{:d}"),
}
_TABLES = {*_PER_PATTERN, "learning_curve", "singular_values"}
_MOST_ROWS = 30
_CURVE_ROWS = 12
_BAR_WIDTH = 40


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
    console.print(f"[bold green]{escape(headline)}[/bold green]")
    scalars = {key: value for key, value in result.items() if key not in _TABLES}
    width = max(len(key) for key in scalars)
    for key, value in scalars.items():
        console.print(f"[bold]{_words(key):<{width}}[/bold]  {escape(_format(value))}")
    if result.get("n_patterns") and "weights" in result:
        console.print(_pattern_table(result))
    if "learning_curve" in result:
        console.print(_curve_table(result["learning_curve"]))
    if "singular_values" in result:
        console.print(_bars("singular value", result["singular_values"]))


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


def _words(key: str) -> str:
    return key.replace("_", " ")


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
