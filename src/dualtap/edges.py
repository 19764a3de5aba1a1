r"""Couplings between pairs of spins, and the strongest of them as a table of edges.

Every model of this package is :math:`P(s) \propto \exp(\sum_{i<j} J_{ij} s_i s_j + \dots)`, β
included in J. Its couplings are needed whole (N × N) only if somebody asks for them: the strongest
ones are found in blocks of rows.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

__all__ = [
    "Edges",
    "ModelMismatchWarning",
    "low_rank_rows",
    "pattern_intervals",
    "strongest_pairs",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
RowsOfJ = Callable[[slice], FloatArray]
"""Returns rows of J, whatever their entries on the diagonal are."""

_BLOCK = 2**22
"""Entries of J that are looked at together."""
_TWO_SIDED = 1.959964
"""Standard deviations on either side of the mean that hold 95 % of a normal distribution."""
_DIGITS = 12
"""Couplings that differ by less than this many digits of the largest possible one are equal."""


class ModelMismatchWarning(UserWarning):
    """The couplings of a model are asked for, but another model describes the samples better."""


@dataclass(frozen=True)
class Edges:
    """A table of couplings, the strongest first.

    Attributes
    ----------
    i, j : array of shape (n_edges,), int
        The two spins, i < j.
    J : array of shape (n_edges,)
        Their coupling, β included: the log odds of s_i = +1 against -1 rise by 4 J when s_j
        turns from -1 to +1.
    low, high : array of shape (n_edges,)
        95 % interval (:func:`pattern_intervals`); NaN if the model has none.
    names : array of shape (n_edges, 2), str, or None
        Names of the two spins, if they have names.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.edges import Edges
    >>> one, nan = np.array([1.5]), np.array([np.nan])
    >>> edges = Edges(np.array([0]), np.array([2]), one, nan, nan, np.array([["tax", "road"]]))
    >>> len(edges), list(edges.columns())
    (1, ['i', 'j', 'name_i', 'name_j', 'J', 'low', 'high'])
    """

    i: IntArray
    j: IntArray
    J: FloatArray
    low: FloatArray
    high: FloatArray
    names: NDArray[np.str_] | None = None

    def __len__(self) -> int:
        return len(self.J)

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the table as columns: ``pandas.DataFrame(edges.columns())`` is a data frame.

        Returns
        -------
        dict of arrays of shape (n_edges,)
            ``i``, ``j``, ``name_i`` and ``name_j`` (if spins have names), ``J``, ``low``, ``high``.
        """
        names = {}
        if self.names is not None:
            names = {"name_i": self.names[:, 0], "name_j": self.names[:, 1]}
        numbers = {"J": self.J, "low": self.low, "high": self.high}
        return {"i": self.i, "j": self.j, **names, **numbers}

    def to_networkx(self) -> Any:
        """Return the edges as an undirected graph.

        Returns
        -------
        networkx.Graph
            Nodes are the numbers of the spins, with their ``name`` if they have one; edges have
            ``J`` and, where there is an interval, ``low`` and ``high``.

        Raises
        ------
        ImportError
            Without networkx: ``pip install 'dualtap[graph]'``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualtap.edges import Edges
        >>> one = np.array([1.5])
        >>> graph = Edges(np.array([0]), np.array([2]), one, one - 1, one + 1).to_networkx()
        >>> graph.edges[0, 2]
        {'J': 1.5, 'low': 0.5, 'high': 2.5}
        """
        try:
            import networkx
        except ImportError:
            raise ImportError(
                "graphs need networkx; install it with: pip install 'dualtap[graph]'"
            ) from None
        graph = networkx.Graph()
        for k, (i, j) in enumerate(zip(self.i.tolist(), self.j.tolist(), strict=True)):
            if self.names is not None:
                graph.add_node(i, name=str(self.names[k, 0]))
                graph.add_node(j, name=str(self.names[k, 1]))
            graph.add_edge(i, j, **self.weights(k))
        return graph

    def weights(self, k: int) -> dict[str, float]:
        """Return the coupling of the k-th edge, and its interval if it has one."""
        values = {"J": self.J[k], "low": self.low[k], "high": self.high[k]}
        return {name: float(value) for name, value in values.items() if not np.isnan(value)}


