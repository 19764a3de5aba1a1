"""Independent spins with unequal means: 0 patterns is the right answer.

``python -m benchmarks nulls [--fits N] [--spins N ...] [--samples M ...]``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.harness import markdown, write
from benchmarks.ours import fitted

Floats = NDArray[np.float64]
N_FITS = 100
SPINS = (100, 30, 300)
SAMPLES = (100, 1000, 10_000)
FIRST_SEED = 100  # nothing was tuned on these


def _constant(p: float, rng: np.random.Generator, n_spins: int) -> Floats:
    return np.full(n_spins, p)


MEANS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform(0.02, 0.98)": lambda rng, n: rng.uniform(0.02, 0.98, n),
    **{f"{p:g}": partial(_constant, p) for p in (0.02, 0.1, 0.3, 0.9)},
    "Beta(0.3, 0.3)": lambda rng, n: rng.beta(0.3, 0.3, n),
}
"""How P(s_i = +1) is drawn for every spin."""

TITLE = f"""Independent spins with unequal means: 0 patterns is the right answer

Share of data sets in which HopfieldPatterns with default parameters returns 0 patterns, {N_FITS}
data sets per row, seeds from {FIRST_SEED} on; every spin is drawn on its own, P(s_i = +1) as
stated. Seconds are medians, two fits side by side on one thread each."""


class Null(NamedTuple):
    """One data set."""

    n_patterns: int
    seconds: float


def draw(means: str, n_samples: int, n_spins: int, seed: int) -> NDArray[np.int8]:
    """Return independent spins, ±1."""
    rng = np.random.default_rng(seed)
    up = MEANS[means](rng, n_spins)
    return np.where(rng.random((n_samples, n_spins)) < up, 1, -1).astype(np.int8)


def null(means: str, n_samples: int, n_spins: int, seed: int) -> Null:
    """Fit one data set."""
    model, seconds = fitted(draw(means, n_samples, n_spins, seed), seed)
    return Null(int(model.n_patterns_), seconds)


def row(means: str, n_samples: int, n_spins: int, n_fits: int) -> dict[str, Any]:
    """Fit many data sets, two at a time, and return a row of the table."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_fits)
    fits = Parallel(n_jobs=2)(delayed(null)(means, n_samples, n_spins, seed) for seed in seeds)
    found = np.array([fit.n_patterns for fit in fits])
    return {
        "P(s_i = +1)": means,
        "M": n_samples,
        "N": n_spins,
        "data sets": n_fits,
        "0 patterns": f"{np.mean(found == 0):.0%}",
        "most patterns": int(found.max()),
        "seeds with patterns": ", ".join(str(FIRST_SEED + k) for k in np.flatnonzero(found)[:8]),
        "seconds": f"{np.median([fit.seconds for fit in fits]):.2g}",
    }


def run(arguments: list[str]) -> None:
    """Measure, print, and write ``nulls.md`` if everything ran."""
    parser = argparse.ArgumentParser("python -m benchmarks nulls", description=__doc__)
    parser.add_argument("--fits", type=int, default=N_FITS, help="data sets per row")
    parser.add_argument("--spins", nargs="+", type=int, default=SPINS)
    parser.add_argument("--samples", nargs="+", type=int, default=SAMPLES)
    parser.add_argument("--means", nargs="+", choices=MEANS, default=tuple(MEANS))
    options = parser.parse_args(arguments)
    rows = []
    for n_spins in options.spins:
        for means in options.means:
            for n_samples in options.samples:
                rows.append(row(means, n_samples, n_spins, options.fits))
                print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    print(markdown(rows))
    below = [one for one in rows if int(one["0 patterns"].rstrip("%")) < 95]
    print(f"{len(rows) - len(below)} of {len(rows)} rows have 0 patterns in at least 95 %")
    whole = (SPINS, SAMPLES, tuple(MEANS), N_FITS)
    if (*map(tuple, (options.spins, options.samples, options.means)), options.fits) == whole:
        write("nulls", TITLE, rows)
