r"""Coupling operators: J·m for a batch of students, without ever forming J.

Every iteration of this package needs the couplings only through the product :math:`J m` and the
mean diagonal :math:`\alpha = \mathrm{Tr} J / N`. Students are rows: ``m`` has shape
(students, spins), and one call serves all of them by matrix products.

Arrays may be NumPy's, PyTorch's or those of any library that follows the array API standard;
products stay in the namespace and on the device of their factors.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._namespace import is_foreign, like, namespace, row_squares, to_numpy

FloatArray = NDArray[np.floating[Any]]

__all__ = [
    "Couplings",
    "DeflatedCouplings",
    "DenseCouplings",
    "GramCouplings",
    "HebbianCouplings",
    "Products",
    "StackedCouplings",
    "sample_couplings",
]


DENSE_SPINS = 4096
"""Most spins for which the matrix J of samples is formed: 64 MB."""


class Couplings(Protocol):
    """What an iteration may ask of the couplings."""

    @property
    def n_spins(self) -> int:
        """Number of spins N."""

    @property
    def alpha(self) -> float:
        """Mean diagonal element of J: (number of stored vectors)/N for Hebbian couplings."""

    @property
    def dtype(self) -> Any:
        """Floating type of the products, in the words of their namespace."""

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``, shape (students, spins)."""


