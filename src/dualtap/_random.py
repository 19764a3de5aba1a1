"""One way from the user's ``random_state`` to a NumPy Generator."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

RandomState = int | np.random.RandomState | np.random.Generator | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a Generator from anything scikit-learn accepts as a random state, or a Generator.

    Examples
    --------
    >>> from dualtap._random import as_generator
    >>> as_generator(0).integers(10) == as_generator(0).integers(10)
    np.True_
    """
    if random_state is None or isinstance(random_state, (int, np.integer, np.random.Generator)):
        return np.random.default_rng(random_state)
    words = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return np.random.default_rng(words)
