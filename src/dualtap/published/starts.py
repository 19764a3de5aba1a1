"""Initial guesses of the students: random signs, or the leading eigenvector of J."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from dualtap._eigen import iterated, lanczos, ritz
from dualtap.couplings import Couplings, FloatArray

_BLOCK, _PASSES = 8, 6  # vectors that share a product, and products


def random_students(n_students: int, n_spins: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return the paper's start: random signs, |m| uniform in [0.1, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.published.starts import random_students
    >>> m = random_students(3, 1000, np.random.default_rng(0))
    >>> bool(0.1 <= abs(m).min() < abs(m).max() <= 1)
    True
    """
    m = 1.8 * rng.random((n_students, n_spins), dtype=np.float32) - np.float32(0.9)
    m += np.copysign(np.float32(0.1), m)
    return m


def leading_eigenpair(couplings: Couplings, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return the largest eigenvalue of J and its unit eigenvector, to about three digits.

    Lanczos iterations on the products J v; J is never formed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.published.starts import leading_eigenpair
    >>> value, vector = leading_eigenpair(HebbianCouplings([[1, 1, -1]]), np.random.default_rng(0))
    >>> round(value, 3), abs(vector).round(3)
    (1.0, array([0.577, 0.577, 0.577], dtype=float32))
    """
    n = couplings.n_spins
    product = LinearOperator(
        (n, n), matvec=lambda v: couplings.dot(v.reshape(1, n).astype(couplings.dtype))[0]
    )
    v0 = rng.standard_normal(n)
    found = lanczos(product, 1, v0, tolerance=1e-3, which="LA")
    if found is None:  # J v0 = 0, or no eigenvalue is separate: then any direction will do
        return 0.0, v0 / np.linalg.norm(v0)
    return float(found[0][0]), found[1][:, 0]


def eigenpair_in_passes(couplings: Couplings, rng: np.random.Generator) -> tuple[float, FloatArray]:
    """Return the same from a few products of J with a block of vectors.

    Lanczos would need one vector after the other, and a pass over the samples for each.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.published.starts import eigenpair_in_passes
    >>> J = HebbianCouplings([[1, 1, -1], [1, 1, 1]])
    >>> round(eigenpair_in_passes(J, np.random.default_rng(0))[0], 3)
    1.333
    """
    n = couplings.n_spins
    V = rng.standard_normal((min(_BLOCK, n), n)).astype(np.float32)
    V = iterated(couplings.dot, V, _PASSES)
    values, vectors = ritz(V, couplings.dot(V), 1)
    return float(values[0]), vectors[0]


def spectral_student(
    couplings: Couplings, rng: np.random.Generator, *, in_passes: bool = False
) -> FloatArray:
    """Return the leading eigenvector of J, scaled to unit mean square and clipped to [-1, 1].

    Parameters
    ----------
    couplings : Couplings
    rng : Generator
    in_passes : bool
        Every product is a pass over samples that are not at hand: make few of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> from dualtap.published.starts import spectral_student
    >>> J = HebbianCouplings([[1, 1, -1, -1]])
    >>> abs(spectral_student(J, np.random.default_rng(0))).round(3)
    array([[1., 1., 1., 1.]], dtype=float32)
    """
    _, vector = (eigenpair_in_passes if in_passes else leading_eigenpair)(couplings, rng)
    m = np.sqrt(couplings.n_spins) * vector[None]
    clipped: FloatArray = np.clip(m, -1, 1).astype(couplings.dtype)
    return clipped
