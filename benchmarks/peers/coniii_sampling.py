"""Metropolis by coniii in Python, with an energy of rank P in place of its own sum over pairs."""

import coniii
import numpy as np
from coniii.samplers import IMPORTED_SAMPLERS_EXT, Metropolis
from protocol import serve


def prepare(setup, request):
    """Return one chain after the other: it has no more than one at a time."""
    patterns = np.load(request["patterns"])
    start = np.load(request["start"])[: setup["n_chains"]]
    n_spins = patterns.shape[1]
    scale = request["beta"] / (2 * n_spins)
    zeta = patterns.T.astype(float)

    def energy(states, theta):
        return -scale * np.square(states @ zeta).sum(axis=1)

    def chain(one):
        rng = np.random.RandomState(request["seed"])
        walk = Metropolis(n_spins, np.zeros(1), calc_e=energy, rng=rng, boost=False)
        # One sample after a burn-in of one proposal; both are counted as updates.
        walk.generate_sample(
            1,
            n_iters=setup["n_sweeps"] * n_spins - 1,
            burn_in=1,
            systematic_iter=True,
            initial_sample=one[None],
        )
        return walk.sample[0]

    return lambda: np.array([chain(one) for one in start])


without = "" if IMPORTED_SAMPLERS_EXT else ", without its C++ sampler: no Boost"
serve(prepare, {"version": f"coniii {coniii.__version__}{without}"})
