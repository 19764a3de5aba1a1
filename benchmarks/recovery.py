"""Recovery of patterns in every phase: accuracy and time of ours against peers.

``python -m benchmarks recovery`` runs everything. One case alone::

    from benchmarks import recovery
    rows = recovery.table(["β=2 P=20 M=200"], seeds=range(100, 102))

A trial is a pure function of the name of its case and a seed; see ``list(recovery.CASES)``.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils.extmath import randomized_svd

from benchmarks.harness import Contender, Row, compare, threads
from benchmarks.peers import methods
from dualtap import DualTAP, HopfieldModel, HopfieldPatterns
from dualtap.metrics import calibration, overlaps, pseudo_likelihood
from dualtap.theory import metastable_temperature, paramagnetic_limit

N_SPINS = 1000
FIRST_SEED = 100  # nothing was tuned on these
NOISE_SAMPLES = (100, 500, 1000, 2000, 5000)
BLIND = "ours"
Bits = NDArray[np.int8]


@dataclass(frozen=True)
class Case:
    """A teacher and what happens to its samples on the way to the student."""

    beta: float
    n_patterns: int
    n_samples: int
    n_spins: int = N_SPINS
    n_sweeps: int = 100
    uneven: bool = False
    flipped: bool = False
    missing: float = 0.0
    field: float = 0.0
    coins: float = 0.0

    @property
    def name(self) -> str:
        """What the case is called in the tables."""
        extras = {
            f"{self.n_sweeps} sweeps": self.n_sweeps != Case.n_sweeps,
            "weights 1 to 15 %": self.uneven,
            "half flipped": self.flipped,
            f"{self.missing:.0%} missing": self.missing,
            f"fields ±{self.field:g}": self.field,
            f"{self.coins:.0%} coins": self.coins,
        }
        size = f"β={self.beta:g} P={self.n_patterns} M={self.n_samples}"
        return ", ".join([size, *(text for text, present in extras.items() if present)])

    def resized(self, n_spins: int) -> Case:
        """Return the case at another N and the same P/N and M/N, as near as can be."""
        scale = n_spins / self.n_spins
        return replace(
            self,
            n_spins=n_spins,
            n_patterns=max(1, round(self.n_patterns * scale)),
            n_samples=max(2, round(self.n_samples * scale)),
        )


_CASES = (
    *(Case(2.0, 20, n_samples) for n_samples in (40, 60, 200, 1000)),
    Case(2.0, 20, 200, flipped=True),
    Case(2.0, 20, 2000, uneven=True),
    Case(2.0, 20, 2000, uneven=True, flipped=True),
    Case(4.0, 100, 1000, n_sweeps=20),
    Case(4.0, 100, 1000),
    *(Case(0.8, 1, n_samples) for n_samples in (125, 250, 500, 1000, 2000)),
    *(Case(0.5, 1, n_samples) for n_samples in (2000, 5000)),
    *(Case(0.8, 20, n_samples) for n_samples in (1000, 2000, 5000)),
    Case(0.5, 20, 8000),
    Case(0.8, 5, 1000),
    Case(1.2, 10, 2000),
    Case(1.2, 20, 5000),
    Case(1.5, 30, 2000),
    Case(2.0, 60, 3000),
    *(Case(2.0, 20, 200, missing=share) for share in (0.3, 0.5)),
    Case(2.0, 10, 500, field=0.5),
    Case(2.0, 20, 250, coins=0.2),
)
CASES = {case.name: case for case in _CASES}


class Data(NamedTuple):
    """Samples of a case, and what only the teacher knows of them."""

    case: Case
    X: NDArray[Any]
    """What ours is given: ±1, NaN where an entry is missing."""
    spins: Bits
    """What peers are given: 0 where an entry is missing."""
    patterns: Bits
    label: NDArray[np.int64]
    """The pattern where the chain of each sample started; -1 for coins."""
    sign: Bits
    """-1 for flipped samples."""


def draw(case: Case, seed: int) -> Data:
    """Return the samples of a case."""
    rng = np.random.default_rng(2000 + seed)
    teacher = _teacher(case, seed, rng)
    label = _starts(case)
    spins = teacher.sample(
        case.n_samples,
        start=teacher.patterns[label] if case.beta > 1 else "random",
        n_sweeps=case.n_sweeps,
        random_state=1000 + seed,
    )
    sign = np.ones(case.n_samples, dtype=np.int8)
    if case.flipped:
        sign[rng.permutation(case.n_samples)[: case.n_samples // 2]] = -1
        spins *= sign[:, None]
    if case.coins:
        coins = rng.permutation(case.n_samples)[: round(case.coins * case.n_samples)]
        spins[coins] = _fair(rng, (len(coins), case.n_spins))
        label[coins] = -1
    if case.missing:
        spins[rng.random(spins.shape) < case.missing] = 0
    X = np.where(spins == 0, np.float32(np.nan), spins) if case.missing else spins
    return Data(case, X, spins, teacher.patterns, label, sign)


def _teacher(case: Case, seed: int, rng: np.random.Generator) -> HopfieldModel:
    teacher = HopfieldModel.random(case.n_spins, case.n_patterns, case.beta, random_state=seed)
    if not case.field:
        return teacher
    fields = rng.uniform(-case.field, case.field, size=case.n_spins)
    return HopfieldModel(teacher.patterns, case.beta, fields=fields)


def _starts(case: Case) -> NDArray[np.int64]:
    if not case.uneven:
        return np.arange(case.n_samples) % case.n_patterns
    weights = np.geomspace(0.01, 0.15, case.n_patterns)
    bounds = np.round(np.cumsum(weights) / weights.sum() * case.n_samples)
    return np.repeat(np.arange(case.n_patterns), np.diff(bounds, prepend=0).astype(int))


def _fair(rng: np.random.Generator, shape: tuple[int, int]) -> Bits:
    return 2 * rng.integers(0, 2, size=shape, dtype=np.int8) - 1


def _given(data: Data, seed: int) -> Bits:
    model = HopfieldPatterns(n_patterns=data.case.n_patterns, random_state=seed).fit(data.X)
    patterns: Bits = model.patterns_
    return patterns


def _told(find: Callable[[Bits, int, int], Bits]) -> Callable[[Data, int], Bits]:
    """Return a peer's method as a contender that is told P."""
    return lambda data, seed: find(data.spins, data.case.n_patterns, seed)


