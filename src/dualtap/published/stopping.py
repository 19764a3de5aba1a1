"""When to stop looking for patterns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

DROP = 0.5
"""Fraction of the typical gain up to which a step has found nothing new."""


def kink(gains: Sequence[float] | NDArray[np.float64], drop: float = DROP) -> int | None:
    r"""Return the step at which :math:`\hat{\mathcal L}` has its kink, or None before it.

    The kink is at the first τ ≥ 1 whose successor gains at most half of what was usual:

    .. math:: g_{\tau+1} \le \tfrac12\, \mathrm{median}(g_1, \dots, g_\tau).

    τ is then the number of patterns.

    Parameters
    ----------
    gains : sequence or array of float
        g_1, g_2, …: what each step added to the likelihood.
    drop : float
        The factor ½.

    Returns
    -------
    int or None

    Examples
    --------
    >>> from dualtap.published.stopping import kink
    >>> kink([9.0, 8.5, 8.7, 1.2, 1.1])
    3
    >>> kink([9.0, 8.5, 8.7]) is None
    True
    """
    for tau in range(1, len(gains)):
        if gains[tau] <= drop * np.median(gains[:tau]):
            return tau
    return None
