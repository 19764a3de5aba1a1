r"""Do the same patterns and couplings serve two groups of samples? A permutation test.

The patterns are those of one model fitted to all samples of both groups, which does not know who
is in which. Given them, strengths g and fields b are fitted to each group alone (a concave
problem). With :math:`C_a, C_b` the covariances of the strengths,

.. math:: W = (g_a - g_b)^\top (C_a + C_b)^{-1} (g_a - g_b), \qquad
          z_\mu = \frac{g^\mu_a - g^\mu_b}{\sqrt{C^{\mu\mu}_a + C^{\mu\mu}_b}}

say how far couplings and single patterns differ, and the gain of separate over common numbers,
:math:`L_a + L_b - L`, how far anything does, means of the spins included. Samples are then dealt to
the groups at random, many times, and the share of the deals in which a statistic is at least as
large is its p-value. These are exact if both groups follow one law. W and z are studentised: so
those of the couplings are right for large groups, too, where only the fields differ, if the
patterns are right. Patterns of both groups together may also describe that their means differ;
such a pattern is found in neither group alone, and strengths then seem to differ too often. A row
of weight w is w samples, which are dealt one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._threads import one_blas_thread
from dualtap._validation import checked_weights, validated_spins
from dualtap.edges import FloatArray
from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.training import spread_rows, strength_covariance
from dualtap.recovery.judge import Judge
from dualtap.recovery.refit import Parameters, refit
from dualtap.resampling import SAME, finished, matched_patterns
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.weights import divided, with_weights

__all__ = ["Comparison", "compare"]

_LEAST_VARIANCE = 1e-12
_FEWEST_SAMPLES = 8
_LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """How two groups of samples differ.

    Attributes
    ----------
    model : HopfieldPatterns or DualTAP
        Fitted to both groups together; its patterns are those that are compared.
    p_any : float
        That anything differs: strengths or fields.
    p_couplings : float
        That the strengths of the patterns differ, and with them the couplings.
    p_patterns : array of shape (n_patterns,)
        For each pattern, adjusted for their number (by the largest of all).
    strengths_a, strengths_b : array of shape (n_patterns,)
        Strength of each pattern in either group.
    cosines_a, cosines_b : array of shape (n_patterns,)
        Absolute cosine with the partner of each pattern in the model of either group.
    n_permutations : int
    """

    model: LearnedPatterns
    p_any: float
    p_couplings: float
    p_patterns: FloatArray
    strengths_a: FloatArray
    strengths_b: FloatArray
    cosines_a: FloatArray
    cosines_b: FloatArray
    n_permutations: int

    @property
    def doubt(self) -> str:
        """Why p-values of couplings may be too small; empty if nothing speaks for it."""
        alone = np.maximum(self.cosines_a, self.cosines_b) > SAME
        if alone.all() or self.p_any > _LEVEL:
            return ""
        return (
            f"{np.count_nonzero(~alone)} of {len(alone)} patterns are found in neither group "
            "alone: they may describe that means differ, and the p-values of couplings and "
            "patterns are then too small"
        )

    @property
    def patterns(self) -> dict[str, NDArray[Any]]:
        """Return a row per pattern as columns: ``pandas.DataFrame(found.patterns)``."""
        return {
            "pattern": np.arange(len(self.p_patterns)),
            "strength_a": self.strengths_a,
            "strength_b": self.strengths_b,
            "cosine_a": self.cosines_a,
            "cosine_b": self.cosines_b,
            "p_value": self.p_patterns,
        }

    def summary(self) -> str:
        """Return what differs, in a few lines.

        Examples
        --------
        >>> import numpy as np
        >>> from dualtap.comparison import Comparison
        >>> one = np.ones(1)
        >>> print(Comparison(None, 0.01, 0.02, 0.02 * one, one, 2 * one, one, one, 99).summary())
        any difference: p = 0.01
        difference of couplings: p = 0.02
        1 of 1 patterns differ in strength (p < 0.05, adjusted): 0
        (99 permutations; p-values are at least 0.01)
        """
        differ = np.flatnonzero(self.p_patterns < _LEVEL)
        which = f": {', '.join(map(str, differ))}" if len(differ) else ""
        lines = [
            f"any difference: p = {self.p_any:.2g}",
            f"difference of couplings: p = {self.p_couplings:.2g}",
            f"{len(differ)} of {len(self.p_patterns)} patterns differ in strength "
            f"(p < {_LEVEL}, adjusted){which}",
            f"({self.n_permutations} permutations; p-values are at least "
            f"{1 / (self.n_permutations + 1):.2g})",
        ]
        return "\n".join([*lines, self.doubt] if self.doubt else lines)

    def __str__(self) -> str:
        return self.summary()


class _Common(NamedTuple):
    """What both groups have in common: patterns, and where the fits to either start."""

    patterns: NDArray[np.int8]
    strengths: FloatArray
    fields: FloatArray


Deal = tuple[Spins, Spins]
"""Samples of the first group and of the second."""


class _Difference(NamedTuple):
    gain: float
    wald: float
    z: FloatArray
    strengths: tuple[FloatArray, FloatArray]


def compare(
    model_a: LearnedPatterns,
    model_b: LearnedPatterns,
    X_a: Any,
    X_b: Any,
    n_permutations: int = 199,
    *,
    sample_weight_a: Any = None,
    sample_weight_b: Any = None,
    random_state: RandomState = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> Comparison:
    """Test if the same patterns and couplings serve two groups of samples.

    Parameters
    ----------
    model_a, model_b : HopfieldPatterns or DualTAP
        Fitted to the two groups. An estimator with the parameters of the first is fitted to both
        together, and its patterns are compared with those of the two.
    X_a, X_b : array-like of shape (n_samples, n_spins)
        The groups, with the same spins.
    n_permutations : int
        How often samples are dealt to groups at random. The smallest p-value is one over this
        plus 1.
    sample_weight_a, sample_weight_b : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default.
    random_state : int, RandomState, Generator or None
        For the permutations and the common fit.
    n_jobs : int
        Processes; -1 for one per core. The answer does not depend on it.
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If the groups have different spins, or no pattern is found in both together.

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=60, n_patterns=3, beta=1.2, random_state=0)
    >>> X, Y = teacher.sample(200, random_state=1), teacher.sample(200, random_state=2)
    >>> a, b = (dt.HopfieldPatterns(random_state=0).fit(group) for group in (X, Y))
    >>> bool(dt.compare(a, b, X, Y, n_permutations=39, random_state=0).p_couplings > 0.05)
    True
    """
    _check(model_a, model_b, n_permutations)
    groups = _group(model_a, X_a, sample_weight_a), _group(model_b, X_b, sample_weight_b)
    rng = as_generator(random_state)
    both = _together(*groups, rng)
    model = clone(model_a).set_params(random_state=int(rng.integers(2**31)), verbose=False)
    model.fit(both)
    if not model.n_patterns_:
        raise ValueError(f"compare needs patterns, but no pattern was found: {model.reason_}")
    common = _Common(model.patterns_, model.strengths_, model.fields_)
    deals = _deals(groups, both, n_permutations, rng)
    found = _differences(common, deals, n_permutations + 1, n_jobs, verbose)
    gain, wald = np.array([one.gain for one in found]), np.array([one.wald for one in found])
    z = np.abs([one.z for one in found])
    largest = z[1:].max(axis=1)
    return Comparison(
        model=model,
        p_any=_share(gain, gain[0]),
        p_couplings=_share(wald, wald[0]),
        p_patterns=np.array([_share(np.append(largest, value), value) for value in z[0]]),
        strengths_a=found[0].strengths[0],
        strengths_b=found[0].strengths[1],
        cosines_a=matched_patterns(model_a.patterns_, model.patterns_)[0],
        cosines_b=matched_patterns(model_b.patterns_, model.patterns_)[0],
        n_permutations=n_permutations,
    )


def _check(model_a: Any, model_b: Any, n_permutations: int) -> None:
    for model in (model_a, model_b):
        if not isinstance(model, LearnedPatterns):
            raise TypeError(
                f"compare needs HopfieldPatterns or DualTAP, got {type(model).__name__}"
            )
        check_is_fitted(model)
    if model_a.n_features_in_ != model_b.n_features_in_:
        raise ValueError(
            f"the models have {model_a.n_features_in_} and {model_b.n_features_in_} spins; "
            "compare groups that have the same"
        )
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")


def _group(model: LearnedPatterns, X: Any, sample_weight: Any) -> Spins:
    """Return the samples of a group in memory, with their weights if they have any."""
    spins = validated_spins(model, X)
    weights = checked_weights(sample_weight, spins.n_samples)
    weights = spins.weights if weights is None else weights
    group: Spins = DenseSpins(spins.values, "-1/+1")
    if weights is not None:
        group = with_weights(group, weights)
    if group.total_weight < _FEWEST_SAMPLES:
        raise ValueError(f"each group needs at least {_FEWEST_SAMPLES} samples")
    return group


def _together(a: Spins, b: Spins, rng: np.random.Generator) -> Spins:
    """Return the samples of both groups in random order.

    A fit may depend on the order of its samples, which must not say who is in which group.
    """
    order = rng.permutation(a.n_samples + b.n_samples)
    both = DenseSpins(np.concatenate([a.values, b.values])[order], "-1/+1")
    if a.weights is None and b.weights is None:
        return both
    one, other = (np.ones(g.n_samples) if g.weights is None else g.weights for g in (a, b))
    return both.weighted(np.concatenate([one, other])[order])


def _deals(groups: Deal, both: Spins, n: int, rng: np.random.Generator) -> Iterator[Deal]:
    """Yield the groups, and n times groups of their sizes that are dealt at random."""
    yield groups
    for _ in range(n):
        yield divided(both, int(groups[0].total_weight), rng)


def _share(values: FloatArray, own: float) -> float:
    """Return the share of values that are at least as large, the own one among them."""
    return float(np.mean(values >= own - 1e-9 * abs(own)))  # equal deals may differ by rounding


def _differences(
    common: _Common, deals: Iterator[Deal], n: int, n_jobs: int, verbose: bool
) -> list[_Difference]:
    found: list[Any] = [None] * n
    jobs = (joblib.delayed(_difference)(k, common, deal) for k, deal in enumerate(deals))
    with (
        progress("permutations", n, verbose) as advance,
        closing(finished(jobs, n_jobs)) as results,
    ):
        for k, difference in results:
            found[k] = difference
            advance(1)
    return found


def _difference(k: int, common: _Common, deal: Deal) -> tuple[int, _Difference]:
    """Fit strengths and fields to both groups; say by how much they differ."""
    with one_blas_thread():
        (L_a, g_a, C_a), (L_b, g_b, C_b) = (_fitted(common, group) for group in deal)
    C, d = C_a + C_b, g_a - g_b
    z = d / np.sqrt(np.maximum(np.diag(C), _LEAST_VARIANCE))
    wald = float(d @ np.linalg.pinv(C, hermitian=True) @ d)
    return k, _Difference(L_a + L_b, wald, z, (g_a, g_b))


def _fitted(common: _Common, group: Spins) -> tuple[float, FloatArray, FloatArray]:
    """Return log pseudo-likelihood, strengths and their covariance in a group."""
    judge = Judge(group)
    Z = common.patterns.astype(np.float32)
    fit = refit(judge, Z, common.strengths, common.fields, Parameters())
    covariance = strength_covariance(
        spread_rows(group),
        group.total_weight,
        common.patterns,
        fit.g,
        fit.b,
        judge.mean,
        tied=False,
    )
    return fit.L, fit.g, covariance
