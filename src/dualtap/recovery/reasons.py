"""Why that many patterns were found, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualtap.recovery.task import Regime


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
