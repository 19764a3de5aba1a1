"""Figures of the samples: their overlaps with patterns, and the fit of the model."""

from __future__ import annotations

import html
from typing import Any

from dualtap.report.figures import CATEGORIES, Chart, axis, bars, histogram

_LONGEST = 30  # characters of two names beside a bar
_DIVERGING = [[0, "$minus"], [0.5, "$zero"], [1, "$plus"]]


def overlap_map(shown: dict[str, Any]) -> Chart | None:
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
        "yaxis": axis("pattern", type="category", autorange="reversed"),
    }
    return Chart(
        "overlaps",
        "Overlap of samples with patterns",
        "One column per sample, sorted by the nearest pattern. "
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


def sizes(shown: dict[str, Any]) -> Chart | None:
    """Draw the number of samples nearest to each pattern."""
    patterns = shown["patterns"]
    if not patterns or "share" not in patterns[0]:
        return None
    what = "count" if "count" in patterns[0] else "share"
    values = [pattern[what] for pattern in patterns]
    trace = bars(values, "$accent", "pattern %{x}: %{y} ")
    title = "samples" if what == "count" else "share of samples"
    layout = {"xaxis": axis("pattern", **CATEGORIES, tickangle=0), "yaxis": axis(title)}
    return Chart(
        "sizes",
        "Samples per pattern",
        "A sample is counted for the pattern that explains most of what sets it apart.",
        f"Bars: {title} per pattern, from {min(values):.3g} to {max(values):.3g}.",
        {"data": [trace], "layout": layout},
    )


def best_overlaps(shown: dict[str, Any]) -> Chart | None:
    """Draw the overlap of samples with the pattern nearest to them."""
    if shown["samples"] is None or not shown["patterns"]:
        return None
    best, mean = shown["samples"]["best"], shown["samples"]["mean_best"]
    layout = {"xaxis": axis("overlap with the nearest pattern"), "yaxis": axis("samples")}
    return Chart(
        "best",
        "Overlap with the nearest pattern",
        f"Mean {mean:.3f}. Samples with a small overlap are not explained by any single pattern.",
        f"Histogram of the largest overlap of each sample; the mean is {mean:.3f}.",
        {"data": [histogram(best, "overlap", "samples")], "layout": layout},
    )


def likelihood(shown: dict[str, Any]) -> Chart | None:
    """Draw the log pseudo-likelihood of the model and of independent spins, above fair spins."""
    scores = shown["likelihood"]
    if scores is None:
        return None
    names = ["model", "independent spins"]
    values = [scores["model"], scores["independent"]]
    trace = bars(
        names,
        ["$accent", "$quiet"],
        "%{y}: %{customdata:.4f} per spin, %{x:.4f} above fair spins",
        orientation="h",
        x=[value - scores["fair"] for value in values],
        customdata=values,
        text=[f"{value:.3f}" for value in values],
        textposition="outside",
        cliponaxis=False,
    )
    layout = {
        "height": 200,
        "xaxis": axis("nats per spin above independent fair spins"),
        "yaxis": {"type": "category", "autorange": "reversed"},
        "margin": {"l": 10, "r": 56, "t": 8, "b": 44},
    }
    more = scores["model"] - scores["independent"]
    return Chart(
        "likelihood",
        "Log pseudo-likelihood per spin",
        f"Model: {scores['model']:.4f}; independent spins with their own means: "
        f"{scores['independent']:.4f}; independent fair spins: -0.6931. The model is "
        f"{abs(more):.4f} nats per spin {'better' if more >= 0 else 'worse'} than independent "
        "spins on these samples.",
        f"Bars: log pseudo-likelihood per spin, model {values[0]:.4f}, means of the spins "
        f"{values[1]:.4f}.",
        {"data": [trace], "layout": layout},
    )


def unexplained_chart(shown: dict[str, Any]) -> Chart | None:
    """Draw the pairs of spins with the largest residual correlations."""
    left = shown["unexplained"]
    if left is None or not left["pairs"]:
        return None
    texts = [
        f"{html.escape(a, quote=False)} · {html.escape(b, quote=False)}" for a, b in left["pairs"]
    ]
    z = left["z"]
    trace = bars(
        [text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in texts],
        ["$plus" if value > 0 else "$minus" for value in z],
        "%{customdata}: %{x:.1f} standard errors",
        orientation="h",
        x=z,
        customdata=texts,
    )
    layout = {
        "height": 60 + 26 * len(z),
        "xaxis": axis("standard errors"),
        "yaxis": {"type": "category", "autorange": "reversed", "automargin": True},
        "margin": {"l": 10, "r": 16, "t": 8, "b": 44},
    }
    return Chart(
        "unexplained",
        "Largest residual correlations",
        f"Correlations of pairs of spins minus those of the model. The largest of "
        f"{left['n_pairs']} pairs is expected to reach about {left['expected']:.1f} "
        "standard errors by chance.",
        f"Bars: the {len(z)} largest residual correlations, up to {max(map(abs, z)):.1f} "
        "standard errors.",
        {"data": [trace], "layout": layout},
    )
