"""What a report shows, as plain data computed from a model: nothing here knows of HTML."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualtap import __version__
from dualtap._files import stored_parameters
from dualtap.fitted.learned import LearnedPatterns
from dualtap.fitted.meaning import Profiles
from dualtap.fitted.summary import UNCERTAIN
from dualtap.metrics import calibration, match
from dualtap.published import DualTAP
from dualtap.rbm import HopfieldRBM
from dualtap.report.encode import packed, quantised
from dualtap.report.labels import label_table, whole_number, whole_numbers
from dualtap.report.material import Material
from dualtap.report.meanings import meaning, sides_of, stability_of, stable_bits, unexplained_of
from dualtap.report.reading import Reading, by_pattern, nearest_samples, read, score_of_means
from dualtap.report.summary import describe

_NEAREST = 24  # samples shown of a pattern
_TOP, _ALL = 8, 20  # spins named on a card; all of them, if there are no more than that
_DIFFERENT = 12  # spins named that a sample has unlike its pattern
_MOST_ENTRIES = 8_000_000  # magnetizations in a page, a byte each
_MOST_SAMPLE_BYTES = 4_500_000
_MOST_NAME_CHARACTERS = 4_000_000
_MOST_CELLS = 200_000  # of the map of overlaps
_MOST_COLUMNS = 2000
_MOST_STEPS = 200


def contents(material: Material) -> dict[str, Any]:
    """Return everything a report shows, ready for JSON.

    Returns
    -------
    dict
        ``model``, ``patterns``, ``data``, ``samples``, ``labels``, ``truth``, ``unexplained``
        (pairs that the model explains least), ``stability`` (the last six None when they are not
        known), ``trace`` (the steps of the search), ``path`` (score over the
        number of patterns, or None), ``parameters``, ``notes`` on what was left out to keep the
        page small, and what names things.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.report.contents import contents
    >>> from dualtap.report.material import checked
    >>> teacher = dt.HopfieldModel.random(n_spins=200, n_patterns=2, beta=2.0, random_state=0)
    >>> X = teacher.sample(40, random_state=1)
    >>> shown = contents(checked(dt.HopfieldPatterns(random_state=0).fit(X), X, teacher=teacher))
    >>> [pattern["count"] for pattern in shown["patterns"]], shown["truth"]["recovered"]
    ([20, 20], 2)
    """
    model, spins = material.model, material.spins
    pull = model._pull if isinstance(model, LearnedPatterns) else None
    reading = None if spins is None else read(spins, model.patterns_, pull)
    names, notes = _names(material)
    labels = None
    if reading is not None and material.labels is not None:
        labels = label_table(
            reading.label, reading.sign, material.labels, int(model.n_patterns_), reading.weights
        )
    patterns, left_out = _patterns(material, reading, sides_of(material))
    samples = None if reading is None else _samples(material, reading)
    if samples is not None and samples["n_shown"] < samples["n"]:
        left_out.append(
            f"The map of overlaps shows {samples['n_shown']} of {samples['n']} samples, evenly "
            "spread over the patterns."
        )
    described = describe(model)
    for key in ("share_plus", "share_minus", "carried_by"):  # the cards have them
        described.pop(key, None)
    trace = described.pop("trace", [])
    if len(trace) > _MOST_STEPS:
        left_out.append(f"The first {_MOST_STEPS} of {len(trace)} steps of the search are shown.")
    return {
        "version": __version__,
        "kind": type(model).__name__,
        "model": described,
        "trace": trace[:_MOST_STEPS],
        "path": described.pop("path", None),
        "n_spins": material.n_spins,
        "shape": material.shape,
        "names": names,
        "has_confidence": material.has_confidence,
        "patterns": patterns,
        "confidence": _confidence(material),
        "data": None if spins is None else asdict(spins.summary),
        "samples": samples,
        "likelihood": None if reading is None else _likelihood(material, reading),
        "unexplained": unexplained_of(material),
        "stability": stability_of(material),
        "rounds": _rounds(material),
        "labels": labels,
        "truth": _truth(material),
        "parameters": stored_parameters(model),
        "command": material.command,
        "notes": notes + left_out,
    }


def _names(material: Material) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the names of the spins, cut where all of them would be too much for a page."""
    names = material.names
    if names is None or sum(map(len, names)) <= _MOST_NAME_CHARACTERS:
        return names, []
    most = max(8, _MOST_NAME_CHARACTERS // len(names))
    cut = tuple(name if len(name) <= most else name[: most - 1] + "…" for name in names)
    return cut, [f"Names of spins are cut to {most} characters."]


def _patterns(
    material: Material, reading: Reading | None, sides: Profiles | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what each card shows, and what was left out of them."""
    m = np.clip(material.magnetizations, -1, 1)
    n_patterns, n_spins = m.shape
    n_drawn = min(n_patterns, _MOST_ENTRIES // n_spins)
    n_nearest = _n_nearest(material, n_patterns)
    total = m.sum(axis=0)
    cards = []
    for k in range(n_patterns):
        part = material.model.patterns_[k] != 0
        card = {"index": k, **_numbers(m[k], material, reading, k)}
        if k < n_drawn:
            drawn = np.where(part, m[k], np.float32(np.nan))
            card |= {"m": quantised(drawn), "top": _top(m[k], total, n_patterns, part)}
        card |= meaning(material, sides, k, _TOP if n_spins > _ALL else _ALL) | stable_bits(
            material, k
        )
        if reading is not None:
            chosen = nearest_samples(reading, k, n_nearest)
            card["nearest"] = [_sample(material, reading, k, int(a)) for a in chosen]
        cards.append(card)
    notes = []
    if sides is None and reading is not None and n_patterns:
        notes.append("Effects on single spins are left out.")
    if n_drawn < n_patterns:
        notes.append(f"{n_drawn} of {n_patterns} patterns are drawn.")
    if reading is not None and n_patterns and n_nearest < _NEAREST:
        notes.append(f"The nearest {n_nearest} samples of each pattern are shown.")
    return cards, notes


def _numbers(
    m: NDArray[Any], material: Material, reading: Reading | None, k: int
) -> dict[str, Any]:
    """Return units, strength, share, confidence and uncertain bits of a pattern."""
    numbers: dict[str, Any] = {"n_part": int(np.count_nonzero(material.model.patterns_[k]))}
    if isinstance(material.model, LearnedPatterns):
        numbers["strength"] = float(material.model.strengths_[k])
    if material.has_confidence:
        sure = np.abs(m[material.model.patterns_[k] != 0])
        numbers |= {
            "confidence": float(sure.mean()) if sure.size else 0.0,
            "uncertain": int(np.count_nonzero(sure < UNCERTAIN)),
        }
    if reading is not None:
        own = np.where(reading.label == k, reading.weights, 0)
        numbers |= {
            "count": whole_number(own.sum()),
            "share": float(own.sum() / reading.weights.sum()),
            "n_flipped": whole_number(own[reading.sign < 0].sum()),
        }
    elif isinstance(material.model, LearnedPatterns):
        numbers["share"] = float(material.model.weights_[k])
    return numbers


def _top(
    m: NDArray[Any], total: NDArray[Any], n_patterns: int, part: NDArray[np.bool_]
) -> list[int]:
    """Return the most certain spins that take part; ties go to those unlike the other patterns."""
    others = (total - m) / max(n_patterns - 1, 1)
    merit = np.round(np.abs(m), 2) * 1000 - np.sign(m) * others
    merit[~part] = -np.inf
    return [int(i) for i in np.argsort(-merit, kind="stable")[: min(_TOP, part.sum())]]


def _n_nearest(material: Material, n_patterns: int) -> int:
    """Return how many samples of each pattern a page can hold; images need all their bits."""
    if material.shape is None:
        return _NEAREST
    characters = material.n_spins // 6 + 4  # eight bits per byte, three bytes in four characters
    if material.spins is not None and not material.spins.complete:
        characters *= 2  # which entries are there has to be said, too
    return max(1, min(_NEAREST, _MOST_SAMPLE_BYTES // (max(n_patterns, 1) * characters)))


def _sample(material: Material, reading: Reading, k: int, a: int) -> dict[str, Any]:
    """Return what is shown of a sample beside its pattern."""
    assert material.spins is not None
    m = material.magnetizations[k]
    s = material.spins.block(slice(a, a + 1))[0]
    sign = int(reading.sign[a])
    different = np.flatnonzero(s * material.model.patterns_[k] * sign < 0)
    surest = different[np.argsort(-np.abs(m[different]), kind="stable")[:_DIFFERENT]]
    sample: dict[str, Any] = {
        "row": a,
        "overlap": round(float(reading.best[a]), 4),
        "flipped": sign < 0,
        "n_different": len(different),
    }
    if material.sample_names is not None:
        sample["name"] = material.sample_names[a]
    if material.labels is not None:
        sample["label"] = material.labels[a]
    if material.shape is None:
        sample["different"] = surest
    else:
        sample["bits"] = packed(s > 0)
        if not s.all():
            sample["observed"] = packed(s != 0)
    return sample


def _samples(material: Material, reading: Reading) -> dict[str, Any]:
    """Return the map of overlaps and the histogram of the largest ones."""
    n_patterns = reading.overlaps.shape[1]
    most = min(_MOST_COLUMNS, max(_MOST_CELLS // max(n_patterns, 1), 1))
    shown = by_pattern(reading, most)
    bins = _overlap_bins(material.n_spins)
    counts, edges = np.histogram(reading.best, bins, weights=reading.weights)
    return {
        "n": len(reading.label),
        "n_shown": len(shown),
        "rows": shown,
        "names": _chosen(material.sample_names, shown),
        "labels": _chosen(material.labels, shown),
        "overlaps": np.round(reading.overlaps[shown].T.astype(np.float64), 2),
        "best": {"counts": whole_numbers(counts), "edges": edges},
        "mean_best": float(np.average(reading.best, weights=reading.weights)),
    }


def _chosen(texts: tuple[str, ...] | None, rows: NDArray[np.int64]) -> list[str] | None:
    return None if texts is None else [texts[a] for a in rows]


def _overlap_bins(n_spins: int) -> NDArray[np.float64]:
    """Return edges of about 40 bins, each with as many of the values an overlap can have."""
    step = 2 / n_spins
    width = step * max(1, round(0.025 / step))
    first = 0 if n_spins % 2 else -step / 2  # between values, which begin at step/2 or at 0
    return np.arange(first, 1 + width, width)


def _likelihood(material: Material, reading: Reading) -> dict[str, float]:
    weights = None if material.spins is None else material.spins.weights
    return {
        "fair": -float(np.log(2)),
        "independent": score_of_means(reading),
        "model": float(material.model.score(material.spins, sample_weight=weights)),
    }


def _confidence(material: Material) -> dict[str, Any] | None:
    """Return how many bits there are at each confidence (1 + |m|)/2."""
    m = material.magnetizations
    if not material.has_confidence or not m.size:
        return None
    sure = np.minimum(np.abs(m[material.model.patterns_ != 0]), 1)
    counts, edges = np.histogram((1 + sure) / 2, bins=25, range=(0.5, 1))
    return {
        "counts": counts,
        "edges": edges,
        "mean": float(sure.mean()),
        "uncertain": int(np.count_nonzero(sure < UNCERTAIN)),
        "bits": sure.size,
    }


def _rounds(material: Material) -> dict[str, Any] | None:
    """Return what deflation saw round by round, or an RBM as it learned."""
    model = material.model
    if isinstance(model, HopfieldRBM):
        curve = model.history_
        most = max(1, len(curve.update) // 500)  # a line of more points looks the same
        return {
            "update": curve.update[::most],
            "pseudo_likelihood": curve.pseudo_likelihood[::most],
            "singular_values": np.round(curve.singular_values[::most].T, 4),
        }
    if not isinstance(model, DualTAP):
        return None
    return {"likelihood": model.history_.likelihood, "gains": model.history_.gains}


def _truth(material: Material) -> dict[str, Any] | None:
    """Return how the patterns compare with the true ones, and how far confidence can be trusted."""
    if material.truth is None:
        return None
    found = match(material.model.patterns_, material.truth)
    result: dict[str, Any] = {
        "recovered": found.n_recovered(),
        "mean_overlap": found.mean_overlap,
        "overlaps": found.overlaps,
        "index": found.index,
        "sign": found.sign,
        "calibration": None,
    }
    if material.has_confidence and material.magnetizations.size:
        result["calibration"] = calibration(material.magnetizations, material.truth)._asdict()
    return result
