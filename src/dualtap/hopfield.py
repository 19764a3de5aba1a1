r"""The model of the whole package: patterns with strengths, fields, energy, and sampling.

.. math:: P(s) \propto \exp\Big(\frac12 \sum_\mu \frac{g_\mu}N (\zeta^\mu\cdot s)^2
          + \sum_i b_i s_i\Big), \qquad \zeta^\mu \in \{-1, 0, +1\}^N

The paper's Hopfield model is the case of equal strengths :math:`g_\mu = \beta`, no zeros and no
fields. The couplings have rank P, so a spin update costs O(P).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap._equilibration import Equilibration
from dualtap._parameters import as_fields as as_fields  # other modules import it from here
from dualtap._parameters import as_patterns, as_strengths
from dualtap._random import RandomState, as_generator
from dualtap._sampling import SampledModel
from dualtap.couplings import HebbianCouplings
from dualtap.spins import Spins, as_spins

__all__ = ["Equilibration", "HopfieldModel"]


class HopfieldModel(SampledModel):
    r"""Patterns that attract or repel ±1 spins, each with its strength, and fields on the spins.

    .. math:: P(s) \propto \exp\Big(\frac12 \sum_\mu \frac{g_\mu}N (\zeta^\mu\cdot s)^2
              + \sum_i b_i s_i\Big)

    Give either ``beta``, the strength of all patterns (the Hopfield model at inverse temperature
    β), or ``strengths``.

    Parameters
    ----------
    patterns : array-like of shape (n_patterns, n_spins)
        The ζ^μ: any binary encoding, or -1, 0 and +1, where a spin of 0 is not in the
        pattern. An array of 0 and 1 without a -1 is read as 0/1, where 0 means -1; pass
        ``as_spins(patterns, zero_is_missing=True)`` if it means no part. There may be no pattern
        at all, shape (0, n_spins): the spins are then independent.
    beta : float, optional
        Inverse temperature, positive: all g_μ are equal to it.
    fields : array-like of shape (n_spins,), optional
        The b_i, which β does not multiply; zero by default, as in the paper.
    strengths : array-like of shape (n_patterns,), optional
        The g_μ, finite: positive for patterns that attract, negative for those that repel.

    Attributes
    ----------
    patterns : array of shape (n_patterns, n_spins), int8
    strengths : array of shape (n_patterns,), float64 and read-only
    beta : float
        1 if strengths were given.
    fields : array of shape (n_spins,), float64 and read-only, or None

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=100, n_patterns=3, beta=2.0, random_state=0)
    >>> X = teacher.sample(12, random_state=1)
    >>> X.shape, X.dtype
    ((12, 100), dtype('int8'))
    >>> bool((abs(X @ teacher.patterns.T).max(axis=1) > 80).all())
    True

    Spins biased to +1 in addition to the patterns:

    >>> biased = dt.HopfieldModel(teacher.patterns, beta=0.5, fields=[0.5] * 100)
    >>> bool(biased.sample(50, random_state=1).mean() > 0.3)
    True

    One pattern attracts, another repels, a third involves the first ten spins only:

    >>> zeta = teacher.patterns.copy()
    >>> zeta[2, 10:] = 0
    >>> model = dt.HopfieldModel(zeta, strengths=[1.5, -1.0, 8.0])
    >>> model
    HopfieldModel(n_spins=100, n_patterns=3, strengths=-1 to 8)
    >>> model.sample(5, random_state=1).shape
    (5, 100)
    """

    def __init__(
        self,
        patterns: ArrayLike | Spins,
        beta: float | None = None,
        fields: ArrayLike | None = None,
        *,
        strengths: ArrayLike | None = None,
    ) -> None:
        self.patterns = as_patterns(patterns)
        self.strengths = as_strengths(self.n_patterns, beta, strengths)
        self.beta = 1.0 if beta is None else float(beta)
        self.fields = None if fields is None else as_fields(fields, self.n_spins)

    @classmethod
    def random(
        cls,
        n_spins: int,
        n_patterns: int,
        beta: float | None = None,
        random_state: RandomState = None,
        fields: ArrayLike | None = None,
        *,
        strengths: ArrayLike | None = None,
        support: float = 1.0,
    ) -> HopfieldModel:
        """Return a model whose pattern entries are ±1 with equal odds, all independent.

        Parameters
        ----------
        n_spins, n_patterns : int
        beta : float, optional
            Inverse temperature; either this or ``strengths``.
        random_state : int, RandomState, Generator or None
        fields : array-like of shape (n_spins,), optional
            The model's fields, as given.
        strengths : array-like of shape (n_patterns,), optional
            The strengths of the patterns, as given.
        support : float
            Share of the spins that take part in a pattern, in (0, 1]. Every pattern has the
            nearest whole number of them, at least two, at random places; the others are 0.

        Returns
        -------
        HopfieldModel

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel.random(50, 2, beta=1.5, random_state=0)
        HopfieldModel(n_spins=50, n_patterns=2, beta=1.5)
        >>> diluted = dt.HopfieldModel.random(50, 2, strengths=[9, 5], support=0.2, random_state=0)
        >>> abs(diluted.patterns).sum(axis=1)
        array([10, 10])
        """
        if n_spins < 2 or n_patterns < 1:
            raise ValueError(
                "a model needs n_spins >= 2 and n_patterns >= 1, "
                f"got n_spins={n_spins}, n_patterns={n_patterns}"
            )
        if not 0 < support <= 1:
            raise ValueError(f"support must be a share above 0 and at most 1, got {support!r}")
        rng = as_generator(random_state)
        bits = rng.integers(0, 2, size=(n_patterns, n_spins), dtype=np.int8)
        patterns = 2 * bits - 1
        if support < 1:
            places = rng.permuted(np.tile(np.arange(n_spins), (n_patterns, 1)), axis=1)
            patterns[places >= max(2, round(support * n_spins))] = 0
        # Read as -1, 0 and +1 even if no -1 happens to be among them.
        spins = as_spins(patterns, zero_is_missing=True)
        return cls(spins, beta, fields, strengths=strengths)

    def __repr__(self) -> str:
        return (
            f"HopfieldModel(n_spins={self.n_spins}, n_patterns={self.n_patterns}, "
            f"{self._strengths_in_words()}{'' if self.fields is None else ', with fields'})"
        )

    def _strengths_in_words(self) -> str:
        if np.all(self.strengths == self.beta):
            return f"beta={self.beta:g}"
        low, high = self.strengths.min(), self.strengths.max()
        return f"strengths={low:g}" + (f" to {high:g}" if high > low else "")

    def couplings(self) -> NDArray[np.float64]:
        r"""Return the dense matrix J of shape (n_spins, n_spins), its diagonal included.

        .. math:: P(s) \propto \exp\Big(\frac\beta2 \sum_{ij} J_{ij} s_i s_j + \sum_i b_i s_i\Big),
                  \qquad J = \frac1N \sum_\mu \frac{g_\mu}\beta \zeta^\mu {\zeta^\mu}^\top

        With ``beta`` given it is the Hebbian matrix, diagonal P/N; with ``strengths``, β is 1.

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel([[1, -1]], beta=1.0).couplings()
        array([[ 0.5, -0.5],
               [-0.5,  0.5]])
        >>> dt.HopfieldModel([[1, -1]], strengths=[-3]).couplings()
        array([[-1.5,  1.5],
               [ 1.5, -1.5]])
        """
        zeta = self.patterns.astype(np.float64)
        J: NDArray[np.float64] = (zeta.T * self._ratios) @ zeta / self.n_spins
        return J

    def coupling_operator(self) -> HebbianCouplings:
        """Return J as an operator that costs O(N P), for the schemes and for products.

        Examples
        --------
        >>> import dualtap as dt
        >>> import numpy as np
        >>> model = dt.HopfieldModel.random(6, 2, beta=1.0, random_state=0)
        >>> v = np.arange(6.0)[None]
        >>> np.allclose(model.coupling_operator().dot(v), v @ model.couplings())
        True
        """
        return HebbianCouplings(self.patterns, np.float64, self._ratios)

    def energy(self, X: ArrayLike) -> NDArray[np.float64]:
        r"""Return the energy of every row of X.

        .. math:: H(s) = -\frac12 \sum_{ij} J_{ij} s_i s_j - \frac1\beta \sum_i b_i s_i

        J is that of :meth:`couplings`; the first sum includes i = j, as in the paper, which adds a
        constant: -P/2 in the Hopfield model. Fields are divided by β, so that
        :math:`P(s) \propto e^{-\beta H(s)}`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,)

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.HopfieldModel([[1, -1, 1, 1]], beta=1.0).energy([[1, -1, 1, 1], [1, 1, 1, -1]])
        array([-2., -0.])
        """
        values = as_spins(X).values
        if values.shape[1] != self.n_spins:
            raise ValueError(f"X has {values.shape[1]} spins, but the model has {self.n_spins}")
        s = values.astype(np.float64)
        overlaps = s @ self.patterns.T.astype(np.float64)
        energy: NDArray[np.float64] = -(np.square(overlaps) @ self._ratios) / (2 * self.n_spins)
        return energy if self.fields is None else energy - s @ self.fields / self.beta
