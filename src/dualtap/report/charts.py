"""Plotly figures of a report's contents, as plain dicts.

Colours are names such as ``"$accent"``; the page puts in those of the theme in use, so that a
figure can be drawn again in the dark. Text that comes from files is escaped here: Plotly reads
some tags in the text it draws.
"""

from __future__ import annotations

import html
from typing import Any, NamedTuple

import numpy as np

Figure = dict[str, Any]
_DIVERGING = [[0, "$minus"], [0.5, "$zero"], [1, "$plus"]]
_LOG_FROM = 30.0  # largest over smallest count above which bars need a logarithmic axis


class Chart(NamedTuple):
    """A figure, where it goes, and what it says in words."""

    key: str
    title: str
    caption: str
    alt: str
    figure: Figure
    wide: bool = False


def charts(shown: dict[str, Any]) -> list[Chart]:
    """Return the figures that these contents allow.

    Parameters
    ----------
    shown : dict
        What :func:`dualtap.report.contents.contents` returns.

    Examples
    --------
    >>> import numpy as np
    >>> import dualtap as dt
    >>> from dualtap.report.charts import charts
    >>> from dualtap.report.contents import contents
    >>> from dualtap.report.material import checked
    >>> noise = np.random.default_rng(0).integers(0, 2, (50, 80))
    >>> model = dt.HopfieldPatterns(random_state=0).fit(noise)
    >>> [chart.key for chart in charts(contents(checked(model, noise)))]
    ['likelihood', 'spectrum']
    """
    drawn = [
        _overlap_map(shown),
        _sizes(shown),
        _best_overlaps(shown),
        _likelihood(shown),
        _strengths(shown),
        _path(shown),
        _spectrum(shown),
        *_rounds(shown),
        _confidence(shown),
        _calibration(shown),
    ]
    return [chart for chart in drawn if chart is not None]


def _overlap_map(shown: dict[str, Any]) -> Chart | None:
    """Draw the overlap of samples with patterns, samples in the order of their patterns."""
    samples = shown["samples"]
    if samples is None or not shown["patterns"]:
        return None
    n_patterns = len(shown["patterns"])
    trace = {
        "type": "heatmap",
        "x": _sample_texts(samples),
        "y": [str(k) for k in range(n_patterns)],
        "z": samples["overlaps"],
        "zmin": -1,
        "zmax": 1,
        "colorscale": _DIVERGING,
        "colorbar": {"thickness": 10, "outlinewidth": 0, "tickvals": [-1, 0, 1]},
        "hovertemplate": "%{x}<br>pattern %{y}: overlap %{z:.2f}<extra></extra>",
    }
    layout = {
        "height": int(min(640, 110 + 18 * n_patterns)),
        "margin": {"l": 56, "r": 12, "t": 8, "b": 12},
        "xaxis": {"type": "category", "visible": False},
        "yaxis": {"type": "category", "autorange": "reversed", "title": {"text": "pattern"}},
    }
    return Chart(
        "overlaps",
        "Overlap of samples with patterns",
        "A column is a sample; samples stand in the order of the pattern nearest to them. "
        "+1: equal to the pattern; 0: unrelated; -1: its negative.",
        f"Heat map of the overlaps of {samples['n_shown']} samples with {n_patterns} patterns.",
        {"data": [trace], "layout": layout},
        wide=True,
    )


def _sample_texts(samples: dict[str, Any]) -> list[str]:
    """Return one text per sample, all different, as categories of an axis must be."""
    texts = [f"sample {a}" for a in samples["rows"]]
    for key, form in (("names", "{0} ({1})"), ("labels", "{1}, label {0}")):
        if samples[key] is not None:
            texts = [
                form.format(html.escape(word, quote=False), text) if word else text
                for word, text in zip(samples[key], texts, strict=True)
            ]
    return texts


def _sizes(shown: dict[str, Any]) -> Chart | None:
    """Draw how many samples are nearest to each pattern."""
    patterns = shown["patterns"]
    if not patterns or "share" not in patterns[0]:
        return None
    what = "count" if "count" in patterns[0] else "share"
    values = [pattern[what] for pattern in patterns]
    trace = {
        "type": "bar",
        "x": [str(k) for k in range(len(patterns))],
        "y": values,
        "marker": {"color": "$accent"},
        "hovertemplate": "pattern %{x}: %{y} <extra></extra>",
    }
    title = "samples" if what == "count" else "share of samples"
    category = {"type": "category", "showgrid": False, "tickangle": 0}
    layout = {
        "xaxis": category | {"title": {"text": "pattern"}},
        "yaxis": {"title": {"text": title}},
    }
    return Chart(
        "sizes",
        "Samples of each pattern",
        "Every sample counts for the pattern it overlaps most with, in absolute value.",
        f"Bars: {title} of each pattern, from {min(values):.3g} to {max(values):.3g}.",
        {"data": [trace], "layout": layout},
    )