class HasCouplings(ABC):
    """What every estimator says of pairs of spins."""

    n_features_in_: int

    @abstractmethod
    def _rows_of_couplings(self) -> RowsOfJ:
        """Return a function that gives rows of J."""

    def _coupling_intervals(self, i: IntArray, j: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the 95 % intervals of couplings; NaN if there are none."""
        unknown = np.full(len(i), np.nan)
        return unknown, unknown

    def _doubt_about_couplings(self) -> str:
        """Return why another model should be asked for couplings; nothing if none should."""
        return ""

    def _warn_about_couplings(self) -> None:
        doubt = self._doubt_about_couplings()
        if doubt:
            warnings.warn(doubt, ModelMismatchWarning, stacklevel=3)

    def couplings(self) -> FloatArray:
        r"""Return the couplings of all pairs of spins.

        In :math:`P(s) \propto \exp(\sum_{i<j} J_{ij} s_i s_j + \dots)`, β included.

        Returns
        -------
        array of shape (n_spins, n_spins)
            Symmetric, zero diagonal. For many spins take :meth:`edges`, which does not form it.

        Warns
        -----
        ModelMismatchWarning
            Patterns leave much of the pairs unexplained; the message names a model that does not.
        """
        check_is_fitted(self)
        self._warn_about_couplings()
        J = self._rows_of_couplings()(slice(0, self.n_features_in_))
        J = (J + J.T) / 2  # products are symmetric up to rounding
        np.fill_diagonal(J, 0)
        return J

    def edges(self, top: int | None = None) -> Edges:
        """Return the pairs of spins that are coupled, the strongest first.

        Parameters
        ----------
        top : int, optional
            Only that many. J is then looked at in blocks of rows and never formed.

        Returns
        -------
        Edges
            Ordered by ``|J|``, equal ones by i and j; pairs with J = 0 are left out.

        Warns
        -----
        ModelMismatchWarning
            As :meth:`couplings` does.
        """
        check_is_fitted(self)
        self._warn_about_couplings()
        i, j, J = strongest_pairs(self._rows_of_couplings(), self.n_features_in_, top)
        names = getattr(self, "feature_names_in_", None)
        pairs = None if names is None else np.stack([names[i], names[j]], axis=1).astype(np.str_)
        return Edges(i, j, J, *self._coupling_intervals(i, j), names=pairs)


def low_rank_rows(factors: NDArray[Any], scales: NDArray[np.floating[Any]]) -> RowsOfJ:
    r"""Return a function that gives rows of :math:`J = \sum_k c_k\, v_k v_k^\top`.

    Parameters
    ----------
    factors : array of shape (n_factors, n_spins)
        The v_k.
    scales : array of shape (n_factors,)
        The c_k.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.edges import low_rank_rows
    >>> low_rank_rows(np.array([[1, -1, 2]]), np.array([0.5]))(slice(1, 2))
    array([[-0.5,  0.5, -1. ]])
    """
    V = factors.astype(np.float64)
    scaled = V.T * scales

    def rows_of(rows: slice) -> FloatArray:
        return scaled[rows] @ V

    return rows_of


def strongest_pairs(
    rows_of: RowsOfJ, n_spins: int, top: int | None = None
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the pairs i < j of largest absolute coupling, looking at blocks of rows of J.

    Parameters
    ----------
    rows_of : callable
        Returns the rows of J that a slice stands for, as :func:`low_rank_rows` does.
    n_spins : int
    top : int, optional
        Return at most that many.

    Returns
    -------
    i, j : arrays of shape (n_pairs,), int
    J : array of shape (n_pairs,)
        In descending order of ``|J|``, equal ones in the order of i and j; zeros are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.edges import strongest_pairs
    >>> J = np.array([[0.0, 0.2, -0.7], [0.2, 0.0, 0.0], [-0.7, 0.0, 0.0]])
    >>> strongest_pairs(lambda rows: J[rows], 3)
    (array([0, 0]), array([2, 1]), array([-0.7,  0.2]))
    """
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1, got {top}")
    i, j = np.empty(0, np.int64), np.empty(0, np.int64)
    J, least = np.empty(0), 0.0
    step = max(1, _BLOCK // n_spins)
    for first in range(0, n_spins, step):
        rows = slice(first, min(first + step, n_spins))
        block = rows_of(rows)
        above = np.arange(n_spins) > np.arange(rows.start, rows.stop)[:, None]
        row, column = np.nonzero(above & (np.abs(block) > least))
        i, j = np.append(i, row + first), np.append(j, column)
        J = np.append(J, block[row, column])
        if top is not None and len(J) > top:
            # Stable: of equal ones those of earlier rows stay.
            kept = np.argsort(-_rounded(J), kind="stable")[:top]
            kept.sort()
            i, j, J = i[kept], j[kept], J[kept]
            least = float(np.abs(J).min())
    order = np.argsort(-_rounded(J), kind="stable")
    return i[order], j[order], J[order]


def _rounded(J: FloatArray) -> FloatArray:
    """Return sizes of couplings without the digits in which equal sums may differ."""
    size = np.abs(J)
    largest = float(size.max(initial=0))
    if largest == 0:
        return size
    unit = 10.0 ** (np.ceil(np.log10(largest)) - _DIGITS)
    result: FloatArray = np.round(size / unit)
    return result


def pattern_intervals(
    i: IntArray,
    j: IntArray,
    patterns: NDArray[np.int8],
    magnetizations: NDArray[np.floating[Any]],
    strengths: FloatArray,
    covariance: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    r"""Return 95 % intervals of the couplings that patterns imply.

    In :math:`J_{ij} = \sum_\mu \frac{g_\mu}N \zeta^\mu_i \zeta^\mu_j` entries are taken as
    independent with :math:`P(\zeta^\mu_i = \pm1) = (1 \pm m^\mu_i)/2`, or 0 where the pattern is 0,
    and strengths as normal with covariance C. Then

    .. math:: \langle J_{ij}\rangle &= \sum_\mu \frac{g_\mu}N m^\mu_i m^\mu_j \\
              \mathrm{Var}\, J_{ij} &= \sum_\mu \frac{g_\mu^2}{N^2}
              \big[|\zeta^\mu_i \zeta^\mu_j| - (m^\mu_i m^\mu_j)^2\big]
              + \sum_{\mu\nu} \frac{C_{\mu\nu}}{N^2}
              \zeta^\mu_i \zeta^\mu_j \zeta^\nu_i \zeta^\nu_j

    and the interval is :math:`\langle J\rangle \pm 1.96\,\sqrt{\mathrm{Var}}`, widened to J itself
    where that lies outside. It does not include that other entries may be 0, that there may be more
    or fewer patterns, and correlations between entries.

    Parameters
    ----------
    i, j : arrays of shape (n_pairs,), int
        Pairs of different spins.
    patterns : array of shape (n_patterns, n_spins)
        -1, 0 or +1.
    magnetizations : array of shape (n_patterns, n_spins)
        Posterior means m of the entries.
    strengths : array of shape (n_patterns,)
        The g_μ.
    covariance : array of shape (n_patterns, n_patterns)
        C; zero if the strengths are known.

    Returns
    -------
    low, high : arrays of shape (n_pairs,)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.edges import pattern_intervals
    >>> i, j, zeta = np.array([0, 0]), np.array([1, 2]), np.array([[1, 1, 1, 0]], dtype=np.int8)
    >>> m, g = np.array([[1.0, 1.0, 0.9, 0.0]]), np.array([2.0])
    >>> low, high = pattern_intervals(i, j, zeta, m, g, np.zeros((1, 1)))
    >>> low.round(3), high.round(3)
    (array([0.5  , 0.023]), array([0.5  , 0.877]))
    >>> low, high = pattern_intervals(i, j, zeta, m, g, np.full((1, 1), 0.01))
    >>> low.round(3), high.round(3)
    (array([0.451, 0.02 ]), array([0.549, 0.88 ]))
    """
    scale, C = strengths / patterns.shape[1], covariance / patterns.shape[1] ** 2
    m = magnetizations.astype(np.float64)
    low, high = np.empty(len(i)), np.empty(len(i))
    step = max(1, _BLOCK // max(len(patterns), 1))
    for first in range(0, len(i), step):
        pairs = slice(first, first + step)
        z = (patterns[:, i[pairs]] * patterns[:, j[pairs]]).astype(np.float64)
        product = m[:, i[pairs]] * m[:, j[pairs]]
        J, mean = scale @ z, scale @ product
        # Rounding may leave magnetizations above 1, and a variance below 0.
        variance = np.square(scale) @ np.maximum(np.abs(z) - np.square(product), 0)
        variance += np.maximum(np.einsum("mp,mp->p", C @ z, z), 0)
        width = _TWO_SIDED * np.sqrt(variance)
        low[pairs] = np.minimum(J, mean - width)
        high[pairs] = np.maximum(J, mean + width)
    return low, high