def _paper(data: Data, seed: int) -> Bits:
    case = data.case
    model = DualTAP(n_patterns=case.n_patterns, beta=case.beta, random_state=seed)
    patterns: Bits = model.fit(data.X).patterns_
    return patterns


CONTENDERS: dict[str, Callable[[Data, int], Bits]] = {
    "ours, P given": _given,
    "k-means": _told(methods.k_means),
    "average linkage": _told(methods.linkage),
    "PCA + ICA": _told(methods.ica),
    "paper": _paper,
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


@dataclass(frozen=True)
class Trial:
    """All that one seed of a case taught."""

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
    name: str, seed: int, contenders: Sequence[str] = tuple(CONTENDERS), n_spins: int = N_SPINS
) -> Trial:
    """Draw a case, fit it with ours blind and with the ``contenders``, on one thread.

    Parameters
    ----------
    name : str
        A key of `CASES`.
    seed : int
    contenders : sequence of str
        Keys of `CONTENDERS`; ours with nothing given always runs.
    n_spins : int
        Other than 1000 for a rehearsal: P and M change in proportion.

    Returns
    -------
    Trial
    """
    case = CASES[name].resized(n_spins)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm_up()
        data = draw(case, seed)
        start = time.perf_counter()
        model = HopfieldPatterns(random_state=seed).fit(data.X)
        seconds = time.perf_counter() - start
        others = {other: _timed(CONTENDERS[other], data, seed) for other in contenders}
        found = model.n_patterns_ > 0
        return Trial(
            name=name,
            case=case,
            seed=seed,
            fits={BLIND: Fit(best_overlap(model.patterns_, data.patterns), seconds)} | others,
            limit=_limit(data),
            n_found=model.n_patterns_,
            beta=float(model.beta_) if found else np.nan,
            calibration=_calibration(model.magnetizations_, data.patterns) if found else np.nan,
            # No pattern is a fair coin, whatever β is.
            likelihood=pseudo_likelihood(
                data.spins, model.patterns_, float(model.beta_) if found else 0.0
            ),
            teacher_likelihood=pseudo_likelihood(data.spins, data.patterns, case.beta),
        )


@cache
def _warm_up() -> None:
    """Load compiled kernels once a process, before anything is timed."""
    data = draw(Case(2.0, 2, 20, n_spins=100), 0)
    HopfieldPatterns(random_state=0).fit(data.X)
    for contender in CONTENDERS.values():
        contender(data, 0)


