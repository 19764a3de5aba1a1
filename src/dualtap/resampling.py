r"""How stable a fit is: the same estimator on random parts of the samples.

Parts and not bootstrap samples: a sample that is drawn twice looks like evidence that it is not,
and patterns are then found that are repeated samples. Patterns and entries are judged by halves,
which are as independent of each other as parts can be. Intervals of couplings come from parts of
three quarters: where estimates have a variance proportional to 1/M, that of
:math:`\hat\theta_m - \hat\theta_M` is :math:`(M - m)/m` times that of :math:`\hat\theta_M` for
any m (the delete-d jackknife), but half of few samples is often too few for entries that all of
them determine, and intervals would be up to twice as wide (``benchmarks intervals``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._validation import counted, validated_spins
from dualtap.edges import Edges, FloatArray, HasCouplings, IntArray, strongest_pairs
from dualtap.fitted.learned import LearnedPatterns
from dualtap.spins import Spins
from dualtap.spins.weights import divided

__all__ = ["Stability", "stability"]

STABLE = 0.95
"""Share of the refits in which a stable pattern or bit comes back."""
SAME = np.sqrt(0.5)
"""Cosine from which a pattern has come back: it shares more than half with one of the refit."""
_LEVEL = 0.95
_PART = 0.75
"""Share of the samples that couplings are refitted to (``benchmarks intervals``)."""
_FEWEST_SAMPLES = 4


@dataclass(frozen=True)
class Stability:
    """How much of a model comes back when it is fitted to random parts of the samples.

    Attributes
    ----------
    n_refits : int
    n_patterns : array of shape (n_refits,), int
        Number of patterns of each refit.
    cosines : array of shape (n_refits, n_patterns)
        Absolute cosine of each pattern with its partner in each refit, 0 if it has none.
    agreement : array of shape (n_patterns, n_spins)
        Share of the refits in which the pattern comes back and the spin has the same entry.
    entries : array of shape (n_patterns, n_spins), int8
        The patterns themselves.
    edges : Edges
        Couplings with 95 % intervals from refits to three quarters of the samples.
    names : array of shape (n_spins,), str, or None
    """

    n_refits: int
    n_patterns: IntArray
    cosines: FloatArray
    agreement: FloatArray
    entries: NDArray[np.int8]
    edges: Edges
    names: NDArray[np.str_] | None = None

    @property
    def returned(self) -> FloatArray:
        """Share of the refits in which each pattern comes back, shape (n_patterns,)."""
        share: FloatArray = (self.cosines > SAME).mean(axis=0)
        return share

    @property
    def stable(self) -> NDArray[np.bool_]:
        """Which entries other than 0 are stable, shape (n_patterns, n_spins)."""
        stable: NDArray[np.bool_] = (self.agreement >= STABLE) & (self.entries != 0)
        return stable

    @property
    def patterns(self) -> dict[str, NDArray[Any]]:
        """Return a row per pattern as columns: ``pandas.DataFrame(found.patterns)``.

        ``pattern`` (its number), ``returned`` (share of the refits in which it comes back),
        ``cosine`` (median absolute cosine with its partner), ``bits`` (entries other than 0),
        ``stable_bits`` (how many of them are stable).
        """
        n_patterns = len(self.entries)
        return {
            "pattern": np.arange(n_patterns),
            "returned": self.returned,
            "cosine": np.median(self.cosines, axis=0),
            "bits": np.count_nonzero(self.entries, axis=1),
            "stable_bits": self.stable.sum(axis=1),
        }

    @property
    def bits(self) -> dict[str, NDArray[Any]]:
        """Return a row per spin as columns.

        ``name`` (or number), and for every pattern its entry, ``pattern_0``, and the share of the
        refits that agree with it, ``stability_0``.
        """
        names = np.arange(self.entries.shape[1]) if self.names is None else self.names
        columns: dict[str, NDArray[Any]] = {"name": names}
        for k, (entries, share) in enumerate(zip(self.entries, self.agreement, strict=True)):
            columns |= {f"pattern_{k}": entries, f"stability_{k}": share}
        return columns

    def summary(self) -> str:
        """Return how much comes back, in a few lines."""
        few, many = self.n_patterns.min(), self.n_patterns.max()
        found = str(few) if few == many else f"{few}–{many}"
        lines = [f"{self.n_refits} refits to random halves of the samples: {found} patterns"]
        if not many:  # as of a baseline, which has none
            lines = [f"{self.n_refits} refits to random parts of the samples"]
        if len(self.entries):
            n_stable = int((self.returned >= STABLE).sum())
            bits = np.count_nonzero(self.entries)
            lines += [
                f"{n_stable} of {len(self.entries)} patterns come back in at least "
                f"{100 * STABLE:.0f} % of the refits",
                f"{int(self.stable.sum())} of {bits} bits agree in at least "
                f"{100 * STABLE:.0f} % of the refits",
            ]
        if len(self.edges):
            sure = int(((self.edges.low > 0) | (self.edges.high < 0)).sum())
            lines.append(
                f"{sure} of the {len(self.edges)} strongest couplings have a 95 % interval "
                "that excludes 0"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()


class _Refit(NamedTuple):
    """What is kept of a fit to a half, and of one to three quarters."""

    n_patterns: int
    cosine: FloatArray
    """With each pattern of the model, shape (n_patterns,)."""
    entries: NDArray[np.int8]
    """Of the partner of each pattern, turned to its sign, shape (n_patterns, n_spins)."""
    deviation: FloatArray
    """Of couplings of the pairs that are looked at, in units of what all samples leave."""


def stability(
    model: Any,
    X: Any,
    n: int = 50,
    *,
    top: int | None = 1000,
    sample_weight: Any = None,
    random_state: RandomState = None,
    n_jobs: int = 1,
    verbose: bool = False,
) -> Stability:
    r"""Fit a model again to random parts of its samples, and see what comes back.

    The patterns of a refit to a half are matched with those of the model, one to one, such that the
    sum of absolute cosines is largest. A pattern comes back if it shares more than half with its
    partner (cos² > 1/2). The interval of a coupling is
    :math:`J \pm t_n \sqrt{\frac{m}{M - m} \frac1n \sum_k (J_k - J)^2}`, :math:`t_n` the quantile of
    Student's distribution and :math:`J_k` from refits to m of the M samples, three quarters. It
    includes the choice of the number of patterns and of their entries, which the intervals of
    ``model.edges()`` do not. Baselines have no patterns, but intervals like all models.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP, HopfieldRBM or a baseline
        Fitted. Refits have its parameters; it stays as it is.
    X : array-like of shape (n_samples, n_spins)
        The samples that it was fitted to.
    n : int
        Number of refits to either part.
    top : int, optional
        So many couplings have intervals, the strongest; None for all.
    sample_weight : array-like of shape (n_samples,), optional
        Number of samples that each row stands for, 1 by default. A half takes some of them.
    random_state : int, RandomState, Generator or None
        For the halves and the refits.
    n_jobs : int
        Processes; -1 for one per core. The answer does not depend on it.
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Returns
    -------
    Stability

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=60, n_patterns=3, beta=1.5, random_state=0)
    >>> X = teacher.sample(200, random_state=1)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(X)
    >>> found = dt.stability(model, X, n=10, random_state=0)
    >>> print(found)
    10 refits to random halves of the samples: 3 patterns
    3 of 3 patterns come back in at least 95 % of the refits
    175 of 180 bits agree in at least 95 % of the refits
    1000 of the 1000 strongest couplings have a 95 % interval that excludes 0
    >>> list(found.patterns), len(found.edges)
    (['pattern', 'returned', 'cosine', 'bits', 'stable_bits'], 1000)
    """
    if not isinstance(model, HasCouplings):
        raise TypeError(f"stability needs a model with couplings, got {type(model).__name__}")
    check_is_fitted(model)
    if n < 2:
        raise ValueError(f"stability needs n >= 2 refits, got {n}")
    spins = counted(validated_spins(model, X), sample_weight)
    if spins.total_weight < _FEWEST_SAMPLES:
        raise ValueError(
            f"X has {spins.total_weight:g} samples; stability needs at least {_FEWEST_SAMPLES} "
            "to refit to halves"
        )
    N = model.n_features_in_
    i, j, J = strongest_pairs(model._rows_of_couplings(), N, top)
    seeds = as_generator(random_state).integers(2**31, size=n)
    refits: list[Any] = [None] * n
    jobs = (
        joblib.delayed(_refit)(k, model, spins, int(seed), i, j, J) for k, seed in enumerate(seeds)
    )
    with progress("refits", n, verbose) as advance, closing(finished(jobs, n_jobs)) as results:
        for k, refit in results:
            refits[k] = refit
            advance(1)
    return _gathered(model, refits, i, j, J)


def finished(jobs: Iterable[Any], n_jobs: int) -> Generator[Any, None, None]:
    """Yield results of delayed calls as they end; a process each, one thread inside.

    Parameters
    ----------
    jobs : iterable of joblib.delayed calls
    n_jobs : int
        Processes; -1 for one per core, 1 for this process.

    Examples
    --------
    >>> import joblib
    >>> from dualtap.resampling import finished
    >>> list(finished((joblib.delayed(pow)(2, k) for k in range(3)), n_jobs=1))
    [1, 2, 4]
    """
    if n_jobs == 1:
        for function, arguments, options in jobs:
            yield function(*arguments, **options)
        return
    with joblib.parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1):
        yield from joblib.Parallel(return_as="generator_unordered", pre_dispatch="2*n_jobs")(jobs)


def _refit(
    k: int, model: Any, spins: Spins, seed: int, i: IntArray, j: IntArray, J: FloatArray
) -> tuple[int, _Refit]:
    """Fit clones of the model to a random half and to three quarters, and compare."""
    rng = np.random.default_rng(seed)
    patterns, n_patterns = _patterns_of(model), 0
    cosine, entries = np.zeros(len(patterns)), patterns
    if hasattr(model, "patterns_"):
        found = _patterns_of(_fitted(model, spins, 0.5, rng)[0])
        n_patterns, (cosine, entries) = len(found), matched_patterns(found, patterns)
    other, m = _fitted(model, spins, _PART, rng)
    unit = np.sqrt((spins.total_weight - m) / m)
    return k, _Refit(n_patterns, cosine, entries, (_couplings_of(other, i, j) - J) / unit)


def _fitted(model: Any, spins: Spins, share: float, rng: np.random.Generator) -> tuple[Any, float]:
    """Return a clone fitted to a share of the samples, drawn at random, and their number."""
    some, _ = divided(spins, int(share * spins.total_weight), rng)
    own = model.get_params()
    new = {"random_state": int(rng.integers(2**31)), "verbose": False}
    other = clone(model).set_params(**{key: new[key] for key in new if key in own})
    return other.fit(some), some.total_weight


def _patterns_of(model: Any) -> NDArray[np.int8]:
    """Return the patterns of a model; a baseline has none."""
    none = np.empty((0, model.n_features_in_), dtype=np.int8)
    patterns: NDArray[np.int8] = getattr(model, "patterns_", none)
    return patterns


def _couplings_of(model: Any, i: IntArray, j: IntArray) -> FloatArray:
    """Return the couplings of pairs of spins."""
    J: FloatArray
    if not isinstance(model, LearnedPatterns):
        J = model.couplings()[i, j]
        return J
    scale, z = model.strengths_ / model.n_features_in_, model.patterns_.astype(np.float64)
    J = np.einsum("p,pk,pk->k", scale, z[:, i], z[:, j])
    return J


def matched_patterns(
    estimate: NDArray[np.int8], patterns: NDArray[np.int8]
) -> tuple[FloatArray, NDArray[np.int8]]:
    """Match patterns one to one by absolute cosine, and turn partners to the sign of theirs.

    Parameters
    ----------
    estimate : array of shape (k, n_spins)
    patterns : array of shape (n_patterns, n_spins)

    Returns
    -------
    cosine : array of shape (n_patterns,)
        Absolute; 0 without a partner.
    entries : array of shape (n_patterns, n_spins)
        Of the partners; 0 without one.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.resampling import matched_patterns
    >>> patterns = np.array([[1, 1, 1], [1, 1, 0]])
    >>> cosine, entries = matched_patterns(np.array([[-1, -1, 0]]), patterns)
    >>> cosine.round(2), entries.tolist()
    (array([0., 1.]), [[0, 0, 0], [1, 1, 0]])
    """
    cosine, entries = np.zeros(len(patterns)), np.zeros_like(patterns)
    a, b = estimate.astype(np.float64), patterns.astype(np.float64)
    norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)
    products = np.divide(a @ b.T, norms, out=np.zeros(norms.shape), where=norms > 0)
    rows, columns = linear_sum_assignment(np.abs(products), maximize=True)
    cosine[columns] = np.abs(products[rows, columns])
    sign = np.where(products[rows, columns] < 0, -1, 1).astype(patterns.dtype)
    entries[columns] = estimate[rows] * sign[:, None]
    return cosine, entries


def _gathered(model: Any, refits: list[Any], i: IntArray, j: IntArray, J: FloatArray) -> Stability:
    """Return what the refits say together."""
    n = len(refits)
    cosines = np.array([refit.cosine for refit in refits])
    patterns = _patterns_of(model)
    agreement = np.zeros(patterns.shape)
    square = np.zeros(len(J))
    for refit, cosine in zip(refits, cosines, strict=True):
        agreement += (refit.entries == patterns) & (cosine > SAME)[:, None]
        square += np.square(refit.deviation)
    width = student.ppf((1 + _LEVEL) / 2, n) * np.sqrt(square / n)
    names = getattr(model, "feature_names_in_", None)
    names = None if names is None else np.asarray(names).astype(np.str_)
    pairs = None if names is None else np.stack([names[i], names[j]], axis=1)
    return Stability(
        n_refits=n,
        n_patterns=np.array([refit.n_patterns for refit in refits]),
        cosines=cosines,
        agreement=agreement / n,
        entries=patterns,
        edges=Edges(i, j, J, J - width, J + width, names=pairs),
        names=names,
    )
