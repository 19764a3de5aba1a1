"""The page: contents and charts put into HTML that needs nothing but itself.

Whatever comes from a file reaches the page in two ways only: escaped by :func:`html.escape`, or
as JSON in a script element that is never run, from which the page's own script sets text, never
markup. A content security policy names the two scripts by their hashes and forbids the rest.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from dualtap.report.encode import script_json
from dualtap.report.figures import Chart
from dualtap.report.words import Fact, headline, lead, learned_facts, tiles

_SCRIPTS = ("theme.js", "tables.js", "patterns.js", "start.js")
_EVIDENCE = (
    *("likelihood", "unexplained", "strengths", "path", "spectrum"),
    *("rounds", "learning", "singular", "confidence", "returned"),
)
_DATA_WORDS = {
    "n_samples": "samples",
    "n_spins": "spins",
    "encoding": "read as",
    "n_missing": "missing entries",
    "n_constant": "constant spins",
    "n_duplicates": "duplicate samples",
}
_PAPER = (
    "A. Decelle, S. Hwang, J. Rocchi, D. Tantari. <cite>Inverse problems for structured datasets "
    "using parallel TAP equations and RBM.</cite>"
)


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
    sections = [
        _patterns_section(shown),
        _samples_section(charts),
        _labels_section(shown),
        _truth_section(shown, charts),
        _section("evidence", "Evidence", "", _figures(charts, _EVIDENCE)),
        _search_section(shown),
        _details_section(shown),
    ]
    drawn = [(key, title, body) for key, title, body in sections if body]
    parts = "".join(_resource(name) for name in _SCRIPTS)
    script = f"(() => {{\n'use strict';\n{parts}}})();\n"
    title = escape(headline(shown))
    nav = "".join(f'<a href="#{key}">{name}</a>' for key, name, _ in drawn)
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script, plotly)}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n',
            f"<title>{title} · dualtap</title>\n<style>{_resource('style.css')}</style>\n",
            '</head>\n<body>\n<a class="skip" href="#main">Skip to the report</a>\n',
            '<header class="bar"><span class="brand">dualtap</span>',
            f'<nav aria-label="Sections">{nav}</nav>',
            '<button type="button" id="theme" class="quiet">Dark</button></header>\n',
            f'<main id="main">\n{_opening(shown)}\n',
            "\n".join(body for _, _, body in drawn),
            f"\n</main>\n{_footer(shown)}\n{_dialog()}\n",
            '<noscript><p class="note">The pictures need JavaScript.</p></noscript>\n',
            f'<script type="application/json" id="data">{_data(shown, charts)}</script>\n',
            # Plotly is long and comes last: cards and tables are there while it is read.
            f"<script>{script}</script>\n<script>{plotly}</script>\n</body>\n</html>\n",
        ]
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
            "has_zeros": any(card["n_part"] < shown["n_spins"] for card in cards),
            "patterns": cards,
            "has_samples": shown["samples"] is not None,
            "charts": {chart.key: chart.figure for chart in charts},
        }
    )


def _section(key: str, title: str, intro: str, body: str) -> tuple[str, str, str]:
    """Return key, title and HTML of a section; no HTML when there is nothing in it."""
    if not body:
        return key, title, ""
    lead_in = f'<p class="intro">{intro}</p>' if intro else ""
    text = f'<section id="{key}" aria-labelledby="{key}-title">'
    text += f'<h2 id="{key}-title">{title}</h2>{lead_in}{body}</section>'
    return key, title, text


def _opening(shown: dict[str, Any]) -> str:
    cells = "".join(
        f'<div class="tile"><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}'
        f"<small>{escape(fact.note)}</small></dd></div>"
        for fact in tiles(shown)
    )
    words = "".join(f"<p>{escape(line)}</p>" for line in lead(shown))
    return (
        f'<div class="opening"><h1>{escape(headline(shown))}</h1>'
        f'<div class="lead">{words}</div><dl class="tiles">{cells}</dl></div>'
    )


def _patterns_section(shown: dict[str, Any]) -> tuple[str, str, str]:
    if not shown["patterns"]:
        return _section("patterns", "Patterns", "", "")
    first = shown["patterns"][0]
    choices = [("order", "order"), ("share", "share"), ("confidence", "confidence")]
    choices += [("strength", "strength"), ("n_part", "spins"), ("returned", "stability")]
    available = {
        "order": True,
        "share": "share" in first,
        "confidence": shown["has_confidence"],
        "strength": _differ(shown, "strength"),
        "n_part": _differ(shown, "n_part"),
        "returned": shown["stability"] is not None,
    }
    buttons = "".join(
        f'<button type="button" data-sort="{key}" aria-pressed="{str(key == "order").lower()}">'
        f"{name}</button>"
        for key, name in choices
        if available[key]
    )
    doubt = "An RBM gives the signs of its patterns and no confidence on single bits."
    if shown["has_confidence"]:
        doubt = "Uncertain bits are amber."
        if not shown["shape"]:
            doubt = "A short bar is an uncertain bit."
    if "effect" in first and not shown["shape"]:
        doubt = (
            "A bar is the effect on a spin: by how much the probability of +1 differs between the "
            "samples on the two sides of the pattern. Pale bars are uncertain bits."
        )
    if any(pattern.get("strength", 0) < 0 for pattern in shown["patterns"]):
        doubt += " Samples avoid a large overlap with a repulsive pattern."
    intro = f"Click a pattern for details and the samples nearest to it. {doubt}"
    no_part = ""
    if any(pattern["n_part"] < shown["n_spins"] for pattern in shown["patterns"]):
        no_part = '<i class="no-part"></i><span>takes no part</span>'
    body = (
        f'<div class="tools"><div class="legend{" image" if shown["shape"] else ""}">'
        f'<span>−1</span><i class="scale"></i><span>+1</span>{no_part}</div>'
        '<div class="sort" role="group" aria-label="Sort patterns">'
        f"<span>Sort by</span>{buttons}</div></div>"
        f'<div id="cards" class="cards{"" if shown["shape"] else " wide"}"></div>'
    )
    return _section("patterns", "Patterns", intro, body)


def _differ(shown: dict[str, Any], key: str) -> bool:
    """Say whether patterns have different values of something."""
    return len({pattern.get(key) for pattern in shown["patterns"]}) > 1


def _search_section(shown: dict[str, Any]) -> tuple[str, str, str]:
    """Return what was tried, and what it gained."""
    steps = shown["trace"]
    if not steps:
        return _section("search", "Search", "", "")
    head = ["step", "move", "source", "patterns", "description length", "gain", "accepted"]
    rows = [
        [
            *(step["step"], step["move"], step["source"], step["n_patterns"]),
            *(_number(step["objective"]), _number(step["gain"])),
            "yes" if step["accepted"] else "no",
        ]
        for step in steps
    ]
    n_accepted = sum(step["accepted"] for step in steps)
    intro = (
        "Every change of the model that was tried. It is accepted if it shortens the description "
        f"of data and model, in nats; {n_accepted} of {len(steps)} were."
    )
    return _section("search", "Search", intro, _table("Steps of the search", head, rows))


def _number(value: float) -> str:
    return f"{value:.1f}".replace("-", "−")


def _samples_section(charts: Sequence[Chart]) -> tuple[str, str, str]:
    return _section("samples", "Samples", "", _figures(charts, ("overlaps", "sizes", "best")))


def _labels_section(shown: dict[str, Any]) -> tuple[str, str, str]:
    found = shown["labels"]
    if found is None or not found["n"]:
        return _section("labels", "Labels", "", "")
    head = ["state", *found["labels"], "samples", "most are", "share"]
    rows = []
    columns = found["states"], found["counts"], found["state_majority"]
    for state, counts, most in zip(*columns, strict=True):
        end = ["–", "–"] if most is None else [most["label"], f"{100 * most['share']:.0f} %"]
        rows.append([state, *counts, counts.sum(), *end])
    left_out = f" {found['n_left_out']} samples without a label are left out."
    intro = (
        f"Adjusted Rand index <b>{found['rand']:.3f}</b> (1: states and labels agree, 0: as by "
        f"chance); purity <b>{found['purity']:.3f}</b> (share of samples that have the label of "
        f"most samples of their state). A pattern (+) and its negative (−) are two states if "
        f"samples are near to both. The labels took no part in the fit."
        + (left_out if found["n_left_out"] else "")
    )
    table = _table("Samples by state and label", head, rows, shade=len(found["labels"]))
    return _section("labels", "Labels", intro, table)


def _truth_section(shown: dict[str, Any], charts: Sequence[Chart]) -> tuple[str, str, str]:
    truth = shown["truth"]
    if truth is None:
        return _section("truth", "Against the truth", "", "")
    rows = [
        [t, "none" if k < 0 else k, {-1: "negative", 0: "–", 1: "same"}[int(sign)], f"{o:.4f}"]
        for t, (k, sign, o) in enumerate(
            zip(truth["index"], truth["sign"], truth["overlaps"], strict=True)
        )
    ]
    table = _table("True patterns", ["true pattern", "found as", "sign", "overlap"], rows)
    intro = (
        f"{truth['recovered']} of {len(rows)} true patterns were recovered (overlap above 0.9); "
        f"mean overlap <b>{truth['mean_overlap']:.4f}</b>. The truth took no part in the fit."
    )
    body = f'<div class="pair">{_figures(charts, ("calibration",))}<div>{table}</div></div>'
    return _section("truth", "Against the truth", intro, body)


def _details_section(shown: dict[str, Any]) -> tuple[str, str, str]:
    blocks = [("Learned", _facts(learned_facts(shown)))]
    if shown["data"] is not None:
        facts = [Fact(_DATA_WORDS[key], str(value)) for key, value in shown["data"].items()]
        blocks.append(("Data", _facts(facts)))
    settings = [
        Fact(key, "not given" if v is None else str(v)) for key, v in shown["parameters"].items()
    ]
    blocks.append((f"Settings of {shown['kind']}", _facts(settings)))
    body = "".join(f"<div><h3>{escape(name)}</h3>{text}</div>" for name, text in blocks)
    notes = "".join(f"<li>{escape(note)}</li>" for note in shown["notes"])
    extra = f"<h3>Left out to keep this page small</h3><ul>{notes}</ul>" if notes else ""
    if shown["command"]:
        extra += f"<h3>Made by</h3><pre><code>{escape(shown['command'])}</code></pre>"
    return _section("details", "Details", "", f'<div class="columns">{body}</div>{extra}')


def _facts(facts: Iterable[Fact]) -> str:
    rows = "".join(
        f"<div><dt>{escape(fact.name)}</dt><dd>{escape(fact.value)}</dd></div>" for fact in facts
    )
    return f'<dl class="facts">{rows}</dl>'


def _figures(charts: Sequence[Chart], keys: Sequence[str]) -> str:
    """Return the figures with these keys; the script draws them."""
    text = "".join(
        f'<figure class="{"wide" if chart.wide else ""}"><h3>{escape(chart.title)}</h3>'
        f'<div class="chart" data-chart="{chart.key}" role="img" aria-label="{escape(chart.alt)}">'
        f"</div><figcaption>{escape(chart.caption)}</figcaption></figure>"
        for chart in charts
        if chart.key in keys
    )
    return f'<div class="figures">{text}</div>' if text else ""


def _table(caption: str, head: Sequence[Any], rows: Sequence[Sequence[Any]], shade: int = 0) -> str:
    """Return a table that can be sorted; cells 1 … shade of a row are tinted by their share."""
    titles = "".join(
        f'<th scope="col"><button type="button">{escape(str(name))}</button></th>' for name in head
    )
    body = []
    for row in rows:
        total = sum(row[1 : shade + 1]) or 1
        cells = [f'<th scope="row">{escape(str(row[0]))}</th>']
        for j, cell in enumerate(row[1:]):
            tint = f' style="--tint:{cell / total:.2f}"' if j < shade and cell else ""
            cells.append(f"<td{tint}>{escape(str(cell))}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f'<table class="sortable"><caption>{escape(caption)}</caption><thead><tr>{titles}</tr>'
        f"</thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _dialog() -> str:
    return (
        '<dialog id="pattern" aria-labelledby="pattern-title"><div class="sheet"><header>'
        '<h2 id="pattern-title" tabindex="-1"></h2><span class="moves">'
        '<button type="button" id="previous" class="quiet" aria-label="Previous pattern">←</button>'
        '<button type="button" id="next" class="quiet" aria-label="Next pattern">→</button>'
        '<button type="button" id="close" class="quiet" aria-label="Close">✕</button></span>'
        '</header><div id="pattern-body"></div></div></dialog>'
    )


def _footer(shown: dict[str, Any]) -> str:
    return (
        f"<footer><p>Made with dualtap {escape(shown['version'])}. If it is useful in your work, "
        f"please cite the paper whose method it implements, and this software:</p><p>{_PAPER}</p>"
        f"<p>The dualtap developers. <cite>dualtap: hidden patterns behind binary data</cite>, "
        f"version {escape(shown['version'])}.</p></footer>"
    )
