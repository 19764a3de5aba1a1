"""Data whose hidden structure is known: populations, parties, scoring keys, cell assemblies.

``python -m benchmarks structure --data DIR [--only populations keys assemblies halves]`` reads
``DIR/<set>.npz``; the assemblies are drawn here and need no data. ``halves`` asks whether two
halves of the real sets give the same bits.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from benchmarks.harness import markdown, threads, write
from benchmarks.ours import cosines, counts, fitted, spread, with_gaps
from benchmarks.real import SETS, samples

Bits = NDArray[np.int8]
Floats = NDArray[np.float64]
N_DRAWS = 10
FIRST_SEED = 100  # nothing was tuned on these
SLACK = 0.005


class Labelled(NamedTuple):
    """A data set whose spins have a ±1 label, and how many of its samples are drawn."""

    file: str
    label: str
    transposed: bool
    n_samples: tuple[int, ...]


LABELLED = {
    "genotypes CEU/YRI": Labelled("genotypes_ceu_yri", "spin_label", False, (20, 100, 200, 1000)),
    "genotypes CHB/JPT": Labelled("genotypes_chb_jpt", "spin_label", False, (500, 2000, 4000)),
    "senate, transposed": Labelled("senate", "label", True, (50, 200, 672)),
}

POPULATIONS = f"""Two groups of units, known from outside: populations and parties

Samples are sites of the genome (or roll calls), units are people (or senators). |overlap| with the
±1 label of the units, mean ± standard error over {N_DRAWS} draws of the samples without
replacement, seeds from {FIRST_SEED} on (where all samples are used, the seed of the fit is all that
changes). Ours: the best pattern of HopfieldPatterns with default parameters, entries of 0 count as
wrong by a half; on the support: without the entries of 0 of that pattern. Singular vector: sign of
the leading right singular vector of the samples, each with its mean over observed entries
subtracted. Seconds are medians, two fits side by side on one thread each."""


def load_labelled(name: str, folder: Path) -> tuple[Bits, Bits]:
    """Return samples (0 = missing) and the label of each unit, ±1."""
    one = LABELLED[name]
    with np.load(folder / f"{one.file}.npz", allow_pickle=False) as file:
        X, label = file["X"], file[one.label]
    return (X.T if one.transposed else X), np.where(label == label.max(), 1, -1).astype(np.int8)


def leading_signs(X: Bits) -> Bits:
    """Return the sign of the leading right singular vector of the row-centred samples."""
    seen = X != 0
    mean = X.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)
    W = np.where(seen, X - mean[:, None], 0.0)
    vector = np.linalg.eigh(W.T @ W)[1][:, -1]
    return np.where(vector < 0, -1, 1).astype(np.int8)


def best_overlap(patterns: Bits, label: Bits) -> float:
    """Return the largest |overlap| of a pattern with the label, 0 without patterns."""
    return float(np.abs(patterns.astype(float) @ label).max(initial=0.0) / len(label))


def overlap_on_support(patterns: Bits, label: Bits) -> float:
    """Return the |overlap| of the best pattern with the label where the pattern is not 0."""
    if not len(patterns):
        return 0.0
    overlaps = np.abs(patterns.astype(float) @ label)
    best = int(np.argmax(overlaps))
    return float(overlaps[best] / max(np.count_nonzero(patterns[best]), 1))


class Draw(NamedTuple):
    """One draw of the samples."""

    ours: float
    on_support: float
    peer: float
    n_patterns: int
    seconds: float


def populations_draw(name: str, folder: Path, n_samples: int, seed: int) -> Draw:
    """Fit a draw of a labelled set, and take its leading singular vector."""
    X, label = load_labelled(name, folder)
    X = np.ascontiguousarray(X[np.random.default_rng(seed).permutation(len(X))[:n_samples]])
    with threads(1):
        peer = best_overlap(leading_signs(X)[None], label)
    model, seconds = fitted(X, seed)
    Z = model.patterns_
    return Draw(best_overlap(Z, label), overlap_on_support(Z, label), peer, len(Z), seconds)


def populations(folder: Path, n_draws: int = N_DRAWS) -> list[dict[str, Any]]:
    """Return one row per set and number of samples."""
    rows = []
    for name, one in LABELLED.items():
        for n_samples in one.n_samples:
            draws = Parallel(n_jobs=2)(
                delayed(populations_draw)(name, folder, n_samples, FIRST_SEED + k)
                for k in range(n_draws)
            )
            ours, peer = (np.array([getattr(d, key) for d in draws]) for key in ("ours", "peer"))
            rows.append(
                {
                    "data": name,
                    "M": n_samples,
                    "ours": spread(ours),
                    "on the support": spread(np.array([d.on_support for d in draws])),
                    "singular vector": spread(peer),
                    "ours - singular vector": spread(ours - peer),
                    f"not below by {SLACK}": "yes" if ours.mean() >= peer.mean() - SLACK else "no",
                    "patterns": counts(d.n_patterns for d in draws),
                    "seconds": f"{np.median([d.seconds for d in draws]):.2g}",
                }
            )
            print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    return rows


KEYS = """Scoring keys of a questionnaire