def _best_overlaps(shown: dict[str, Any]) -> Chart | None:
    """Draw how near samples are to the pattern nearest to them."""
    if shown["samples"] is None or not shown["patterns"]:
        return None
    best, mean = shown["samples"]["best"], shown["samples"]["mean_best"]
    layout = {
        "xaxis": {"title": {"text": "overlap with the nearest pattern"}},
        "yaxis": {"title": {"text": "samples"}},
    }
    return Chart(
        "best",
        "How near samples are",
        f"Mean {mean:.3f}. Samples far to the left are not explained by any single pattern.",
        f"Histogram of the largest overlap of each sample; the mean is {mean:.3f}.",
        {"data": [_histogram(best, "overlap", "samples")], "layout": layout},
    )


def _likelihood(shown: dict[str, Any]) -> Chart | None:
    """Draw what the model explains beyond fair spins, beside what means alone explain."""
    scores = shown["likelihood"]
    if scores is None:
        return None
    names = ["the model", "means of the spins"]
    values = [scores["model"], scores["independent"]]
    trace = {
        "type": "bar",
        "orientation": "h",
        "x": [value - scores["fair"] for value in values],
        "y": names,
        "customdata": values,
        "marker": {"color": ["$accent", "$quiet"]},
        "text": [f"{value:.3f}" for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertemplate": "%{y}: %{customdata:.4f} per spin, %{x:.4f} above fair spins"
        "<extra></extra>",
    }
    layout = {
        "height": 200,
        "xaxis": {"title": {"text": "nats per spin above independent fair spins"}},
        "yaxis": {"type": "category", "autorange": "reversed"},
        "margin": {"l": 10, "r": 56, "t": 8, "b": 44},
    }
    more = scores["model"] - scores["independent"]
    return Chart(
        "likelihood",
        "What the model explains",
        f"Log pseudo-likelihood per spin: {scores['model']:.4f}; of independent spins with their "
        f"own means: {scores['independent']:.4f}; of fair spins: -0.6931. "
        f"The model explains {abs(more):.4f} nats per spin {'more' if more >= 0 else 'less'} "
        "than the means do, on these same samples.",
        f"Bars: log pseudo-likelihood per spin, model {values[0]:.4f}, means of the spins "
        f"{values[1]:.4f}.",
        {"data": [trace], "layout": layout},
    )


def _strengths(shown: dict[str, Any]) -> Chart | None:
    """Draw the strength of each pattern, unless all have the same."""
    values = shown["model"].get("strengths", [])
    if len(set(values)) < 2:
        return None
    repulsive = sum(value < 0 for value in values)
    trace = {
        "type": "bar",
        "x": [str(k) for k in range(len(values))],
        "y": values,
        "customdata": [pattern["n_part"] for pattern in shown["patterns"]],
        "marker": {"color": ["$minus" if value < 0 else "$accent" for value in values]},
        "hovertemplate": "pattern %{x}: strength %{y:.3g}, %{customdata} spins<extra></extra>",
    }
    layout = {
        "xaxis": {"type": "category", "showgrid": False, "title": {"text": "pattern"}},
        "yaxis": {"title": {"text": "strength g"}},
    }
    verb = "is" if repulsive == 1 else "are"
    below = f" {repulsive} {verb} repulsive: samples avoid large overlaps." if repulsive else ""
    return Chart(
        "strengths",
        "Strength of each pattern",
        "A strength is an inverse temperature; a pattern on n of N spins puts a field of at most "
        f"g n/N on each of them.{below}",
        f"Bars: strengths from {min(values):.3g} to {max(values):.3g}; {repulsive} below 0.",
        {"data": [trace], "layout": layout},
    )


def _path(shown: dict[str, Any]) -> Chart | None:
    """Draw description length and held-out score over the number of patterns."""
    path = shown["path"]
    if path is None:
        return None
    n, chosen = path["n_patterns"], shown["model"]["n_patterns"]
    length = _lines(n, [path["objective"]], ["$accent"])[0]
    score = _lines(n, [path["held_out"]], ["$minus"])[0] | {"yaxis": "y2"}
    score["line"] = score["line"] | {"dash": "dash"}
    mark = {"type": "line", "x0": chosen, "x1": chosen, "yref": "paper", "y0": 0, "y1": 1}
    layout = {
        "xaxis": {"title": {"text": "number of patterns"}},
        "yaxis": {"title": {"text": "description length, nats (solid)"}},
        "yaxis2": {
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "title": {"text": "held-out score (dashed)"},
        },
        "margin": {"l": 64, "r": 64, "t": 8, "b": 44},
        "shapes": [mark | {"line": {"color": "$muted", "width": 1, "dash": "dot"}}],
    }
    return Chart(
        "path",
        "Score over the number of patterns",
        f"The model has {chosen} pattern{'' if chosen == 1 else 's'} (dotted line). Held-out "
        "score: log pseudo-likelihood per spin of samples that were left out of the fit.",
        f"Lines: description length and held-out score for {min(n)} to {max(n)} patterns.",
        {
            "data": [line | {"mode": "lines+markers"} for line in (length, score)],
            "layout": layout,
        },
    )


def _spectrum(shown: dict[str, Any]) -> Chart | None:
    """Draw the leading squared singular values of the data over the noise edge."""
    values = shown["model"].get("spectrum")
    if not values:
        return None
    above = sum(value > 1 for value in values)
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": list(range(1, len(values) + 1)),
        "y": values,
        "marker": {"size": 8, "color": ["$accent" if v > 1 else "$quiet" for v in values]},
        "hovertemplate": "direction %{x}: %{y:.3f} of the noise edge<extra></extra>",
    }
    edge = {"type": "line", "y0": 1, "y1": 1, "xref": "paper", "x0": 0, "x1": 1}
    note = {
        "text": "noise edge",
        "showarrow": False,
        **{"xref": "paper", "x": 1, "xanchor": "right"},
        **{"y": 0, "yanchor": "bottom"},  # log10 of 1: annotations know the axis, shapes do not
    }
    layout = {
        "xaxis": {"title": {"text": "direction of the data"}},
        "yaxis": {
            "type": "log",
            "tickvals": [digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)],
            "title": {"text": "squared singular value / edge"},
        },
        "shapes": [edge | {"line": {"color": "$muted", "width": 1, "dash": "dot"}}],
        "annotations": [note | {"font": {"color": "$muted", "size": 12}}],
    }
    return Chart(
        "spectrum",
        "Spectrum of the samples",
        f"{above} of the {len(values)} leading directions lie above the noise edge of independent "
        "fair spins. Means of the spins make such a direction as well; the number of patterns is "
        "that which minimises the description length.",
        f"Squared singular values from {max(values):.3g} down to {min(values):.3g} times the noise "
        f"edge; {above} are above it.",
        {"data": [trace], "layout": layout},
    )


