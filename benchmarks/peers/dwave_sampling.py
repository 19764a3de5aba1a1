"""Gibbs sweeps at one temperature by D-Wave's simulated annealing, in compiled C++."""

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import dimod
import numpy as np
from dwave.samplers import SimulatedAnnealingSampler
from protocol import serve


def prepare(setup, request):
    """Return the sampling alone: the model is built before, its energies have a minus sign."""
    patterns = np.load(request["patterns"])
    start = np.load(request["start"])[: setup["n_chains"]]
    n_spins = patterns.shape[1]
    J = -(patterns.T.astype(float) @ patterns) / n_spins
    row, column = np.triu_indices(n_spins, 1)
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        np.zeros(n_spins), (row, column, J[row, column]), 0.0, dimod.SPIN
    )
    parts = np.array_split(start, setup["threads"])

    def sample(k):
        found = SimulatedAnnealingSampler().sample(
            model,
            initial_states=parts[k],
            num_reads=len(parts[k]),
            beta_schedule_type="custom",
            beta_schedule=[request["beta"]],
            num_sweeps_per_beta=setup["n_sweeps"],
            proposal_acceptance_criteria=setup["method"],
            seed=request["seed"] + k,
        )
        return found.record.sample, found.info["timing"]["sampling_ns"] / 1e9

    def work():
        with ThreadPoolExecutor(len(parts)) as pool:  # the sampler lets go of the interpreter
            found = list(pool.map(sample, range(len(parts))))
        return np.vstack([states for states, _ in found]), max(seconds for _, seconds in found)

    return work


serve(prepare, {"version": f"dwave-samplers {version('dwave-samplers')}"})
