"""The page: contents and charts put into ``page.html.j2``, which needs nothing but itself.

Whatever comes from a file reaches the page in two ways only: escaped by the template, or as JSON in
a script element that is never run, from which the page's own script sets text, never markup. A
content security policy names the two scripts by their hashes and forbids the rest.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from dualtap.report.encode import script_json
from dualtap.report.facts import facts, label
from dualtap.report.figures import Chart
from dualtap.report.words import lead, legend, tiles, title

_SCRIPTS = ("theme.js", "tables.js", "patterns.js", "start.js")
_SAMPLES = {"overlaps", "sizes", "best"}
_EVIDENCE = {
    *("likelihood", "unexplained", "strengths", "path", "spectrum"),
    *("rounds", "learning", "singular", "confidence", "returned"),
}
_SIGNS = {-1: "negative", 0: "–", 1: "same"}


def page(shown: dict[str, Any], charts: Sequence[Chart], plotly: str) -> str:
    """Return the whole page.

    Parameters
    ----------
    shown : dict
        What :func:`dualtap.report.contents.contents` returns.
    charts : sequence of Chart
    plotly : str
        Source of plotly.js.

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.report.contents import contents
    >>> from dualtap.report.material import checked
    >>> from dualtap.report.page import page
    >>> model = dt.HopfieldPatterns(random_state=0)
    >>> model.fit(np.random.default_rng(0).integers(0, 2, (50, 80)))
    HopfieldPatterns(random_state=0)
    >>> text = page(contents(checked(model)), [], plotly="")
    >>> "<h1>No pattern found</h1>" in text
    True
    """
    from jinja2 import Environment, StrictUndefined

    parts = "".join(_resource(name) for name in _SCRIPTS)
    script = f"(() => {{\n'use strict';\n{parts}}})();\n"
    settings = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return settings.from_string(_resource("page.html.j2")).render(
        shown=shown,
        charts=charts,
        sections=_sections(shown, charts),
        evidence=_EVIDENCE,
        headline=title(shown),
        lead=lead(shown),
        tiles=tiles(shown),
        legend=legend(shown),
        has_zeros=_has_zeros(shown),
        sort_keys=_sort_keys(shown),
        **_tables(shown),
        learned=facts(shown["model"]),
        data_facts=[(label(key), str(value)) for key, value in (shown["data"] or {}).items()],
        parameters=[
            (key, "not given" if v is None else str(v)) for key, v in shown["parameters"].items()
        ],
        data=_data(shown, charts),
        style=_resource("style.css"),
        policy=_policy(script, plotly),
        script=script,
        plotly=plotly,
    )


def _resource(name: str) -> str:
    return files("dualtap.report").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    hashes = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def _sections(shown: dict[str, Any], charts: Sequence[Chart]) -> dict[str, str]:
    """Return keys and titles of the sections that have something in them."""
    drawn = {chart.key for chart in charts}
    labels = shown["labels"]
    known = {
        "patterns": ("Patterns", shown["patterns"]),
        "samples": ("Samples", drawn & _SAMPLES),
        "labels": ("Labels", labels is not None and labels["n"]),
        "truth": ("True patterns", shown["truth"] is not None),
        "evidence": ("Evidence", drawn & _EVIDENCE),
        "search": ("Search", shown["trace"]),
        "details": ("Details", True),
    }
    return {key: title for key, (title, filled) in known.items() if filled}


def _data(shown: dict[str, Any], charts: Sequence[Chart]) -> str:
    """Return what the script works on: figures, and what cards and their dialog show."""
    majority = shown["labels"]["majority"] if shown["labels"] else [None] * len(shown["patterns"])
    cards = [
        pattern | ({} if most is None else {"majority": most})
        for pattern, most in zip(shown["patterns"], majority, strict=True)
    ]
    kept = ("n_spins", "shape", "names", "has_confidence")
    return script_json(
        {key: shown[key] for key in kept}
        | {
            "has_strengths": _differ(shown, "strength"),
            "has_zeros": _has_zeros(shown),
            "patterns": cards,
            "has_samples": shown["samples"] is not None,
            "charts": {chart.key: chart.figure for chart in charts},
        }
    )


def _differ(shown: dict[str, Any], key: str) -> bool:
    """Say whether patterns have different values of something."""
    return len({pattern.get(key) for pattern in shown["patterns"]}) > 1


def _has_zeros(shown: dict[str, Any]) -> bool:
    return any(pattern["n_part"] < shown["n_spins"] for pattern in shown["patterns"])


def _sort_keys(shown: dict[str, Any]) -> dict[str, str]:
    """Return by what patterns can be sorted, and how that is called."""
    known = {
        "order": ("order", True),
        "share": ("share", any("share" in pattern for pattern in shown["patterns"])),
        "confidence": ("confidence", shown["has_confidence"]),
        "strength": ("strength", _differ(shown, "strength")),
        "n_part": ("spins", _differ(shown, "n_part")),
        "returned": ("stability", shown["stability"] is not None),
    }
    return {key: name for key, (name, available) in known.items() if available}


def _tables(shown: dict[str, Any]) -> dict[str, list[Any]]:
    """Return heads and rows of the tables."""
    tables: dict[str, list[Any]] = {"label_head": [], "label_rows": [], "truth_rows": []}
    found, truth = shown["labels"], shown["truth"]
    if found is not None and found["n"]:
        tables["label_head"] = ["state", *found["labels"], "samples", "most frequent", "share"]
        columns = found["states"], found["counts"], found["state_majority"]
        for state, counts, most in zip(*columns, strict=True):
            end = ["–", "–"] if most is None else [most["label"], f"{100 * most['share']:.0f} %"]
            tables["label_rows"].append([state, *counts, counts.sum(), *end])
    if truth is not None:
        columns = truth["index"], truth["sign"], truth["overlaps"]
        tables["truth_rows"] = [
            [t, "none" if k < 0 else k, _SIGNS[int(sign)], f"{overlap:.4f}"]
            for t, (k, sign, overlap) in enumerate(zip(*columns, strict=True))
        ]
    tables["trace_rows"] = [
        [
            *(step["step"], step["move"], step["source"], step["n_patterns"]),
            *(f"{step[key]:.1f}".replace("-", "−") for key in ("objective", "gain")),
            "yes" if step["accepted"] else "no",
        ]
        for step in shown["trace"]
    ]
    return tables
