"""Data drawn from teachers: Hopfield models in every phase, and Bernoulli mixtures."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._random import RandomState, as_generator
from dualtap.datasets._dataset import Dataset, Mixture, signs_of
from dualtap.hopfield import HopfieldModel


def load_mixture(random_state: RandomState = 0) -> Dataset:
    """Return samples of a Bernoulli mixture, drawn: six groups, spins independent in each.

    600 samples of 200 spins, the largest group six times the smallest; a bit differs from the
    centre of its group in 15 of 100 cases.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Dataset
        Labels are the groups; ``teacher`` is the :class:`Mixture`.

    Examples
    --------
    >>> from dualtap.datasets import load_mixture
    >>> load_mixture()
    Dataset(600 samples of 200 spins, 6 labels)
    """
    rng = as_generator(random_state)
    weights = np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05])
    centres = (2 * rng.integers(0, 2, size=(6, 200)) - 1).astype(np.float64)
    mixture = Mixture(weights, 0.7 * centres)
    y = rng.choice(6, 600, p=weights)
    return Dataset(
        X=signs_of(2 * rng.random((600, 200)) - 1 < mixture.means[y]),
        names=tuple(f"s{i}" for i in range(200)),
        description="600 samples of 200 spins in six groups, the largest six times the smallest; "
        "a bit differs from the centre of its group in 15 of 100 cases. Synthetic.",
        y=y,
        target_names=tuple(f"group {k}" for k in range(6)),
        teacher=mixture,
    )


def load_hopfield(name: str = "retrieval", random_state: RandomState = 0) -> Dataset:
    """Return samples of a Hopfield teacher of 1000 spins, one for each phase and nuisance.

    Parameters
    ----------
    name : str
        "retrieval" (β=2, P=20, 200 samples): each sample lies near one pattern. "flipped": half
        of them turned to their negatives. "missing": 30 % of their entries missing. "fields"
        (P=10, 500 samples): spins have fields of up to 0.5 of their own. "mixed" (β=1.2, P=20,
        5000 samples): samples lie in mixtures of patterns. "paramagnet" (β=0.8, P=20, 2000
        samples): samples have small overlaps with every pattern. "noise": 1000 samples of
        independent fair spins.
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
        raise ValueError(f"unknown Hopfield teacher {name!r}; known are: {', '.join(TEACHERS)}")
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
    "noise": _Teacher(0.0, 0, 1000, "Independent fair spins: there is no pattern.", labelled=False),
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


def _with_missing(X: NDArray[np.int8], missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    return np.where(missing, np.float32(np.nan), X)