|cosine| of the best single pattern with each scoring key (−1/0/+1 per item) of the Eysenck
Personality Inventory, 3570 people × 57 items, all samples; five seeds of the fit. Factor analysis:
three factors, varimax rotation, missing answers replaced by the mean of their item."""


def keys_fit(folder: Path, seed: int) -> dict[str, Any]:
    """Fit the questionnaire and compare with its keys."""
    X, keys = _questionnaire(folder)
    model, seconds = fitted(X, seed)
    return _against_keys(f"ours, seed {seed}", model.patterns_, keys, seconds)


def keys(folder: Path, n_seeds: int = 5) -> list[dict[str, Any]]:
    """Return one row per seed, and one of factor analysis."""
    from sklearn.decomposition import FactorAnalysis

    X, truth = _questionnaire(folder)
    seen = X != 0
    S = np.where(seen, X, X.sum(axis=0) / seen.sum(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        factors = FactorAnalysis(3, rotation="varimax").fit(S).components_
    ours = Parallel(n_jobs=2)(delayed(keys_fit)(folder, FIRST_SEED + k) for k in range(n_seeds))
    return [*ours, _against_keys("factor analysis, varimax", factors, truth, np.nan)]


def _questionnaire(folder: Path) -> tuple[Bits, dict[str, Bits]]:
    with np.load(folder / "eysenck_questionnaire.npz", allow_pickle=False) as file:
        return file["X"], {key: file[f"key_{key}"] for key in "ENL"}


def _against_keys(
    name: str, patterns: NDArray[Any], truth: dict[str, Bits], seconds: float
) -> dict[str, Any]:
    best = np.abs(cosines(patterns, np.array(list(truth.values())))).max(axis=0, initial=0.0)
    row: dict[str, Any] = {"method": name}
    row |= {key: f"{value:.3f}" for key, value in zip(truth, best, strict=True)}
    return row | {"patterns": len(patterns), "seconds": f"{seconds:.2g}"}


class Assemblies(NamedTuple):
    """Neurons that are active together now and then, among others that are not."""

    n_neurons: int
    n_assemblies: int
    size: int
    n_bins: int = 50_000
    background: float = 0.02
    """P(a neuron is active in a bin) on its own."""
    rate: float = 0.01
    """P(an assembly is active in a bin), independently of the others."""
    reliability: float = 0.8
    """P(a neuron of an active assembly is active)."""

    @property
    def name(self) -> str:
        """What the case is called in the table."""
        return f"{self.n_assemblies} of {self.size} among {self.n_neurons}"


ASSEMBLIES = (Assemblies(100, 5, 10), Assemblies(200, 20, 8))
PLANTED = f"""Planted cell assemblies

HopfieldPatterns with default parameters; +1 = active, {ASSEMBLIES[0].n_bins} time bins. Every
neuron is active with probability {ASSEMBLIES[0].background} on its own. Assemblies are disjoint
sets of neurons chosen at random; in {ASSEMBLIES[0].rate:.0%} of the bins, independently for each
assembly, each of its neurons is made active with probability {ASSEMBLIES[0].reliability}. Precision
and recall: of the entries that are not 0 in the pattern that matches an assembly best (largest
Jaccard index); found: both at least 0.95. Five seeds; seconds are medians, two fits side by side on
one thread each."""


def spikes(case: Assemblies, seed: int) -> tuple[Bits, NDArray[np.bool_]]:
    """Return the raster, ±1 of shape (n_bins, n_neurons), and the members of each assembly."""
    rng = np.random.default_rng(seed)
    active = rng.random((case.n_bins, case.n_neurons)) < case.background
    order = rng.permutation(case.n_neurons)
    members = np.zeros((case.n_assemblies, case.n_neurons), dtype=bool)
    for k, own in enumerate(members):
        own[order[k * case.size : (k + 1) * case.size]] = True
        bins = np.flatnonzero(rng.random(case.n_bins) < case.rate)
        spiking = rng.random((len(bins), case.size)) < case.reliability
        active[np.ix_(bins, np.flatnonzero(own))] |= spiking
    return np.where(active, 1, -1).astype(np.int8), members


def precision_recall(patterns: Bits, members: NDArray[np.bool_]) -> Floats:
    """Return precision and recall of the best match of every assembly, (n_assemblies, 2)."""
    if len(patterns) == 0:
        return np.zeros((len(members), 2))
    support = patterns != 0
    both = members.astype(int) @ support.T.astype(int)
    found, own = support.sum(axis=1), members.sum(axis=1)
    jaccard = both / np.maximum(own[:, None] + found - both, 1)
    best = jaccard.argmax(axis=1)
    hits = both[np.arange(len(members)), best]
    return np.column_stack([hits / np.maximum(found[best], 1), hits / own])


def assemblies_fit(case: Assemblies, seed: int) -> tuple[Floats, int, float]:
    """Return precision and recall per assembly, the number of patterns and the seconds."""
    X, members = spikes(case, seed)
    model, seconds = fitted(X, seed)
    return precision_recall(model.patterns_, members), int(model.n_patterns_), seconds


def assemblies(n_seeds: int = 5) -> list[dict[str, Any]]:
    """Return one row per case."""
    rows = []
    for case in ASSEMBLIES:
        seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
        fits = Parallel(n_jobs=2)(delayed(assemblies_fit)(case, seed) for seed in seeds)
        quality = np.array([fit[0] for fit in fits])  # (seeds, assemblies, 2)
        found = (quality >= 0.95).all(axis=2).sum(axis=1)
        rows.append(
            {
                "assemblies": case.name,
                "found": ", ".join(str(n) for n in found),
                "precision, mean": f"{quality[..., 0].mean():.3f}",
                "precision, smallest": f"{quality[..., 0].min():.3f}",
                "recall, mean": f"{quality[..., 1].mean():.3f}",
                "recall, smallest": f"{quality[..., 1].min():.3f}",
                "patterns": ", ".join(str(fit[1]) for fit in fits),
                "seconds": f"{np.median([fit[2] for fit in fits]):.2g}",
            }
        )
    return rows


HALVED = tuple(name for name in SETS if not name.startswith("genotypes"))  # see POPULATIONS
SURE = 0.9  # |m| of a bit that is wrong in one case of twenty
HALVES = f"""Bits that both halves of the samples call sure

