"""The figures of a report."""

from __future__ import annotations

from typing import Any

from dualtap.report.evidence_charts import (
    calibration_chart,
    confidence,
    path,
    returned,
    spectrum_chart,
    strengths,
)
from dualtap.report.figures import Chart
from dualtap.report.sample_charts import (
    best_overlaps,
    likelihood,
    overlap_map,
    sizes,
    unexplained_chart,
)
from dualtap.report.training_charts import rounds

__all__ = ["Chart", "charts"]


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
        overlap_map(shown),
        sizes(shown),
        best_overlaps(shown),
        likelihood(shown),
        unexplained_chart(shown),
        strengths(shown),
        path(shown),
        spectrum_chart(shown),
        *rounds(shown),
        confidence(shown),
        returned(shown),
        calibration_chart(shown),
    ]
    return [chart for chart in drawn if chart is not None]
