"""Which columns of a table are what: spins, names of samples, labels, or left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dualtap.io.codes import MISSING
from dualtap.io.collecting import Collector, Request, SampleFile, nearest, result

OTHER_NUMBER = 3
"""Stands for a number that is no spin, beside -1, 0, 1 and MISSING."""
LOOKED_AT = 1000
"""Rows that decide whether the first column names samples."""
_NAMELESS = frozenset({"", "unnamed: 0"})
_INDEX_NAMES = frozenset({"index", "id", "sample", "name"})
_WHOLE_NUMBER = re.compile(r"[+-]?\d+(\.0*)?")
_FEWEST_NUMBERED = 4  # rows; three may hold -1, 0 and 1
_SEVERAL = 3  # values that are no spins: then it is the column that is wrong, not an entry
_YES = frozenset({"yes", "y", "t", "on", "present", "positive", "+"})


class Layout(NamedTuple):
    """Which columns are what, by their places."""

    names: list[str] | None
    rows: list[int]
    """Columns that name the rows."""
    labels: list[int]
    spins: list[int]
    notes: tuple[str, ...]
    """What was recognised, and should be said."""


class TableRows:
    """A table being read: its layout is known from the first rows, the others then add up."""

    def __init__(self, request: Request, n_rows: int | None = None) -> None:
        self._request = request
        self._collector = Collector(request, n_rows)
        self._layout: Layout | None = None
        self._rows: list[str] = []
        self._labels: dict[str, list[str]] = {}

    def finish(self) -> SampleFile:
        """Return what was read."""
        layout, request = self._layout, self._request
        if layout is None:
            raise request.error("it is empty: there is no row of values")
        rows = self._rows if layout.rows else None
        for name in request.labels:
            if name not in self._labels:  # transposed
                position(request, rows, name, "row")
        return result(
            request,
            self._collector.finish(),
            columns=None if layout.names is None else [layout.names[k] for k in layout.spins],
            rows=rows,
            labels={name: self._labels[name] for name in request.labels},
            notes=layout.notes,
        )


def laid_out(
    request: Request,
    names: list[str] | None,
    n_columns: int,
    first: Sequence[str],
    index: Sequence[int] = (),
) -> Layout:
    """Return the layout of a table.

    Parameters
    ----------
    request : Request
    names : list of str or None
        Of all columns.
    n_columns : int
    first : sequence of str
        The first column of some rows.
    index : sequence of int
        Columns that the file itself declares to be names of rows.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.layout import laid_out
    >>> request = Request(pathlib.Path("votes.csv"), labels=("party",), drop=("age",))
    >>> names = ["member", "age", "party", "tax", "school"]
    >>> layout = laid_out(request, names, 5, ["Ann", "Bob"])
    >>> layout.rows, layout.labels, layout.spins
    ([0], [2], [3, 4])
    """

    def places(wanted: Sequence[str]) -> list[int]:
        return [position(request, names, name) for name in wanted]

    labels = [] if request.transpose else places(request.labels)
    dropped, chosen = places(request.drop), places(request.columns)
    taken = {*labels, *dropped, *chosen}
    rows = [k for k in index if k not in taken]
    notes: tuple[str, ...] = ()
    if request.id is not None:
        rows = places([request.id])
    elif not rows and 0 not in taken and n_columns > 1:
        name = None if names is None else names[0]
        if _names_rows(request, name, first):
            rows, notes = [0], _recognised(name, first)
    asked = {"labels": labels, "drop": dropped, "columns": chosen}
    if request.id is not None:
        asked["id"] = rows
    _check_once(request, names, asked)
    others = {*rows, *labels, *dropped}
    rest = [k for k in range(n_columns) if k not in others]
    return Layout(names, rows, labels, chosen or rest, notes)


def _check_once(request: Request, names: list[str] | None, asked: dict[str, list[int]]) -> None:
    """Raise if a column was requested twice."""
    seen: dict[int, str] = {}
    for option, columns in asked.items():
        for k in columns:
            if k in seen:
                name = names[k] if names is not None else k
                both = option if seen[k] == option else f"{seen[k]} and {option}"
                raise request.error(f"column {name!r} is named twice, in {both}")
            seen[k] = option


def _names_rows(request: Request, name: str | None, words: Sequence[str]) -> bool:
    """Whether the first column names rows: by its name, as text, or as numbers all different."""
    codes = {word_code(request, word) for word in words}
    if None in codes and codes <= {None, MISSING}:
        return True
    if _all_different(words) and all(_WHOLE_NUMBER.fullmatch(word) for word in words):
        return True
    if name is None:
        return False
    known = name.strip().lower()
    spins = not {None, OTHER_NUMBER} & codes
    different = len(words) > 1 and len(set(words)) == len(words)
    return known in _NAMELESS or (known in _INDEX_NAMES and (not spins or different))


def _all_different(words: Sequence[str]) -> bool:
    return len(words) >= _FEWEST_NUMBERED and len(set(words)) == len(words)


def _recognised(name: str | None, words: Sequence[str]) -> tuple[str, ...]:
    """Return what to say of a first column that was taken for the names of rows."""
    if (name or "").strip().lower() in _NAMELESS and name is not None:
        return ()
    if not all(_WHOLE_NUMBER.fullmatch(word) for word in words):
        return ()
    return (f"{_column(0, name)} holds whole numbers and names the samples; it is not fitted",)


def word_code(request: Request, word: str) -> int | None:
    """Return what a word stands for: -1, 0, 1, MISSING or OTHER_NUMBER; None for text.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.layout import word_code
    >>> [word_code(Request(pathlib.Path("a.csv")), word) for word in ("1", "NA", "17", "yes")]
    [1, 2, 3, None]
    """
    try:
        return request.code(word)
    except ValueError:
        return OTHER_NUMBER


def position(
    request: Request, names: Sequence[str] | None, wanted: str, what: str = "column"
) -> int:
    """Return where a column (or row) is among the names.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.layout import position
    >>> position(Request(pathlib.Path("votes.csv")), ["tax", "party"], "Party")
    Traceback (most recent call last):
    ...
    ValueError: votes.csv: no column is named 'Party'; the nearest: 'party'
    """
    if names is None:
        raise request.error(f"it does not name its {what}s, so none can be {wanted!r}")
    if wanted in names:
        return list(names).index(wanted)
    raise request.error(f"no {what} is named {wanted!r}; {nearest(wanted, names)}")


def misfit(request: Request, column: int, name: str | None, words: Sequence[str]) -> str | None:
    """Return what is wrong with a column that does not hold spins, and what to do about it.

    Parameters
    ----------
    request : Request
    column : int
    name : str or None
    words : sequence of str
        What the column holds in some rows.

    Returns
    -------
    str or None
        None if only an entry or two are wrong.

    Examples
    --------
    >>> import pathlib
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.layout import misfit
    >>> request = Request(pathlib.Path("votes.csv"))
    >>> print(misfit(request, 2, "party", ["green", "blue", "red"]))
    column 'party' (3rd) holds text such as 'green'; labels='party' keeps it for evaluation,
    drop='party' leaves it out
    >>> print(misfit(request, 1, "smokes", ["no", "yes", "NA", "no", "yes"]))
    column 'smokes' (2nd) holds 'no' and 'yes'; true='yes', false='no' makes them spins,
    labels='smokes' keeps it for evaluation, drop='smokes' leaves it out
    """
    known = [word.strip() for word in words if word_code(request, word) != MISSING]
    values = list(dict.fromkeys(word.lower() for word in known))
    text = [word for word in known if word_code(request, word) is None]
    wrong = {word for word in known if word_code(request, word) in (None, OTHER_NUMBER)}
    shown = "…" if name is None else repr(name[:80])
    set_aside = f"labels={shown} keeps it for evaluation, drop={shown} leaves it out"
    if text and len(text) < len(known):
        return None
    numbered = all(_WHOLE_NUMBER.fullmatch(word) for word in known)
    if _all_different(known) and (text or numbered):
        kind = f"text such as {known[0][:40]!r}" if text else "whole numbers"
        holds = f"{kind}, all different"
        remedy = f"id={shown} takes it for the names of samples, drop={shown} leaves it out"
    elif request.codes is None and _two_codes(known):
        yes, no = sorted(values, key=lambda value: value in _YES, reverse=True)
        holds = f"{values[0][:40]!r} and {values[1][:40]!r}"
        remedy = f"true={yes[:40]!r}, false={no[:40]!r} makes them spins, {set_aside}"
    elif text:
        holds, remedy = f"text such as {text[0][:40]!r}", set_aside
    elif len(wrong) >= _SEVERAL:
        holds = f"numbers such as {sorted(wrong)[0][:40]!r}"
        remedy = f"{set_aside}, weights={shown} takes it for numbers of samples"
    else:
        return None
    if name is None:
        remedy = f"give the file a first line of names, then {remedy}"
    return f"{_column(column, name)} holds {holds}; {remedy}"


def _two_codes(words: Sequence[str]) -> bool:
    """Whether words are two values, each more than once: not a mistake in a single entry."""
    times = Counter(word.lower() for word in words)
    return len(times) == 2 and min(times.values()) > 1


def row_misfit(name: str, example: str) -> str:
    """Return what to do about a row of text in a table whose rows are spins.

    Examples
    --------
    >>> from dualtap.io.layout import row_misfit
    >>> print(row_misfit("party", "democrat"))
    row 'party' holds text such as 'democrat'; labels='party' keeps it for evaluation
    """
    shown = repr(name[:80])
    return (
        f"row {shown} holds text such as {example[:40]!r}; labels={shown} keeps it for evaluation"
    )


def _column(column: int, name: str | None) -> str:
    place = f"{column + 1}{_ordinal(column + 1)}"
    return f"the {place} column" if name is None else f"column {name[:80]!r} ({place})"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
