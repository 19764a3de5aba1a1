"""The words of a report: its headline, its lead and its most important numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

_MOST_NAMED = 12
_ENDED = {
    "flat": "the pseudo-likelihood stopped improving",
    "validation": "held-out samples scored worse",
    "max_updates": "the maximum number of updates was reached",
    "max_seconds": "the time was used up",
    "diverged": "the weights diverged",
    "callback": "a callback stopped it",
}

# Of hidden units; a prior of the user's own has the name of its class.
_LAWS = {
    "gaussian": "Gaussian",
    "binary": "±1",
    "zero_one": "0/1",
    "relu": "ReLU",
    "laplace": "Laplace",
    "spike_slab": "spike-and-slab",
}


class Fact(NamedTuple):
    """A label, its value and an optional remark."""

    name: str
    value: str
    note: str = ""


def title(shown: dict[str, Any]) -> str:
    """Return the title of the page.

    Examples
    --------
    >>> from dualtap.report.words import title
    >>> title({"model": {"n_patterns": 3}})
    '3 patterns found'
    """
    n = shown["model"]["n_patterns"]
    return "No pattern found" if not n else f"{n} pattern{'' if n == 1 else 's'} found"


def lead(shown: dict[str, Any]) -> list[str]:
    """Return the reason for the number of patterns and the overlap of samples, one sentence each.

    Examples
    --------
    >>> from dualtap.report.words import lead
    >>> lead({"kind": "HopfieldPatterns", "model": {"n_patterns": 0, "reason": "it is noise"}})
    ['It is noise.', 'The spectrum below compares the data with independent random spins.']
    """
    model = shown["model"]
    if shown["kind"] == "HopfieldRBM":
        return _rbm_lead(model)
    if not model["n_patterns"]:
        see = "The spectrum below compares the data with independent random spins."
        return [_sentence(model["reason"]), see]
    near = model.get("median_overlap_with_the_nearest_pattern")
    sentences = [
        _sentence(model["reason"]) if model["reason"] else "",
        "" if near is None else f"Median overlap with the nearest pattern: {near:.3f}.",
        f"Samples per pattern: {model['samples_per_pattern']}.",
    ]
    if model["has_fields"]:
        sentences.append(
            f"The fields of the spins have a root mean square of {model['rms_field']:.2g}."
        )
    return [sentence for sentence in (*sentences, *_doubts(shown)) if sentence]


def _doubts(shown: dict[str, Any]) -> list[str]:
    """Return warnings, patterns without samples, and the result of refits."""
    model, sentences = shown["model"], []
    share = model.get("unexplained_share_of_pairs")
    if "warning" in model:
        sentences.append(f"Warning: {model['warning']}.")
    elif share is not None:
        sentences.append(
            f"An independent coupling for every pair of spins would add {100 * share:.1f} % to the "
            "gain of the patterns."
        )
    cards = shown.get("patterns", [])
    rare = [str(c["index"]) for c in cards if c.get("share", 1) < c.get("hardly_any", 0)]
    if rare:
        plural = "s" if len(rare) > 1 else ""
        which = ", ".join(rare[:_MOST_NAMED]) + (" and others" if len(rare) > _MOST_NAMED else "")
        sentences.append(f"Almost no sample is nearest to pattern{plural} {which}.")
    if shown.get("stability") is not None:
        sentences.append(". ".join(shown["stability"]["summary"]) + ".")
    return sentences


def legend(shown: dict[str, Any]) -> str:
    """Return how to read the drawings of the patterns.

    Examples
    --------
    >>> from dualtap.report.words import legend
    >>> legend({"patterns": [], "has_confidence": True, "shape": (8, 8)})
    'Uncertain bits are amber.'
    """
    patterns = shown["patterns"]
    if not shown["has_confidence"]:
        text = "An RBM gives the signs of its patterns, without a confidence on single bits."
    elif shown["shape"]:
        text = "Uncertain bits are amber."
    else:
        text = "A short bar is an uncertain bit."
    if patterns and "effect" in patterns[0] and not shown["shape"]:
        text = (
            "A bar is the effect on a spin: the difference in the probability of +1 between the "
            "samples on the two sides of the pattern. Pale bars are uncertain bits."
        )
    if any(pattern.get("strength", 0) < 0 for pattern in patterns):
        text += " Samples avoid a large overlap with a repulsive pattern."
    return text


def _rbm_lead(model: dict[str, Any]) -> list[str]:
    law = _LAWS.get(model["hidden"], model["hidden"])
    ended = _ENDED.get(model["stopped_because"])  # nothing for a run that may go on
    trained = (
        f"A restricted Boltzmann machine with {model['n_hidden']} {law} hidden units, trained for "
        f"{model['updates']} update{'' if model['updates'] == 1 else 's'}"
        f"{f'; training ended because {ended}' if ended else ''}."
    )
    if model["n_patterns"]:
        return [trained, "The patterns are read off its weights."]
    return [
        trained,
        "No pattern can be read off its weights: their singular values show no gap, or the "
        "directions above it are not close to ±1 vectors. Train longer, or use more samples.",
    ]


def tiles(shown: dict[str, Any]) -> list[Fact]:
    """Return the most important numbers.

    Examples
    --------
    >>> from dualtap.report.words import tiles
    >>> shown = {"model": {"n_patterns": 2, "beta": 1.5, "beta_was_given": False}, "data": None,
    ...          "confidence": None, "likelihood": None, "n_spins": 90}
    >>> [fact.value for fact in tiles(shown)]
    ['2', '1.5', '90']
    """
    model = shown["model"]
    found = [Fact("patterns", str(model["n_patterns"]))]
    if model.get("beta") is not None:
        note = "given" if model["beta_was_given"] else "fitted"
        found.append(Fact("inverse temperature β", f"{model['beta']:.3g}", note))
    elif len(set(model.get("strengths", ()))) > 1:
        low, high = min(model["strengths"]), max(model["strengths"])
        n = model.get("n_repulsive", 0)
        found.append(Fact("strengths", f"{low:.3g} to {high:.3g}", f"{n} repulsive" if n else ""))
    bits = shown["confidence"]
    if bits is not None:
        note = f"of {bits['bits']}; mean |m| {bits['mean']:.3f}"
        found.append(Fact("uncertain bits", str(bits["uncertain"]), note))
    if shown["data"] is None:
        found.append(Fact("spins", str(shown["n_spins"])))
    else:
        found.append(
            Fact("samples", str(shown["data"]["n_samples"]), f"of {shown['n_spins']} spins")
        )
    scores = shown["likelihood"]
    if scores is not None:
        note = f"independent spins {scores['independent']:.3f}"
        found.append(Fact("log pseudo-likelihood per spin", f"{scores['model']:.3f}", note))
    return [Fact(fact.name, *(text.replace("-", "−") for text in fact[1:])) for fact in found]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
