"""Recovery of patterns in every phase: ours, blind and given P, against peers.

``python -m benchmarks recovery`` runs everything; a part of it::

    python -m benchmarks recovery --cases "β=2 P=20 M=200" "β=1.2" --seeds 2 --only ours

A trial is a pure function of the name of its case and a seed; see `recovery_cases`.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.before import fitted_by
from benchmarks.harness import threads
from benchmarks.ours import fitted, warm_up
from benchmarks.peers import methods
from benchmarks.recovery_cases import CASES, FIRST_SEED, N_SPINS, Bits, Case, Data, draw
from dualtap import DualTAP
from dualtap.metrics import calibration, pseudo_likelihood
from dualtap.theory import metastable_temperature, paramagnetic_limit

BLIND = "ours"
GIVEN = "ours, P given"
BEFORE = "before"
BEFORE_GIVEN = "before, P given"


def given_p(data: Data, seed: int) -> Bits:
    """Find patterns, their number given."""
    patterns: Bits = fitted(data.X, seed, data.case.n_patterns).model.patterns_
    return patterns


def _told(find: Callable[[Bits, int, int], Bits]) -> Callable[[Data, int], Bits]:
    """Return a peer's method as a contender that is given P."""
    return lambda data, seed: find(data.spins, data.case.n_patterns, seed)


def paper(data: Data, seed: int) -> Bits:
    """Run the published algorithm, P and β given."""
    case = data.case
    model = DualTAP(n_patterns=case.n_patterns, beta=case.beta, random_state=seed)
    patterns: Bits = model.fit(data.X).patterns_
    return patterns


CONTENDERS: dict[str, Callable[[Data, int], Bits]] = {
    GIVEN: given_p,
    "k-means": _told(methods.k_means),
    "average linkage": _told(methods.linkage),
    "PCA + ICA": _told(methods.ica),
    "paper": paper,
}


def _n_runs(name: str, case: Case, n_seeds: int) -> int:
    """Return on how many of the seeds a contender runs: some would take minutes."""
    if name == "average linkage" and case.n_samples > 3000:
        return 0
    if name == "paper":
        work = case.n_samples * case.n_patterns**2  # P rounds of about P students each
        return min(n_seeds, 1 if work >= 2_000_000 else 2 if work >= 800_000 else n_seeds)
    return n_seeds


class Fit(NamedTuple):
    """How one contender did."""

    overlap: float
    seconds: float
    n_patterns: int = 0


@dataclass(frozen=True)
class Trial:
    """What was measured on one seed of a case."""

    name: str
    case: Case
    seed: int
    fits: dict[str, Fit]
    limit: float
    n_found: int
    beta: float
    calibration: float
    likelihood: float
    teacher_likelihood: float


def trial(
    name: str,
    seed: int,
    contenders: Sequence[str] = tuple(CONTENDERS),
    n_spins: int = N_SPINS,
    old: Path | None = None,
) -> Trial:
    """Draw a case, fit it with ours blind and with the ``contenders``, on one thread.

    Parameters
    ----------
    name : str
        A key of `CASES`.
    seed : int
    contenders : sequence of str
        Keys of `CONTENDERS`; ours with default parameters always runs.
    n_spins : int
        Other than 1000 for a rehearsal: P and M change in proportion.
    old : Path, optional
        Source folder of another version of this package, which fits the same samples.

    Returns
    -------
    Trial
    """
    case = CASES[name].resized(n_spins)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm_up()
        data = draw(case, seed)
        model, seconds = fitted(data.X, seed, steady=True)
        fits = {BLIND: _judged(model.patterns_, seconds, data)}
        fits |= {other: _timed(CONTENDERS[other], data, seed) for other in contenders}
        if old is not None:
            for before, n_patterns in ((BEFORE, None), (BEFORE_GIVEN, case.n_patterns)):
                fits[before] = _judged(*fitted_by(old, data.X, seed, n_patterns), data)
        found = model.n_patterns_ > 0
        beta = model.beta_ if found and model.beta_ is not None else np.nan
        return Trial(
            name=name,
            case=case,
            seed=seed,
            fits=fits,
            limit=_limit(data),
            n_found=model.n_patterns_,
            beta=float(beta),
            calibration=_calibration(model.magnetizations_, data.patterns) if found else np.nan,
            likelihood=float(model.score(data.X)),
            teacher_likelihood=pseudo_likelihood(data.spins, data.patterns, case.beta, data.fields),
        )


