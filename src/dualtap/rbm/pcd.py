r"""One training step: persistent or plain contrastive divergence, gradient ascent.

.. math:: W \leftarrow W + \eta\,
          (\langle \lambda s \rangle_{data} - \langle \lambda s \rangle_{model})

The first mean is over a mini-batch; the second over Markov chains of T block Gibbs steps, which
go on from update to update (PCD), with replicas that they exchange states with (parallel
tempering), or start at the mini-batch each time (CD).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._namespace import Array, like, namespace, row_squares, to_numpy
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import FloatArray, Prior
from dualtap.rbm.tempering import tempered

GradientName = Literal["pcd", "cd", "tempering"]

_LARGEST_STRENGTH = 50.0


class Gradient(NamedTuple):
    """Derivatives of the mean log-likelihood, or a change, shaped like the parameters."""

    weights: FloatArray
    fields: FloatArray


class Training(NamedTuple):
    """Everything the next update needs: two equal states have equal futures.

    Parameters and spins are in one namespace, on one device; generators are on the host.
    """

    weights: NDArray[np.float32]
    fields: NDArray[np.float32]
    velocity: Gradient
    chains: Chains
    imputing: NDArray[np.uint32]
    """Generators of the chains that sample missing entries of the mini-batch."""

    def moved(self, x: Array) -> Training:
        """Return the same state where ``x`` is."""
        velocity = Gradient(*(like(x, part) for part in self.velocity))
        chains = self.chains._replace(spins=like(x, self.chains.spins))
        return Training(
            like(x, self.weights), like(x, self.fields), velocity, chains, self.imputing
        )


@dataclass(frozen=True)
class Ascent:
    """How parameters are moved.

    Attributes
    ----------
    learning_rate : float
        η, the factor of the gradient of the mean log-likelihood per sample.
    fields_rate : float
        The same for visible fields; 0 leaves them as they are.
    n_steps : int
        T, block Gibbs steps an update.
    estimate : {"pcd", "cd", "tempering"}
    momentum : float
        Share of the last change that is repeated.
    weight_decay : float
        Strength of the pull of weights to zero, subtracted from the gradient as decay × W.
    centering : bool
        Subtract from hidden units their mean before correlating them with spins.
    """

    learning_rate: float
    fields_rate: float = 0.0
    n_steps: int = 10
    estimate: GradientName = "pcd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    centering: bool = False


def hidden_center(
    model: RBM, data: NDArray[np.float32], fantasy: NDArray[np.float32]
) -> FloatArray:
    """Return ν, the mean of ⟨λ⟩ over both samples, (n_hidden,)."""
    up, down = model.hidden_means(data), model.hidden_means(fantasy)
    xp = namespace(up)
    center: FloatArray = (xp.mean(up, axis=0) + xp.mean(down, axis=0)) / 2
    return center


def gradient(
    model: RBM,
    data: NDArray[np.float32],
    fantasy: NDArray[np.float32],
    center: FloatArray | None = None,
) -> Gradient:
    r"""Return the difference of :math:`\langle\lambda s\rangle` and of ⟨s⟩ between two samples.

    Hidden units enter by their conditional means, which have the same expectation as samples and
    less noise. With a centre ν, λ is replaced by λ - ν: the derivatives are those in the
    coordinates W and :math:`b' = b + W^\top\nu`, where fields and weights interfere less.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.model import RBM
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.pcd import gradient
    >>> model = RBM(np.array([[1.0, 0.0]]), np.zeros(2), GaussianPrior())
    >>> gradient(model, np.array([[1.0, 1.0]]), np.array([[1.0, -1.0]]))
    Gradient(weights=array([[0., 2.]]), fields=array([0., 2.]))
    """
    up, down = model.hidden_means(data), model.hidden_means(fantasy)
    if center is not None:
        up, down = up - center, down - center
    xp = namespace(data)
    weights = up.T @ data / data.shape[0] - down.T @ fantasy / fantasy.shape[0]
    return Gradient(weights, xp.mean(data, axis=0) - xp.mean(fantasy, axis=0))


def step(state: Training, batch: NDArray[np.int8], prior: Prior, how: Ascent) -> Training:
    """Return the state after one update on a mini-batch, ±1 with 0 for missing entries.

    The mini-batch is on the host, as samples are; it is moved to where the weights are.
    """
    xp = namespace(state.weights)
    model = RBM(state.weights, state.fields, prior)
    spins = xp.astype(like(state.weights, batch), xp.float32)
    data = Chains(spins, state.imputing[: len(batch)])
    imputing = state.imputing
    if not batch.all():
        data = advance(model, data, how.n_steps, held=data.spins)
        imputing = np.concatenate([data.generators, state.imputing[len(batch) :]])

    chains = state.chains
    if how.estimate == "cd":
        chains = Chains(data.spins, chains.generators[: len(batch)])
    go_on = advance if chains.ladder is None else tempered
    moved = go_on(model, chains, how.n_steps)

    center = hidden_center(model, data.spins, moved.target) if how.centering else None
    slope = gradient(model, data.spins, moved.target, center)
    velocity = Gradient(
        how.momentum * state.velocity.weights
        + how.learning_rate * (slope.weights - how.weight_decay * state.weights),
        how.momentum * state.velocity.fields + how.fields_rate * slope.fields,
    )
    fields = state.fields + velocity.fields
    if center is not None:  # back from b' to b, at the new weights
        fields = fields - center @ velocity.weights
    if chains.ladder is None:
        rest = state.chains.generators[len(moved.generators) :]
        moved = moved._replace(generators=np.concatenate([moved.generators, rest]))
    return Training(
        weights=xp.astype(state.weights + velocity.weights, xp.float32, copy=False),
        fields=xp.astype(fields, xp.float32, copy=False),
        velocity=velocity,
        chains=moved,
        imputing=imputing,
    )


def strength(weights: FloatArray, prior: Prior) -> float:
    """Return the mean size of the field that one hidden unit can put on a spin.

    A state along weights of the size w has the input x = N w, and a unit answers with its mean
    λ(x): the field is λ(x) w. For a Gaussian unit it is ‖W^μ‖², in the units of β; a ±1 unit puts
    on W^μ_i itself.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.rbm.priors import GaussianPrior
    >>> from dualtap.rbm.pcd import strength
    >>> strength(np.full((3, 32), 0.25), GaussianPrior())
    2.0
    """
    total = float(to_numpy(row_squares(weights)).sum(dtype=np.float64))
    size = math.sqrt(total / math.prod(weights.shape))
    along = size * weights.shape[1] * np.array([-1.0, 1.0])
    return size * float(np.abs(prior.mean(along)).max())


def has_diverged(state: Training, prior: Prior) -> bool:
    """Tell whether the last update has left the realm of models of data.

    A field of 50 makes errors of e^-100: no data ask for it, and a rate that is too large passes
    it within an update or two of its first overshoot.
    """
    xp = namespace(state.fields)
    return not strength(state.weights, prior) < _LARGEST_STRENGTH or not bool(
        xp.all(xp.isfinite(state.fields))
    )
