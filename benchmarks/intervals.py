"""Intervals of couplings from refits to parts of the samples: how often they hold the truth.

``python -m benchmarks intervals [--fits N] [--refits N] [--parts SHARE ...]``.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import markdown, write
from benchmarks.ours import fitted
from benchmarks.recovery_cases import FIRST_SEED

N_FITS, N_REFITS = 50, 20
PARTS = (0.5, 0.75)
TEACHERS = ((60, 60, 2, 1.5), (100, 60, 3, 2.0), (150, 40, 2, 2.0), (200, 100, 4, 1.5))
"""N, M, P and β."""
TITLE = f"""Intervals of couplings: how often they hold the truth

Hopfield teachers, seeds from {FIRST_SEED} on, whose patterns were all recovered by HopfieldPatterns
with default parameters. `dualtap.stability` with {N_REFITS} refits to a part of the samples: share
of the true couplings that lie in their 95 % intervals (standard error over the fits: all couplings
of a fit share their strengths), and mean half-width, as a share of β/N."""


class Interval(NamedTuple):
    """What the intervals of one fit are worth, for one part."""

    covered: float
    width: float


def intervals(
    case: tuple[int, int, int, float], seed: int, parts: tuple[float, ...], n_refits: int
) -> list[Interval] | None:
    """Fit the samples of a teacher; nothing if a pattern was not recovered."""
    import dualtap as dt
    from dualtap import resampling

    N, M, P, beta = case
    teacher = dt.HopfieldModel.random(N, P, beta=beta, random_state=seed)
    X = teacher.sample(M, random_state=seed + 1)
    model = fitted(X, seed).model
    if dt.metrics.n_recovered(model.patterns_, teacher.patterns) < P:
        return None
    J, found = beta * teacher.couplings(), []
    for part in parts:
        resampling._PART = part
        edges = dt.stability(model, X, n_refits, top=None, random_state=seed).edges
        true = J[edges.i, edges.j]
        covered = np.mean((edges.low <= true) & (true <= edges.high))
        width = np.mean(edges.high - edges.low) / 2 * N / beta
        found.append(Interval(float(covered), float(width)))
    return found


def table(n_fits: int, n_refits: int, parts: tuple[float, ...]) -> list[dict[str, Any]]:
    """Return one row per teacher and part."""
    rows = []
    seeds = range(FIRST_SEED, FIRST_SEED + n_fits)
    for case in TEACHERS:
        found = (intervals(case, seed, parts, n_refits) for seed in seeds)
        fits = [fit for fit in found if fit is not None]
        N, M, P, beta = case
        for k, part in enumerate(parts):
            covered, width = np.array([fit[k] for fit in fits]).T
            error = covered.std() / np.sqrt(len(fits))
            rows.append(
                {
                    "teacher": f"N={N} M={M} P={P} β={beta:g}",
                    "fits": len(fits),
                    "part": f"{part:.0%}",
                    "covered": f"{covered.mean():.1%} ± {error:.1%}",
                    "half-width": f"{width.mean():.1%}",
                }
            )
            print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    return rows


def run(arguments: list[str]) -> None:
    """Measure and print; write the table if nothing was changed."""
    parser = argparse.ArgumentParser("python -m benchmarks intervals", description=__doc__)
    parser.add_argument("--fits", type=int, default=N_FITS)
    parser.add_argument("--refits", type=int, default=N_REFITS)
    parser.add_argument("--parts", type=float, nargs="+", default=PARTS, metavar="SHARE")
    options = parser.parse_args(arguments)
    rows = table(options.fits, options.refits, tuple(options.parts))
    print(markdown(rows))
    if (options.fits, options.refits, tuple(options.parts)) == (N_FITS, N_REFITS, PARTS):
        write("intervals", TITLE, rows)
