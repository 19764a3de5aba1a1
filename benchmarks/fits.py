"""Random fits of all kinds of data: no duplicates, never worse than independent spins, stable.

``python -m benchmarks fits [--fits N] [--kinds KIND ...] [--first-seed N]``. A data set is a pure
function of its kind and seed, so that a fit which fails can be repeated: ``fits.draw(kind, seed)``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.harness import markdown, write
from benchmarks.ours import cosines, counts, fitted, with_gaps

Bits = NDArray[np.int8]
Generator = np.random.Generator
N_FITS = 2000
N_SAME = 8  # seeds of one fit
FIRST_SEED = 10_000  # nothing was tuned on these
SAME = 0.95  # |cosine| above which two patterns are the same
BELOW = 1e-4  # nats per entry below independent spins that count


def _size(rng: Generator) -> tuple[int, int]:
    """Return M and N, log-uniform in 20…1000 and 8…120."""
    n_samples, n_spins = np.exp(rng.uniform(np.log([20, 8]), np.log([1000, 120])))
    return int(n_samples), int(n_spins)


def _spins(up: NDArray[Any], rng: Generator) -> Bits:
    return np.where(rng.random(up.shape) < up, 1, -1).astype(np.int8)


def _gibbs(
    Z: NDArray[Any], strengths: NDArray[Any], fields: NDArray[Any], n_samples: int, rng: Generator
) -> Bits:
    """Draw from patterns with strengths and fields, all chains at once, one spin after another."""
    n_spins = Z.shape[1]
    J = (Z.T * strengths) @ Z / n_spins
    np.fill_diagonal(J, 0)
    S = _spins(np.full((n_samples, n_spins), 0.5), rng).astype(float)
    for _ in range(20):
        for i in range(n_spins):
            h = S @ J[i] + fields[i]
            S[:, i] = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-2 * h)), 1, -1)
    return S.astype(np.int8)


def _patterns(rng: Generator, n_spins: int) -> NDArray[Any]:
    return rng.choice([-1, 1], size=(int(rng.integers(1, 7)), n_spins))


def teacher(rng: Generator) -> Bits:
    """Patterns of one strength, in any phase."""
    n_samples, n_spins = _size(rng)
    Z = _patterns(rng, n_spins)
    strengths = np.full(len(Z), rng.uniform(0.5, 3))
    return _gibbs(Z, strengths, np.zeros(n_spins), n_samples, rng)


def uneven_teacher(rng: Generator) -> Bits:
    """Patterns of different strengths, some repulsive, with fields."""
    n_samples, n_spins = _size(rng)
    Z = _patterns(rng, n_spins)
    strengths = rng.uniform(0.3, 2.5, len(Z)) * rng.choice([1, 1, 1, -1], len(Z))
    return _gibbs(Z, strengths, rng.uniform(-0.7, 0.7, n_spins), n_samples, rng)


def diluted_teacher(rng: Generator) -> Bits:
    """Patterns with many entries of 0."""
    n_samples, n_spins = _size(rng)
    share = rng.uniform(0.15, 0.6)
    Z = _patterns(rng, n_spins) * (rng.random((1, n_spins)) < share)
    Z = Z * (rng.random(Z.shape) < rng.uniform(0.4, 1))
    return _gibbs(
        Z, np.full(len(Z), rng.uniform(0.8, 2) / share), np.zeros(n_spins), n_samples, rng
    )


def null(rng: Generator) -> Bits:
    """Independent spins with means of their own."""
    n_samples, n_spins = _size(rng)
    return _spins(np.tile(rng.beta(0.5, 0.5, n_spins), (n_samples, 1)), rng)


def mixture(rng: Generator) -> Bits:
    """Clusters of samples."""
    n_samples, n_spins = _size(rng)
    up = rng.beta(0.5, 0.5, size=(int(rng.integers(2, 9)), n_spins))
    return _spins(up[rng.integers(len(up), size=n_samples)], rng)


def one_hot(rng: Generator) -> Bits:
    """Categories that depend on a hidden group, one spin per value."""
    n_samples, n_spins = _size(rng)
    group = rng.integers(4, size=n_samples)
    blocks: list[NDArray[Any]] = []
    while sum(block.shape[1] for block in blocks) < n_spins:
        p = rng.dirichlet(np.full(int(rng.integers(2, 6)), 0.5), size=4).cumsum(axis=1)
        value = (rng.random(n_samples)[:, None] > p[group]).sum(axis=1).clip(max=p.shape[1] - 1)
        blocks.append(np.eye(p.shape[1])[value])
    return np.where(np.hstack(blocks) > 0, 1, -1).astype(np.int8)


def genotypes(rng: Generator) -> Bits:
    """Sites of the genome of people of a few populations: one strong and several weak patterns."""
    n_samples, n_spins = _size(rng)
    n_groups = int(rng.integers(2, 7))
    base = rng.beta(1, 1, size=(n_samples, 1))
    p = np.clip(base + rng.uniform(0.05, 0.3) * rng.normal(size=(n_samples, n_groups)), 0.02, 0.98)
    return _spins(p[:, rng.integers(n_groups, size=n_spins)], rng)


def sparse(rng: Generator) -> Bits:
    """Rare spikes with groups that fire together."""
    n_samples, n_spins = _size(rng)
    active = rng.random((n_samples, n_spins)) < rng.uniform(0.01, 0.08)
    for _ in range(int(rng.integers(0, 5))):
        own = rng.permutation(n_spins)[: max(2, n_spins // 8)]
        bins = np.flatnonzero(rng.random(n_samples) < 0.05)
        active[np.ix_(bins, own)] |= rng.random((len(bins), len(own))) < 0.8
    return np.where(active, 1, -1).astype(np.int8)


def missing(rng: Generator) -> Bits:
    """Another kind with up to four fifths of its entries missing."""
    X = KINDS[rng.choice(["teacher", "mixture", "genotypes", "null"])](rng)
    X[rng.random(X.shape) < rng.uniform(0.05, 0.8)] = 0
    X[(X == 0).all(axis=1), 0] = 1
    X[0, (X == 0).all(axis=0)] = 1
    return X


def repeated_columns(rng: Generator) -> Bits:
    """Another kind with spins that are copies or negatives of others, and constant ones."""
    X = KINDS[rng.choice(["teacher", "mixture", "null"])](rng)
    n_spins = X.shape[1]
    chosen = rng.integers(n_spins, size=max(1, n_spins // 3))
    copies = X[:, chosen] * rng.choice([-1, 1], size=len(chosen)).astype(np.int8)
    return np.hstack([X, copies, np.ones((len(X), 1), dtype=np.int8)])


def repeated_rows(rng: Generator) -> Bits:
    """Another kind with samples that are copies or negatives of others."""
    X = KINDS[rng.choice(["teacher", "mixture", "null"])](rng)
    rows = rng.integers(max(1, len(X) // 4), size=len(X))
    return X[rows] * rng.choice([-1, 1, 1], size=(len(X), 1)).astype(np.int8)


KINDS: dict[str, Callable[[Generator], Bits]] = {
    "teacher": teacher,
    "uneven teacher": uneven_teacher,
    "diluted teacher": diluted_teacher,
    "null": null,
    "mixture": mixture,
    "one-hot": one_hot,
    "genotypes": genotypes,
    "sparse": sparse,
    "missing": missing,
    "repeated columns": repeated_columns,
    "repeated rows": repeated_rows,
}


def draw(kind: str, seed: int) -> Bits:
    """Return a data set: ±1, 0 where an entry is missing."""
    return KINDS[kind](np.random.default_rng(seed))


def independent_score(X: Bits, prior: float = 0.0) -> float:
    """Return the mean log-likelihood per observed entry of independent spins.

    Parameters
    ----------
    X : array of shape (n_samples, n_spins)
    prior : float
        Imaginary samples of each sign: 0 for the largest likelihood, 1 for Laplace's rule.

    Returns
    -------
    float
    """
    up, seen = (X > 0).sum(axis=0), (X != 0).sum(axis=0)
    p = (up + prior) / np.maximum(seen + 2 * prior, 1)
    logs = [n * np.log(np.where(n > 0, q, 1)) for n, q in ((up, p), (seen - up, 1 - p))]
    return float(np.sum(logs) / seen.sum())


def largest_cosine(patterns: NDArray[Any]) -> float:
    """Return the largest |cosine| of two patterns, 0 if there are fewer."""
    among = np.abs(cosines(patterns, patterns))
    np.fill_diagonal(among, 0)
    return float(among.max(initial=0.0))


class Fitted(NamedTuple):
    """What is checked of one fit."""

    kind: str
    seed: int
    n_patterns: int
    cosine: float
    gain: float
    """Training score above independent spins, nats per entry."""
    seconds: float
    objective: float
    failure: str


def fit(kind: str, seed: int, fit_seed: int | None = None) -> Fitted:
    """Fit one data set; an exception is a result, too."""
    X = draw(kind, seed)
    try:
        model, seconds = fitted(X, seed if fit_seed is None else fit_seed)
        floor = independent_score(X, prior=0.0 if model.n_patterns_ else 1.0)
        gain = float(model.score(with_gaps(X))) - floor
        cosine = largest_cosine(model.patterns_)
        objective = float(getattr(model, "objective_", np.nan))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Fitted(kind, seed, 0, 0.0, 0.0, np.nan, np.nan, text)
    return Fitted(kind, seed, int(model.n_patterns_), cosine, gain, seconds, objective, "")


RANDOM = f"""Random fits of all kinds

