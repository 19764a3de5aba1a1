"""A recovery in words: the phase, how far above threshold, and why there is nothing if so."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery.task import Regime

_PHASES = {
    Regime.CLUSTERED: "each sample lies near one pattern (retrieval)",
    Regime.MIXED: "samples lie in states that mix several patterns (spin glass or mixed)",
    Regime.WEAK: "samples lean on every pattern a little and cluster around none (paramagnet)",
    Regime.NOTHING: "no pattern stands out of the noise",
}


def threshold_beta(n_samples: int, n_spins: int) -> float:
    r"""Return the β below which one pattern leaves no trace in that many samples.

    :math:`\beta_c = 1/(1 + \sqrt{M/N})`, the inverse of :math:`M_c = N (1/\beta - 1)^2`.

    Examples
    --------
    >>> from dualtap.recovery.reasons import threshold_beta
    >>> threshold_beta(1000, 1000)
    0.5
    """
    return 1 / (1 + float(np.sqrt(n_samples / n_spins)))


def reason(
    regime: Regime,
    n_patterns: int,
    given: int | None,
    n_signal: int,
    spectrum: NDArray[np.float64],
    n_samples: int,
    n_spins: int,
    *,
    by_length: bool = False,
) -> str:
    """Say why that many patterns were returned.

    Parameters
    ----------
    regime : Regime
    n_patterns : int
    given : int or None
        How many the user has asked for.
    n_signal : int
        Directions that stand out of the noise.
    spectrum : array
        Squared singular values over the noise edge.
    n_samples, n_spins : int
    by_length : bool
        The number is the one with the shortest description of data and model.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.task import Regime
    >>> from dualtap.recovery.reasons import reason
    >>> print(reason(Regime.NOTHING, 0, None, 0, np.array([0.98]), 100, 400))
    the largest singular value of 100 samples of 400 spins is what coins would give (0.98 of the
    edge of noise): either there is no pattern, or too few samples show it (below β = 0.67 none
    can be seen with so few)
    """
    if given is not None:
        fewer = "; the data have no more independent directions" if n_patterns < given else ""
        return f"{given} were asked for{fewer}"
    if by_length:
        return "each pays for itself beside the means of the spins; more would not"
    if regime is not Regime.NOTHING:
        counted = {
            Regime.WEAK: "as many directions of the data stand out of noise",
            Regime.MIXED: "what they leave of the data is noise, or not ±1",
            Regime.CLUSTERED: "what they leave of the data is noise, or not ±1",
        }
        return counted[regime]
    if n_signal:
        return (
            "directions stand out of the noise, but none of them is made of ±1 entries: the "
            "data have structure that is no pattern, such as unequal means of the spins"
        )
    beta = threshold_beta(n_samples, n_spins)
    return (
        f"the largest singular value of {n_samples} samples of {n_spins} spins is what coins "
        f"would give ({spectrum[0]:.2f} of the edge of noise): either there is no pattern, or too "
        f"few samples show it (below β = {beta:.2f} none can be seen with so few)"
    )


def distance(
    regime: Regime, beta: float, weights: NDArray[np.float64], n_samples: int, n_spins: int
) -> str:
    """Say how far above threshold the data are.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.task import Regime
    >>> from dualtap.recovery.reasons import distance
    >>> distance(Regime.WEAK, 0.8, np.ones(1), 1000, 1000)
    '16 times as many samples as the least that show a pattern at β = 0.80 (62)'
    >>> distance(Regime.CLUSTERED, 2.0, np.array([0.75, 0.25]), 40, 1000)
    '10 to 30 samples for each pattern'
    """
    if regime is Regime.WEAK and beta < 1:
        least = n_spins * (1 / beta - 1) ** 2
        return (
            f"{n_samples / max(least, 1):.2g} times as many samples as the least that show a "
            f"pattern at β = {beta:.2f} ({least:.0f})"
        )
    counts = np.round(weights * n_samples).astype(int)
    few, many = counts.min(), counts.max()
    return f"{few} to {many} samples for each pattern" if few < many else f"{few} for each pattern"


def phase(regime: Regime) -> str:
    """Describe a regime in plain words."""
    return _PHASES[regime]
