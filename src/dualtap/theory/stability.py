r"""How TAP and AMP leave the paramagnet m = 0: multipliers of a mode of J.

A small m along an eigenvector of J (diagonal included) with eigenvalue λ is multiplied at every
parallel step. Random patterns, α = P/N: eigenvalues lie between :math:`(1-\sqrt\alpha)^2` and
:math:`(1+\sqrt\alpha)^2`, and N - P of them are zero.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def bulk_edges(alpha: float) -> tuple[float, float]:
    r"""Return the edges :math:`(1 \mp \sqrt\alpha)^2` of the spectrum of J of random patterns.

    Examples
    --------
    >>> from dualtap.theory.stability import bulk_edges
    >>> bulk_edges(0.25)
    (0.25, 2.25)
    """
    if not alpha >= 0:
        raise ValueError(f"alpha must not be negative, got {alpha!r}")
    root = float(np.sqrt(alpha))
    return (1 - root) ** 2, (1 + root) ** 2


def tap_multiplier(beta: float, eigenvalue: float, alpha: float) -> float:
    r"""Return the factor of one TAP step, :math:`\beta\lambda - \frac{\alpha\beta}{1-\beta}`.

    For random patterns the largest reaches 1 at :math:`\beta_c = 1/(1+\sqrt\alpha)`.

    Parameters
    ----------
    beta : float
        Not 1, where the reaction term has a pole.
    eigenvalue : float
        λ, of J with its diagonal.
    alpha : float

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory.stability import bulk_edges, tap_multiplier
    >>> tap_multiplier(1 / (1 + 0.5), bulk_edges(0.25)[1], 0.25)
    1.0
    """
    _check(beta)
    return beta * eigenvalue - alpha * beta / (1 - beta)


def amp_multipliers(beta: float, eigenvalue: float, alpha: float) -> NDArray[np.complex128]:
    r"""Return both factors of one parallel AMP step, the larger in size first.

    The roots x of :math:`x^2 = \frac{\beta}{1-\beta}\big[(\lambda-\alpha-1)\,x -
    \frac{\alpha\beta}{1-\beta}\big]`. At α → 0 a direction without a pattern (λ = 0) has
    :math:`-\beta/(1-\beta)`: it oscillates, and grows for β > 1/2.

    Parameters
    ----------
    beta : float
        Not 1.
    eigenvalue : float
        λ, of J with its diagonal.
    alpha : float

    Returns
    -------
    array of shape (2,), complex

    Examples
    --------
    >>> from dualtap.theory.stability import amp_multipliers
    >>> complex(amp_multipliers(0.5, 0.0, 0.0)[0])
    (-1+0j)
    """
    _check(beta)
    c = beta / (1 - beta)
    roots = np.roots([1.0, -c * (eigenvalue - alpha - 1), alpha * c**2]).astype(np.complex128)
    return roots[np.argsort(-np.abs(roots), kind="stable")]


def _check(beta: float) -> None:
    if not beta >= 0 or beta == 1:
        raise ValueError(f"multipliers need beta >= 0 other than 1 (a pole), got {beta!r}")
