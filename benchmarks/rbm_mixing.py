"""Sampling that mixes: plain and tempered chains, and log Z by two methods.

``python -m benchmarks rbm-mixing`` compares with exact sums at small N and, for the Hopfield model
with N=1000, P=10 and β=2, with the integral over the hidden units: it has a peak per state ±ξ,
around which importance sampling gives the weight of the state, and their sum Z. ``--mnist FILE``
adds an RBM of 500 ±1 hidden units learned from 5000 digits of MNIST, which is kept in the file.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import markdown, threads, write
from dualtap import HopfieldModel, HopfieldRBM, load
from dualtap.datasets import load_mnist
from dualtap.rbm.gibbs import Chains, advance
from dualtap.rbm.likelihood import LogPartition, log_partition
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import PRIORS
from dualtap.rbm.tempering import run_tempered, tuned_chains

N, P, BETA = 1000, 10, 2.0
LADDERS, SWEEPS, KEEP_EVERY = 20, 24_000, 20
DRAWS = 20_000
WIDER = 1.15
"""Variances of the proposals of importance sampling, in units of those at the peak."""
MIXING = f"""Chains of a Hopfield model with P={P} and β={BETA:g}, all started in one of 20 states

Balanced patterns have every combination of signs once: by symmetry the 20 states have equal shares.
Those of random patterns differ, and are exact up to 0.1 %. Arrivals are states that came to the
model from independent spins. χ² per state is the mean square of the differences between shares and
exact shares in units of their errors: that of the mean over {LADDERS} independent ladders, and that
of as many independent draws as there were arrivals in half of the steps. Shares are those of the
second half: in the first ladders forget the state they all start in. Of states visited it says how
many as many independent draws would visit in the mean, because some shares are below 1 in 1000."""
LOG_Z = """log Z by annealing and by tempering

z is the difference from the reference in units of the errors of both."""
PARTS = ("shares", "errors", "log-z")
SEEDS = 20
COVERAGE = f"""Errors of log Z: {SEEDS} estimates of each kind, and the exact value

z is the difference from the exact value in units of the error; it should have the root mean square
1, and be within 2 in 95 % of the cases."""


class Shares(NamedTuple):
    """Exact weights of the states ±ξ."""

    shares: NDArray[np.float64]
    log_z: float
    error: float


def model_of(teacher: HopfieldModel) -> RBM:
    """Return the RBM that is the teacher."""
    W = np.sqrt(teacher.beta / teacher.n_spins) * teacher.patterns
    return RBM(W.astype(np.float32), np.zeros(teacher.n_spins, np.float32), PRIORS["gaussian"])


def exact_shares(model: RBM, states: NDArray[np.int8], rng: np.random.Generator) -> Shares:
    r"""Return the weight of every state by importance sampling around its peak.

    :math:`Z = \int \prod_\mu d\lambda_\mu e^{-\lambda^2/2}/\sqrt{2\pi} \prod_i 2\cosh(\lambda\cdot
    W_i)`; proposals are normal, with the curvature at the peak.
    """
    W = model.weights.astype(np.float64)
    logs, errors = [], []
    for state in states:
        x = W @ state
        for _ in range(1000):
            x = W @ np.tanh(x @ W)
        curvature = np.eye(len(W)) - (W * (1 - np.tanh(x @ W) ** 2)) @ W.T
        L = np.sqrt(WIDER) * np.linalg.inv(np.linalg.cholesky(curvature)).T
        noise = rng.standard_normal((DRAWS, len(W)))
        hidden = x + noise @ L.T
        log_p = np.logaddexp(hidden @ W, -(hidden @ W)).sum(axis=1)
        log_p -= np.square(hidden).sum(axis=1) / 2
        log_q = -np.square(noise).sum(axis=1) / 2 - np.linalg.slogdet(L)[1]
        weights = log_p - log_q
        logs.append(logsumexp(weights) - np.log(DRAWS))
        errors.append(np.exp(weights - logs[-1]).std() / np.sqrt(DRAWS))
    log_z = float(logsumexp(logs))
    shares = np.exp(np.array(logs) - log_z)
    return Shares(shares, log_z, float(np.sqrt(np.square(shares * errors).sum())))


def nearest(X: NDArray[Any], states: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return which state each sample has the largest overlap with."""
    result: NDArray[np.int64] = (X.astype(np.float32) @ states.T.astype(np.float32)).argmax(axis=-1)
    return result


