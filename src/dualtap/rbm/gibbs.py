"""Chains of an RBM: what training and sampling need between the model and the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._chains import LANES, UNITS, enough_threads, padded, seeded_generators
from dualtap._namespace import Array, is_foreign, like, namespace, to_numpy
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import BinaryPrior, GaussianPrior, Prior


class Ladder(NamedTuple):
    """Where replicas of tempered chains are (:mod:`dualtap.rbm.tempering`)."""

    scales: NDArray[np.float64]
    """(n_rungs,), from 1, the model, down to 0, independent spins."""
    base: NDArray[np.float32]
    """(n_spins,), fields of the independent spins."""
    rejections: NDArray[np.float64]
    """(n_rungs - 1,), running mean of the share of exchanges between neighbours refused."""
    n_exchanges: int
    """Made with these scales."""


class Chains(NamedTuple):
    """Spins of shape (n_chains, n_spins), float32 ±1 or 0, and each chain's generator.

    Spins are where the model is, in any namespace; generators are on the host, so that a seed
    gives the same chains everywhere, up to rounding. With a ladder, chains of the model come first,
    then as many of every further rung.
    """

    spins: NDArray[np.float32]
    generators: NDArray[np.uint32]
    ladder: Ladder | None = None

    @property
    def n_target(self) -> int:
        """Number of chains of the model itself."""
        n_rungs = 1 if self.ladder is None else len(self.ladder.scales)
        return int(self.spins.shape[0]) // n_rungs

    @property
    def target(self) -> NDArray[np.float32]:
        """Spins of the chains of the model itself."""
        return self.spins[: self.n_target, :]


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
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> model = RBM(np.zeros((1, 50)), np.full(50, 100.0), GaussianPrior())
    >>> chains = random_chains(3, 50, np.random.default_rng(0))
    >>> bool((advance(model, chains, 1).spins == 1).all())
    True
    """
    from dualtap._kernels.gibbs import gibbs_steps

    n_chains, n_spins = chains.spins.shape
    if len(chains.generators) < n_chains:
        raise ValueError(f"{n_chains} chains need as many generators, got {len(chains.generators)}")
    if is_foreign(chains.spins) or not _is_compiled(model.prior):
        return _advance_by_products(model, chains, n_steps, held)
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
            isinstance(model.prior, BinaryPrior),
        )
    return Chains(np.ascontiguousarray(spins[:n_chains, :n_spins]), generators[:n_chains])


def _is_compiled(prior: Prior) -> bool:
    return type(prior) in (GaussianPrior, BinaryPrior)


def _advance_by_products(model: RBM, chains: Chains, n_steps: int, held: Array | None) -> Chains:
    """Do the same for any prior, in any namespace, with random numbers from the generators.

    Gaussian and ±1 units take the numbers that the kernel would. Other priors draw from a
    generator of NumPy that starts where those of the chains are: the state of the chains is
    all that the future depends on.
    """
    xp = namespace(chains.spins)
    spins, generators = chains.spins, chains.generators[: chains.spins.shape[0]].copy()
    rng = None if _is_compiled(model.prior) else np.random.default_rng(generators[:, 0].ravel())
    for _ in range(n_steps):
        x = model.inputs(spins)
        for_hidden, for_visible = (like(x, noise) for noise in _noise(model, generators))
        if rng is not None:
            hidden = like(x, model.prior.sample(to_numpy(x), rng))
        elif isinstance(model.prior, BinaryPrior):
            hidden = _signs(x, for_hidden)
        else:
            hidden = x + for_hidden
        spins = _signs(model.visible_fields(hidden), for_visible)
        if held is not None:
            spins = xp.where(held != 0, held, spins)
    return Chains(xp.astype(spins, xp.float32, copy=False), generators)


def _noise(
    model: RBM, generators: NDArray[np.uint32]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw what one step takes, (n_chains, n_hidden) and (n_chains, n_spins), on the host.

    For hidden units: uniform numbers, or normal ones if they are Gaussian.
    """
    from dualtap._kernels.noise import gibbs_noise

    n_chains = len(generators)
    hidden = np.empty((n_chains, -(-model.n_hidden // UNITS) * UNITS), dtype=np.float32)
    visible = padded(np.empty((0, model.n_spins)), n_chains)
    with enough_threads(visible.size):
        gibbs_noise(hidden, visible, generators, not isinstance(model.prior, GaussianPrior))
    return hidden[:, : model.n_hidden], visible[:, : model.n_spins]


def _signs(field: Array, uniform: Array) -> Array:
    """Return the sign of the field with probability 1 / (1 + e^{-2 |field|}), else the other."""
    xp = namespace(field)
    one = xp.ones_like(field)
    aligned = xp.where(field >= 0, one, -one)
    return xp.where(uniform * (1 + xp.exp(-2 * xp.abs(field))) < 1, aligned, -aligned)
