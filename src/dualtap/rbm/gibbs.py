"""Chains of an RBM: what training and sampling need between the model and the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._chains import LANES, UNITS, enough_threads, padded, seeded_generators
from dualtap.rbm.model import RBM


class Chains(NamedTuple):
    """Spins of shape (n_chains, n_spins), float32 ±1 or 0, and each chain's generator."""

    spins: NDArray[np.float32]
    generators: NDArray[np.uint32]


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
    spins = padded(chains.spins, even)
    generators = np.resize(chains.generators[:n_chains], (even, 4, LANES))
    with enough_threads(n_steps * spins.size):
        gibbs_steps(
            spins,
            np.empty((0, spins.shape[1]), dtype=np.float32) if held is None else padded(held, even),
            padded(model.weights, -(-model.n_hidden // UNITS) * UNITS),
            padded(model.fields[None], 1)[0],
            generators,
            n_steps,
            model.prior.name == "binary",
        )
    return Chains(np.ascontiguousarray(spins[:n_chains, :n_spins]), generators[:n_chains])
