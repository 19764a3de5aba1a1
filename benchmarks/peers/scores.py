"""How well a machine of 0/1 units describes data; for peers of every environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def pseudo_likelihood(
    W: NDArray[Any], visible: NDArray[Any], hidden: NDArray[Any], v: NDArray[Any]
) -> float:
    """Return the exact mean log pseudo-likelihood per unit, for 0/1 units of both kinds.

    Parameters
    ----------
    W : array of shape (n_visible, n_hidden)
    visible, hidden : arrays of shape (n_visible,) and (n_hidden,)
        Biases.
    v : array of shape (n_samples, n_visible), 0 or 1

    Returns
    -------
    float
        -log 2 for a fair coin, 0 for certainty.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.peers.scores import pseudo_likelihood
    >>> round(pseudo_likelihood(np.zeros((3, 2)), np.zeros(3), np.zeros(2), np.ones((1, 3))), 4)
    -0.6931
    """
    total = 0.0
    for one in v:
        x = one @ W + hidden
        turn = 1 - 2 * one
        turned = x + turn[:, None] * W
        rise = np.logaddexp(0, turned).sum(axis=1) - np.logaddexp(0, x).sum() + turn * visible
        total -= float(np.logaddexp(0, rise).sum())
    return total / v.size
