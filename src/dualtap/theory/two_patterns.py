r"""Two patterns at overlap q: why the term -M log Z of the likelihood drives patterns apart.

On the sites where the patterns agree let A be the overlap of s with both; B where they differ. Then
:math:`(\xi^1\cdot s)^2 + (\xi^2\cdot s)^2 = 2A^2 + 2B^2`: two Curie-Weiss models, of N(1 ± q)/2
spins at β(1 ± q).
"""

from __future__ import annotations

from dualtap.theory.curie_weiss import finite_log_partition, log_partition


def pair_log_partition(beta: float, overlap: float) -> float:
    r"""Return :math:`\varphi(q) = \lim_N \frac1N \log Z` of two patterns with overlap q.

    .. math:: \varphi(q) = \tfrac{1+q}2\, g(\beta(1+q)) + \tfrac{1-q}2\, g(\beta(1-q))

    with g of :func:`dualtap.theory.curie_weiss.log_partition`. Convex, smallest at q = 0 (the
    paper prints it with a minus sign).

    Parameters
    ----------
    beta : float
    overlap : float in [-1, 1]

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory.two_patterns import pair_log_partition
    >>> pair_log_partition(2.0, 0.0) < pair_log_partition(2.0, 0.5)
    True
    """
    _check(overlap)
    return sum((1 + q) / 2 * log_partition(beta * (1 + q)) for q in (overlap, -overlap) if q > -1)


def finite_pair_log_partition(n_spins: int, beta: float, n_equal: int) -> float:
    r"""Return :math:`\log Z` of two patterns of N spins that agree on ``n_equal`` sites, exactly.

    Their overlap is :math:`q = 2 n/N - 1`.

    Parameters
    ----------
    n_spins : int
    beta : float
    n_equal : int
        From 0 to ``n_spins``.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory.two_patterns import finite_pair_log_partition
    >>> finite_pair_log_partition(12, 2.0, 6) < finite_pair_log_partition(12, 2.0, 9)
    True
    """
    if not 0 <= n_equal <= n_spins:
        raise ValueError(f"n_equal must be from 0 to {n_spins}, got {n_equal!r}")
    return sum(
        finite_log_partition(n, 2 * beta * n / n_spins) for n in (n_equal, n_spins - n_equal)
    )


def _check(overlap: float) -> None:
    if not -1 <= overlap <= 1:
        raise ValueError(f"the overlap of two patterns is between -1 and 1, got {overlap!r}")
