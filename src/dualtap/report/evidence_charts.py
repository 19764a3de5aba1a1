"""Figures of the evidence: strengths, the number of patterns, the spectrum, the bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualtap.report.figures import (
    CATEGORIES,
    Chart,
    axis,
    bars,
    guide,
    histogram,
    lines,
    on_the_right,
)

_LOG_FROM = 30.0  # largest over smallest count above which bars need a logarithmic axis


def strengths(shown: dict[str, Any]) -> Chart | None:
    """Draw the strength of each pattern, unless all have the same."""
    values = shown["model"].get("strengths", [])
    if len(set(values)) < 2:
        return None
    repulsive = sum(value < 0 for value in values)
    trace = bars(
        values,
        ["$minus" if value < 0 else "$accent" for value in values],
        "pattern %{x}: strength %{y:.3g}, %{customdata} spins",
        customdata=[pattern["n_part"] for pattern in shown["patterns"]],
    )
    layout = {"xaxis": axis("pattern", **CATEGORIES), "yaxis": axis("strength g")}
    verb = "is" if repulsive == 1 else "are"
    below = f" {repulsive} {verb} repulsive: samples avoid large overlaps." if repulsive else ""
    return Chart(
        "strengths",
        "Strengths of the patterns",
        "A strength is an inverse temperature; a pattern on n of N spins puts a field of at most "
        f"g n/N on each of them.{below}",
        f"Bars: strengths from {min(values):.3g} to {max(values):.3g}; {repulsive} below 0.",
        {"data": [trace], "layout": layout},
    )


def path(shown: dict[str, Any]) -> Chart | None:
    """Draw description length and held-out score over the number of patterns."""
    path = shown["path"]
    if path is None:
        return None
    n, chosen = path["n_patterns"], shown["model"]["n_patterns"]
    length = lines(n, [path["objective"]], ["$accent"])[0]
    score = lines(n, [path["held_out"]], ["$minus"])[0] | {"yaxis": "y2"}
    score["line"] = score["line"] | {"dash": "dash"}
    layout = {
        "xaxis": axis("number of patterns"),
        "yaxis": axis("description length, nats (solid)"),
        "yaxis2": on_the_right("held-out score (dashed)"),
        "margin": {"l": 64, "r": 64, "t": 8, "b": 44},
        "shapes": [guide(x0=chosen, x1=chosen, yref="paper", y0=0, y1=1)],
    }
    return Chart(
        "path",
        "Score over the number of patterns",
        f"The model has {chosen} pattern{'' if chosen == 1 else 's'} (dotted line). Held-out "
        "score: log pseudo-likelihood per spin of samples not used in the fit.",
        f"Lines: description length and held-out score for {min(n)} to {max(n)} patterns.",
        {"data": [line | {"mode": "lines+markers"} for line in (length, score)], "layout": layout},
    )


def spectrum_chart(shown: dict[str, Any]) -> Chart | None:
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
    note = {
        "text": "noise edge",
        "showarrow": False,
        **{"xref": "paper", "x": 1, "xanchor": "right"},
        **{"y": 0, "yanchor": "bottom"},  # log10 of 1: annotations know the axis, shapes do not
    }
    layout = {
        "xaxis": axis("direction of the data"),
        "yaxis": axis(
            "squared singular value / edge",
            type="log",
            tickvals=[digit * 10.0**power for power in range(-4, 7) for digit in (1, 2, 5)],
        ),
        "shapes": [guide(y0=1, y1=1, xref="paper", x0=0, x1=1)],
        "annotations": [note | {"font": {"color": "$muted", "size": 12}}],
    }
    return Chart(
        "spectrum",
        "Spectrum of the samples",
        f"{above} of the {len(values)} leading directions lie above the noise edge of independent "
        "fair spins. Unequal means of the spins also give such a direction; the number of "
        "patterns minimises the description length.",
        f"Squared singular values from {max(values):.3g} down to {min(values):.3g} times the noise "
        f"edge; {above} are above it.",
        {"data": [trace], "layout": layout},
    )


def confidence(shown: dict[str, Any]) -> Chart | None:
    """Draw the number of bits at each confidence."""
    bits = shown["confidence"]
    if bits is None:
        return None
    counts = bits["counts"][bits["counts"] > 0]
    scale = "log" if counts.max() > _LOG_FROM * counts.min() else "linear"
    decades = {"type": "log", "dtick": 1} if scale == "log" else {}
    layout = {
        "xaxis": axis("confidence in a bit", range=[0.5, 1], tickformat=".0%"),
        "yaxis": axis("bits", **decades),
    }
    return Chart(
        "confidence",
        "Confidence of the bits",
        f"{bits['uncertain']} of {bits['bits']} bits are uncertain (below 90 %, |m| < 0.8). "
        "Confidence is the probability that a bit has the correct sign, (1 + |m|)/2"
        + (". The count axis is logarithmic." if scale == "log" else "."),
        f"Histogram of the confidence of {bits['bits']} bits; mean |m| is {bits['mean']:.3f}.",
        {"data": [histogram(bits, "confidence", "bits")], "layout": layout},
    )


def calibration_chart(shown: dict[str, Any]) -> Chart | None:
    """Draw the share of correct bits against their confidence, if the true patterns are known."""
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
        "hovertemplate": "%{customdata} bits, confidence %{x:.1%}, %{y:.1%} correct<extra></extra>",
    }
    layout = {
        "xaxis": axis("confidence", range=[0.48, 1.02], tickformat=".0%"),
        "yaxis": axis("correct signs", tickformat=".0%"),
        "shapes": [guide(x0=0.5, y0=0.5, x1=1, y1=1)],
    }
    return Chart(
        "calibration",
        "Calibration",
        f"Of bits with a confidence of 90 %, 90 % should be correct (dotted line). Calibration "
        f"error {found['error']:.4f}. The size of a dot shows the number of bits.",
        f"Share of correct bits against confidence; expected error {found['error']:.4f}.",
        {"data": [trace], "layout": layout},
    )


def returned(shown: dict[str, Any]) -> Chart | None:
    """Draw the share of refits in which each pattern is found again."""
    found = shown["stability"]
    if found is None or not shown["patterns"]:
        return None
    share = found["returned"]
    trace = bars(
        share,
        ["$accent" if value >= found["level"] else "$quiet" for value in share],
        "pattern %{x}: found again in %{y:.0%} of the refits, %{customdata} stable bits",
        customdata=found["stable_bits"],
    )
    layout = {
        "xaxis": axis("pattern", **CATEGORIES),
        "yaxis": axis("refits", range=[0, 1.02], tickformat=".0%"),
    }
    n_stable = sum(value >= found["level"] for value in share)
    return Chart(
        "returned",
        "Stability of the patterns",
        f"Share of {found['n_refits']} refits to random halves of the samples in which each "
        f"pattern is found again. {n_stable} of {len(share)} are found in at least "
        f"{100 * found['level']:.0f} % (in colour).",
        f"Bars: share of refits in which each of {len(share)} patterns is found again; "
        f"{n_stable} are stable.",
        {"data": [trace], "layout": layout},
    )
