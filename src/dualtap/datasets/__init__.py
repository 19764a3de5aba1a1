"""Data to try things on, by name: pictures, cells, votes and other tables; and teachers.

Pictures, cells and the questionnaire ship with other packages. Tables of OpenML are downloaded
once, by scikit-learn. The rest is drawn.
"""

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

_INSTALLED = {
    "digits": load_digits,
    "mnist": load_mnist,
    "pbmc": load_pbmc,
    "questionnaire": load_questionnaire,
}


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
    return (*_INSTALLED, *TABLES, "groups", *TEACHERS)


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
    >>> load("groups")
    Dataset(600 samples of 200 spins, 6 labels)
    """
    if name in _INSTALLED:
        return _INSTALLED[name]()
    if name in TABLES:
        return load_openml(name)
    if name == "groups":
        return load_mixture(random_state)
    if name in TEACHERS:
        return load_hopfield(name, random_state)
    raise ValueError(f"no data set {name!r}; there are: {', '.join(names())}")
