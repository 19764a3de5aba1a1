"""Numbers and text in the form in which a page holds them: small, exact, and never markup."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS = 100  # of a magnetization between 0 and 1: two decimals, which is what is shown
NO_PART = -128
_MARKUP = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def quantised(m: NDArray[np.floating]) -> str:
    """Return magnetizations as base64 of int8 hundredths.

    Parameters
    ----------
    m : array of shape (n_spins,)
        Between -1 and 1; NaN, which becomes -128, where a spin is not in the pattern.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.encode import quantised
    >>> quantised(np.array([1.0, -0.5, 0.004]))
    'ZM4A'
    """
    steps = np.rint(np.asarray(m) * STEPS)
    return _base64(np.where(np.isnan(steps), NO_PART, steps).astype(np.int8))


def packed(flags: NDArray[np.bool_]) -> str:
    """Return flags as base64 of bits, the first in the highest place of the first byte.

    Parameters
    ----------
    flags : array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.encode import packed
    >>> packed(np.array([True, False, True]))
    'oA=='
    """
    return _base64(np.packbits(flags))


def script_json(value: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever its strings hold.

    No character in it can end the element or begin a comment, and none is outside of ASCII.

    Examples
    --------
    >>> from dualtap.report.encode import script_json
    >>> script_json({"name": "</script>", "x": float("nan")})
    '{"name":"\\u003c/script\\u003e","x":null}'
    """
    text = json.dumps(jsonable(value), allow_nan=False, separators=(",", ":"))
    return text.translate(_MARKUP)  # these characters occur in strings only


def jsonable(value: Any) -> Any:
    """Return what JSON can hold: lists for arrays, numbers for scalars, None for what is no number.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.report.encode import jsonable
    >>> jsonable({"m": np.array([0.5, np.nan]), "n": np.int64(3)})
    {'m': [0.5, None], 'n': 3}
    """
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return jsonable(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def _base64(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode("ascii")
