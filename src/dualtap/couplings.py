r"""Coupling operators: J·m for a batch of students, without ever forming J.

Every iteration of this package needs the couplings only through the product :math:`J m` and the
mean diagonal :math:`\alpha = \mathrm{Tr} J / N`. Students are rows: ``m`` has shape
(students, spins), and one call serves all of them by matrix products.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.floating[Any]]

__all__ = ["Couplings", "DeflatedCouplings", "DenseCouplings", "HebbianCouplings"]


class Couplings(Protocol):
    """What an iteration may ask of the couplings."""

    @property
    def n_spins(self) -> int:
        """Number of spins N."""

    @property
    def alpha(self) -> float:
        """Mean diagonal element of J: (number of stored vectors)/N for Hebbian couplings."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Floating type of the products."""

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``, shape (students, spins)."""

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return V (R, spins) and w (R,) with J = Vᵀ diag(w) V / N."""


class HebbianCouplings:
    r"""Couplings :math:`J = V^\top V / N` of R stored vectors, in O(R N) memory and time.

    Parameters
    ----------
    vectors : array-like of shape (n_vectors, n_spins)
        Samples (the dual problem) or patterns (the direct one); 0 marks a missing entry.
    dtype : {float32, float64}
        Precision of the products.

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

    def __init__(self, vectors: ArrayLike, dtype: type[np.floating[Any]] = np.float32) -> None:
        self.vectors: FloatArray = np.ascontiguousarray(vectors, dtype=dtype)
        self.n_spins: int = self.vectors.shape[1]
        self.dtype: np.dtype[Any] = self.vectors.dtype
        squares = np.einsum("ri,ri->r", self.vectors, self.vectors)
        self.alpha: float = float(squares.sum(dtype=np.float64)) / self.n_spins**2

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        # The many vectors as left factor: BLAS packs the few students, not the whole matrix.
        product: FloatArray = (self.vectors @ m.T).T @ self.vectors
        product /= self.n_spins
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the stored vectors and weights of one."""
        return self.vectors, np.ones(len(self.vectors), dtype=self.dtype)


class DeflatedCouplings:
    r"""Couplings with rank-one parts removed: :math:`J - \sum_t \gamma_t m_t m_t^\top / N`.

    ``alpha`` stays that of the base: deflation removes signal, the noise of the remaining
    samples is still there.

    Parameters
    ----------
    base : Couplings
    directions : array of shape (n_removed, n_spins)
        The m_t.
    gammas : array of shape (n_removed,)
        The γ_t.
    """

    def __init__(self, base: Couplings, directions: FloatArray, gammas: FloatArray) -> None:
        self.base = base
        self.n_spins: int = base.n_spins
        self.dtype: np.dtype[Any] = base.dtype
        self.alpha: float = base.alpha
        self.directions: FloatArray = np.asarray(directions, dtype=base.dtype)
        self.gammas: FloatArray = np.asarray(gammas, dtype=base.dtype)

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        product = self.base.dot(m)
        weights = (m @ self.directions.T) * (self.gammas / self.n_spins)
        product -= weights @ self.directions
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the base followed by the removed directions."""
        V, w = self.base.factors()
        return np.vstack([V, self.directions]), np.concatenate([w, -self.gammas])


class DenseCouplings:
    """Any symmetric matrix J, for models that are not Hebbian (such as SK).

    Parameters
    ----------
    matrix : array-like of shape (n_spins, n_spins)
    alpha : float, optional
        Coefficient of the reaction term; the mean diagonal when not given.
    """

    def __init__(self, matrix: ArrayLike, alpha: float | None = None) -> None:
        self.matrix: NDArray[np.float64] = np.ascontiguousarray(matrix, dtype=np.float64)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(f"couplings must be a square matrix, got shape {self.matrix.shape}")
        if not np.allclose(self.matrix, self.matrix.T):
            raise ValueError("couplings must be symmetric; pass (J + J.T) / 2")
        self.n_spins: int = self.matrix.shape[0]
        self.dtype: np.dtype[Any] = self.matrix.dtype
        self.alpha: float = float(np.trace(self.matrix)) / self.n_spins if alpha is None else alpha

    def dot(self, m: FloatArray) -> FloatArray:
        """Return J m for every row of ``m``."""
        product: FloatArray = m @ self.matrix
        return product

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """Return eigenvectors times √N and eigenvalues."""
        eigenvalues, eigenvectors = np.linalg.eigh(self.matrix)
        return np.ascontiguousarray(eigenvectors.T) * np.sqrt(self.n_spins), eigenvalues
