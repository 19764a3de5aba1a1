"""What was found, in words: the headline of a report, its lead, and facts with names."""

from __future__ import annotations

from typing import Any, NamedTuple

_MOST_NAMED = 12
_ENDED = {
    "flat": "the pseudo-likelihood had become flat",
    "max_updates": "the maximum number of updates was reached",
    "diverged": "the weights diverged",
    "callback": "a callback stopped it",
}


class Fact(NamedTuple):
    """A name, its value and perhaps a remark."""

    name: str
    value: str
    note: str = ""


def headline(shown: dict[str, Any]) -> str:
    """Return the title of the page.

    Examples
    --------
    >>> from dualtap.report.words import headline
    >>> headline({"model": {"n_patterns": 3}})
    '3 patterns found'
    """
    n = shown["model"]["n_patterns"]
    return "No pattern found" if not n else f"{n} pattern{'' if n == 1 else 's'} found"


def lead(shown: dict[str, Any]) -> list[str]:
    """Return why that many patterns, and how near samples are to them, a sentence each.

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
            "Fields explain means of the spins that the patterns do not: root mean square "
            f"{model['rms_field']:.2g}."
        )
    return [sentence for sentence in (*sentences, *_doubts(shown)) if sentence]


def _doubts(shown: dict[str, Any]) -> list[str]:
    """Return what the patterns leave, which of them have no samples, and how many come back."""
    model, sentences = shown["model"], []
    share = model.get("unexplained_share_of_pairs")
    if "warning" in model:
        sentences.append(f"Warning: {model['warning']}.")
    elif share is not None:
        sentences.append(
            f"A coupling of its own for every pair of spins would gain {100 * share:.1f} % of what "
            "the patterns gain."
        )
    cards = shown.get("patterns", [])
    rare = [str(c["index"]) for c in cards if c.get("share", 1) < c.get("hardly_any", 0)]
    if rare:
        plural = "s" if len(rare) > 1 else ""
        which = ", ".join(rare[:_MOST_NAMED]) + (" and others" if len(rare) > _MOST_NAMED else "")
        sentences.append(f"Hardly any sample is nearest to pattern{plural} {which}.")
    if shown.get("stability") is not None:
        sentences.append(". ".join(shown["stability"]["summary"]) + ".")
    return sentences


def _rbm_lead(model: dict[str, Any]) -> list[str]:
    law = {"gaussian": "Gaussian", "binary": "±1"}[model["hidden"]]
    ended = _ENDED.get(model["stopped_because"])  # nothing for a run that may go on
    trained = (
        f"A restricted Boltzmann machine with {model['n_hidden']} {law} hidden units, trained for "
        f"{model['updates']} updates{f'; training ended because {ended}' if ended else ''}."
    )
    if model["n_patterns"]:
        return [
            trained,
            "Patterns were read off its weights: one for each singular value that "
            "has risen above the others.",
        ]
    return [
        trained,
        "No gap separates large singular values of its weights from small ones, or "
        "those above it are no ±1 patterns: train longer, or with more samples.",
    ]


def tiles(shown: dict[str, Any]) -> list[Fact]:
    """Return the few numbers that matter most.

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
        found.append(Fact("strengths", f"{low:.2g} to {high:.2g}", f"{n} repulsive" if n else ""))
    bits = shown["confidence"]
    if bits is not None:
        note = f"of {bits['bits']}; mean |m| {bits['mean']:.3f}"
        found.append(Fact("uncertain bits", str(bits["unsure"]), note))
    if shown["data"] is None:
        found.append(Fact("spins", str(shown["n_spins"])))
    else:
        found.append(
            Fact("samples", str(shown["data"]["n_samples"]), f"of {shown['n_spins']} spins")
        )
    scores = shown["likelihood"]
    if scores is not None:
        note = f"means alone {scores['independent']:.3f}"
        found.append(Fact("log pseudo-likelihood per spin", f"{scores['model']:.3f}", note))
    return [Fact(fact.name, *(text.replace("-", "−") for text in fact[1:])) for fact in found]


def learned_facts(shown: dict[str, Any]) -> list[Fact]:
    """Return the scalars that were learned, by name.

    Examples
    --------
    >>> from dualtap.report.words import learned_facts
    >>> [fact[:2] for fact in learned_facts({"model": {"n_patterns": 2, "beta": None}})]
    [('n patterns', '2'), ('beta', 'unknown')]
    """
    model = shown["model"]
    facts = [
        Fact(key.replace("_", " "), _value(value))
        for key, value in model.items()
        if not isinstance(value, (list, dict)) and value != "" and key != "beta_was_given"
    ]
    if "beta_was_given" not in model:
        return facts
    strengths = model.get("strengths", [])
    if model.get("beta") is not None:
        source = "given" if model["beta_was_given"] else "fitted"
        text = f"{_value(model['beta'])} ({source})"
    elif len(set(strengths)) > 1:
        text = f"none: strengths {min(strengths):.3g} to {max(strengths):.3g}"
    else:
        return facts
    return [fact._replace(value=text) if fact.name == "beta" else fact for fact in facts]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."
