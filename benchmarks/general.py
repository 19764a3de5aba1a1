"""Teachers of the generalised model: own strengths, fields, repulsion, entries that are 0.

``python -m benchmarks general [--cases TEXT ...] [--seeds N]``. The blind fit is compared with the
same refinement started at the truth: where both fall short, the data do not tell.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.harness import markdown, threads, write
from benchmarks.ours import Support, counts, fitted, spread, support
from benchmarks.recovery_cases import FIRST_SEED, Bits, fair_spins

N_SPINS = 1000
N_SEEDS = 5
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class General:
    """A teacher of the generalised model."""

    name: str
    strengths: tuple[float, ...]
    n_samples: int
    field: float = 0.0
    """Fields are uniform in ± this."""
    share: float = 1.0
    """Share of the entries of a pattern that are not 0."""

    def shrunk(self, scale: float) -> General:
        """Return the case with fewer patterns and samples, for a rehearsal at smaller N."""
        n_kept = max(2, round(len(self.strengths) * scale))
        kept = np.linspace(0, len(self.strengths) - 1, n_kept).astype(int)
        strengths = tuple(self.strengths[k] for k in kept)
        n_samples = round(self.n_samples * scale)
        return General(self.name, strengths, n_samples, self.field, self.share)


def _steps(first: float, last: float, count: int) -> tuple[float, ...]:
    return tuple(float(x) for x in np.linspace(first, last, count))


CASES = (
    General("P=20, strengths 0.5…0.95, fields ±0.5, M=5000", _steps(0.5, 0.95, 20), 5000, 0.5),
    General("one of 1.2 beside ten of 0.6…0.9, M=20000", (1.2, *_steps(0.6, 0.9, 10)), 20_000),
    General("15 of 0.8 and five of -2, M=10000", (0.8,) * 15 + (-2.0,) * 5, 10_000),
    General("P=20 diluted to 30 %, strength 3, M=5000", (3.0,) * 20, 5000, share=0.3),
)


class Teacher(NamedTuple):
    """Samples and where they come from."""

    X: Bits
    patterns: Bits
    strengths: Floats
    fields: Floats


def draw(case: General, seed: int, n_spins: int = N_SPINS) -> Teacher:
    """Return samples of a case; a pure function of the case and the seed."""
    from dualtap import HopfieldModel

    rng = np.random.default_rng(3000 + seed)
    patterns = fair_spins(rng, (len(case.strengths), n_spins))
    n_zero = n_spins - round(case.share * n_spins)
    for pattern in patterns:
        pattern[rng.permutation(n_spins)[:n_zero]] = 0
    fields = rng.uniform(-case.field, case.field, size=n_spins)
    strengths = np.array(case.strengths)
    model = HopfieldModel(patterns, fields=fields if case.field else None, strengths=strengths)
    X = model.sample(case.n_samples, random_state=1000 + seed)
    return Teacher(X, patterns, strengths, fields)


class Trial(NamedTuple):
    """One seed of a case."""

    name: str
    n_true: int
    n_found: int
    blind: Support
    refined: Support
    strength_error: float
    """Mean relative error of the strengths of matched patterns."""
    seconds: float


def trial(case: General, seed: int, n_spins: int = N_SPINS) -> Trial:
    """Fit a draw blind, and refine the truth on the same samples."""
    from dualtap.recovery import refined_from

    teacher = draw(case, seed, n_spins)
    model, seconds = fitted(teacher.X, seed)
    blind = support(model.patterns_, teacher.patterns, model.strengths_)
    with threads(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Entries that the refinement sets to 0 are exactly 0 in m.
        refined = np.sign(refined_from(teacher.X, teacher.patterns, seed).m)
    off = np.abs(blind.strength / teacher.strengths - 1)
    return Trial(
        case.name,
        len(teacher.patterns),
        int(model.n_patterns_),
        blind,
        support(refined, teacher.patterns),
        float(np.nanmean(off)) if np.isfinite(off).any() else np.nan,
        seconds,
    )


TITLE = """Generalised teachers: blind fit against the same refinement started at the truth

N=1000; random ±1 patterns with the strengths of the case, no fields but where stated; means over
the patterns of each teacher, then mean ± standard error over seeds. Found patterns are matched one
to one with the true ones by |cosine|, up to sign and order; a true pattern without a partner counts
as 0. Overlap: |Σ ζ z| over the true support, divided by its size. Precision and recall: of the
entries that are not 0. "From the truth": HopfieldPatterns' refinement started at the teacher's
patterns, on the same samples: what it loses is information, not search. Error of strengths: mean
relative error over matched patterns. Seconds are medians, two fits side by side on one thread
each."""


def table(trials: list[Trial]) -> list[dict[str, Any]]:
    """Return one row per case."""
    rows = []
    for name in dict.fromkeys(one.name for one in trials):
        own = [one for one in trials if one.name == name]
        blind, refined = (np.array([getattr(t, key).means for t in own]) for key in KINDS)
        exact = sum(t.n_found == t.n_true for t in own)
        rows.append(
            {
                "case": name,
                "overlap, blind": spread(blind[:, 0]),
                "overlap, from the truth": spread(refined[:, 0]),
                "precision, blind": spread(blind[:, 1]),
                "precision, from the truth": spread(refined[:, 1]),
                "recall, blind": spread(blind[:, 2]),
                "recall, from the truth": spread(refined[:, 2]),
                "P found": counts(t.n_found for t in own),
                "P exact": f"{exact} of {len(own)}",
                "error of strengths": f"{np.nanmean([t.strength_error for t in own]):.1%}",
                "seconds": f"{np.median([t.seconds for t in own]):.2g}",
            }
        )
    return rows


KINDS = ("blind", "refined")


def measure(cases: list[General], seeds: range, n_spins: int = N_SPINS) -> list[Trial]:
    """Run trials, two at a time, and report each on stderr."""
    jobs = (delayed(trial)(case, seed, n_spins) for case in cases for seed in seeds)
    trials = []
    for done in Parallel(n_jobs=2, return_as="generator")(jobs):
        blind, refined = done.blind.means[0], done.refined.means[0]
        print(
            f"{done.name}: overlap {blind:.3f} blind, {refined:.3f} from the truth, "
            f"P={done.n_found}, {done.seconds:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        trials.append(done)
    return trials


def run(arguments: list[str]) -> None:
    """Measure, print, and write ``general.md`` if everything ran."""
    parser = argparse.ArgumentParser("python -m benchmarks general", description=__doc__)
    parser.add_argument("--cases", nargs="+", default=[""], metavar="TEXT", help="part of a name")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="number of seeds per case")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--n-spins", type=int, default=N_SPINS, help="smaller for a rehearsal")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if any(text in case.name for text in options.cases)]
    whole = len(cases) == len(CASES) and options.seeds >= N_SEEDS and options.n_spins == N_SPINS
    if options.n_spins != N_SPINS:
        cases = [case.shrunk(options.n_spins / N_SPINS) for case in cases]
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows = table(measure(cases, seeds, options.n_spins))
    print(markdown(rows))
    if whole:
        write("general", TITLE, rows)
