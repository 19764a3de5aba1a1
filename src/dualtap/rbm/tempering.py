r"""Parallel tempering: replicas between independent spins and the model exchange their states.

A rung at scale c has the weights cW and the fields :math:`b^0 + c\,(b - b^0)`: independent spins
at c = 0, the model at c = 1. Block Gibbs steps move every replica; neighbours then exchange states
with the probability that leaves the law of every rung as it is, hidden units summed out. Chains at
c = 1, which by themselves stay in their cluster for ever, get states that come down from c = 0,
where nothing remembers a cluster.

Exchanges take turns, pairs that begin at an even rung and at an odd one, so that states drift along
the ladder instead of diffusing, and scales are placed so that all pairs reject equally often: with
Λ the sum of rejections, 2Λ pairs make the most round trips (Syed, Bouchard-Côté, Deligiannidis
and Doucet, J. R. Stat. Soc. B 84, 321, 2022).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfinv

from dualtap._chains import seeded_generators
from dualtap._namespace import Array, like, namespace, to_numpy
from dualtap.rbm.gibbs import Chains, Ladder, advance
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import FloatArray

_FIRST_RUNGS = 10
_PAIRS_PER_BARRIER = 2.0
_MOST_RUNGS = 100
_MEMORY = 100
"""Exchanges over which rejections are averaged, and after which a ladder in training is tuned."""
_CERTAIN = 0.999
"""A rejection rate beyond tells only that the gap is too wide."""
_TUNING = (10, 20, 40, 80, 160)
"""Sweeps before each adjustment of the scales."""
_SIGNS = np.array([-1, 1], dtype=np.float32)
_TRIED = np.array([0.3, 1.0, 4.0])
"""Inputs at which a prior is compared with its mirror image."""


class Sweep(NamedTuple):
    """What one sweep did beside moving the chains; rungs are in the order of the ladder."""

    order: NDArray[np.int64]
    """(n_rungs, n_ladders): the rung that each state comes from."""
    hotter: NDArray[np.float64]
    """(n_rungs - 1, n_ladders): log of the ratio of the laws of rungs k + 1 and k at a state of
    rung k, without their normalisation."""
    colder: NDArray[np.float64]
    """The same of rungs k and k + 1, at a state of rung k + 1."""


def with_ladder(
    chains: Chains, base: FloatArray, rng: np.random.Generator, n_rungs: int = _FIRST_RUNGS
) -> Chains:
    """Return chains with replicas of their states at every rung.

    Parameters
    ----------
    chains : Chains
    base : array of shape (n_spins,)
        Fields of the independent spins at scale 0.
    rng : Generator
        Seeds the replicas.
    n_rungs : int

    Returns
    -------
    Chains
        Those at scale 1 first.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import random_chains
    >>> from dualtap.rbm.tempering import with_ladder
    >>> rng = np.random.default_rng(0)
    >>> chains = with_ladder(random_chains(3, 50, rng), np.zeros(50), rng, n_rungs=4)
    >>> chains.spins.shape, chains.ladder.scales.round(2)
    ((12, 50), array([1.  , 0.82, 0.58, 0.  ]))
    """
    xp, n = namespace(chains.spins), len(chains.spins)
    scales = np.sqrt(np.linspace(1, 0, n_rungs))
    more = seeded_generators((n_rungs - 1) * n, rng)
    ladder = Ladder(scales, np.asarray(to_numpy(base), np.float32), np.zeros(n_rungs - 1), 0)
    return Chains(
        xp.concat([chains.spins] * n_rungs),
        np.concatenate([chains.generators[:n], more]),
        ladder,
    )


def at_scale(model: RBM, base: FloatArray, scale: float) -> RBM:
    """Return the model of a rung.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.tempering import at_scale
    >>> half = at_scale(RBM(np.ones((1, 2)), np.ones(2), GaussianPrior()), np.zeros(2), 0.5)
    >>> half.weights, half.fields
    (array([[0.5, 0.5]]), array([0.5, 0.5]))
    """
    base = like(model.fields, base)
    return RBM(scale * model.weights, base + scale * (model.fields - base), model.prior)


def tempered_sweep(model: RBM, chains: Chains, n_steps: int = 1) -> tuple[Chains, Sweep]:
    """Make block Gibbs steps with all replicas, then exchange states of neighbours once.

    Parameters
    ----------
    model : RBM
    chains : Chains
        With a ladder.
    n_steps : int
        Gibbs steps.

    Returns
    -------
    chains : Chains
    info : Sweep

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import random_chains
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.tempering import tempered_sweep, with_ladder
    >>> rng = np.random.default_rng(0)
    >>> chains = with_ladder(random_chains(3, 50, rng), np.zeros(50), rng, n_rungs=4)
    >>> model = RBM(np.zeros((1, 50)), np.zeros(50), GaussianPrior())
    >>> tempered_sweep(model, chains)[1].order[:, 0]  # without weights every exchange is accepted
    array([1, 0, 3, 2])
    """
    ladder = _ladder(chains)
    xp, n = namespace(chains.spins), chains.n_target
    moved = [
        advance(
            at_scale(model, ladder.base, float(scale)),
            Chains(chains.spins[k * n : (k + 1) * n], chains.generators[k * n : (k + 1) * n]),
            n_steps,
        )
        for k, scale in enumerate(ladder.scales)
    ]
    spins = xp.concat([part.spins for part in moved])
    generators = np.concatenate([part.generators for part in moved])
    rng = np.random.default_rng(generators[0].ravel())  # the chains are all the future needs
    if is_symmetric(model, ladder.base):
        spins = spins * like(spins, rng.choice(_SIGNS, size=(len(generators), 1)))
    hotter, colder = _ratios(model, ladder, spins)
    odds = np.exp(np.minimum(hotter + colder, 0))
    accepted = rng.random(odds.shape) < odds
    accepted[1 - ladder.n_exchanges % 2 :: 2] = False
    order = np.repeat(np.arange(len(ladder.scales))[:, None], n, axis=1)
    order[:-1] += accepted
    order[1:] -= accepted
    rows = (order * n + np.arange(n)).ravel()
    count = ladder.n_exchanges + 1
    change = (1 - odds.mean(axis=1) - ladder.rejections) / min(count, _MEMORY)
    ladder = ladder._replace(rejections=ladder.rejections + change, n_exchanges=count)
    return Chains(xp.take(spins, rows, axis=0), generators, ladder), Sweep(order, hotter, colder)


def is_symmetric(model: RBM, base: FloatArray) -> bool:
    """Tell whether a state and its negative have the same probability at every scale.

    Chains seldom cross from one to the other, but may take either at any time.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import BinaryPrior, ZeroOnePrior
    >>> from dualtap.rbm.tempering import is_symmetric
    >>> W, none = np.ones((1, 4)), np.zeros(4)
    >>> [is_symmetric(RBM(W, none, prior), none) for prior in (BinaryPrior(), ZeroOnePrior())]
    [True, False]
    >>> is_symmetric(RBM(W, none + 0.1, BinaryPrior()), none)
    False
    """
    xp, K = namespace(model.fields), model.prior.log_normalizer
    if base.any() or bool(xp.any(model.fields != 0)):
        return False
    return bool(np.allclose(K(_TRIED), K(-_TRIED), rtol=1e-12))


def _ladder(chains: Chains) -> Ladder:
    if chains.ladder is None:
        raise ValueError("chains have no ladder: see with_ladder")
    return chains.ladder


def _ratios(
    model: RBM, ladder: Ladder, spins: Array
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how much likelier every state would be one rung further, and one rung back."""
    n_rungs = len(ladder.scales)
    base = like(model.fields, ladder.base)
    x = to_numpy(model.inputs(spins))
    along = to_numpy(spins @ (model.fields - base)).astype(np.float64).reshape(n_rungs, -1)
    x = x.reshape(n_rungs, along.shape[1], -1)

    def exponents(k: slice, scales: NDArray[np.float64]) -> NDArray[np.float64]:
        c = scales[:, None]
        K = model.prior.log_normalizer((c[..., None] * x[k]).astype(x.dtype, copy=False))
        total: NDArray[np.float64] = c * along[k] + K.sum(axis=2, dtype=np.float64)
        return total

    c, first, last = ladder.scales, slice(None, -1), slice(1, None)
    own = exponents(slice(None), c)
    return exponents(first, c[1:]) - own[first], exponents(last, c[:-1]) - own[last]


