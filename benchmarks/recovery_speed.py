"""Time of recovery, interleaved with the paper's algorithm, k-means and a randomised SVD."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from benchmarks.harness import Contender, Row, compare
from benchmarks.ours import fitted
from benchmarks.peers import methods
from benchmarks.recovery import best_overlap, paper
from benchmarks.recovery_cases import FIRST_SEED, Bits, Case, Data, draw


def speed(n_threads: int, runs: int) -> list[Row]:
    """N=1000, P=20, β=2, M=200: ours blind against the paper's algorithm and k-means."""
    data = draw(Case(2.0, 20, 200), FIRST_SEED)
    return [
        row
        for name, contender in (
            ("DualTAP, β and P given", paper),
            ("KMeans(20, n_init=10)", _k_means),
        )
        for row in compare(
            f"N=1000 {data.case.name}, against {name}",
            _found_by(name, partial(contender, data, 0), data),
            _blind(data),
            n_threads,
            runs,
        )
    ]


def _k_means(data: Data, seed: int) -> Bits:
    return methods.k_means(data.spins, data.case.n_patterns, seed)


def large(n_threads: int, runs: int, n_spins: int = 20_000, n_samples: int = 2000) -> list[Row]:
    """P=50, β=2: ours blind against a randomised SVD and k-means."""
    data = draw(Case(2.0, 50, n_samples, n_spins=n_spins), FIRST_SEED)
    S = data.spins.astype(np.float32)

    def in_span(answer: Any) -> str:
        share = np.square(data.patterns @ answer[2].T).sum(axis=1).mean() / n_spins
        return f"{share:.4f} of the patterns' length² in the span"

    k_means = KMeans(50, n_init=3, random_state=0)
    references = (
        Contender(
            "randomized_svd(X, 60), float32", lambda: randomized_svd(S, 60, random_state=0), in_span
        ),
        _found_by(
            "KMeans(50, n_init=3)", lambda: methods.signs(k_means.fit(S).cluster_centers_), data
        ),
    )
    return [
        row
        for reference in references
        for row in compare(
            f"N={n_spins} {data.case.name}, against {reference.name}",
            reference,
            _blind(data),
            n_threads,
            runs,
        )
    ]


def _blind(data: Data) -> Contender:
    return _found_by("HopfieldPatterns, blind", lambda: fitted(data.X, 0).model.patterns_, data)


def _found_by(name: str, run: Callable[[], Bits], data: Data) -> Contender:
    def accuracy(found: Bits) -> str:
        return f"{len(found)} patterns, mean overlap {best_overlap(found, data.patterns):.4f}"

    return Contender(name, run, accuracy)
