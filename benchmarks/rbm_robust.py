"""The RBM away from Hopfield samples: 60 configurations, each against independent spins."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness import markdown, threads, write
from benchmarks.real_peers import site_means
from dualtap import HopfieldModel, HopfieldRBM

Spins = NDArray[np.int8]
N_CONFIGURATIONS = 60
ALLOWED = 0.01  # per entry below independent spins
TITLE = f"""The RBM on 60 configurations, held-out log pseudo-likelihood per entry

A configuration fails if it ends more than {ALLOWED} below independent spins on 500 held-out
samples, or diverges without a warning."""


class Case(NamedTuple):
    """Samples of a kind and the options they are fitted with."""

    kind: str
    n_samples: int
    options: dict[str, Any]


def configurations() -> Iterator[Case]:
    """Yield data and options, each of which takes turns at its own pace."""
    kinds = ("clustered", "biased", "sparse", "one-hot", "missing")
    hidden = cycle(("gaussian", "binary", "relu", "spike_slab"))
    sizes, numbers = cycle((2, 20, 200)), cycle((30, 100, 400, 3000))
    for k in range(N_CONFIGURATIONS):
        options: dict[str, Any] = {"hidden": next(hidden), "n_hidden": next(sizes)}
        options["fields"] = (False, True, "auto")[k % 7 % 3]
        options["centering"] = options["fields"] is True and k % 2 == 0
        options["weight_decay"] = (0.0, 0.01)[k // 3 % 2]
        options["estimate"] = ("pcd", "cd")[k // 5 % 2]
        options["learning_rate"] = ("auto", 0.05)[k % 11 == 0]
        if k % 4 == 3:
            next(numbers)
        yield Case(kinds[k % 5], next(numbers), options)


def drawn(kind: str, n_samples: int, seed: int, world: int = 0, n_spins: int = 60) -> Spins:
    """Return samples of a kind, ±1 with 0 for missing; ``world`` draws the law they come from."""
    rng = np.random.default_rng(seed)
    if kind == "biased":
        up = np.random.default_rng(1 + world).uniform(0.05, 0.95, n_spins)
        return np.where(rng.random((n_samples, n_spins)) < up, 1, -1).astype(np.int8)
    if kind == "sparse":
        return np.where(rng.random((n_samples, n_spins)) < 0.05, 1, -1).astype(np.int8)
    if kind == "one-hot":
        hot = rng.integers(0, 6, size=(n_samples, n_spins // 6))
        blocks = np.where(hot[..., None] == np.arange(6), 1, -1)
        return blocks.reshape(n_samples, -1).astype(np.int8)
    teacher = HopfieldModel.random(n_spins, 3, beta=2.0, random_state=world)
    X = teacher.sample(n_samples, random_state=seed)
    gaps = rng.random(X.shape) < (0.2 if kind == "missing" else 0)
    return np.where(gaps, 0, X).astype(np.int8)


def fitted(X: Spins, **options: Any) -> tuple[HopfieldRBM, list[str]]:
    """Return a fitted machine and what it said."""
    with warnings.catch_warnings(record=True) as said, threads(1):
        warnings.simplefilter("always", ConvergenceWarning)
        model = HopfieldRBM(**({"random_state": 0} | options)).fit(with_nan(X))
    return model, [str(one.message) for one in said]


def with_nan(X: Spins) -> NDArray[np.float64]:
    """Return samples with NaN for missing entries."""
    return np.where(X == 0, np.nan, X)


def run(arguments: list[str]) -> None:
    """Fit the configurations and print how far each ends above independent spins."""
    parser = argparse.ArgumentParser("python -m benchmarks rbm-robust", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take one configuration of so many")
    parser.add_argument("--first", type=int, default=0, help="number of the first configuration")
    parser.add_argument("--world", type=int, default=0, help="seed of laws, samples and fits")
    parser.add_argument("--updates", type=int, default=20_000, help="maximum number of updates")
    options = parser.parse_args(arguments)
    rows = []
    for k, case in islice(enumerate(configurations()), options.first, None, options.every):
        seeds = (10 + k + 1000 * options.world, 10**6 + options.world)
        X = drawn(case.kind, case.n_samples, seeds[0], options.world)
        held_out = drawn(case.kind, 500, seeds[1], options.world)
        start = time.process_time()
        model, said = fitted(
            X, random_state=options.world, max_updates=options.updates, **case.options
        )
        score, floor = model.score(with_nan(held_out)), site_means(X).score(held_out)
        diverged = model.stop_reason_ == "diverged"
        row = {"samples": f"{case.kind}, {case.n_samples}"} | case.options
        row |= {"independent": floor, "score": score, "above": score - floor}
        row |= {"stopped": model.stop_reason_, "warned": bool(said)}
        row["CPU s"] = time.process_time() - start
        row["fails"] = bool(score < floor - ALLOWED or (diverged and not said))
        rows.append(row)
        print(markdown([row]).splitlines()[-1], flush=True)
    failures = sum(row["fails"] for row in rows)
    print(f"{failures} of {len(rows)} configurations fail")
    if (options.every, options.first, options.world) == (1, 0, 0):
        write("rbm-robust", f"{TITLE} {failures} of {len(rows)} fail.", rows)
