"""From what was measured to tables: cells, columns, who was best."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import Any, NamedTuple

Row = dict[str, Any]
"""What :meth:`benchmarks.against.contest.Result.row` returns."""
Rows = list[Row]


class Table(NamedTuple):
    """A table with its file name."""

    name: str
    title: str
    rows: list[dict[str, Any]]


def by_case(rows: Rows) -> dict[str, Rows]:
    """Group rows, cases in their order."""
    groups: dict[str, Rows] = {}
    for row in rows:
        groups.setdefault(row["case"], []).append(row)
    return groups


def wide(rows: Rows, cell: Callable[[Row], str]) -> list[dict[str, Any]]:
    """Return a line a case with a column a contender; the reason where there is no answer."""
    return [
        {"case": case} | {row["contender"]: row["failure"] or cell(row) for row in own}
        for case, own in by_case(rows).items()
    ]


def long(rows: Rows, columns: dict[str, Callable[[Row], Any]], ours: str) -> list[dict[str, Any]]:
    """Return a line a contender: its marks or the reason why not, time beside ours, memory."""
    lines = []
    for row in rows:
        own = _partner(rows, row, ours)
        done = not row["failure"]
        lines.append(
            {"case": row["case"], "contender": row["contender"], "threads": row["threads"]}
            | {title: value(row) if done else row["failure"] for title, value in columns.items()}
            | {
                "seconds": seconds(row["median_s"]),
                "times ours": ratio(row["median_s"], own["median_s"]),
                "peak, MB": memory(row),
                "runs": len(row["seconds"]),
            }
        )
    return lines


def _partner(rows: Rows, row: Row, ours: str) -> Row:
    """Return our row of the same case at the same number of threads."""
    return next(
        one
        for one in rows
        if (one["case"], one["threads"], one["contender"]) == (row["case"], row["threads"], ours)
    )


def seconds(value: float) -> str:
    """Return a time with three digits."""
    return "–" if isnan(value) else f"{value:.3g}"


def ratio(value: float, base: float) -> str:
    """Return how many times the base it is."""
    return "–" if isnan(value) or isnan(base) else f"{value / base:.3g}"


def memory(row: Row) -> str:
    """Return the peak of the process, and in brackets what the work added to it."""
    return "–" if isnan(row["peak_mb"]) else f"{row['peak_mb']:.0f} (+{row['grown_mb']:.0f})"


def versions(rows: Rows) -> str:
    """Return what was compared, every version once."""
    return "; ".join(dict.fromkeys(row["version"] for row in rows if row["version"]))


def titled(headline: str, caption: str, rows: Rows) -> str:
    """Return the title of a table: headline, caption, versions."""
    return f"{headline}\n\n{caption}\n\n{versions(rows)}"


def best(rows: Sequence[Row], mark: str) -> float:
    """Return the largest mark, NaN if nobody has one."""
    return max((float(row["marks"][mark]) for row in rows if row["marks"]), default=nan)


def fastest(rows: Sequence[Row], mark: str, least: float) -> str:
    """Return who is fastest among those whose mark is less than ``least`` behind the largest."""
    good = [row for row in rows if row["marks"] and row["marks"][mark] > best(rows, mark) - least]
    first = min(good, key=lambda row: float(row["median_s"]), default={"contender": "–"})
    return str(first["contender"])


def difference(value: float, base: float) -> str:
    """Return how much larger it is, with its sign."""
    return "–" if isnan(value) or isnan(base) else f"{value - base:+.3f}"
