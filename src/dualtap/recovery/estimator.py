"""`DualTAP`: the estimator that recovers patterns from samples."""

from __future__ import annotations

import warnings
from itertools import islice
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from dualtap._namespace import is_foreign, origin
from dualtap._progress import progress
from dualtap._random import RandomState, as_generator
from dualtap._validation import validated_spins
from dualtap.couplings import GramCouplings, HebbianCouplings
from dualtap.recovery.deflate import Step, Students, deflate
from dualtap.recovery.history import History, signs
from dualtap.recovery.joint import near_one_pattern, recover
from dualtap.recovery.learned import LearnedPatterns
from dualtap.recovery.reasons import reason
from dualtap.recovery.starts import Start
from dualtap.recovery.stopping import kink
from dualtap.recovery.task import Regime, Task
from dualtap.recovery.temperature import enough, fit_beta
from dualtap.spins import DenseSpins, Spins
from dualtap.spins.cluster import blocks_of

Base = HebbianCouplings | GramCouplings

_FIRST_BETA = 2.0  # deep enough in the retrieval phase to see clusters, whatever their width
_BETA_ROUNDS = 4
_BETA_TOLERANCE = 0.1


class DualTAP(LearnedPatterns):
    r"""Recover hidden ±1 patterns from binary samples, with nothing known in advance.

    Given its overlaps with the patterns a sample's spins are independent, in every phase:
    :math:`P(s_i | x) \propto e^{s_i (x \cdot \zeta_i + b_i)}`. The space that the patterns span
    follows from the singular vectors of the samples; that their entries are ±1 singles them out
    within it; TAP equations for all of them together, or draws from their posterior, say how sure
    each bit is. The number of patterns is the number of directions that stand out of noise; where
    spins have means of their own, as in most real data, fields explain those, and there are as
    many patterns as make the description of data and model shorter.

    :meth:`paper` returns the published algorithm to the letter.

    Parameters
    ----------
    n_patterns : int, optional
        P. When not given: as many as the data show, possibly none. Fewer are returned
        only if the data have fewer independent directions.
    beta : float, optional
        Inverse temperature of the data. When not given, it is fitted.
    scheme : {"joint", "deflation"}
        "joint": all patterns together. "deflation": one pattern a round, as published; students
        iterate TAP on :math:`J = S^\top S / N`, the one that explains the data best is kept, and
        its part :math:`\gamma\, m m^\top / N` is removed from J.
    start : {"auto", "spectral", "samples", "random"}
        Where patterns are looked for: rotations of the leading singular space, samples that no
        pattern explains yet, random vectors, or ("auto") the first two. For "deflation":
        "random" starts all students at random, anything else one of them at the leading
        eigenvector.
    effort : int
        Multiplies the number of starts; the likeliest answer is kept. For hard data: many
        patterns for the number of spins, or few samples.
    n_students : int, optional
        Deflation: P', the students of a round, and the most rounds made when ``n_patterns`` is
        not given. By default 25, or 1.25 times ``n_patterns`` if that is more.
    n_steps : int, optional
        Deflation: rounds to make, whatever the stopping rule says (it still sets
        ``n_patterns_``); for looking at what comes after the last pattern.
    damping : "auto" or float in [0, 1)
        Deflation: as in :func:`dualtap.solve.solve`.
    tol : float
        Deflation: a student has converged when its mean change falls below this.
    max_iter : int
        Deflation: iterations after which a student gives up.
    random_state : int, RandomState, Generator or None
    verbose : bool
        Show a progress bar, on a terminal or in a notebook.

    Attributes
    ----------
    patterns_ : array of shape (n_patterns, n_spins), int8
        Signs of the magnetizations, patterns with most samples first. The sign of a whole pattern
        is free; it is that of most of the samples nearest to it (deflation: as it comes out).
    magnetizations_ : array of shape (n_patterns, n_spins)
        Posterior means of the pattern entries, in [-1, 1]: a bit with 0.8 is wrong in one case
        of ten.
    n_patterns_ : int
        0 if nothing stands out of the noise; ``reason_`` says why.
    beta_ : float
        Given or fitted; NaN if nothing was found.
    fields_ : array of shape (n_spins,)
        Site fields; zero unless the patterns leave the means of the spins unexplained.
    weights_ : array of shape (n_patterns,)
        Share of the samples nearest to each pattern.
    labels_ : array of shape (n_samples,), int
        The nearest pattern of each training sample; -1 if there is none.
    regime_ : {"clustered", "mixed", "weak", "nothing"}
        Samples lie near single patterns; in mixtures of patterns; lean a little on each; are
        noise.
    reason_ : str
        Why that many patterns.
    spectrum_ : array
        Leading squared singular values of the samples, over the edge of noise.
    n_passes_ : float
        How often the samples were gone over, reading X included unless it was read before.
        Of deflation of small data: without the products of a spectral start.
    history_ : History
        Deflation only.
    n_iter_ : int
        Deflation only: most iterations that a student took.
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
        "scheme": [StrOptions({"joint", "deflation"})],
        "start": [StrOptions({"auto", "spectral", "samples", "random"})],
        "effort": [Interval(Integral, 1, None, closed="left")],
        "n_students": [Interval(Integral, 1, None, closed="left"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
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
        scheme: Literal["joint", "deflation"] = "joint",
        start: Start = "auto",
        effort: int = 1,
        n_students: int | None = None,
        n_steps: int | None = None,
        damping: float | Literal["auto"] = "auto",
        tol: float = 1e-3,
        max_iter: int = 200,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_patterns = n_patterns
        self.beta = beta
        self.scheme = scheme
        self.start = start
        self.effort = effort
        self.n_students = n_students
        self.n_steps = n_steps
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
        DualTAP(beta=2.0, damping=0.0, n_patterns=20, scheme='deflation', start='random')
        """
        return cls(n_patterns, beta, scheme="deflation", start="random", damping=0.0, **options)

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
        where = origin(X)
        before = spins.reads.entries - (0 if isinstance(X, Spins) else spins.n_entries)
        rng = as_generator(self.random_state)
        if self.scheme == "joint":
            self._fit_joint(spins, where, rng)
        else:
            self._fit_by_deflation(spins, where, rng)
        self.n_passes_ = (spins.reads.entries - before) / spins.n_entries
        return self

    def _fit_joint(self, spins: Spins, where: Any, rng: np.random.Generator) -> None:
        """Recover all patterns together and order them by the samples nearest to them."""
        with progress("patterns", None, bool(self.verbose)):
            found = recover(
                Task(spins, rng, self.n_patterns, self.beta, self.start, self.effort, where)
            )
        self.patterns_, self.n_patterns_ = signs(found.m), len(found.m)
        nearest, tied = self._assigned(spins)
        order, sign = nearest.canonical(len(found.m))
        self.magnetizations_ = found.m[order]
        self.magnetizations_ *= sign[order].astype(np.float32)[:, None]
        self.patterns_ = signs(self.magnetizations_)
        # Ties go to the first pattern: in another order they are others'.
        self._learn_assignments(self._assign(spins) if tied else nearest.renamed(order))
        self.beta_ = float(found.beta)
        self.fields_ = found.fields.astype(np.float64)
        self.regime_ = str(found.regime)
        self.spectrum_ = found.spectrum.relative()
        self.reason_ = reason(
            found.regime,
            self.n_patterns_,
            self.n_patterns,
            found.spectrum.n_signal,
            self.spectrum_,
            *spins.shape,
            by_length=found.by_length,
        )

    def _fit_by_deflation(self, spins: Spins, where: Any, rng: np.random.Generator) -> None:
        """Recover one pattern a round."""
        base: Base
        if isinstance(spins, DenseSpins) and not is_foreign(where):
            base = HebbianCouplings(spins.values)
        else:
            base = GramCouplings(blocks_of(spins, where=where))
        self.fields_ = np.zeros(spins.n_spins)
        self.reason_ = (
            "as many as were asked for"
            if self.n_patterns is not None
            else "the likelihood has its kink"
        )
        if self.beta is not None:
            self._recover(spins, base, float(self.beta), rng)
        else:
            self._recover_with_beta(spins, base, rng)
        self._learn_assignments(self._assign(spins))
        if near_one_pattern(self._overlaps(spins)):
            self.regime_ = str(Regime.CLUSTERED)
        else:
            self.regime_ = str(Regime.WEAK if self.beta_ < 1 else Regime.MIXED)
        if self.n_patterns is None and kink(self.history_.gains) is None:
            warnings.warn(
                f"the likelihood shows no kink within {len(self.history_.gains)} rounds, so there "
                "may be more patterns than that: raise n_students (the most rounds made), or give "
                "n_patterns",
                ConvergenceWarning,
                stacklevel=4,  # past scikit-learn's wrapper, to the caller of fit
            )

    def _recover_with_beta(self, spins: Spins, base: Base, rng: np.random.Generator) -> None:
        """Fit patterns at a β, then β to the patterns, until β stays where it is."""
        beta = _FIRST_BETA
        for _ in range(_BETA_ROUNDS):
            self._recover(spins, base, beta, rng)
            fitted = fit_beta(enough(spins), self.patterns_)
            settled = abs(fitted - beta) <= _BETA_TOLERANCE * beta
            self.beta_ = beta = fitted
            if settled:
                return

    def _recover(self, spins: Spins, base: Base, beta: float, rng: np.random.Generator) -> None:
        """Run the rounds and set what they teach."""
        gamma = None if self.n_patterns is None else spins.n_samples / self.n_patterns
        n_students = self.n_students or max(25, -(-5 * (self.n_patterns or 0) // 4))
        start: Literal["random", "spectral"] = "random" if self.start == "random" else "spectral"
        rounds = deflate(
            base,
            Students(n_students, beta, start, self.damping, self.tol, self.max_iter),
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
        if isinstance(base, HebbianCouplings):  # which does not count; two are for the choice
            spins.reads.add(int((self.history_.n_iter + 2).sum()) * spins.n_entries)
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