HopfieldPatterns with default parameters; 20 to 1000 samples of 8 to 120 spins, seeds from
{FIRST_SEED} on. Duplicates: fits in which two patterns have |cosine| > {SAME}. Below independent
spins: fits whose training score is more than {BELOW} nats per entry below that of independent spins
with their empirical means (without patterns: with means smoothed by Laplace's rule). Failed: fits
that raised an exception. Seconds are medians."""


def table(fits: list[Fitted]) -> list[dict[str, Any]]:
    """Return one row per kind, and one of all."""
    kinds = list(dict.fromkeys(one.kind for one in fits))
    return [
        _row(kind, [one for one in fits if kind in (one.kind, "all")]) for kind in (*kinds, "all")
    ]


def _row(kind: str, own: list[Fitted]) -> dict[str, Any]:
    duplicates = [one for one in own if one.cosine > SAME]
    below = [one for one in own if one.gain < -BELOW]
    failed = [one for one in own if one.failure]
    guilty = sorted({one.seed for one in (*duplicates, *below, *failed)})
    return {
        "kind": kind,
        "fits": len(own),
        "duplicates": len(duplicates),
        "largest absolute cosine": f"{max(one.cosine for one in own):.3f}",
        "below independent spins": len(below),
        "smallest gain": f"{min(one.gain for one in own):.5f}",
        "failed": len(failed),
        "seeds": "–" if kind == "all" or not guilty else ", ".join(map(str, guilty[:8])),
        "patterns, median": float(np.median([one.n_patterns for one in own])),
        "seconds": f"{np.nanmedian([one.seconds for one in own]):.2g}",
    }


SEEDS = f"""{N_SAME} seeds of one fit

HopfieldPatterns with default parameters on the same data, {N_SAME} values of random_state. Same
number: fits that return the most common number of patterns. Spread of the objective: (largest −
smallest) / |median| of the description length."""


def seeds_table(fits: list[Fitted]) -> list[dict[str, Any]]:
    """Return one row per data set."""
    rows = []
    for key in dict.fromkeys((one.kind, one.seed) for one in fits):
        own = [one for one in fits if (one.kind, one.seed) == key]
        found = [one.n_patterns for one in own]
        objective = np.array([one.objective for one in own])
        rows.append(
            {
                "data": f"{key[0]}, seed {key[1]}",
                "same number": f"{max(found.count(n) for n in found)} of {len(own)}",
                "patterns": counts(found),
                "spread of the objective": f"{np.ptp(objective) / abs(np.median(objective)):.3%}",
            }
        )
    return rows


def run(arguments: list[str]) -> None:
    """Measure, print, and write ``fits.md`` and ``fits-seeds.md`` if everything ran."""
    parser = argparse.ArgumentParser("python -m benchmarks fits", description=__doc__)
    parser.add_argument("--fits", type=int, default=N_FITS, help="number of random fits")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=tuple(KINDS))
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--same", type=int, default=2, help="data sets per kind fitted repeatedly")
    options = parser.parse_args(arguments)
    kinds, first = options.kinds, options.first_seed
    jobs = (delayed(fit)(kinds[k % len(kinds)], first + k) for k in range(options.fits))
    fits = []
    for done in Parallel(n_jobs=2, return_as="generator", batch_size=4)(jobs):
        fits.append(done)
        if done.failure or done.cosine > SAME or done.gain < -BELOW:
            print(done, file=sys.stderr, flush=True)
    rows = table(fits)
    print(markdown(rows))
    again = Parallel(n_jobs=2)(
        delayed(fit)(kind, first + k, fit_seed)
        for kind in kinds
        for k in range(options.same)
        for fit_seed in range(N_SAME)
    )
    same = seeds_table(again)
    print(markdown(same) if same else "")
    if options.fits >= N_FITS and tuple(kinds) == tuple(KINDS) and same:
        write("fits", RANDOM, rows)
        write("fits-seeds", SEEDS, same)
