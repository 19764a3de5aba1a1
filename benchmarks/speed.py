"""Speed of the sampler and of the published algorithm against plain NumPy."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.harness import Contender, Row, compare
from benchmarks.references import dense_paper, numpy_glauber
from dualtap import DualTAP, HopfieldModel
from dualtap.metrics import coupling_error, match


def sampler(n_threads: int, runs: int) -> list[Row]:
    """N=1000, P=20, β=2: 1000 chains of 50 sweeps."""
    teacher = HopfieldModel.random(1000, 20, 2.0, random_state=0)
    start = teacher.patterns[np.arange(1000) % 20]

    def own_overlap(X: Any) -> str:
        return f"own overlap {np.mean(np.sum(X * start, axis=1)) / 1000:.4f}"

    return compare(
        "Glauber, N=1000 P=20 β=2, 1000 chains × 50 sweeps",
        Contender(
            "NumPy, vectorised over chains",
            lambda: numpy_glauber(teacher.patterns, start, 2.0, 50, np.random.default_rng(1)),
            own_overlap,
        ),
        Contender(
            "dualtap",
            lambda: teacher.sample(1000, start=start, n_sweeps=50, random_state=1),
            own_overlap,
        ),
        n_threads,
        runs,
    )


def paper_algorithm(n_threads: int, runs: int) -> list[Row]:
    """N=1000, P=20, β=2, M=200, P'=25: all twenty rounds."""
    teacher = HopfieldModel.random(1000, 20, 2.0, random_state=0)
    X = teacher.sample(200, random_state=1)

    answer = dense_paper(X, 2.0, 20, 25, np.random.default_rng(2))

    def recovered(m: Any) -> str:
        found = match(np.sign(m), teacher.patterns)
        error = coupling_error(m, teacher.patterns).relative
        same = match(np.sign(m), np.sign(answer)).mean_overlap
        return (
            f"{found.n_recovered(0.97)}/20 above 0.97, error of J {error:.4f}, "
            f"bits as the reference {(1 + same) / 2:.2%}"
        )

    def fitted() -> Any:
        model = DualTAP(20, beta=2.0, n_students=25, random_state=2)
        return model.fit(X).magnetizations_

    return compare(
        "published algorithm, N=1000 P=20 M=200 P'=25",
        Contender(
            "NumPy float64, dense J",
            lambda: dense_paper(X, 2.0, 20, 25, np.random.default_rng(2)),
            recovered,
        ),
        Contender("dualtap", fitted, recovered),
        n_threads,
        runs,
    )


def large() -> Row:
    """N=20,000, M=500, P=50: no N×N array, every pattern found."""
    teacher = HopfieldModel.random(20_000, 50, 2.0, random_state=0)
    X = teacher.sample(500, random_state=1)
    tracemalloc.start()
    start = time.perf_counter()
    model = DualTAP(50, beta=2.0, random_state=2).fit(X)
    seconds = time.perf_counter() - start
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    found = match(model.patterns_, teacher.patterns)
    return Row(
        case="published algorithm, N=20000 P=50 M=500 (N×N float32 would be 1600 MB)",
        contender="dualtap",
        threads=2,
        median_s=seconds,
        spread_s=float("nan"),
        ratio=float("nan"),
        accuracy=f"{found.n_recovered(0.97)}/50 above 0.97",
        peak_mb=peak,
        runs=1,
    )