def _timed(contender: Callable[[Data, int], Bits], data: Data, seed: int) -> Fit:
    start = time.perf_counter()
    found = contender(data, seed)
    seconds = time.perf_counter() - start
    return Fit(best_overlap(found, data.patterns), seconds)


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
    return float(np.abs(overlaps(found, truth)).max(axis=0, initial=0).mean())


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
) -> list[Trial]:
    """Run trials, two at a time, and say on stderr how they go.

    Parameters
    ----------
    cases : iterable of str, optional
        Keys of `CASES`; all by default.
    seeds : iterable of int, optional
        By default 100 … 104, and to 109 for one pattern. The slowest contenders run on the first
        only, see the caption.
    contenders, n_spins : as in :func:`trial`

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
            jobs.append(delayed(trial)(name, seed, running, n_spins))
    trials = []
    for done in Parallel(n_jobs=2, return_as="generator")(jobs):
        marks = ", ".join(
            f"{key} {x.overlap:.3f} {x.seconds:.1f} s" for key, x in done.fits.items()
        )
        print(f"{done.name}, seed {done.seed}: {marks}", file=sys.stderr, flush=True)
        trials.append(done)
    return trials


def table(
    cases: Iterable[str] | None = None,
    seeds: Iterable[int] | None = None,
    contenders: Sequence[str] = tuple(CONTENDERS),
    n_spins: int = N_SPINS,
) -> list[dict[str, Any]]:
    """Measure and return the rows of the accuracy table; arguments as in :func:`measure`."""
    return accuracy(measure(cases, seeds, contenders, n_spins))


ACCURACY = """Recovery of patterns: accuracy and time

Mean over the teacher's patterns of the largest |overlap| with a found one (0 when nothing is found;
among P random patterns chance gives √(2 log P / N)), mean ± standard error over seeds; N=1000.
"ours" is given nothing; all others are given P, and the paper's algorithm β too. Peers get 0 for
missing entries. Where the paper's algorithm is slow it ran on the first two seeds (M·P² ≥ 0.8
million) or on the first alone (≥ 2 million); average linkage did not run for M > 3000. Limit: in
the retrieval phase the majority vote of the samples that started at a pattern, on the same data,
which is no strict bound; in the paramagnet (β < 1) the Bayes limit of one pattern alone, N → ∞;
elsewhere none is known.
Seconds are medians, two trials side by side on one thread each."""


def accuracy(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return a row a case: overlaps of everybody, then ours in detail, then seconds."""
    rows = []
    for name, own in _by_case(trials).items():
        fits = {key: [t.fits[key] for t in own if key in t.fits] for key in (BLIND, *CONTENDERS)}
        off = [abs(t.beta / t.case.beta - 1) for t in own if t.n_found]
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

Mean log pseudo-likelihood per spin of the training data (site fields left out), of our answer with
our β, and of the teacher's patterns with the true β; mean ± standard error over seeds. Where ours
is below the teacher's, a better answer was there to be found; where it is not and the overlap is
still short of 1, the data do not tell."""


def likelihood(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return a row a case: ours, the teacher's, and on how many seeds ours is no worse."""
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


NOISE = """Fair coins: no pattern is the right answer

N=1000; every fit has a seed of its own, from 100 on."""


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
            "nothing found": int(np.sum(counts == 0)),
            "most patterns found": int(counts.max()),
        }
        for case, counts in [
            *((f"coins M={size}", row) for size, row in zip(sizes, found, strict=True)),
            ("all", found.ravel()),
        ]
    ]


def n_found_in_noise(n_samples: int, seed: int, n_spins: int = N_SPINS) -> int:
    """Return how many patterns ours sees in fair coins."""
    X = _fair(np.random.default_rng(seed), (n_samples, n_spins))
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return int(HopfieldPatterns(random_state=seed).fit(X).n_patterns_)


def speed(n_threads: int, runs: int) -> list[Row]:
    """N=1000, P=20, β=2, M=200: ours blind against the paper's algorithm and k-means."""
    data = draw(Case(2.0, 20, 200), FIRST_SEED)
    return [
        row
        for name, contender in (
            ("DualTAP, β and P given", _paper),
            ("KMeans(20, n_init=10)", _told(methods.k_means)),
        )
        for row in compare(
            f"N=1000 {data.case.name}, against {name}",
            _found_by(name, partial(contender, data, 0), data),
            _blind(data),
            n_threads,
            runs,
        )
    ]


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
    return _found_by(
        "dualtap, nothing given",
        lambda: HopfieldPatterns(random_state=0).fit(data.X).patterns_,
        data,
    )


def _found_by(name: str, run: Callable[[], Bits], data: Data) -> Contender:
    def accuracy(found: Bits) -> str:
        return f"{len(found)} patterns, mean overlap {best_overlap(found, data.patterns):.4f}"

    return Contender(name, run, accuracy)