HopfieldPatterns with default parameters on two random halves of all samples; patterns matched one
to one by |cosine| (Hungarian), all matches counted, however unlike. Sure: |m| ≥ {SURE} in both.
Agree: of the sure bits of all splits, those with the same sign, the signs of whole patterns being
free. Splits: seeds from {FIRST_SEED} on."""


def halves_split(name: str, folder: Path, seed: int) -> tuple[int, int, int, int]:
    """Return the patterns of a half, and how many bits matched, were sure in both, and agreed."""
    from scipy.optimize import linear_sum_assignment

    X = with_gaps(samples(name, folder).X)
    order = np.random.default_rng(seed).permutation(len(X))
    one, other = (fitted(X[rows], seed)[0] for rows in np.array_split(order, 2))
    if not one.n_patterns_ or not other.n_patterns_:
        return int(one.n_patterns_), 0, 0, 0
    cosine = cosines(one.patterns_, other.patterns_)
    mu, nu = linear_sum_assignment(-np.abs(cosine))
    m = one.magnetizations_[mu] * np.sign(cosine[mu, nu])[:, None]
    sure = np.minimum(np.abs(m), np.abs(other.magnetizations_[nu])) >= SURE
    agree = sure & (m * other.magnetizations_[nu] > 0)
    return int(one.n_patterns_), sure.size, int(sure.sum()), int(agree.sum())


def halves(folder: Path, n_seeds: int = 5) -> list[dict[str, Any]]:
    """Return one row per real set."""
    rows = []
    for name in HALVED:
        seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
        splits = Parallel(n_jobs=2)(delayed(halves_split)(name, folder, seed) for seed in seeds)
        _, n_bits, n_sure, n_agree = np.array(splits).sum(axis=0)
        rows.append(
            {
                "data": name,
                "patterns": counts(split[0] for split in splits),
                "sure in both": f"{n_sure / max(n_bits, 1):.1%}",
                "agree": f"{n_agree / n_sure:.1%}" if n_sure else "none is sure",
            }
        )
        print(*rows[-1].values(), sep=" | ", file=sys.stderr, flush=True)
    return rows


PARTS = ("populations", "keys", "assemblies", "halves")


def run(arguments: list[str]) -> None:
    """Measure, print and write the parts asked for."""
    parser = argparse.ArgumentParser("python -m benchmarks structure", description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the .npz files")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--draws", type=int, default=N_DRAWS, help="draws of the populations")
    parser.add_argument("--seeds", type=int, default=5, help="seeds of the other parts")
    options = parser.parse_args(arguments)
    if options.data is None and set(options.only) != {"assemblies"}:
        parser.error("--data is needed for all but assemblies")
    for part in options.only:
        if part == "populations":
            name, title, rows = "populations", POPULATIONS, populations(options.data, options.draws)
        elif part == "keys":
            name, title, rows = "keys", KEYS, keys(options.data, options.seeds)
        elif part == "halves":
            name, title, rows = "halves", HALVES, halves(options.data, options.seeds)
        else:
            name, title, rows = "assemblies", PLANTED, assemblies(options.seeds)
        print(markdown(rows))
        if options.draws >= N_DRAWS and options.seeds >= 5:
            write(f"structure-{name}", title, rows)
