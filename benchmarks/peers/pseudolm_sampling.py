"""Metropolis by pseudolm's simulation, compiled by Numba; sites are drawn at random."""

from importlib.metadata import version

import numpy as np
from joblib import Parallel, delayed
from protocol import serve
from pyplm.simulate.basemc import build_typed_neighbour_list, calc_energy, sim


def prepare(setup, request):
    """Return the simulation alone: the list of neighbours is built before."""
    patterns = np.load(request["patterns"])
    start = np.load(request["start"])[: setup["n_chains"]]
    J = request["beta"] / patterns.shape[1] * patterns.T.astype(float) @ patterns
    np.fill_diagonal(J, 0)
    neighbours = build_typed_neighbour_list(J, TH=0)
    energies = [calc_energy(one, J) for one in start]
    n_sweeps = setup["n_sweeps"]

    def chain(k):
        return sim(J, start[k], energies[k], neighbours, n_sweeps, n_sweeps)[0][-1]

    return lambda: np.array(
        Parallel(n_jobs=setup["threads"], backend="threading")(
            delayed(chain)(k) for k in range(len(start))
        )
    )


serve(prepare, {"version": f"pseudolm {version('pseudolm')}"})
