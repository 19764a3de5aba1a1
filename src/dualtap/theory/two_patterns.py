r"""Two patterns: why the posterior keeps inferred patterns orthogonal.

With A and B the parts of :math:`\xi^1 \cdot s` on the sites where :math:`\xi^1 = \pm\xi^2`,

.. math:: (\xi^1 \cdot s)^2 + (\xi^2 \cdot s)^2 = 2A^2 + 2B^2,

so the partition function factorises into two Curie–Weiss systems of :math:`N(1 \pm q)/2` spins
at :math:`\beta(1 \pm q)`, q being the overlap of the patterns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dualtap.theory.curie_weiss import (
    Floats,
    curie_weiss_log_partition,
    curie_weiss_log_partition_exact,
)


def two_pattern_log_partition(overlap: ArrayLike, beta: float) -> Floats:
    r"""Return φ(q), the log-partition function per spin of two patterns for N → ∞.

    .. math:: \varphi(q) = \lim_{N\to\infty} \frac1N \log Z
              = \frac{1+q}{2}\, g(\beta(1+q)) + \frac{1-q}{2}\, g(\beta(1-q)),

    g being :func:`~dualtap.theory.curie_weiss_log_partition`. It is even and convex with its
    minimum at q = 0, so the term :math:`-M \log Z` of the log-posterior favours orthogonal
    patterns. (The paper prints :math:`\phi = -N \log Z`; it is convex as written here.) While
    :math:`\beta(1+|q|) \le 1` it is flat: log 2.

    Parameters
    ----------
    overlap : float or array
        q in [-1, 1].
    beta : float
        Inverse temperature, not negative.

    Returns
    -------
    array of the shape of ``overlap``

    Examples
    --------
    >>> from dualtap.theory import two_pattern_log_partition
    >>> two_pattern_log_partition([-0.5, 0.0, 0.5], beta=2.0).round(4)
    array([1.3002, 1.0197, 1.3002])
    """
    q = _checked(overlap)
    equal, opposite = (1 + q) / 2, (1 - q) / 2
    phi: Floats = equal * curie_weiss_log_partition(2 * beta * equal)
    phi += opposite * curie_weiss_log_partition(2 * beta * opposite)
    return phi


def two_pattern_log_partition_exact(overlap: float, beta: float, n_spins: int) -> float:
    r"""Return (1/N) log Z of two patterns on a finite system, exactly, in O(N).

    .. math:: Z = \sum_s \exp\!\left[\frac{\beta}{2N} \sum_{\mu=1,2} (\xi^\mu \cdot s)^2\right]
              = Z_{\rm CW}^{N(1+q)/2}(\beta(1+q)) \; Z_{\rm CW}^{N(1-q)/2}(\beta(1-q)).

    Parameters
    ----------
    overlap : float
        q in [-1, 1] with N(1+q)/2 a whole number.
    beta : float
        Inverse temperature, not negative.
    n_spins : int
        N ≥ 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import two_pattern_log_partition_exact
    >>> round(two_pattern_log_partition_exact(overlap=0.5, beta=2.0, n_spins=1000), 4)
    1.3026
    """
    q = float(_checked(overlap))
    if n_spins < 1:
        raise ValueError(f"n_spins must be at least 1, got {n_spins!r}; pass the system's size")
    n_equal = round(n_spins * (1 + q) / 2)
    if abs(2 * n_equal / n_spins - 1 - q) > 1e-9:
        nearest = 2 * n_equal / n_spins - 1
        raise ValueError(
            f"two patterns of {n_spins} spins cannot have overlap {q!r}, only one in steps of "
            f"{2 / n_spins}; the nearest is {nearest!r}"
        )
    blocks = [n for n in (n_equal, n_spins - n_equal) if n > 0]
    log_z = sum(curie_weiss_log_partition_exact(2 * beta * n / n_spins, n) for n in blocks)
    return log_z / n_spins


def _checked(overlap: ArrayLike) -> Floats:
    q = np.asarray(overlap, dtype=np.float64)
    bad = q[~(np.abs(q) <= 1)]
    if bad.size:
        raise ValueError(
            f"overlap must lie in [-1, 1], got {float(bad[0])!r}; divide ξ¹·ξ² by the spins"
        )
    return q
