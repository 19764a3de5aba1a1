"""Description length and held-out score over the number of patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap._threads import FALSE_ALARMS, one_blas_thread
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import State, with_fewer
from dualtap.recovery.refit import Fit, refit
from dualtap.spins import Spins
from dualtap.spins.weights import divided

_HELD_OUT = 5
"""One of so many rows is held out."""
_MOST_POINTS = 12


def path_over_patterns(judge: Judge, state: State) -> dict[str, NDArray[Any]]:
    """Return what the model costs and predicts with fewer of its patterns.

    Patterns are left out one after the other, the least useful first, and strengths and fields
    are fitted again. The held-out score is that of a fifth of the rows with strengths and fields
    fitted to the others; the patterns themselves were found in all rows.

    Parameters
    ----------
    judge : Judge
    state : State

    Returns
    -------
    dict of arrays of the same length
        ``n_patterns``, descending to 0; ``objective``, the description length in nats;
        ``held_out``, mean log pseudo-likelihood per entry of the rows held out, NaN if they are
        too few.
    """
    with one_blas_thread(), np.errstate(**FALSE_ALARMS):
        states = [state]
        for n in _numbers(len(state.fit.Z)):
            states.append(with_fewer(judge, states[-1], n))
        train, test = _parts(judge)
        held_out = [_held_out(train, test, one.fit) for one in states]
    return {
        "n_patterns": np.array([len(one.fit.Z) for one in states]),
        "objective": np.array([one.objective for one in states]),
        "held_out": np.array(held_out),
    }


def _numbers(n_patterns: int) -> list[int]:
    """Return smaller numbers of patterns, descending, no more than a dozen."""
    spread = np.linspace(0, n_patterns, min(n_patterns, _MOST_POINTS) + 1)[:-1]
    return [int(n) for n in np.unique(spread.astype(int))[::-1]]


def _parts(judge: Judge) -> tuple[Spins, Spins]:
    """Return samples to fit, and samples that are held out."""
    spins = judge.as_spins()
    if judge.weights is not None:
        test, train = divided(spins, int(judge.n_judged) // _HELD_OUT, np.random.default_rng(0))
        return train, test
    held = np.arange(len(spins)) % _HELD_OUT == _HELD_OUT - 1
    return spins.take(np.flatnonzero(~held)), spins.take(np.flatnonzero(held))


def _held_out(rest: Spins, test: Spins, fit: Fit) -> float:
    if test.total_weight < 2:
        return np.nan
    train, other = Judge(rest), Judge(test)
    own = refit(train, fit.Z, fit.g, fit.b, fit.parameters)
    other.mean = train.mean
    other.fill(fit.Z, own.g, own.b)
    return other.log_likelihood(fit.Z, own.g, own.b) / other.n_entries