def balanced() -> NDArray[np.int8]:
    """Return P patterns of 2^P spins with every combination of signs once."""
    bits = np.arange(2**P) >> np.arange(P)[:, None] & 1
    return (2 * bits - 1).astype(np.int8)


def mixing() -> list[dict[str, Any]]:
    """Return how plain and tempered chains visit the states, all from the first one."""
    random = HopfieldModel.random(N, P, BETA, random_state=0)
    rows = []
    for name, teacher in (
        (f"balanced, N={2**P}", HopfieldModel(balanced(), BETA)),
        (f"random, N={N}", random),
    ):
        model, states = model_of(teacher), np.vstack([teacher.patterns, -teacher.patterns])
        exact = exact_shares(model, states, np.random.default_rng(0)).shares
        for tempered in (False, True):
            rows.append({"patterns": name} | _visits(model, states, exact, tempered))
            print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def _visits(
    model: RBM, states: NDArray[np.int8], exact: NDArray[np.float64], tempered: bool
) -> dict[str, Any]:
    start, rng = np.repeat(states[:1], LADDERS, axis=0), np.random.default_rng(1)
    began, n_rungs, arrivals = time.process_time(), 1, 0
    if tempered:
        chains = tuned_chains(model, start, model.fields, rng)
        found = run_tempered(model, chains, SWEEPS, KEEP_EVERY)
        visited = nearest(found.states, states)
        n_rungs, arrivals = len(found.ladder.scales), int(found.arrivals.sum())
    else:
        chains = Chains(start.astype(np.float32), _generators(rng))
        numbers = []
        for _ in range(SWEEPS // KEEP_EVERY):
            chains = advance(model, chains, KEEP_EVERY)
            numbers.append(nearest(chains.spins, states))
        visited = np.array(numbers)
    later = visited[len(visited) // 2 :]
    each = np.array([(later == k).mean(axis=0) for k in range(len(states))])
    shares, spread = each.mean(axis=1), each.var(axis=1, ddof=1) / LADDERS
    likely = float((1 - np.exp(-exact * max(arrivals / 2, LADDERS))).sum())
    variance = spread + exact * (1 - exact) / max(arrivals / 2, LADDERS)
    return {
        "chains": "parallel tempering" if tempered else "plain",
        "rungs": n_rungs,
        "steps": SWEEPS,
        "arrivals": arrivals,
        "states visited": f"{int((shares > 0).sum())} of {len(states)}; {likely:.1f}",
        "shares": f"{shares.min():.3f}-{shares.max():.3f}",
        "exact shares": f"{exact.min():.3f}-{exact.max():.3f}",
        "half the sum of differences": float(np.abs(shares - exact).sum() / 2),
        "χ² per state": float(np.mean((shares - exact) ** 2 / variance)),
        "CPU s": time.process_time() - began,
    }


def _generators(rng: np.random.Generator) -> NDArray[np.uint32]:
    words: NDArray[np.uint32] = rng.integers(1, 2**32, size=(LADDERS, 4, 32), dtype=np.uint32)
    return words


def log_z() -> list[dict[str, Any]]:
    """Return log Z of small models and of the Hopfield model, by both methods and exactly."""
    rows = []
    for prior in PRIORS:
        rng = np.random.default_rng(7)
        W, b = rng.normal(scale=0.4, size=(6, 18)), rng.normal(scale=0.4, size=18)
        model = RBM(W, b, PRIORS[prior])
        rows += _by_both(f"N=18 N_h=6, {prior}", model, log_partition(model))
    teacher = HopfieldModel.random(N, P, BETA, random_state=0)
    states = np.vstack([teacher.patterns, -teacher.patterns])
    exact = exact_shares(model_of(teacher), states, np.random.default_rng(0))
    reference = LogPartition(exact.log_z, exact.error, "integral over hidden units")
    return rows + _by_both(f"N={N} P={P} β={BETA:g}", model_of(teacher), reference, n_sweeps=4000)


def coverage() -> list[dict[str, Any]]:
    """Return how often the errors of both methods cover the exact log Z, and how large they are."""
    teacher = HopfieldModel.random(300, 5, BETA, random_state=0)
    states = np.vstack([teacher.patterns, -teacher.patterns])
    clustered = model_of(teacher)
    exact_z = exact_shares(clustered, states, np.random.default_rng(0)).log_z
    known, rng = {"N=300 P=5 β=2": (clustered, exact_z)}, np.random.default_rng(7)
    W, b = rng.normal(scale=0.4, size=(6, 18)), rng.normal(scale=0.4, size=18)
    for prior in ("gaussian", "binary", "spike_slab"):
        model = RBM(W, b, PRIORS[prior])
        known[f"N=18 N_h=6, {prior}"] = model, log_partition(model).value
    rows = []
    for name, (model, exact) in known.items():
        for method, size, values in (
            ("annealing", "n_temperatures", (300, 1000)),
            ("tempering", "n_sweeps", (100, 1000)),
        ):
            for value in values:
                rows.append({"model": name, "method": method, "size": f"{size}={value}"})
                rows[-1] |= _covered(model, method, {size: value}, exact)
                print(markdown(rows[-1:]).splitlines()[-1], flush=True)
    return rows


def _covered(model: RBM, method: str, size: dict[str, int], exact: float) -> dict[str, Any]:
    began = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        found = [
            log_partition(model, method=method, random_state=seed, **size)  # type: ignore[arg-type]
            for seed in range(SEEDS)
        ]
    z = np.array([(one.value - exact) / one.error for one in found])
    return {
        "mean of z": float(z.mean()),
        "root mean square": float(np.sqrt(np.mean(z**2))),
        "within 2 errors": f"{np.count_nonzero(np.abs(z) < 2)} of {SEEDS}",
        "median error": float(np.median([one.error for one in found])),
        "warned": len(said),
        "CPU s per estimate": (time.process_time() - began) / SEEDS,
    }


def _by_both(
    name: str,
    model: RBM,
    reference: LogPartition | None,
    base: NDArray[Any] | None = None,
    n_sweeps: int = 1000,
    n_temperatures: int = 3000,
    n_ladders: int = 20,
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for method, options in (
        ("annealing", {"n_temperatures": n_temperatures}),
        ("tempering", {"n_sweeps": n_sweeps, "n_ladders": n_ladders}),
    ):
        began = time.process_time()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", ConvergenceWarning)
            found = log_partition(model, method=method, base=base, random_state=0, **options)  # type: ignore[arg-type]
        beside = reference or found
        z = (found.value - beside.value) / max(np.hypot(found.error, beside.error), 1e-12)
        row: dict[str, Any] = {"model": name, "method": method}
        row |= {"log Z": f"{found.value:.3f} ± {found.error:.3f}"}
        row |= {"reference": f"{beside.value:.3f} ± {beside.error:.3f} ({beside.method})"}
        row |= {"z": z, "warned": bool(said), "CPU s": time.process_time() - began}
        rows.append(row)
        reference = reference or found
        print(markdown([row]).splitlines()[-1], flush=True)
    return rows


def digits(path: Path) -> list[dict[str, Any]]:
    """Return log Z of an RBM of MNIST by both methods; the RBM is learned once."""
    X = load_mnist().X
    order = np.random.default_rng(0).permutation(len(X))
    fitted, held_out = X[order[:4000]], X[order[4000:]]
    if path.exists():
        rbm = load(path)
    else:
        rbm = HopfieldRBM(500, hidden="binary", fields=True, max_updates=1500, random_state=0)
        rbm.fit(fitted)
        rbm.write(path)
    rows = _by_both(
        f"MNIST, N={X.shape[1]} N_h=500",
        rbm.model(),
        None,
        rbm._base(),
        n_sweeps=4000,
        n_temperatures=6000,
        n_ladders=10,
    )
    for row in rows:
        value, error = map(float, row["log Z"].split(" ± "))
        partition = LogPartition(value, error, row["method"])
        likelihood = rbm.log_likelihood(held_out, partition)
        row["model"] += f": {likelihood:.2f} nats per held-out sample"
    return rows


def run(arguments: list[str]) -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser("python -m benchmarks rbm-mixing", description=__doc__)
    parser.add_argument("--mnist", type=Path, metavar="FILE", help="add MNIST; keep its RBM here")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="tables to make")
    options = parser.parse_args(arguments)
    with threads(1):
        if "shares" in options.parts:
            write("rbm-mixing", MIXING, mixing())
        if "errors" in options.parts:
            write("rbm-log-z-errors", COVERAGE, coverage())
        if "log-z" in options.parts:
            write("rbm-log-z", LOG_Z, log_z() + (digits(options.mnist) if options.mnist else []))
