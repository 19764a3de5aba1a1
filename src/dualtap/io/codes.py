"""What words stand for: the usual spellings of spins, and those given to a reader of files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

MISSING = 2
"""Stands for a missing entry among -1, 0 and 1, in bytes."""
_MISSING_TEXT = frozenset({"", "na", "nan", "none", "null", "?"})
Words = str | Sequence[str] | None
_LOGICAL_TEXT = {"true": 1, "false": 0}


def spin_code(text: str) -> int | None:
    """Return -1, 0, 1 or MISSING for what a text says; None if it is not a number.

    A number that is no spin raises ValueError.

    Examples
    --------
    >>> from dualtap.io.codes import spin_code
    >>> [spin_code(text) for text in ("1.0", " false", '"NA"', "yes")]
    [1, 0, 2, None]
    """
    word = _plain(text)
    if word in _MISSING_TEXT:
        return MISSING
    if word in _LOGICAL_TEXT:
        return _LOGICAL_TEXT[word]
    try:
        number = float(word)
    except ValueError:
        return None
    if math.isnan(number):
        return MISSING
    if math.isinf(number):
        raise ValueError(f"infinity ({text.strip()[:40]!r})")
    if number not in (-1, 0, 1):
        raise ValueError(f"a third value, {text.strip()[:40]!r}")
    return int(number)


class Codes(NamedTuple):
    """Words that stand for +1 and for -1, in lower case.

    Examples
    --------
    >>> from dualtap.io.codes import Codes
    >>> [Codes(("1",), ("2",)).code(word) for word in ("1", "2.0", "NA")]
    [1, 0, 2]
    """

    true: tuple[str, ...]
    false: tuple[str, ...]

    def code(self, text: str) -> int | None:
        """Return 1, 0 or MISSING, None for other text; another number raises ValueError."""
        word = _plain(text)
        for spellings, code in ((self.true, 1), (self.false, 0)):
            if word in spellings or _number(word) in map(_number, spellings):
                return code
        if word in _MISSING_TEXT:
            return MISSING
        if isinstance(_number(word), float):
            raise ValueError(f"a third value, {text.strip()[:40]!r}")
        return None


def codes(true: Words, false: Words) -> Codes | None:
    """Return the words that stand for spins, None if none are given.

    Examples
    --------
    >>> from dualtap.io.codes import codes
    >>> codes("yes", ["no", "never"])
    Codes(true=('yes',), false=('no', 'never'))
    """
    up, down = (tuple(_plain(word) for word in as_words(words)) for words in (true, false))
    if not up and not down:
        return None
    if not (up and down):
        raise ValueError("true='…' and false='…' must be given together")
    both = set(up) & set(down)
    if both:
        raise ValueError(f"{sorted(both)[0]!r} cannot be both true and false")
    return Codes(up, down)


def as_words(words: Words) -> tuple[str, ...]:
    """Return one word, several or none as a tuple.

    Examples
    --------
    >>> from dualtap.io.codes import as_words
    >>> as_words("party"), as_words(["party", "state"]), as_words(None)
    (('party',), ('party', 'state'), ())
    """
    if words is None:
        return ()
    return (words,) if isinstance(words, str) else tuple(words)


def _plain(text: str) -> str:
    return text.strip().strip('"').strip().lower()


def _number(word: str) -> float | str:
    """Return a number, or the word itself if it is none."""
    try:
        return float(word)
    except ValueError:
        return word
