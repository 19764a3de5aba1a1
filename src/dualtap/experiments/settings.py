"""Other parameters for a figure: what a user may set, and the points that follow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Points = Sequence[tuple[Mapping[str, Any], int]]

TRIALS = "trials"
"""Setting that every experiment has: trials per point."""


def settable(points: Callable[..., Points]) -> tuple[str, ...]:
    """Return the names of the parameters that may be set.

    Examples
    --------
    >>> from dualtap.experiments import fig4
    >>> from dualtap.experiments.settings import settable
    >>> settable(fig4.points)
    ('N', 'P', 'T', 'ratio', 'sweeps', 'trials')
    """
    keywords = [
        name
        for name, parameter in inspect.signature(points).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    return (*keywords, TRIALS)


def points_with(
    name: str, points: Callable[..., Points], full: bool, settings: Mapping[str, Any]
) -> Points:
    """Return the points of an experiment with some of its parameters set.

    Parameters
    ----------
    name : str
        Of the experiment, for messages.
    points : callable
    full : bool
        Values of what is not set: the paper's, or the quick ones.
    settings : mapping
        One value or a sequence of them by name; ``trials``, a number.

    Examples
    --------
    >>> from dualtap.experiments.settings import points_with
    >>> def points(full, *, N=(1000,), M=(10, 20)):
    ...     return [({"N": n, "M": m}, 100 if full else 3) for n in N for m in M]
    >>> points_with("toy", points, False, {"N": 50, "trials": 1})
    [({'N': 50, 'M': 10}, 1), ({'N': 50, 'M': 20}, 1)]
    """
    known = settable(points)
    unknown = [key for key in settings if key not in known]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(known)}")
    values = {key: _several(key, value) for key, value in settings.items()}
    (trials,) = values.pop(TRIALS, (None,))
    if trials is not None and (not isinstance(trials, int) or trials < 1):
        raise ValueError(f"trials must be a whole number from 1 on, not {trials!r}")
    chosen = points(full, **values)
    return [(parameters, trials or n_trials) for parameters, n_trials in chosen]


def _several(name: str, value: Any) -> tuple[Any, ...]:
    """Return one value or several as a tuple."""
    several = (value,) if isinstance(value, str) or not hasattr(value, "__iter__") else tuple(value)
    if not several:
        raise ValueError(f"{name} has no value")
    if name == TRIALS and len(several) > 1:
        raise ValueError(f"trials is one number, not {len(several)}")
    return several


def parsed_settings(texts: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return settings as they are typed.

    Examples
    --------
    >>> from dualtap.experiments.settings import parsed_settings
    >>> parsed_settings(["N=500", "T=0.4,1", "rule=tap"])
    {'N': (500,), 'T': (0.4, 1), 'rule': ('tap',)}
    """
    settings: dict[str, tuple[Any, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise ValueError(f"{text!r} sets nothing: write NAME=VALUE or NAME=VALUE,VALUE")
        if name in settings:
            raise ValueError(f"{name} is set twice")
        settings[name] = tuple(number_or_text(value) for value in values.split(","))
    return settings


def number_or_text(text: str) -> int | float | str:
    """Return a whole number, a number, or else the text itself.

    Examples
    --------
    >>> from dualtap.experiments.settings import number_or_text
    >>> number_or_text("5"), number_or_text("5.0"), number_or_text("tap")
    (5, 5.0, 'tap')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