def barrier(ladder: Ladder) -> NDArray[np.float64]:
    r"""Return Λ between neighbours: their rejection rate if there were many rungs between them.

    A rate r over a gap of normal energies stands for :math:`2\,\mathrm{erf}^{-1}(r)/\sqrt\pi`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.gibbs import Ladder
    >>> from dualtap.rbm.tempering import barrier
    >>> ladder = Ladder(np.array([1.0, 0.5, 0.0]), np.zeros(3), np.array([0.1, 0.9]), 50)
    >>> barrier(ladder).round(2)
    array([0.1 , 1.31])
    """
    result: NDArray[np.float64] = (
        2 / math.sqrt(math.pi) * erfinv(np.clip(ladder.rejections, 1e-6, _CERTAIN))
    )
    return result


def tuned(chains: Chains) -> Chains:
    """Return chains on a ladder of as many rungs as are needed, with equal rejections.

    A new rung starts with the states of the old one that is nearest.
    """
    ladder = _ladder(chains)
    xp, n = namespace(chains.spins), chains.n_target
    total = np.append(0, np.cumsum(barrier(ladder)))
    n_pairs = min(math.ceil(_PAIRS_PER_BARRIER * total[-1]), _MOST_RUNGS - 1)
    at = np.linspace(0, total[-1], max(n_pairs, 1) + 1)
    scales = np.interp(at, total, ladder.scales)
    scales[0], scales[-1] = 1, 0
    nearest = np.abs(scales[:, None] - ladder.scales).argmin(axis=1)
    generators = chains.generators
    lacking = len(scales) * n - len(generators)
    if lacking > 0:
        more = seeded_generators(lacking, np.random.default_rng(generators[-1].ravel()))
        generators = np.concatenate([generators, more])
    return Chains(
        xp.take(chains.spins, (nearest[:, None] * n + np.arange(n)).ravel(), axis=0),
        generators[: len(scales) * n],
        Ladder(scales, ladder.base, np.zeros(len(scales) - 1), 0),
    )