def _rounds(shown: dict[str, Any]) -> list[Chart]:
    """Draw what happened while the model was made: updates of an RBM, rounds of deflation."""
    seen = shown["rounds"]
    if seen is None:
        return []
    return _learning(seen, shown) if "update" in seen else [_deflation(seen, shown)]


def _learning(seen: dict[str, Any], shown: dict[str, Any]) -> list[Chart]:
    x_axis = {"title": {"text": "update"}}
    curve = _lines(seen["update"], [seen["pseudo_likelihood"]], ["$accent"])
    n_patterns = len(shown["patterns"])
    last = shown["model"]["singular_values"]
    colours = ["$accent" if k < n_patterns else "$quiet" for k in range(len(last))]
    values = _lines(seen["update"], seen["singular_values"], colours)
    return [
        Chart(
            "learning",
            "Learning",
            "Log pseudo-likelihood of the samples per spin; -0.693 for independent fair spins.",
            "Line: pseudo-likelihood per spin against updates.",
            {
                "data": curve,
                "layout": {"xaxis": x_axis, "yaxis": {"title": {"text": "log pseudo-likelihood"}}},
            },
        ),
        Chart(
            "singular",
            "Singular values of the weights",
            f"{n_patterns} have risen above the others (in colour): each belongs to a pattern.",
            f"Lines: singular values of the weights against updates; the largest ends at "
            f"{max(last):.3g}.",
            {
                "data": values,
                "layout": {"xaxis": x_axis, "yaxis": {"title": {"text": "singular value"}}},
            },
        ),
    ]


