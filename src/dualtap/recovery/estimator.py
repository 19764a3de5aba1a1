"""`DualTAP`: the estimator that recovers patterns from samples."""

from __future__ import annotations

import warnings
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._validation import validated_spins
from dualtap.couplings import HebbianCouplings
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import pseudo_likelihood
from dualtap.recovery.deflate import Start, Step, Students, deflate
from dualtap.recovery.history import History, signs
from dualtap.recovery.stopping import kink
from dualtap.recovery.temperature import fit_beta
from dualtap.spins import Spins

_FIRST_BETA = 2.0  # deep enough in the retrieval phase to see clusters, whatever their width
_BETA_ROUNDS = 4
_BETA_TOLERANCE = 0.1


class Assignment(NamedTuple):
    """The state each sample is nearest to: ``sign[:, None] * patterns_[label]``."""

    label: NDArray[np.int64]
    sign: NDArray[np.int64]
    overlap: NDArray[np.float64]


class DualTAP(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, BaseEstimator):
    r"""Recover hidden ±1 patterns from binary samples by TAP equations on the dual model.

    The samples play the role of patterns and the unknown pattern that of spins:
    :math:`J = S^\top S / N`. Students iterate TAP on J from different starts; the one that explains
    the data best (:math:`S = \sum_a (s^a \cdot m)^2`) is kept, its part
    :math:`\gamma\, m m^\top / N` is removed from J, and the next round starts.

    :meth:`paper` returns the published algorithm to the letter. The defaults differ from it in two
    points: one student of each round starts at the leading eigenvector of J, and damping is chosen
    so that no mode of the parallel iteration changes sign from step to step.

    Parameters
    ----------
    n_patterns : int, optional
        P. When not given, rounds go on to the kink of :math:`\hat{\mathcal L}`: the first τ such
        that round τ+1 gains at most half of the median gain of rounds 1 … τ. The gain of a
        round is :math:`\tfrac12 m \cdot J^\tau m`, the part of
        :math:`\Delta\hat{\mathcal L} = \frac1{2N}\sum_a(s^a\cdot m)^2` that earlier rounds left
        unexplained; it is zero when no student converged.
    beta : float, optional
        Inverse temperature of the data. When not given, it is fitted by maximum
        pseudo-likelihood in turn with the patterns.
    n_students : int, optional
        P', the students of a round, and the most rounds made when ``n_patterns`` is not given.
        By default 25, or 1.25 times ``n_patterns`` if that is more.
    n_steps : int, optional
        Rounds to make, whatever the stopping rule says (it still sets ``n_patterns_``); for
        looking at what comes after the last pattern.
    start : {"spectral", "random"}
        "random": random signs, magnitudes uniform in [0.1, 1]. "spectral": the same, with the
        leading eigenvector in the place of one student.
    damping : "auto" or float in [0, 1)
        As in :func:`dualtap.solve.solve`.
    tol : float
        A student has converged when its mean change falls below this.
    max_iter : int
        Iterations after which a student gives up.
    random_state : int, RandomState, Generator or None
    verbose : bool
        Show a progress bar on a terminal.

    Attributes
    ----------
    patterns_ : array of shape (n_patterns, n_spins), int8
        Signs of the magnetizations.
    magnetizations_ : array of shape (n_patterns, n_spins)
        Posterior means of the pattern entries, in [-1, 1].
    n_patterns_ : int
    beta_ : float
        Given or fitted.
    weights_ : array of shape (n_patterns,)
        Share of the samples nearest to each pattern.
    labels_ : array of shape (n_samples,), int
        The nearest pattern of each training sample.
    history_ : History
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=500, n_patterns=5, beta=2.0, random_state=0)
    >>> X = teacher.sample(50, random_state=1)
    >>> model = dt.DualTAP(random_state=0).fit(X)
    >>> model.n_patterns_
    5
    >>> print(dt.metrics.match(model.patterns_, teacher.patterns))
    5 of 5 patterns recovered (overlap > 0.9), mean overlap 1.000, smallest 1.000
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_patterns": [Interval(Integral, 1, None, closed="left"), None],
        "beta": [Interval(Real, 0, None, closed="neither"), None],
        "n_students": [Interval(Integral, 1, None, closed="left"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "start": [StrOptions({"spectral", "random"})],
        "damping": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_patterns: int | None = None,
        beta: float | None = None,
        *,
        n_students: int | None = None,
        n_steps: int | None = None,
        start: Start = "spectral",
        damping: float | Literal["auto"] = "auto",
        tol: float = 1e-3,
        max_iter: int = 200,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_patterns = n_patterns
        self.beta = beta
        self.n_students = n_students
        self.n_steps = n_steps
        self.start = start
        self.damping = damping
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_patterns: int | None = None, *, beta: float, **options: Any) -> DualTAP:
        """Return the published algorithm: random starts, naive index, no damping.

        Parameters
        ----------
        n_patterns : int, optional
            P, which sets γ = M/P; without it γ is the Rayleigh value and rounds stop at the kink.
        beta : float
            Inverse temperature; the published algorithm needs it.
        **options
            ``n_students``, ``n_steps``, ``tol``, ``max_iter``, ``random_state``, ``verbose``.

        Returns
        -------
        DualTAP

        Examples
        --------
        >>> import dualtap as dt
        >>> dt.DualTAP.paper(n_patterns=20, beta=2.0)
        DualTAP(beta=2.0, damping=0.0, n_patterns=20, start='random')
        """
        return cls(n_patterns, beta, start="random", damping=0.0, **options)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: None = None) -> Self:
        """Recover the patterns behind X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
            ±1, 0/1 or boolean; NaN or None where a value is missing. For ±1 data with 0 for
            missing pass ``as_spins(X, zero_is_missing=True)``.
        y : ignored

        Returns
        -------
        self
        """
        spins = validated_spins(self, X, reset=True)
        base = HebbianCouplings(spins.values)
        rng = as_generator(self.random_state)
        if self.beta is not None:
            self._recover(base, float(self.beta), rng)
        else:
            self._recover_with_beta(spins, base, rng)
        if self.n_patterns is None and kink(self.history_.gains) is None:
            warnings.warn(
                f"the likelihood shows no kink within {len(self.history_.gains)} rounds, so there "
                "may be more patterns than that: raise n_students (the most rounds made), or give "
                "n_patterns",
                ConvergenceWarning,
                stacklevel=3,  # past scikit-learn's wrapper, to the caller of fit
            )
        self.labels_ = self._assign(spins).label
        self.weights_ = np.bincount(self.labels_, minlength=self.n_patterns_) / spins.n_samples
        return self

    def _recover_with_beta(
        self, spins: Spins, base: HebbianCouplings, rng: np.random.Generator
    ) -> None:
        """Fit patterns at a β, then β to the patterns, until β stays where it is."""
        beta = _FIRST_BETA
        for _ in range(_BETA_ROUNDS):
            self._recover(base, beta, rng)
            fitted = fit_beta(spins.values, self.patterns_)
            settled = abs(fitted - beta) <= _BETA_TOLERANCE * beta
            self.beta_ = beta = fitted
            if settled:
                return

    def _recover(self, base: HebbianCouplings, beta: float, rng: np.random.Generator) -> None:
        """Run the rounds and set what they teach."""
        n_samples = len(base.vectors)
        gamma = None if self.n_patterns is None else n_samples / self.n_patterns
        n_students = self.n_students or max(25, -(-5 * (self.n_patterns or 0) // 4))
        rounds = deflate(
            base,
            Students(n_students, beta, self.start, self.damping, self.tol, self.max_iter),
            gamma,
            rng,
        )
        limit = self.n_steps or self.n_patterns or n_students
        steps: list[Step] = []
        with progress("patterns", limit, bool(self.verbose)) as advance:
            for step in islice(rounds, limit):
                steps.append(step)
                advance(1)
                if self._finished(steps):
                    break
        n_kept = self._n_kept(steps)
        self.history_ = History.from_steps(steps)
        self.magnetizations_ = self.history_.magnetizations[:n_kept]
        self.patterns_ = signs(self.magnetizations_)
        self.n_patterns_ = n_kept
        self.beta_ = beta

    def _finished(self, steps: list[Step]) -> bool:
        if self.n_steps is not None or self.n_patterns is not None:
            return False
        return kink([step.gain for step in steps]) is not None

    def _n_kept(self, steps: list[Step]) -> int:
        if self.n_patterns is not None:
            return min(self.n_patterns, len(steps))
        return kink([step.gain for step in steps]) or len(steps)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the overlap of every sample with every pattern, in [-1, 1].

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples, n_patterns)
            Means over the observed entries.
        """
        check_is_fitted(self)
        return self._overlaps(validated_spins(self, X))

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the pattern nearest to each sample, in absolute overlap.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        array of shape (n_samples,), int
        """
        return self.assign(X).label

    def assign(self, X: Any) -> Assignment:
        """Return the nearest pattern of each sample with its sign and overlap.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)

        Returns
        -------
        Assignment
            ``label``, ``sign`` (-1 where the sample is nearer to the negative) and ``overlap``,
            each of shape (n_samples,).
        """
        check_is_fitted(self)
        return self._assign(validated_spins(self, X))

    def score(self, X: Any, y: None = None) -> float:
        """Return the mean log pseudo-likelihood per spin of X under the recovered model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_spins)
        y : ignored

        Returns
        -------
        float
            -log 2 for a fair coin, 0 for certainty.
        """
        check_is_fitted(self)
        return pseudo_likelihood(validated_spins(self, X).values, self.patterns_, self.beta_)

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> NDArray[np.int8]:
        """Draw new samples from the Hopfield model of the recovered patterns.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState, Generator or None

        Returns
        -------
        array of shape (n_samples, n_spins), int8 ±1
        """
        check_is_fitted(self)
        model = HopfieldModel(self.patterns_, self.beta_)
        return model.sample(n_samples, random_state=random_state)

    def _overlaps(self, spins: Spins) -> NDArray[np.float64]:
        observed = np.maximum(np.count_nonzero(spins.values, axis=1), 1)
        products = spins.values.astype(np.float32) @ self.patterns_.T.astype(np.float32)
        result: NDArray[np.float64] = products.astype(np.float64) / observed[:, None]
        return result

    def _assign(self, spins: Spins) -> Assignment:
        o = self._overlaps(spins)
        label = np.argmax(np.abs(o), axis=1)
        chosen = np.take_along_axis(o, label[:, None], axis=1)[:, 0]
        return Assignment(label, np.where(chosen < 0, -1, 1), np.abs(chosen))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "labels_")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_patterns_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
