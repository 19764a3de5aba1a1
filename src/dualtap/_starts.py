"""Where the chains of a model start."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.spins import as_spins

ChainStart = Literal["auto", "patterns", "random", "annealed"]


def resolved_start(
    start: str, patterns: NDArray[np.int8], strengths: NDArray[np.float64]
) -> Literal["patterns", "random", "annealed"]:
    """Return what a named start means for these patterns.

    "auto" is "patterns" if some pattern attracts strongly enough to have a state of its own: a
    pattern of strength g on a share ρ of the spins is a ferromagnet at inverse temperature gρ.
    Without an attractive pattern there is nothing but "random" to start from.

    Parameters
    ----------
    start : str
    patterns : array of shape (n_patterns, n_spins)
    strengths : array of shape (n_patterns,)

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._starts import resolved_start
    >>> half = np.array([[1, -1, 0, 0]], dtype=np.int8)
    >>> resolved_start("auto", half, np.array([1.5])), resolved_start("auto", half, np.array([3.0]))
    ('random', 'patterns')
    """
    if start == "auto":
        shares = np.count_nonzero(patterns, axis=1) / patterns.shape[1]
        return "patterns" if np.any(strengths * shares > 1) else "random"
    if start == "patterns":
        return "patterns" if np.any(strengths > 0) else "random"
    if start == "random":
        return "random"
    if start == "annealed":
        return "annealed"
    raise ValueError(
        "start must be 'auto', 'patterns', 'random', 'annealed' or an array of states, "
        f"got {start!r}"
    )


def initial_states(
    start: ChainStart | ArrayLike,
    n_samples: int,
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int8]:
    """Return the states that chains start from.

    Parameters
    ----------
    start : str or array-like of shape (n_samples, n_spins)
    n_samples : int
    patterns : array of shape (n_patterns, n_spins)
    strengths : array of shape (n_patterns,)
    rng : Generator

    Returns
    -------
    array of shape (n_samples, n_spins), int8 ±1

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._starts import initial_states
    >>> zeta = np.array([[1, -1, 1]], dtype=np.int8)
    >>> initial_states("auto", 2, zeta, np.array([2.0]), np.random.default_rng(0))
    array([[ 1, -1,  1],
           [ 1, -1,  1]], dtype=int8)
    """
    n_spins = patterns.shape[1]
    if not isinstance(start, str):
        values = as_spins(start).values
        if values.shape != (n_samples, n_spins) or not values.all():
            raise ValueError(
                f"start must hold {n_samples} complete states of {n_spins} spins, "
                f"got shape {values.shape} with {np.sum(values == 0)} missing entries"
            )
        return values.copy()
    if resolved_start(start, patterns, strengths) == "patterns":
        return patterns_in_turn(np.arange(n_samples), patterns, strengths, rng)
    return _random_signs((n_samples, n_spins), rng)


def patterns_in_turn(
    chains: NDArray[np.int64],
    patterns: NDArray[np.int8],
    strengths: NDArray[np.float64],
    rng: np.random.Generator,
) -> NDArray[np.int8]:
    """Return the attractive patterns in turn, random where a spin is not in the pattern.

    Parameters
    ----------
    chains : array of shape (n_chains,)
        Their numbers: chain a starts at attractive pattern a modulo how many there are.
    patterns : array of shape (n_patterns, n_spins)
    strengths : array of shape (n_patterns,)
    rng : Generator

    Returns
    -------
    array of shape (n_chains, n_spins), int8 ±1

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap._starts import patterns_in_turn
    >>> zeta = np.array([[1, 1, 0], [1, -1, 1]], dtype=np.int8)
    >>> g = np.array([-1.0, 2.0])
    >>> patterns_in_turn(np.arange(1), zeta, g, np.random.default_rng(0))
    array([[ 1, -1,  1]], dtype=int8)
    """
    attractive = patterns[strengths > 0]
    states: NDArray[np.int8] = attractive[chains % len(attractive)]
    undecided = states == 0
    n_undecided = int(np.count_nonzero(undecided))
    if n_undecided:  # else no draw: the generators of the chains are the first
        states[undecided] = _random_signs((n_undecided,), rng)
    return states


def _random_signs(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.int8]:
    signs: NDArray[np.int8] = 2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1
    return signs