@runtime_checkable
class FactoredCouplings(Couplings, Protocol):
    """What goes site after site asks for the vectors behind the couplings, too."""

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return V (R, spins) and w (R,) with J = Vᵀ diag(w) V / N, as arrays of NumPy."""


class Products(Protocol):
    """Samples S that are used through products only, wherever they are kept."""

    @property
    def total_weight(self) -> int | float:
        """Number of samples M."""

    @property
    def n_spins(self) -> int:
        """Number of spins N."""

    def gram_dot(self, V: Any) -> Any:
        """Return V SᵀS, in the namespace of V (rows, spins)."""

    def sum_of_squares(self) -> float:
        """Return the sum of all squared entries."""

    def place(self, array: Any) -> Any:
        """Return an array where products are made."""


def factors_of(couplings: Couplings) -> tuple[FloatArray, FloatArray]:
    """Return the factors of couplings that have them.

    Returns
    -------
    V : array of shape (R, n_spins)
    w : array of shape (R,)
        J = Vᵀ diag(w) V / N.

    Raises
    ------
    TypeError
        For couplings that are known by their products alone.

    Examples
    --------
    >>> from dualtap.couplings import HebbianCouplings, factors_of
    >>> factors_of(HebbianCouplings([[1, -1]]))
    (array([[ 1., -1.]], dtype=float32), array([1.], dtype=float32))
    """
    if not isinstance(couplings, FactoredCouplings):
        raise TypeError(
            f"{type(couplings).__name__} has no factors, which going site after site needs: use "
            "HebbianCouplings of the samples, or a parallel scheme"
        )
    return couplings.factors()


class HebbianCouplings:
    r"""Couplings :math:`J = V^\top \mathrm{diag}(w) V / N` of R stored vectors, in O(R N).

    Parameters
    ----------
    vectors : array-like of shape (n_vectors, n_spins)
        Samples (the dual problem) or patterns (the direct one); 0 marks a missing entry. An array
        of another namespace than NumPy stays where it is, and magnetizations must be there too.
    dtype : {float32, float64}
        Precision of the products.
    weights : array-like of shape (n_vectors,), optional
        The w, of any sign; 1 by default. For vectors of NumPy.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import HebbianCouplings
    >>> J = HebbianCouplings([[1, 1, -1, -1]])
    >>> J.alpha
    0.25
    >>> J.dot(np.ones((1, 4), dtype=np.float32))
    array([[0., 0., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        vectors: ArrayLike,
        dtype: type[np.floating[Any]] = np.float32,
        weights: ArrayLike | None = None,
    ) -> None:
        self.vectors: FloatArray = _floats(vectors, dtype)
        self.n_spins: int = self.vectors.shape[1]
        self.dtype: Any = self.vectors.dtype
        squares = to_numpy(row_squares(self.vectors))
        self.weights: FloatArray | None = None
        if weights is not None:
            self.weights = np.asarray(weights, dtype=dtype)
            squares = squares * self.weights
        self.alpha: float = float(squares.sum(dtype=np.float64)) / self.n_spins**2

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        # The many vectors as left factor: BLAS packs the few students, not the whole matrix.
        overlaps = (self.vectors @ m.T).T
        if self.weights is not None:
            overlaps = overlaps * self.weights
        product: FloatArray = overlaps @ self.vectors
        product /= self.n_spins
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the stored vectors and their weights."""
        V = to_numpy(self.vectors)
        return V, np.ones(len(V), dtype=V.dtype) if self.weights is None else self.weights


class StackedCouplings:
    r"""Couplings of independent problems, one per student: :math:`J_a = V_a^\top V_a / N`.

    One run of a scheme then serves many experiments of equal size.

    Parameters
    ----------
    patterns : array-like of shape (students, n_vectors, n_spins), ±1
        The V_a.
    dtype : {float32, float64}
        Precision of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import StackedCouplings
    >>> J = StackedCouplings([[[1, 1, 1, 1]], [[1, 1, -1, -1]]])
    >>> J.alpha
    0.25
    >>> J.dot(np.ones((2, 4), dtype=np.float32))
    array([[1., 1., 1., 1.],
           [0., 0., 0., 0.]], dtype=float32)
    """

    def __init__(self, patterns: ArrayLike, dtype: type[np.floating[Any]] = np.float32) -> None:
        self.patterns: FloatArray = np.ascontiguousarray(patterns, dtype=dtype)
        if self.patterns.ndim != 3 or not (np.abs(self.patterns) == 1).all():
            raise ValueError(
                "patterns must be ±1 and of shape (students, n_vectors, n_spins), got shape "
                f"{self.patterns.shape}"
            )
        _, n_vectors, self.n_spins = self.patterns.shape
        self.dtype: Any = self.patterns.dtype
        self.alpha: float = n_vectors / self.n_spins

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J_a m_a for every row of ``m``, as many as there are students."""
        overlaps = self.patterns @ m[:, :, None]
        product: FloatArray = (overlaps.transpose(0, 2, 1) @ self.patterns)[:, 0]
        product /= self.n_spins
        return product

    def taking(self, students: NDArray[np.int64]) -> StackedCouplings:
        """Return the couplings of some of the students."""
        chosen = object.__new__(StackedCouplings)  # they were checked before
        chosen.__dict__.update(self.__dict__, patterns=self.patterns[students])
        return chosen


class GramCouplings:
    r"""Couplings :math:`J = S^\top S / N` of samples that are never held as one array of floats.

    The samples are packed, on Dask workers, or on another device. Such couplings are known by
    their products alone: without factors, they cannot be used site after site.

    Parameters
    ----------
    samples : Products
        The S, 0 where an entry is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.couplings import GramCouplings
    >>> from dualtap.spins.matrix import blocks_of
    >>> J = GramCouplings(blocks_of(as_spins([[1, 1, -1, -1]])))
    >>> J.alpha
    0.25
    >>> J.dot(np.array([[1, 1, 0, 0]], dtype=np.float32))
    array([[ 0.5,  0.5, -0.5, -0.5]], dtype=float32)
    """

    dtype: Any = np.dtype(np.float32)

    def __init__(self, samples: Products) -> None:
        self.samples = samples
        self.n_spins: int = samples.n_spins
        self.alpha: float = samples.sum_of_squares() / self.n_spins**2

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        product: FloatArray = self.samples.gram_dot(m)
        product /= self.n_spins
        return product


class DeflatedCouplings:
    r"""Couplings with rank-one parts removed: :math:`J - \sum_t \gamma_t m_t m_t^\top / N`.

    ``alpha`` stays that of the base: deflation removes signal, the noise of the remaining
    samples is still there.

    Parameters
    ----------
    base : Couplings
    directions : array of shape (n_removed, n_spins)
        The m_t, best where the magnetizations will be: elsewhere they are moved at every product.
    gammas : array of shape (n_removed,)
        The γ_t.
    alpha : float, optional
        Another coefficient of the reaction term than that of the base.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import DeflatedCouplings, HebbianCouplings
    >>> patterns = np.array([[1, 1, 1, 1], [1, 1, -1, -1]], dtype=np.float32)
    >>> J = DeflatedCouplings(HebbianCouplings(patterns), patterns[:1], np.ones(1))
    >>> J.alpha
    0.5
    >>> J.dot(patterns)
    array([[ 0.,  0.,  0.,  0.],
           [ 1.,  1., -1., -1.]], dtype=float32)
    """

    def __init__(
        self,
        base: Couplings,
        directions: FloatArray,
        gammas: FloatArray,
        alpha: float | None = None,
    ) -> None:
        self.base = base
        self.n_spins: int = base.n_spins
        self.dtype: Any = base.dtype
        self.alpha: float = base.alpha if alpha is None else alpha
        self.directions: FloatArray = _host_or_foreign(directions, base.dtype)
        self.gammas: FloatArray = _host_or_foreign(gammas, base.dtype)

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        product = self.base.dot(m)
        directions, gammas = like(m, self.directions), like(m, self.gammas)
        product -= ((m @ directions.T) * (gammas / self.n_spins)) @ directions
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the base followed by the removed directions."""
        V, w = factors_of(self.base)
        directions, gammas = like(V, self.directions), like(V, self.gammas)
        return np.vstack([V, directions]), np.concatenate([w, -gammas])


class DenseCouplings:
    """Any symmetric matrix J, for models that are not Hebbian (such as SK).

    Parameters
    ----------
    matrix : array-like of shape (n_spins, n_spins)
    alpha : float, optional
        Coefficient of the reaction term; the mean diagonal when not given.
    dtype : {float64, float32}
        Precision of the products.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import DenseCouplings
    >>> J = DenseCouplings([[0, 0.5], [0.5, 0]])
    >>> J.dot(np.array([[1.0, -1.0]]))
    array([[-0.5,  0.5]])
    """

    def __init__(
        self,
        matrix: ArrayLike,
        alpha: float | None = None,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        self.matrix: FloatArray = _floats(matrix, dtype)
        shape = tuple(self.matrix.shape)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"couplings must be a square matrix, got shape {shape}")
        J = to_numpy(self.matrix)
        if not np.allclose(J, J.T):
            raise ValueError("couplings must be symmetric; pass (J + J.T) / 2")
        self.n_spins: int = shape[0]
        self.dtype: Any = self.matrix.dtype
        self.alpha: float = float(np.trace(J)) / self.n_spins if alpha is None else alpha

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        product: FloatArray = like(self.matrix, m) @ self.matrix
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return eigenvectors times √N and eigenvalues."""
        eigenvalues, eigenvectors = np.linalg.eigh(to_numpy(self.matrix))
        return np.ascontiguousarray(eigenvectors.T) * np.sqrt(self.n_spins), eigenvalues


def sample_couplings(
    samples: NDArray[Any], weights: NDArray[np.float64] | None = None
) -> HebbianCouplings | DenseCouplings:
    r"""Return :math:`J = S^\top S / N`, as a matrix where that makes products cheaper.

    A product costs 2MN through the samples S, 0 where an entry is missing, and N² through J: it
    is formed when M is above N/2 and N at most ``DENSE_SPINS``. Rows with weights w count as w
    samples.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.couplings import sample_couplings
    >>> sample_couplings(np.ones((3, 4))).dot(np.ones((1, 4), dtype=np.float32))
    array([[3., 3., 3., 3.]], dtype=float32)
    """
    J = HebbianCouplings(samples, weights=weights)
    n_samples, n_spins = J.vectors.shape
    if n_spins > DENSE_SPINS or 2 * n_samples <= n_spins:
        return J
    right = J.vectors if J.weights is None else J.vectors * J.weights[:, None]
    return DenseCouplings(J.vectors.T @ right / J.vectors.dtype.type(n_spins), dtype=np.float32)


def _host_or_foreign(x: Any, dtype: Any) -> FloatArray:
    """Return a foreign array as it is, anything else as one of NumPy, of this type if it can be."""
    if is_foreign(x):
        foreign: FloatArray = x
        return foreign
    return np.asarray(x, dtype=dtype if isinstance(dtype, np.dtype) else None)


def _floats(x: Any, dtype: type[np.floating[Any]]) -> FloatArray:
    """Return an array of this precision: contiguous for NumPy, else where it is."""
    if not is_foreign(x):
        return np.ascontiguousarray(x, dtype=dtype)
    xp = namespace(x)
    result: FloatArray = xp.astype(x, getattr(xp, np.dtype(dtype).name), copy=False)
    return result
