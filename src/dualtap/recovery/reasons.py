"""Why that many patterns were found, in words."""

from __future__ import annotations

import numpy as np


def threshold_beta(n_samples: float, n_spins: int) -> float:
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
    n_patterns: int,
    n_confirmed: int,
    given: int | None,
    n_left: int,
    largest: float,
    shape: tuple[float, int],
) -> str:
    """Return why that many patterns were found.

    Parameters
    ----------
    n_patterns : int
    n_confirmed : int
        Those of them that one half of the samples showed and the other confirmed.
    given : int or None
        The number that was requested.
    n_left : int
        Directions that the model leaves above the noise edge.
    largest : float
        Largest squared singular value of the samples around their means, over the noise edge.
    shape : tuple
        Number of samples, the sum of their weights, and of spins.

    Examples
    --------
    >>> from dualtap.recovery.reasons import reason
    >>> reason(6, 0, None, 0, 9.0, (100, 400))
    'minimum description length; residuals are consistent with noise'
    >>> print(reason(6, 4, None, 0, 9.0, (100, 400)))
    minimum description length; 4 of the patterns were found in one half of the samples and
    confirmed by the other; residuals are consistent with noise
    >>> print(reason(0, 0, None, 0, 0.98, (100, 400)))
    the largest singular value is 0.98 of the noise edge: no pattern, or β below 0.67, the
    detection threshold of 100 samples
    """
    if given is not None:
        fewer = f", but the data support only {n_patterns}" if n_patterns < given else ""
        return f"{given} requested{fewer}"
    left = "residuals are consistent with noise"
    if n_left:
        directions = "1 direction remains" if n_left == 1 else f"{n_left} directions remain"
        left = f"{directions} above the noise edge, but no further pattern shortens it"
    if n_confirmed:
        left = (
            f"{n_confirmed} of the patterns were found in one half of the samples and confirmed "
            f"by the other; {left}"
        )
    if n_patterns:
        return f"minimum description length; {left}"
    if n_left:
        return f"no pattern shortens the description of independent spins; {left}"
    return (
        f"the largest singular value is {largest:.2f} of the noise edge: no pattern, or β below "
        f"{threshold_beta(*shape):.2f}, the detection threshold of {shape[0]:g} samples"
    )
