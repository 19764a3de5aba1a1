"""`DualTAP`: the published algorithm as an estimator."""

from __future__ import annotations

import warnings
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dualtap._namespace import is_foreign
from dualtap._progress import progress
from dualtap._random import RandomState
from dualtap._validation import Interval, StrOptions
from dualtap.couplings import DenseCouplings, GramCouplings, sample_couplings
from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.nearest import nearest_patterns, signs
from dualtap.published.deflate import (
    PARALLEL,
    SEQUENTIAL,
    Alpha,
    Base,
    Damping,
    Step,
    Students,
    StudentStart,
    deflate,
)
from dualtap.published.history import History
from dualtap.published.stopping import kink
from dualtap.recovery.refit import fit_beta
from dualtap.spins import Spins
from dualtap.spins.matrix import blocks_of
from dualtap.spins.passes import count_reads

_FIRST_BETA = 2.0  # deep enough in the retrieval phase to see clusters, whatever their width
_BETA_ROUNDS = 4
_BETA_TOLERANCE = 0.1


class DualTAP(LearnedPatterns):
    r"""The published algorithm: TAP iterations of many students, and deflation.

    One pattern per round: students iterate TAP on :math:`J = S^\top S / N`, the one that explains
    the data best is kept, and its part :math:`\gamma\, m m^\top / N` is removed from J.
    ``DualTAP(n_patterns, beta)`` is the algorithm as published, with random initial guesses, naive
    index and no damping. It works where samples lie near single patterns;
    :class:`HopfieldPatterns` needs neither β nor that.

    Parameters
    ----------
    n_patterns : int, optional
        P, which sets γ = M/P. When not given, γ is the Rayleigh value and rounds stop at the kink
        of the likelihood.
    beta : float, optional
        Inverse temperature of the data. The published algorithm needs it; when not given, it is
        fitted to the patterns that are found, and these are found again, until it settles.
    start : {"random", "spectral"}
        "random" starts all students at random; "spectral" starts one of them at the leading
        eigenvector of J.
    n_students : int, optional
        P', the students per round, and the maximum number of rounds if ``n_patterns`` is not
        given. By default 25, or 1.25 times ``n_patterns`` if that is more.
    n_steps : int, optional
        Number of rounds, whatever the stopping rule says (it still sets ``n_patterns_``); to look
        at what comes after the last pattern.
    scheme : str
        The iteration of the students, from :mod:`dualtap.schemes`: "tap", the published one,
        "amp", "opper-winther", "opper-winther-printed", or, one spin after the other, which takes
        many more iterations, "sequential-tap" and "sequential-amp".
    alpha : {"samples", "patterns"}
        The α of TAP's reaction term: M/N as the dual problem has it, or P/N as the paper prints,
        for ``scheme="tap"`` and given ``n_patterns``.
    damping : float in [0, 1), "auto" or None
        As in :func:`dualtap.solve.solve`; "auto" computes a damping that prevents oscillations.
        By default parallel schemes are not damped. Sequential ones have d = 0.95 unless a number
        is given.
    tol : float
        A student has converged when its mean change falls below this.
    max_iter : int
        Maximum number of iterations of a student.
    random_state : int, RandomState, Generator or None
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    patterns_ : array of shape (n_patterns, n_spins), int8
        Signs of the magnetizations, ±1, in the order of the rounds. The sign of a whole pattern
        is free.
    magnetizations_ : array of shape (n_patterns, n_spins)
        The best student of each round, in [-1, 1].
    strengths_ : array of shape (n_patterns,), float64
        β for each pattern.
    fields_, means_ : array of shape (n_spins,)
        Zero.
    beta_ : float
        Given or fitted.
    n_patterns_ : int
        Number of patterns.
    weights_ : array of shape (n_patterns,)
        Share of the samples nearest to each pattern.
    labels_ : array of shape (n_samples,), int
        The nearest pattern of each training sample; -1 if nothing of the sample was observed.
    trace_ : list
        Empty: ``history_`` has the rounds.
    path_ : None
    objective_ : float
        NaN: rounds are not judged by the description length.
    reason_ : str
        Why that many patterns.
    n_passes_ : float
        Number of passes over the samples, reading X included unless it was read before. For small
        data the products of a spectral start do not count.
    history_ : History
        What happened in each round.
    n_iter_ : int
        Largest number of iterations of a student.
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=500, n_patterns=5, beta=2.0, random_state=0)
    >>> X = teacher.sample(50, random_state=1)
    >>> model = dt.DualTAP(n_patterns=5, beta=2.0, random_state=0).fit(X)
    >>> print(dt.metrics.match(model.patterns_, teacher.patterns))
    5 of 5 patterns recovered (overlap > 0.9), mean overlap ..., smallest ...
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_patterns": [Interval(Integral, 1, None, closed="left"), None],
        "beta": [Interval(Real, 0, None, closed="neither"), None],
        "start": [StrOptions({"random", "spectral"})],
        "n_students": [Interval(Integral, 1, None, closed="left"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
        "scheme": [StrOptions({*PARALLEL, *SEQUENTIAL})],
        "alpha": [StrOptions({"samples", "patterns"})],
        "damping": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    history_: History

    def __init__(
        self,
        n_patterns: int | None = None,
        beta: float | None = None,
        *,
        start: StudentStart = "random",
        n_students: int | None = None,
        n_steps: int | None = None,
        scheme: str = "tap",
        alpha: Alpha = "samples",
        damping: Damping = None,
        tol: float = 1e-3,
        max_iter: int = 200,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_patterns = n_patterns
        self.beta = beta
        self.start = start
        self.n_students = n_students
        self.n_steps = n_steps
        self.scheme = scheme
        self.alpha = alpha
        self.damping = damping
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @property
    def n_iter_(self) -> int:
        """Largest number of iterations of a student in any round."""
        return int(self.history_.n_iter.max())

    def _learn(self, spins: Spins, where: Any, rng: np.random.Generator) -> None:
        """Recover one pattern per round."""
        base: Base
        blocks = blocks_of(spins, where=where)
        S = None if is_foreign(where) else blocks.at_hand()
        base = GramCouplings(blocks) if S is None else sample_couplings(S, spins.weights)
        self.fields_, self.means_ = np.zeros(spins.n_spins), np.zeros(spins.n_spins)
        self.objective_, self.trace_, self.path_ = np.nan, [], None
        if self.beta is not None:
            self._recover(spins, base, float(self.beta), rng)
        else:
            self._recover_with_beta(spins, base, rng)
        self._learn_assignments(nearest_patterns(spins, self.patterns_)[0], spins.weights)
        self.reason_ = self._reason()

    def _reason(self) -> str:
        """Say why that many patterns; warn if the likelihood does not."""
        if self.n_patterns is not None:
            return f"{self.n_patterns} were asked for"
        n_rounds = len(self.history_.gains)
        found = kink(self.history_.gains)
        if found is not None:
            return f"the likelihood has a kink after {found} rounds"
        warnings.warn(
            f"the likelihood shows no kink within {n_rounds} rounds, so there may be more "
            "patterns: raise n_students (the maximum number of rounds), or give n_patterns",
            ConvergenceWarning,
            stacklevel=5,  # past scikit-learn's wrapper, to the caller of fit
        )
        return f"the likelihood shows no kink within {n_rounds} rounds"

    def _recover_with_beta(self, spins: Spins, base: Base, rng: np.random.Generator) -> None:
        """Fit patterns at a β, then β to the patterns, until β stays where it is."""
        beta = _FIRST_BETA
        for _ in range(_BETA_ROUNDS):
            self._recover(spins, base, beta, rng)
            fitted = fit_beta(spins, self.patterns_)
            settled = abs(fitted - beta) <= _BETA_TOLERANCE * beta
            beta = fitted
            self.strengths_ = np.full(self.n_patterns_, beta)
            if settled:
                return

    def _recover(self, spins: Spins, base: Base, beta: float, rng: np.random.Generator) -> None:
        """Run the rounds and set what they teach."""
        gamma = None if self.n_patterns is None else spins.total_weight / self.n_patterns
        n_students = self.n_students or max(25, -(-5 * (self.n_patterns or 0) // 4))
        students = Students(
            n_students, beta, self.start, self.scheme, self.damping, self.tol, self.max_iter
        )
        rounds = deflate(base, students, gamma, rng, self._printed_alpha(spins.n_spins))
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
        self._count_reads(spins, base)
        self.magnetizations_ = self.history_.magnetizations[:n_kept]
        self.patterns_ = signs(self.magnetizations_)
        self.strengths_ = np.full(n_kept, beta)

    def _printed_alpha(self, n_spins: int) -> float | None:
        """Return P/N if the paper's α is asked for."""
        if self.alpha == "samples":
            return None
        if self.n_patterns is None or self.scheme != "tap":
            raise ValueError(
                'alpha="patterns" is the P/N of the printed TAP equations: give n_patterns, and '
                f'scheme="tap" (got n_patterns={self.n_patterns}, scheme={self.scheme!r})'
            )
        return self.n_patterns / n_spins

    def _count_reads(self, spins: Spins, base: Base) -> None:
        """Count passes over the samples where the couplings do not count them."""
        if isinstance(base, DenseCouplings):
            count_reads(spins.n_entries)
        elif not isinstance(base, GramCouplings):  # two are for the choice
            count_reads(int((self.history_.n_iter + 2).sum()) * spins.n_entries)

    def _finished(self, steps: list[Step]) -> bool:
        if self.n_steps is not None or self.n_patterns is not None:
            return False
        return kink([step.gain for step in steps]) is not None

    def _n_kept(self, steps: list[Step]) -> int:
        if self.n_patterns is not None:
            return min(self.n_patterns, len(steps))
        return kink([step.gain for step in steps]) or len(steps)
