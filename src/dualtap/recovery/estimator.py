"""`HopfieldPatterns`: the estimator that recovers patterns with default parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualtap._progress import progress
from dualtap._random import RandomState
from dualtap._validation import Interval
from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.nearest import nearest_patterns, pull_of
from dualtap.recovery import loop
from dualtap.recovery.path import path_over_patterns
from dualtap.recovery.reasons import reason
from dualtap.recovery.steps import Info, steps
from dualtap.spins import Spins
from dualtap.spins.parts import observed_part
from dualtap.spins.protocol import F32


class HopfieldPatterns(LearnedPatterns):
    r"""Recover hidden ±1 patterns from binary samples, with nothing known in advance.

    Given its overlaps with the patterns the spins of a sample are independent, in every phase:
    :math:`P(s_i | x) \propto e^{s_i (x \cdot \zeta_i + b_i)}`. The space that the patterns span
    follows from the singular vectors of the samples; that their entries are ±1 singles them out
    within it; TAP equations for all of them together, or draws from their posterior, give the
    confidence of each bit. Where spins have means of their own, as in most real data, fields
    explain those. The number of patterns minimises the description length of data and model; weak
    patterns are found in one half of the samples and confirmed by the other.

    :class:`DualTAP` is the published algorithm.

    Parameters
    ----------
    n_patterns : int, optional
        P. When not given: as many as the data show, possibly none. Fewer are returned
        only if the data have fewer independent directions.
    random_state : int, RandomState, Generator or None
        For draws from the posterior; the number of patterns does not depend on it.
    verbose : bool
        Show the steps of the search as they come, on a terminal or in a notebook.

    Attributes
    ----------
    patterns_ : array of shape (n_patterns, n_spins), int8
        -1, 0 or +1, patterns with most samples first; 0 where a spin takes no part. The sign of a
        whole pattern is free; it is that of most of the samples nearest to it.
    magnetizations_ : array of shape (n_patterns, n_spins)
        Posterior means of the pattern entries, in [-1, 1]: a bit with 0.8 is wrong in one case
        of ten.
    strengths_ : array of shape (n_patterns,), float64
        Strength of each pattern, an inverse temperature.
    fields_ : array of shape (n_spins,)
        Field on each spin; zero unless the patterns leave the means of the spins unexplained.
    beta_ : float
        The common strength of the patterns; NaN if strengths differ, or without patterns.
    n_patterns_ : int
        Number of patterns, possibly 0; ``reason_`` says why.
    weights_ : array of shape (n_patterns,)
        Share of the samples nearest to each pattern.
    labels_ : array of shape (n_samples,), int
        The nearest pattern of each training sample; -1 if there is none, or if nothing of the
        sample was observed.
    trace_ : list of dict
        The steps of the search, one dict per step.
    path_ : dict of arrays
        ``n_patterns``, ``objective`` and ``held_out`` with fewer and fewer of the patterns, the
        least useful left out first; computed when first asked for.
    reason_ : str
        Why that many patterns.
    spectrum_ : array
        Leading squared singular values of the samples, relative to the noise edge.
    n_passes_ : float
        Number of passes over the samples, reading X included unless it was read before.
    n_features_in_ : int
        Number of spins.
    feature_names_in_ : array of str
        Only when X has string column names.

    Examples
    --------
    >>> import dualtap as dt
    >>> teacher = dt.HopfieldModel.random(n_spins=500, n_patterns=5, beta=2.0, random_state=0)
    >>> X = teacher.sample(50, random_state=1)
    >>> model = dt.HopfieldPatterns(random_state=0).fit(X)
    >>> model.n_patterns_
    5
    >>> print(dt.metrics.match(model.patterns_, teacher.patterns))
    5 of 5 patterns recovered (overlap > 0.9), mean overlap 1.000, smallest 1.000
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_patterns": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
    }

    spectrum_: NDArray[np.float64]

    def __init__(
        self,
        n_patterns: int | None = None,
        *,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_patterns = n_patterns
        self.random_state = random_state
        self.verbose = verbose

    def _is_best(self) -> bool:
        return True

    def _learn(self, spins: Spins, where: Any, rng: np.random.Generator) -> None:
        """Recover the patterns and order them by the number of samples nearest to them."""
        part = observed_part(spins)
        with progress("patterns", None, bool(self.verbose)) as advance:
            found = recover(
                part.spins, where, rng, self.n_patterns, lambda info: advance(1, info.in_words())
            ).among(part.columns, spins.n_spins)
        pull = pull_of(found.strengths, found.fields, found.means)
        nearest, tied = nearest_patterns(spins, found.patterns, pull)
        order, sign = nearest.canonical(len(found.patterns), spins.weights)
        self.patterns_ = (found.patterns[order] * sign[order][:, None]).astype(np.int8)
        self.magnetizations_ = found.magnetizations[order]
        self.magnetizations_ *= sign[order].astype(np.float32)[:, None]
        self.strengths_ = found.strengths[order]
        self.fields_, self.means_ = found.fields, found.means
        self.objective_ = found.objective
        self.trace_, self.path_ = found.trace, found.path
        self.reason_, self.spectrum_ = found.reason, found.spectrum
        # Ties go to the first pattern, which in this order may be another.
        renamed = nearest.renamed(order)
        if tied:
            renamed = nearest_patterns(spins, self.patterns_, self._pull)[0]
        self._learn_assignments(renamed, spins.weights)


@dataclass(frozen=True)
class Recovered:
    """The patterns of samples, in any order and with any signs."""

    patterns: NDArray[np.int8]
    """-1, 0 or +1, shape (n_patterns, n_spins)."""
    magnetizations: F32
    strengths: NDArray[np.float64]
    fields: NDArray[np.float64]
    means: NDArray[np.float64]
    objective: float
    spectrum: NDArray[np.float64]
    reason: str
    trace: list[dict[str, Any]] = field(default_factory=list)
    path: partial[dict[str, NDArray[Any]]] | None = None

    def among(self, columns: NDArray[np.int64], n_spins: int) -> Recovered:
        """Return the same where there are other spins, too, of which nothing was observed.

        These have no part in any pattern, and no field. A strength is divided by the number of
        spins in the couplings, which stay as they are.
        """
        if len(columns) == n_spins:
            return self

        def widened(array: NDArray[Any]) -> NDArray[Any]:
            wide = np.zeros((*array.shape[:-1], n_spins), dtype=array.dtype)
            wide[..., columns] = array
            return wide

        return replace(
            self,
            patterns=widened(self.patterns),
            magnetizations=widened(self.magnetizations),
            strengths=self.strengths * n_spins / len(columns),
            fields=widened(self.fields),
            means=widened(self.means),
        )


def recover(
    spins: Spins,
    where: Any,
    rng: np.random.Generator,
    n_patterns: int | None,
    watch: Callable[[Info], None] = lambda info: None,
) -> Recovered:
    """Recover the patterns behind samples.

    Parameters
    ----------
    spins : Spins
    where : array or None
        An array of another library, which makes the products; None for NumPy.
    rng : Generator
    n_patterns : int or None
        Their number, if known.
    watch : callable
        Called with every step of the search.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.recovery.estimator import recover
    >>> X = HopfieldModel.random(300, 3, beta=2.0, random_state=0).sample(30, random_state=1)
    >>> recover(as_spins(X), None, np.random.default_rng(0), None).strengths.round(1)
    array([2., 2., 2.])
    """
    found = loop.recover(spins, where, rng, n_patterns, watch)
    fit = found.state.fit
    search = found.search
    return Recovered(
        patterns=fit.Z.astype(np.int8),
        magnetizations=found.m,
        strengths=fit.g,
        fields=fit.b,
        means=search.judge.mean,
        objective=found.state.objective,
        spectrum=search.whole.relative(),
        reason=reason(
            len(fit.Z),
            int(np.isfinite(found.state.found).sum()),
            n_patterns,
            search.n_left,
            search.largest,
            (spins.total_weight, spins.n_spins),
        ),
        trace=list(steps(search)),
        path=partial(path_over_patterns, search.judge, found.state) if len(fit.Z) else None,
    )
