"""What the arrays of a file must be, checked as a whole before anything is built from them.

A schema says of every array its type, its shape, the range of its values and whether they may be
NaN. Sides of shapes have names: the first array that has one sets its length.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

LARGEST = 1e12
"""No parameter of a model is larger than this, and no strength smaller than its inverse."""


@dataclass(frozen=True)
class Entry:
    """What an array of a file must be.

    Attributes
    ----------
    dtype : str
        Kinds of numbers ("f", "iu", "U" for text), or one type exactly ("float32").
    shape : tuple of str or int
        The name of a side stands for the same length in all arrays.
    low, high : float
        Bounds of the values.
    smallest : float
        Bound of the absolute values.
    nan : bool
        NaN may stand for what is not known.
    optional : bool
        The array may be missing.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._schema import Entry, checked_arrays
    >>> schema = {"beta": Entry("f", (), low=0.0, high=100.0)}
    >>> checked_arrays({"beta": np.array(-3.0)}, schema)
    Traceback (most recent call last):
    ...
    ValueError: beta has the value -3.0, which is not between 0.0 and 100.0
    """

    dtype: str
    shape: tuple[str | int, ...] = ()
    low: float = -LARGEST
    high: float = LARGEST
    smallest: float = 0.0
    nan: bool = False
    optional: bool = False

    def checked(self, name: str, array: NDArray[Any], sizes: dict[str, int]) -> NDArray[Any]:
        """Return the array in the byte order of this machine, if it is as it must be."""
        kind = array.dtype.newbyteorder("=")
        if kind.kind not in self.dtype if len(self.dtype) <= 2 else kind != np.dtype(self.dtype):
            raise ValueError(f"{name} has type {array.dtype} where {self._wanted()} is needed")
        self._check_shape(name, array, sizes)
        array = array.astype(kind, copy=False)
        if kind.kind == "U":
            _check_unicode(name, array)
        else:
            self._check_range(name, array)
        return array

    def _wanted(self) -> str:
        words = {"f": "a floating number", "i": "an integer", "iu": "an integer", "U": "text"}
        return words.get(self.dtype, self.dtype)

    def _check_shape(self, name: str, array: NDArray[Any], sizes: dict[str, int]) -> None:
        if array.ndim == len(self.shape):
            for side, length in zip(self.shape, array.shape, strict=True):
                if isinstance(side, str):
                    sizes.setdefault(side, length)
        known = {str(side): sizes.get(str(side), side) for side in self.shape}
        needed = tuple(known[str(side)] for side in self.shape)
        if array.shape != needed:
            told = str(needed).replace("'", "")
            raise ValueError(f"{name} has shape {array.shape} where {told} is needed")

    def _check_range(self, name: str, array: NDArray[Any]) -> None:
        values = array.ravel()
        bounded = values.size and values.min() >= self.low and values.max() <= self.high
        if bounded and self.smallest == 0.0:  # mostly, and without arrays as long as this one
            return
        with np.errstate(invalid="ignore"):
            good = (values >= self.low) & (values <= self.high) & (abs(values) >= self.smallest)
        if self.nan and array.dtype.kind == "f":
            good |= np.isnan(values)
        if good.all():
            return
        value = values[int(np.argmin(good))]
        if abs(value) < self.smallest:
            raise ValueError(f"{name} has the value {value}, smaller than {self.smallest}")
        raise ValueError(
            f"{name} has the value {value}, which is not between {self.low} and {self.high}"
        )


def checked_arrays(
    contents: Arrays, schema: Mapping[str, Entry], least: Mapping[str, int] | None = None
) -> Arrays:
    """Return the arrays that a schema knows, if all of them are as it says.

    Parameters
    ----------
    contents : dict of arrays
    schema : mapping of str to Entry
    least : mapping of str to int, optional
        The smallest length of sides.

    Raises
    ------
    KeyError
        With the name of an array that is missing.
    ValueError
        With what is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._schema import Entry, checked_arrays
    >>> schema = {"J": Entry("f", ("N", "N")), "h": Entry("f", ("N",))}
    >>> checked_arrays({"J": np.eye(2), "h": np.ones(3)}, schema)
    Traceback (most recent call last):
    ...
    ValueError: h has shape (3,) where (2,) is needed
    """
    sizes: dict[str, int] = {}
    checked = {}
    for name, entry in schema.items():
        if name in contents:
            checked[name] = entry.checked(name, contents[name], sizes)
        elif not entry.optional:
            raise KeyError(name)
    for side, length in (least or {}).items():
        if sizes.get(side, length) < length:
            raise ValueError(f"the side {side} has length {sizes[side]}, at least {length} needed")
    return checked


def parsed(text: Any) -> Any:
    """Return what a text in JSON says; whatever is wrong with it is a ValueError.

    Examples
    --------
    >>> from dualtap._schema import parsed
    >>> parsed('{"seed": 3}')
    {'seed': 3}
    """
    try:
        return json.loads(str(text))
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None


def parsed_fields(text: Any, **kinds: type) -> dict[str, Any]:
    """Return an object in JSON that has these fields, each of its type.

    Examples
    --------
    >>> from dualtap._schema import parsed_fields
    >>> parsed_fields('{"parameters": 3}', parameters=dict)
    Traceback (most recent call last):
    ...
    ValueError: parameters is 3 where a dict is needed
    """
    return with_fields(parsed(text), **kinds)


def with_fields(value: Any, **kinds: type) -> dict[str, Any]:
    """Return a value, if it is a dict that has these fields, each of its type.

    Examples
    --------
    >>> from dualtap._schema import with_fields
    >>> with_fields({"seed": 3, "rate": 1}, seed=int, rate=float)
    {'seed': 3, 'rate': 1}
    """
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:40]!r} is not a JSON object")
    for name, kind in kinds.items():
        found = value[name]
        fits = isinstance(found, (int, float) if kind is float else kind)
        if not fits or (isinstance(found, bool) and kind is not bool):
            raise ValueError(f"{name} is {str(found)[:40]} where a {kind.__name__} is needed")
        if isinstance(found, int) and abs(found) > 2**63:
            raise ValueError(f"{name} is a number of {found.bit_length()} bits")
    return value


def _check_unicode(name: str, array: NDArray[Any]) -> None:
    if not is_unicode(array):
        raise ValueError(f"{name} is not Unicode text")


def is_unicode(array: NDArray[Any]) -> bool:
    """Whether all numbers in an array of text are characters: NumPy makes strings of any.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._schema import is_unicode
    >>> is_unicode(np.array(["a", "ß"])), is_unicode(np.array([0x110000], np.uint32).view("U1"))
    (True, False)
    """
    if not array.size or not array.dtype.itemsize:
        return True
    whole = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).ravel()
    codes = whole.view(np.uint32)
    return not ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any()