@cache
def _warm_up() -> None:
    """Load compiled kernels once per process, before anything is timed."""
    warm_up()
    data = draw(Case(2.0, 2, 20, n_spins=100), 0)
    for contender in CONTENDERS.values():
        contender(data, 0)


def _judged(found: Bits, seconds: float, data: Data) -> Fit:
    return Fit(best_overlap(found, data.patterns), seconds, len(found))


def _timed(contender: Callable[[Data, int], Bits], data: Data, seed: int) -> Fit:
    start = time.perf_counter()
    found = contender(data, seed)
    return _judged(found, time.perf_counter() - start, data)


def best_overlap(found: Bits, truth: Bits) -> float:
    """Return the mean over true patterns of the largest |overlap| with a found one, 0 if none.

    Examples
    --------
    >>> import numpy as np
    >>> from benchmarks.recovery import best_overlap
    >>> truth = np.array([[1, 1, -1, -1], [1, -1, 1, -1]], dtype=np.int8)
    >>> best_overlap(truth[:1], truth), best_overlap(truth[:0], truth)
    (0.5, 0.0)
    """
    overlap = np.abs(found.astype(np.float64) @ truth.T) / truth.shape[1]
    return float(overlap.max(axis=0, initial=0).mean())


def _calibration(magnetizations: NDArray[Any], patterns: Bits) -> float:
    return float(calibration(magnetizations, patterns).error)


def _limit(data: Data) -> float:
    """Return what no method can beat by much, NaN in phases where nobody knows."""
    case = data.case
    if case.beta < 1:
        return paramagnetic_limit(case.beta, case.n_samples / case.n_spins).sign
    if 1 / case.beta < metastable_temperature(case.n_patterns / case.n_spins):
        return _oracle_vote(data)
    return np.nan


def _oracle_vote(data: Data) -> float:
    """Return the overlap of majority votes of the samples that belong together; ties count half."""
    S = data.spins * data.sign[:, None]
    right = [
        np.sign(S[data.label == k].sum(axis=0, dtype=np.int64)) @ pattern.astype(np.int64)
        for k, pattern in enumerate(data.patterns)
    ]
    return float(np.mean(right) / data.case.n_spins)


def measure(
    cases: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
    contenders: Sequence[str] = tuple(CONTENDERS),
    n_spins: int = N_SPINS,
    old: Path | None = None,
) -> list[Trial]:
    """Run trials, two at a time, and say on stderr how they go.

    Parameters
    ----------
    cases : iterable of str, optional
        Keys of `CASES`; all by default.
    seeds : iterable of int, optional
        By default 100 … 104, and to 109 for one pattern. The slowest contenders run on the first
        only, see the caption.
    contenders, n_spins, old : as in :func:`trial`

    Returns
    -------
    list of Trial
    """
    given = None if seeds is None else list(seeds)
    jobs = []
    for name in CASES if cases is None else cases:
        case = CASES[name]
        own = given or range(FIRST_SEED, FIRST_SEED + (10 if case.n_patterns == 1 else 5))
        for k, seed in enumerate(own):
            running = tuple(c for c in contenders if k < _n_runs(c, case, len(own)))
            jobs.append(delayed(trial)(name, seed, running, n_spins, old))
    trials = []
    for done in Parallel(n_jobs=2, return_as="generator")(jobs):
        marks = ", ".join(
            f"{key} {x.overlap:.3f} {x.seconds:.1f} s" for key, x in done.fits.items()
        )
        print(f"{done.name}, seed {done.seed}: {marks}", file=sys.stderr, flush=True)
        trials.append(done)
    return trials


def named(parts: Iterable[str]) -> list[str]:
    """Return the cases of these names, or, where there is none, those that contain the text."""
    names: list[str] = []
    for part in parts:
        hits = [part] if part in CASES else [name for name in CASES if part in name]
        if not hits:
            sys.exit(f"unknown case: {part}; known: {'; '.join(CASES)}")
        names += [name for name in hits if name not in names]
    return names
