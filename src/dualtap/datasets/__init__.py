"""Example data sets by name: images, cells, votes and other tables, and synthetic samples.

Images, cells and the questionnaire are part of other packages. Tables of OpenML are downloaded
once, by scikit-learn. The rest is synthetic.
"""

from collections.abc import Callable
from functools import partial

from dualtap._random import RandomState
from dualtap.datasets._dataset import Dataset, Mixture
from dualtap.datasets.drawn import TEACHERS, load_hopfield, load_mixture
from dualtap.datasets.real import load_digits, load_mnist, load_pbmc
from dualtap.datasets.tables import TABLES, load_openml, load_questionnaire

__all__ = [
    "Dataset",
    "Mixture",
    "load",
    "load_digits",
    "load_hopfield",
    "load_mixture",
    "load_mnist",
    "load_openml",
    "load_pbmc",
    "load_questionnaire",
    "names",
]

Loader = Callable[[RandomState], Dataset]


def _fixed(load: Callable[..., Dataset], *arguments: str) -> Loader:
    """Return the loader of data that are the same for every seed."""
    return lambda random_state: load(*arguments)


_LOADERS: dict[str, Loader] = {
    "digits": _fixed(load_digits),
    "mnist": _fixed(load_mnist),
    "pbmc": _fixed(load_pbmc),
    "questionnaire": _fixed(load_questionnaire),
    **{name: _fixed(load_openml, name) for name in TABLES},
    "groups": load_mixture,
    **{name: partial(load_hopfield, name) for name in TEACHERS},
}
"""By name: what returns the data set, given ``random_state``."""


def names() -> tuple[str, ...]:
    """Return the names that :func:`load` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from dualtap.datasets import names
    >>> names()
    ('digits', 'mnist', 'pbmc', 'questionnaire', 'votes', 'zoo', 'mushroom', 'chess', 'soybean',
     'spect', 'groups', 'retrieval', 'flipped', 'missing', 'fields', 'mixed', 'paramagnet', 'noise')
    """
    return tuple(_LOADERS)


def load(name: str, random_state: RandomState = 0) -> Dataset:
    """Return a data set by its name.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    random_state : int, RandomState, Generator or None
        For synthetic data; ignored by the others.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from dualtap.datasets import load
    >>> load("groups")
    Dataset(600 samples of 200 spins, 6 labels)
    """
    if name not in _LOADERS:
        raise ValueError(f"unknown data set {name!r}; known are: {', '.join(names())}")
    return _LOADERS[name](random_state)