def tempered(model: RBM, chains: Chains, n_steps: int) -> Chains:
    """Return the chains of training after a sweep; their ladder follows the model."""
    if _ladder(chains).n_exchanges >= _MEMORY:
        chains = tuned(chains)
    return tempered_sweep(model, chains, n_steps)[0]


class Tempering(NamedTuple):
    """A run of tempered chains at fixed scales.

    Attributes
    ----------
    states : array of shape (n_kept, n_ladders, n_spins), int8
        Of the model, at scale 1.
    hotter, colder : array of shape (n_sweeps, n_rungs - 1, n_ladders)
        As in :class:`Sweep`.
    arrivals : array of shape (n_ladders,)
        States that came to scale 1 from scale 0: round trips.
    ladder : Ladder
    """

    states: NDArray[np.int8]
    hotter: NDArray[np.float64]
    colder: NDArray[np.float64]
    arrivals: NDArray[np.int64]
    ladder: Ladder


def tuned_chains(
    model: RBM, spins: NDArray[Any], base: FloatArray, rng: np.random.Generator
) -> Chains:
    """Return one ladder per row of spins, its scales tuned and its replicas mixed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.tempering import tuned_chains
    >>> model = RBM(np.full((1, 20), 0.1), np.zeros(20), GaussianPrior())
    >>> chains = tuned_chains(model, np.ones((4, 20)), np.zeros(20), np.random.default_rng(0))
    >>> chains.ladder.scales
    array([1., 0.])
    """
    start = Chains(spins.astype(np.float32), seeded_generators(len(spins), rng))
    chains = with_ladder(start, base, rng)
    for n_sweeps in _TUNING:
        for _ in range(n_sweeps):
            chains = tempered_sweep(model, chains)[0]
        chains = tuned(chains)
    return chains


def run_tempered(model: RBM, chains: Chains, n_sweeps: int, keep_every: int) -> Tempering:
    """Make sweeps at fixed scales, and keep every so many of the states at scale 1."""
    n_rungs, n = len(_ladder(chains).scales), chains.n_target
    came_down = np.zeros((n_rungs, n), dtype=bool)
    arrivals, kept, ratios = np.zeros(n, dtype=np.int64), [], []
    for t in range(1, n_sweeps + 1):
        chains, info = tempered_sweep(model, chains)
        came_down = np.take_along_axis(came_down, info.order, axis=0)
        came_down[-1] = True
        arrivals += came_down[0]
        came_down[0] = False
        ratios.append((info.hotter, info.colder))
        if t % keep_every == 0:
            kept.append(chains.target.astype(np.int8))
    hotter, colder = (np.array(part) for part in zip(*ratios, strict=True))
    states = np.array(kept, dtype=np.int8).reshape(-1, *chains.target.shape)
    return Tempering(states, hotter, colder, arrivals, _ladder(chains))
