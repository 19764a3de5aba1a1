"""Figures of the training of an RBM, and of rounds of deflation."""

from __future__ import annotations

from typing import Any

from dualtap.report.figures import Chart, axis, bars, lines, on_the_right


def rounds(shown: dict[str, Any]) -> list[Chart]:
    """Draw the training of an RBM, or the rounds of deflation."""
    seen = shown["rounds"]
    if seen is None:
        return []
    return _learning(seen, shown) if "update" in seen else [_deflation(seen, shown)]


def _learning(seen: dict[str, Any], shown: dict[str, Any]) -> list[Chart]:
    x_axis = axis("update")
    curve = lines(seen["update"], [seen["pseudo_likelihood"]], ["$accent"])
    n_patterns = len(shown["patterns"])
    last = shown["model"]["singular_values"]
    colours = ["$accent" if k < n_patterns else "$quiet" for k in range(len(last))]
    values = lines(seen["update"], seen["singular_values"], colours)
    return [
        Chart(
            "learning",
            "Learning",
            "Log pseudo-likelihood of the samples per spin; -0.693 for independent fair spins.",
            "Line: pseudo-likelihood per spin against updates.",
            {"data": curve, "layout": {"xaxis": x_axis, "yaxis": axis("log pseudo-likelihood")}},
        ),
        Chart(
            "singular",
            "Singular values of the weights",
            f"The first {n_patterns}, in colour, belong to patterns.",
            f"Lines: singular values of the weights against updates; the largest ends at "
            f"{max(last):.3g}.",
            {"data": values, "layout": {"xaxis": x_axis, "yaxis": axis("singular value")}},
        ),
    ]


def _deflation(seen: dict[str, Any], shown: dict[str, Any]) -> Chart:
    gains = seen["gains"]
    n_kept = len(shown["patterns"])
    x = list(range(1, len(gains) + 1))
    colours = ["$accent" if k < n_kept else "$quiet" for k in range(len(x))]
    trace = bars(gains, colours, "round %{x}: gain %{y:.4g}", x=x, name="gain")
    total = lines(x, [seen["likelihood"]], ["$ink"])[0] | {"yaxis": "y2", "name": "likelihood"}
    layout = {
        "xaxis": axis("round"),
        "yaxis": axis("gain of the round (bars)"),
        "yaxis2": on_the_right("likelihood (line)", rangemode="tozero"),
    }
    return Chart(
        "rounds",
        "Gain of each round",
        f"Each round looks for one more pattern; those of the first {n_kept} rounds are "
        "kept (in colour). Line: the simplified likelihood.",
        f"Bars: gain of each of {len(x)} rounds; {n_kept} are kept.",
        {"data": [trace, total], "layout": layout},
    )
