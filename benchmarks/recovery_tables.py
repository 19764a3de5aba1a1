"""Tables of the recovery trials: accuracy and time, likelihood, random spins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.ours import fitted
from benchmarks.recovery import BEFORE, BEFORE_GIVEN, BLIND, CONTENDERS, GIVEN, Trial
from benchmarks.recovery_cases import FIRST_SEED, N_SPINS, fair_spins

NOISE_SAMPLES = (100, 500, 1000, 2000, 5000)

ACCURACY = """Recovery of patterns: accuracy and time

Mean over the teacher's patterns of the largest |overlap| with a found one (0 when nothing is found;
among P random patterns chance gives √(2 log P / N)), mean ± standard error over seeds; N=1000.
"ours" is HopfieldPatterns with default parameters; all others are given P, and the paper's
algorithm β too. Peers get 0 for
missing entries. Where the paper's algorithm is slow it ran on the first two seeds (M·P² ≥ 0.8
million) or on the first alone (≥ 2 million); average linkage did not run for M > 3000. Limit: in
the retrieval phase the majority vote of the samples that started at a pattern, on the same data,
which is no strict bound; in the paramagnet (β < 1) the Bayes limit of one pattern alone, N → ∞;
elsewhere none is known.
"before", where it is there: the same fits by an earlier version, in the same run.
Seconds are medians (ours: the shorter of two fits), two trials side by side on one thread each."""


BEFORE_TITLE = """Recovery of patterns: this version against an earlier one

As in the table of recovery, HopfieldPatterns and the default estimator of the earlier version
("before") on the same data, in turn, in processes of their own; two trials side by side, one
thread each. Written by ``python -m benchmarks recovery --only ours --old SRC``."""


def accuracy(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return one row per case: overlaps of everybody, then ours in detail, then seconds."""
    present = {key for t in trials for key in t.fits}
    keys = [k for k in (BLIND, *CONTENDERS, BEFORE, BEFORE_GIVEN) if k in present]
    rows = []
    for name, own in _by_case(trials).items():
        fits = {key: [t.fits[key] for t in own if key in t.fits] for key in keys}
        off = [abs(t.beta / t.case.beta - 1) for t in own if np.isfinite(t.beta)]
        rows.append(
            {"case": name}
            | {key: _spread([fit.overlap for fit in fits[key]], len(own)) for key in fits}
            | {
                "limit": _mean([t.limit for t in own]),
                "patterns found": ", ".join(str(t.n_found) for t in own),
                "fitted β": _mean([t.beta for t in own]),
                "largest error of β": f"{max(off):.1%}" if off else "–",
                "calibration error": _mean([t.calibration for t in own]),
            }
            | {f"{key}, s": _median([fit.seconds for fit in fits[key]]) for key in fits}
        )
    return rows


LIKELIHOOD = """Likelihood: is it search or information?

Mean log pseudo-likelihood per spin of the training data, of our answer with fitted strengths and
fields, and of the teacher with its own; mean ± standard error over seeds. Where ours is below the
teacher's, a better answer was there to be found; where it is not and the overlap is still short of
1, the data do not tell. Fitted fields raise ours a little where samples are few."""


def likelihood(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return one row per case: ours, the teacher's, and on how many seeds ours is no worse."""
    rows = []
    for name, own in _by_case(trials).items():
        gain = [t.likelihood - t.teacher_likelihood for t in own]
        rows.append(
            {
                "case": name,
                "ours": f"{np.mean([t.likelihood for t in own]):.5f}",
                "teacher": f"{np.mean([t.teacher_likelihood for t in own]):.5f}",
                "ours - teacher": _spread(gain, len(own), digits=5),
                "ours not below": f"{sum(g >= 0 for g in gain)} of {len(own)}",
                "overlap of ours": _spread([t.fits[BLIND].overlap for t in own], len(own)),
            }
        )
    return rows


def _by_case(trials: list[Trial]) -> dict[str, list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for one in trials:
        groups.setdefault(one.name, []).append(one)
    return groups


def _spread(values: list[float], n_seeds: int, digits: int = 3) -> str:
    if not values:
        return "–"
    text = f"{np.mean(values):.{digits}f}"
    if len(values) > 1:
        text += f" ± {np.std(values, ddof=1) / np.sqrt(len(values)):.{digits}f}"
    return text if len(values) == n_seeds else f"{text} (seeds: {len(values)})"


def _mean(values: list[float]) -> str:
    known = [value for value in values if np.isfinite(value)]
    return f"{np.mean(known):.3f}" if known else "–"


def _median(values: list[float]) -> str:
    return f"{np.median(values):.3g}" if values else "–"


NOISE = """Independent fair spins: 0 patterns is the right answer

N=1000; every fit has a seed of its own, from 100 on. Unequal means: ``nulls.md``."""


def noise(
    n_samples: Iterable[int] = NOISE_SAMPLES, n_seeds: int = 20, n_spins: int = N_SPINS
) -> list[dict[str, Any]]:
    """Fit pure noise and count the fits that find nothing.

    Parameters
    ----------
    n_samples : iterable of int
    n_seeds : int
        Fits for each M.
    n_spins : int

    Returns
    -------
    list of dict, a row for each M and one for all
    """
    sizes = list(n_samples)
    jobs = [
        delayed(n_found_in_noise)(size, FIRST_SEED + k * n_seeds + i, n_spins)
        for k, size in enumerate(sizes)
        for i in range(n_seeds)
    ]
    found = np.array(Parallel(n_jobs=2)(jobs)).reshape(len(sizes), n_seeds)
    return [
        {
            "case": case,
            "fits": counts.size,
            "0 patterns": int(np.sum(counts == 0)),
            "most patterns found": int(counts.max()),
        }
        for case, counts in [
            *((f"M={size}", row) for size, row in zip(sizes, found, strict=True)),
            ("all", found.ravel()),
        ]
    ]


def n_found_in_noise(n_samples: int, seed: int, n_spins: int = N_SPINS) -> int:
    """Return how many patterns ours finds in fair spins."""
    X = fair_spins(np.random.default_rng(seed), (n_samples, n_spins))
    return int(fitted(X, seed).model.n_patterns_)


def losses(trials: list[Trial], slack: float = 0.005, slower: float = 1.3) -> list[str]:
    """Return sentences: where ours is worse than an earlier version was in the same run.

    Parameters
    ----------
    trials : list of Trial
    slack : float
        Mean overlap that may be lost.
    slower : float
        Ratio of median times that is allowed.

    Returns
    -------
    list of str
    """
    lines = []
    for name, own in _by_case(trials).items():
        for now, then in ((BLIND, BEFORE), (GIVEN, BEFORE_GIVEN)):
            pairs = [(t.fits[now], t.fits[then]) for t in own if {now, then} <= set(t.fits)]
            if not pairs:
                continue
            a, b = (np.array([p[k] for p in pairs]) for k in (0, 1))
            overlap, seconds = (a - b)[:, 0].mean(), np.median(a[:, 1]) / np.median(b[:, 1])
            exact = [int((x[:, 2] == own[0].case.n_patterns).sum()) for x in (a, b)]
            if overlap < -slack:
                lines.append(f"{name}, {now}: mean overlap {overlap:+.3f}")
            if exact[0] < exact[1]:
                lines.append(f"{name}, {now}: P exact in {exact[0]}, before in {exact[1]}")
            if seconds > slower:
                lines.append(f"{name}, {now}: {seconds:.1f} times as slow")
    return lines
