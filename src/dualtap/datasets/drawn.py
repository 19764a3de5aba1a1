"""Data drawn from teachers: Hopfield models in every phase, and Bernoulli mixtures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._random import RandomState, as_generator
from dualtap.datasets._dataset import Dataset, Mixture, signs_of
from dualtap.hopfield import HopfieldModel


def load_mixture(name: str = "votes", random_state: RandomState = 0) -> Dataset:
    """Return samples of a Bernoulli mixture, drawn; no data set of anybody.

    Parameters
    ----------
    name : {"votes", "groups"}
        "votes": 435 members of two parties, 16 named votes, +1 for yes, some absent. "groups":
        600 samples of 200 spins in six groups of uneven size, whose bits are wrong in 15 of 100
        cases.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Dataset
        Labels are the groups; ``teacher`` is the :class:`Mixture`.

    Examples
    --------
    >>> from dualtap.datasets import load_mixture
    >>> votes = load_mixture("votes")
    >>> votes.target_names, votes.names[:3]
    (('Government', 'Opposition'), ('school meals', 'road tax', 'rent control'))
    """
    if name not in MIXTURES:
        raise ValueError(f"no mixture {name!r}; there are: {', '.join(MIXTURES)}")
    return MIXTURES[name](as_generator(random_state))


def load_hopfield(name: str = "retrieval", random_state: RandomState = 0) -> Dataset:
    """Return samples of a Hopfield teacher of 1000 spins, one for each phase and nuisance.

    Parameters
    ----------
    name : str
        "retrieval" (β=2, P=20, 200 samples): each sample lies near one pattern. "flipped": half
        of them turned to their negatives. "missing": 30 % of their entries missing. "fields"
        (P=10, 500 samples): spins have fields of up to 0.5 of their own. "mixed" (β=1.2, P=20,
        5000 samples): samples lie in mixtures of patterns. "paramagnet" (β=0.8, P=20, 2000
        samples): samples lean a little on every pattern. "noise": 1000 samples of fair coins.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Dataset
        ``teacher`` is the :class:`dualtap.HopfieldModel`, None for "noise"; labels, where
        samples lie near patterns, say near which.

    Examples
    --------
    >>> from dualtap.datasets import load_hopfield
    >>> data = load_hopfield("retrieval")
    >>> data.X.shape, data.teacher
    ((200, 1000), HopfieldModel(n_spins=1000, n_patterns=20, beta=2))
    """
    if name not in TEACHERS:
        raise ValueError(f"no Hopfield teacher {name!r}; there are: {', '.join(TEACHERS)}")
    return _drawn(TEACHERS[name], as_generator(random_state))


class _Teacher(NamedTuple):
    """How the samples of a Hopfield teacher are drawn."""

    beta: float
    n_patterns: int
    n_samples: int
    description: str
    labelled: bool = True
    field: float = 0.0
    flipped: float = 0.0
    missing: float = 0.0


_N_SPINS = 1000
_NEAR = "Hopfield teacher in the retrieval phase: each sample lies near one of the patterns"
TEACHERS = {
    "retrieval": _Teacher(2.0, 20, 200, f"{_NEAR}."),
    "flipped": _Teacher(2.0, 20, 200, f"{_NEAR}, or, half of them, its negative.", flipped=0.5),
    "missing": _Teacher(2.0, 20, 200, f"{_NEAR}; 30 % of the entries are missing.", missing=0.3),
    "fields": _Teacher(
        2.0, 10, 500, f"{_NEAR}; every spin has a field between -0.5 and 0.5 of its own.", field=0.5
    ),
    "mixed": _Teacher(
        1.2,
        20,
        5000,
        "Hopfield teacher between the phases: chains start at patterns and wander off into "
        "mixtures of them.",
        labelled=False,
    ),
    "paramagnet": _Teacher(
        0.8,
        20,
        2000,
        "Hopfield teacher in the paramagnetic phase: no clusters; samples lean a little on every "
        "pattern.",
        labelled=False,
    ),
    "noise": _Teacher(0.0, 0, 1000, "Fair coins: there is no pattern to find.", labelled=False),
}


def _drawn(what: _Teacher, rng: np.random.Generator) -> Dataset:
    """Draw a teacher, its samples, and what happens to those."""
    spins = tuple(f"s{i}" for i in range(_N_SPINS))
    size = f" {what.n_samples} samples of {_N_SPINS} spins, synthetic."
    if not what.n_patterns:
        X = signs_of(rng.random((what.n_samples, _N_SPINS)) < 0.5)
        return Dataset(X, spins, what.description + size)
    fields = rng.uniform(-what.field, what.field, size=_N_SPINS) if what.field else None
    teacher = HopfieldModel.random(_N_SPINS, what.n_patterns, what.beta, rng, fields)
    X = teacher.sample(what.n_samples, random_state=rng)
    if what.flipped:
        X[rng.random(len(X)) < what.flipped] *= -1
    data = Dataset(
        X=_with_missing(X, rng.random(X.shape) < what.missing) if what.missing else X,
        names=spins,
        description=f"{what.description} β={what.beta:g}, P={what.n_patterns};{size}",
        teacher=teacher,
    )
    if not what.labelled:
        return data
    kinds = tuple(f"pattern {k}" for k in range(what.n_patterns))
    return replace(data, y=np.arange(what.n_samples) % what.n_patterns, target_names=kinds)


# P(yes) in the government and in the opposition; the last three divide nobody, or everybody.
_VOTES = {
    "school meals": (0.94, 0.12),
    "road tax": (0.90, 0.08),
    "rent control": (0.88, 0.20),
    "border fees": (0.07, 0.90),
    "coal subsidy": (0.15, 0.86),
    "national park": (0.92, 0.30),
    "army budget": (0.25, 0.95),
    "public radio": (0.96, 0.15),
    "payroll cut": (0.05, 0.80),
    "night trains": (0.85, 0.25),
    "private clinics": (0.10, 0.93),
    "minimum wage": (0.97, 0.22),
    "tax amnesty": (0.12, 0.75),
    "flood relief": (0.96, 0.94),
    "summer time": (0.52, 0.48),
    "new parliament": (0.35, 0.40),
}


def _votes(rng: np.random.Generator) -> Dataset:
    weights = np.array([0.6, 0.4])
    yes = np.array(list(_VOTES.values()), dtype=np.float64).T
    data = _mixture(Mixture(weights, 2 * yes - 1), 435, rng)
    # Most members hardly ever miss a vote, a few miss many.
    absence = rng.beta(0.5, 9.5, size=(len(data.X), 1))
    return replace(
        data,
        X=_with_missing(data.X, rng.random(data.X.shape) < absence),
        names=tuple(_VOTES),
        target_names=("Government", "Opposition"),
        description="435 members of an invented parliament of two parties, 16 invented votes, +1 "
        "for yes, missing where a member was absent (one vote in twenty). Synthetic: a mixture of "
        "two parties in which members vote independently.",
    )


def _groups(rng: np.random.Generator) -> Dataset:
    weights = np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    centres = (2 * rng.integers(0, 2, size=(6, 200)) - 1).astype(np.float64)
    data = _mixture(Mixture(weights, 0.7 * centres), 600, rng)
    return replace(
        data,
        description="600 samples of 200 spins in six groups, the largest six times the smallest; "
        "a bit differs from the centre of its group in 15 of 100 cases. Synthetic.",
    )


def _mixture(mixture: Mixture, n_samples: int, rng: np.random.Generator) -> Dataset:
    """Draw samples of a mixture; the caller says what they are."""
    n_groups, n_spins = mixture.means.shape
    y = rng.choice(n_groups, n_samples, p=mixture.weights)
    return Dataset(
        X=signs_of(2 * rng.random((n_samples, n_spins)) - 1 < mixture.means[y]),
        names=tuple(f"s{i}" for i in range(n_spins)),
        description="",
        y=y,
        target_names=tuple(f"group {k}" for k in range(n_groups)),
        teacher=mixture,
    )


MIXTURES: dict[str, Callable[[np.random.Generator], Dataset]] = {
    "votes": _votes,
    "groups": _groups,
}


def _with_missing(X: NDArray[np.int8], missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(missing, np.float32(np.nan), X)
