r"""The description length: the one number by which every change of a model is judged.

.. math:: D = -L + \sum_\mu C(\zeta^\mu) + \tfrac12 \log M \cdot (\text{numbers fitted})

in nats, L the log pseudo-likelihood of the samples. A pattern with n entries that are not 0 costs
:math:`C = \rho \left[\log \binom Nn + n \log 2\right] + \log N`: which entries, their signs, how
many. ρ is how often the pseudo-likelihood counts the evidence for it
(:func:`dualtap.recovery.refit.information`). A pattern without zeros costs no more than
what the best of all ±1 vectors gains on independent fair spins, which is less where samples are
few: there are :math:`2^N` of them, but they all describe the same few samples.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from dualtap.recovery import calibration
from dualtap.recovery.judge import F64, Judge
from dualtap.recovery.refit import Fit, information
from dualtap.spins.blocks import F32


def pattern_costs(sizes: F64, n_spins: int, n_samples: int, rho: F64) -> F64:
    """Return what patterns of so many entries cost, in nats.

    Parameters
    ----------
    sizes : array of shape (n_patterns,)
        Numbers of entries that are not 0.
    n_spins, n_samples : int
    rho : array of shape (n_patterns,)
        How often evidence for each is counted.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.objective import pattern_costs
    >>> pattern_costs(np.array([2, 100]), 100, 1000, np.ones(2)).round(1)
    array([14.5, 73.9])
    """
    n = np.asarray(sizes, dtype=np.float64)
    which = gammaln(n_spins + 1) - gammaln(n + 1) - gammaln(n_spins - n + 1)
    code = rho * (which + n * np.log(2))
    full = np.minimum(code, n_spins * noise_gain(n_samples / n_spins))
    result: F64 = np.where(n == n_spins, full, code) + np.log(n_spins)
    return result


def noise_gain(alpha: float) -> float:
    r"""Return what a ±1 vector is charged per spin, from what the best gains on fair spins.

    The largest gain, :math:`2 \cdot 0.763^2 = 1.16` nats per spin for :math:`\alpha = M/N \to
    \infty` (the ground state of the Sherrington–Kirkpatrick model), is smaller for few samples:
    :math:`1.16 (1 - 0.8/(1 + \sqrt\alpha))` fits simulations within a few per cent.

    Examples
    --------
    >>> from dualtap.recovery.objective import noise_gain
    >>> round(noise_gain(1.0) / noise_gain(1e9), 2)
    0.6
    """
    return calibration.NOISE_CHARGED * 1.164 * (1 - 0.8 / (1 + float(np.sqrt(alpha))))


def description_length(fit: Fit, judge: Judge, rho: F64 | None = None) -> float:
    r"""Return the description length of data and model, in nats.

    A strength costs :math:`\frac12 \log M`; fields of variance v cost
    :math:`\frac12 \sum_i [b_i^2/v + \log(1 + v w_i)]`, w the information on each.
    """
    rho = information(fit)[1] if rho is None else rho
    costs = pattern_costs(sizes_of(fit.Z), judge.n_spins, judge.n_samples, rho)
    number = 0.5 * np.log(judge.n_samples)
    total = -fit.L + costs.sum() + number * fit.n_strengths
    effective = float(fit.n_strengths)
    if fit.parameters.fields:
        v, w = fit.spread, fit.statistics.variance / judge.weight
        total += number + 0.5 * float((np.square(fit.mean_field) / v + np.log1p(v * w)).sum())
        effective += float((v * w / (1 + v * w)).sum())
    # Numbers fitted to the rows do not suit the other samples as well.
    return float(total + (judge.weight - 1) * effective)


def sizes_of(Z: F32) -> F64:
    """Return the number of entries that are not 0 of each pattern."""
    return np.count_nonzero(Z, axis=1).astype(np.float64)