def _deflation(seen: dict[str, Any], shown: dict[str, Any]) -> Chart:
    gains = seen["gains"]
    n_kept = len(shown["patterns"])
    x = list(range(1, len(gains) + 1))
    trace = {
        "type": "bar",
        "x": x,
        "y": gains,
        "marker": {"color": ["$accent" if k < n_kept else "$quiet" for k in range(len(x))]},
        "hovertemplate": "round %{x}: gain %{y:.4g}<extra></extra>",
        "name": "gain",
    }
    total = _lines(x, [seen["likelihood"]], ["$ink"])[0] | {"yaxis": "y2", "name": "likelihood"}
    layout = {
        "xaxis": {"title": {"text": "round"}},
        "yaxis": {"title": {"text": "gain of the round (bars)"}},
        "yaxis2": {
            "overlaying": "y",
            "side": "right",
            "showgrid": False,
            "title": {"text": "likelihood (line)"},
            "rangemode": "tozero",
        },
    }
    return Chart(
        "rounds",
        "Round by round",
        f"A round looks for one more pattern. Those of the first {n_kept} were kept (in colour); "
        "the line is the simplified likelihood so far.",
        f"Bars: gain of each of {len(x)} rounds; {n_kept} are kept.",
        {"data": [trace, total], "layout": layout},
    )


def _confidence(shown: dict[str, Any]) -> Chart | None:
    """Draw how many bits there are at each confidence."""
    bits = shown["confidence"]
    if bits is None:
        return None
    counts = bits["counts"][bits["counts"] > 0]
    scale = "log" if counts.max() > _LOG_FROM * counts.min() else "linear"
    decades = {"type": "log", "dtick": 1} if scale == "log" else {}
    layout = {
        "xaxis": {"range": [0.5, 1], "tickformat": ".0%", "title": {"text": "confidence in a bit"}},
        "yaxis": {"title": {"text": "bits"}, **decades},
    }
    return Chart(
        "confidence",
        "Confidence of the bits",
        f"{bits['unsure']} of {bits['bits']} bits are uncertain (below 90 %, |m| < 0.8). "
        "Confidence is the probability that a bit has the right sign, (1 + |m|)/2"
        + (". The count axis is logarithmic." if scale == "log" else "."),
        f"Histogram of the confidence of {bits['bits']} bits; mean |m| is {bits['mean']:.3f}.",
        {"data": [_histogram(bits, "confidence", "bits")], "layout": layout},
    )


def _calibration(shown: dict[str, Any]) -> Chart | None:
    """Draw how often bits are right against their confidence, where the truth is known."""
    if shown["truth"] is None or shown["truth"]["calibration"] is None:
        return None
    found = shown["truth"]["calibration"]
    some = found["counts"] > 0
    sizes = 7 + 11 * np.sqrt(found["counts"][some] / found["counts"].max())
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": found["confidence"][some],
        "y": found["accuracy"][some],
        "customdata": found["counts"][some],
        "marker": {"size": sizes, "color": "$accent"},
        "line": {"color": "$accent", "width": 1.5},
        "hovertemplate": "%{customdata} bits, confidence %{x:.1%}, %{y:.1%} right<extra></extra>",
    }
    diagonal = {"type": "line", "x0": 0.5, "y0": 0.5, "x1": 1, "y1": 1}
    line = {"color": "$muted", "width": 1, "dash": "dot"}
    layout = {
        "xaxis": {"range": [0.48, 1.02], "tickformat": ".0%", "title": {"text": "confidence"}},
        "yaxis": {"tickformat": ".0%", "title": {"text": "right signs"}},
        "shapes": [diagonal | {"line": line}],
    }
    return Chart(
        "calibration",
        "Calibration",
        f"Of bits with a confidence of 90 %, 90 % should be right (dotted line). Calibration "
        f"error {found['error']:.4f}. Larger dots hold more bits.",
        f"Share of right bits against confidence; expected error {found['error']:.4f}.",
        {"data": [trace], "layout": layout},
    )


def _histogram(bins: dict[str, Any], what: str, of: str) -> dict[str, Any]:
    left, right = bins["edges"][:-1], bins["edges"][1:]
    return {
        "type": "bar",
        "x": (left + right) / 2,
        "width": right - left,
        "y": bins["counts"],
        "customdata": np.stack([left, right], axis=1),
        "marker": {"color": "$accent", "line": {"width": 1, "color": "$surface"}},
        "hovertemplate": f"{what} %{{customdata[0]:.3f}} to %{{customdata[1]:.3f}}: "
        f"%{{y}} {of}<extra></extra>",
    }


def _lines(x: Any, rows: Any, colours: list[str]) -> list[dict[str, Any]]:
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "line": {"color": colour, "width": 2},
            "hovertemplate": "%{x}: %{y:.4g}<extra></extra>",
        }
        for y, colour in zip(rows, colours, strict=True)
    ]
