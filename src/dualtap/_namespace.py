"""Arrays of NumPy, PyTorch, or any other library that follows the array API standard.

Formulas are written once, with the functions of the namespace that their arrays come from. NumPy
is asked first, and without a look at anything else: for it these functions cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = Any  # of any namespace: no type is common to them


def is_foreign(x: Any) -> bool:
    """Tell whether ``x`` is an array of another library than NumPy, such as PyTorch.

    Lists, tables, sparse matrices and Dask arrays are none.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import is_foreign
    >>> is_foreign(np.ones(3)), is_foreign([1.0, 1.0])
    (False, False)
    """
    if isinstance(x, (np.ndarray, np.generic)) or not hasattr(x, "shape"):
        return False
    from array_api_compat import is_torch_array

    return hasattr(x, "__array_namespace__") or bool(is_torch_array(x))


def namespace(x: Array) -> Any:
    """Return the functions that go with an array: NumPy, or what array-api-compat finds.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import namespace
    >>> namespace(np.ones(3)) is np
    True
    """
    if isinstance(x, np.ndarray):
        return np
    from array_api_compat import array_namespace

    return array_namespace(x)


def to_numpy(x: Array) -> NDArray[Any]:
    """Return an array of any namespace, on any device, as one of NumPy.

    Memory is shared where that is possible.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import to_numpy
    >>> x = np.ones(3)
    >>> to_numpy(x) is x
    True
    """
    if isinstance(x, np.ndarray):
        return x
    from array_api_compat import is_torch_array

    if is_torch_array(x):
        x = x.detach().cpu()
        x = x.float() if str(x.dtype) == "torch.bfloat16" else x  # which NumPy does not have
        return np.asarray(x)
    return np.from_dlpack(x, device="cpu")


def like(x: Array, array: Array) -> Array:
    """Return ``array`` where ``x`` is: in its namespace, on its device.

    If both are floating, also in the precision of ``x``. What is there already is not copied.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import like
    >>> like(np.ones(3, dtype=np.float32), np.array([0.5]))
    array([0.5], dtype=float32)
    """
    xp = namespace(x)
    if xp is np:
        array = to_numpy(array)
    else:
        from array_api_compat import device

        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()  # PyTorch would share its memory, and warns
        if type(array) is not type(x) or device(array) != device(x):
            array = xp.asarray(array, device=device(x))
    both = xp.isdtype(x.dtype, "real floating") and xp.isdtype(array.dtype, "real floating")
    return xp.astype(array, x.dtype, copy=False) if both else array


def origin(X: Any) -> Array:
    """Return no numbers, in single precision, where X is: on the host unless X is foreign.

    Examples
    --------
    >>> from dualtap._namespace import origin
    >>> origin([[1, 0], [0, 1]])
    array([], dtype=float32)
    """
    if not is_foreign(X):
        return np.empty(0, dtype=np.float32)
    from array_api_compat import device

    xp = namespace(X)
    return xp.empty(0, dtype=xp.float32, device=device(X))


def take(x: Array, rows: NDArray[np.integer[Any]]) -> Array:
    """Return chosen rows; their numbers are on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import take
    >>> take(np.eye(3), np.array([2]))
    array([[0., 0., 1.]])
    """
    if isinstance(x, np.ndarray):
        return x[rows]
    return namespace(x).take(x, like(x, rows), axis=0)


def overwritten(function: Callable[..., Array], x: Array) -> Array:
    """Return ``function(x)``, in the memory of ``x`` if NumPy can: x must not be needed afterwards.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import overwritten
    >>> overwritten(np.abs, np.array([-1.0, 2.0]))
    array([1., 2.])
    """
    return function(x, out=x) if isinstance(x, np.ndarray) else function(x)


def row_squares(x: Array) -> Array:
    """Return the sum of squares of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._namespace import row_squares
    >>> row_squares(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([25.,  1.])
    """
    if isinstance(x, np.ndarray):
        return np.einsum("ki,ki->k", x, x)
    return namespace(x).vecdot(x, x)
