"""Chains of an RBM: what training and sampling need between the model and the kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.rbm.model import RBM

_DRAWS_WORTH_THREADS = 500_000
LANES = 32  # of the kernel, like the next; repeated here because importing it starts Numba
_UNITS = 4


class Chains(NamedTuple):
    """Spins of shape (n_chains, n_spins), float32 ±1 or 0, and each chain's generator."""

    spins: NDArray[np.float32]
    generators: NDArray[np.uint32]


def seeded_generators(n_chains: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """Return generator states for as many chains, (n_chains, 4, lanes).

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import seeded_generators
    >>> seeded_generators(2, np.random.default_rng(0)).shape
    (2, 4, 32)
    """
    words = rng.integers(0, 2**32, size=(n_chains, 4, LANES), dtype=np.uint32)
    words[:, 0] |= ~words.any(axis=1)  # the all-zero state is a fixed point of xoshiro
    return words


def random_chains(n_chains: int, n_spins: int, rng: np.random.Generator) -> Chains:
    """Return chains that start at random spins.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import random_chains
    >>> random_chains(3, 50, np.random.default_rng(0)).spins.shape
    (3, 50)
    """
    spins = rng.choice(np.array([-1, 1], dtype=np.float32), size=(n_chains, n_spins))
    return Chains(spins, seeded_generators(n_chains, rng))


def advance(
    model: RBM, chains: Chains, n_steps: int, held: NDArray[np.float32] | None = None
) -> Chains:
    """Return the chains after ``n_steps`` block Gibbs steps; the given ones stay as they are.

    Parameters
    ----------
    model : RBM
    chains : Chains
    n_steps : int
        Each draws all hidden units, then all visible ones.
    held : array of shape (n_chains, n_spins), optional
        ±1 where a spin keeps this value, 0 where it is sampled.

    Returns
    -------
    Chains

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import advance, random_chains
    >>> from dualtap.rbm.model import RBM, GaussianPrior
    >>> model = RBM(np.zeros((1, 50)), np.full(50, 100.0), GaussianPrior())
    >>> chains = random_chains(3, 50, np.random.default_rng(0))
    >>> bool((advance(model, chains, 1).spins == 1).all())
    True
    """
    from dualtap._kernels.gibbs import gibbs_steps

    if len(chains.generators) < len(chains.spins):
        raise ValueError(
            f"{len(chains.spins)} chains need as many generators, got {len(chains.generators)}"
        )
    n_chains, n_spins = chains.spins.shape
    even = n_chains + n_chains % 2
    spins = _padded(chains.spins, even)
    generators = np.resize(chains.generators[:n_chains], (even, 4, LANES))
    with _enough_threads(n_steps * spins.size):
        gibbs_steps(
            spins,
            np.empty((0, spins.shape[1]), dtype=np.float32)
            if held is None
            else _padded(held, even),
            _padded(model.weights, -(-model.n_hidden // _UNITS) * _UNITS),
            _padded(model.fields[None], 1)[0],
            generators,
            n_steps,
            model.prior.name == "binary",
        )
    return Chains(np.ascontiguousarray(spins[:n_chains, :n_spins]), generators[:n_chains])


@contextmanager
def _enough_threads(n_draws: int) -> Iterator[None]:
    """Let threads share what takes milliseconds; waking them costs more than doing less alone."""
    import numba

    n_threads = numba.get_num_threads()
    if n_draws < _DRAWS_WORTH_THREADS:
        numba.set_num_threads(1)
    try:
        yield
    finally:
        numba.set_num_threads(n_threads)


def _padded(rows: NDArray[np.floating], n_rows: int) -> NDArray[np.float32]:
    """Return a float32 copy filled up with zeros, to ``n_rows`` and a multiple of the lanes.

    A unit without weights is sampled like the others and touches none of them; so is a chain.
    """
    n_columns = -(-rows.shape[1] // LANES) * LANES
    n_columns += LANES * (n_columns % 1024 == 0)  # rows 4096 bytes apart would stall each other
    # On a boundary of cache lines, which vector loads of the kernel then never straddle.
    memory = np.zeros(n_rows * n_columns + 16, dtype=np.float32)
    first = -memory.ctypes.data // 4 % 16
    padded = memory[first : first + n_rows * n_columns].reshape(n_rows, n_columns)
    padded[: len(rows), : rows.shape[1]] = rows
    return padded
