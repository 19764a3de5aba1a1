"""Sequential Glauber by ours, by NumPy vectorised over chains, by plain loops under Numba."""

import numba
import numpy as np
from protocol import serve

import dualtap
from benchmarks.references import numpy_glauber


def ours(patterns, start, beta, n_sweeps, seed):
    """Sample with the package."""
    model = dualtap.HopfieldModel(patterns, beta)
    return model.sample(len(start), start=start, n_sweeps=n_sweeps, random_state=seed)


def with_numpy(patterns, start, beta, n_sweeps, seed):
    """Sample with the vectorised reference."""
    return numpy_glauber(patterns, start, beta, n_sweeps, np.random.default_rng(seed))


def with_numba(patterns, start, beta, n_sweeps, seed):
    """Sample with the loops below."""
    spins = start.astype(np.float32)
    loops(spins, np.ascontiguousarray(patterns.T, dtype=np.float32), beta, n_sweeps, seed)
    return spins


@numba.njit(parallel=True, fastmath=True)
def loops(spins, patterns, beta, n_sweeps, seed):
    """Keep the P overlaps of a chain, a thread a chain."""
    n_spins, n_patterns = patterns.shape
    for c in numba.prange(len(spins)):
        np.random.seed(seed + c)  # noqa: NPY002 (Numba has no other generator in a thread)
        s = spins[c]
        overlaps = np.zeros(n_patterns, dtype=np.float32)
        for i in range(n_spins):
            for k in range(n_patterns):
                overlaps[k] += s[i] * patterns[i, k]
        for _ in range(n_sweeps):
            for i in range(n_spins):
                field = -n_patterns * s[i]
                for k in range(n_patterns):
                    field += overlaps[k] * patterns[i, k]
                up = np.random.random() * (1 + np.exp(-2 * beta / n_spins * field)) < 1  # noqa: NPY002
                if up != (s[i] > 0):
                    s[i] = -s[i]
                    for k in range(n_patterns):
                        overlaps[k] += 2 * s[i] * patterns[i, k]


METHODS = {"dualtap": ours, "NumPy": with_numpy, "Numba": with_numba}


def prepare(setup, request):
    """Return the sampling by the method named in the setup."""
    patterns = np.load(request["patterns"])
    start = np.load(request["start"])[: setup["n_chains"]]
    sample = METHODS[setup["method"]]
    return lambda: sample(
        patterns, start, request["beta"], setup["n_sweeps"], request["seed"]
    ).astype(np.int8)


serve(prepare, {"version": f"dualtap {dualtap.__version__}"})
