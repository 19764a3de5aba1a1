"""What is computed when it is first asked for: attributes of a fitted model, and other values."""

from __future__ import annotations

from functools import partial
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")


class Later(Generic[Value]):
    """An attribute that is given as a value, or as a ``partial`` that returns it.

    What few users ask for would make every fit slower.

    Parameters
    ----------
    default : any
        The value where none was given.

    Examples
    --------
    >>> from functools import partial
    >>> from dualtap.fitted.later import Later
    >>> class Model:
    ...     size: Later[int] = Later(0)
    >>> model = Model()
    >>> model.size = partial(sum, [1, 2])
    >>> model.size, Model().size
    (3, 0)
    """

    def __init__(self, default: Value) -> None:
        self._default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self._slot = f"_kept_{name}"

    def __get__(self, model: Any, owner: type | None = None) -> Value:
        if model is None:
            return self._default
        kept = vars(model).get(self._slot, self._default)
        if isinstance(kept, partial):
            kept = vars(model)[self._slot] = kept()
        result: Value = kept
        return result

    def __set__(self, model: Any, value: Value | partial[Any]) -> None:
        vars(model)[self._slot] = value


class Once(Generic[Value]):
    """A value that is computed when it is first asked for, and kept.

    Parameters
    ----------
    function : partial
        Returns it; of what can be pickled, so that this can.

    Examples
    --------
    >>> from functools import partial
    >>> from dualtap.fitted.later import Once
    >>> total = Once(partial(sum, [1, 2]))
    >>> total(), total()
    (3, 3)
    """

    def __init__(self, function: partial[Value]) -> None:
        self._kept: partial[Value] | tuple[Value] = function

    def __call__(self) -> Value:
        """Return the value."""
        if isinstance(self._kept, partial):
            self._kept = (self._kept(),)
        return self._kept[0]
