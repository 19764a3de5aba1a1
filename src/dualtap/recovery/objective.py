r"""The description length: the one number by which every change of a model is judged.

.. math:: D = -L + \sum_\mu C(\zeta^\mu) + \tfrac12 \log M \cdot (\text{numbers fitted})

in nats, L the log pseudo-likelihood of the samples. A pattern with n entries that are not 0 costs
:math:`C = \rho \left[\log \binom Nn + n \log 2\right] + \log N`: which entries, their signs, how
many. ρ is how often the pseudo-likelihood counts the evidence for it
(:func:`dualtap.recovery.refit.times_counted`). A pattern without zeros costs what the best of all
±1 vectors gains on independent fair spins, a tenth more to be safe, or somewhat less for as many
patterns as there are directions above the noise edge, which have passed that test already.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64
from dualtap.recovery.judge import Judge
from dualtap.recovery.refit import Fit
from dualtap.spins.protocol import F32


def pattern_costs(
    sizes: F64,
    rho: F64,
    judge: Judge,
    attractive: NDArray[np.bool_] | bool = True,
    n_full: int | None = None,
) -> F64:
    """Return what patterns of so many entries cost, in nats.

    Parameters
    ----------
    sizes : array of shape (n_patterns,)
        Numbers of entries that are not 0.
    rho : array of shape (n_patterns,)
        How often evidence for each is counted.
    judge : Judge
    attractive : array of bool
        Strengths are positive.
    n_full : int, optional
        Patterns without zeros that the model has with one of these; all of these when not given.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.judge import Judge
    >>> from dualtap.recovery.objective import pattern_costs
    >>> judge = Judge(as_spins(np.ones((1000, 100))))
    >>> pattern_costs(np.array([2.0, 50.0]), np.array([2.0, 1.0]), judge).round(1)
    array([ 24.4, 108.1])
    """
    n, N = np.maximum(sizes, 2), judge.n_spins
    which = gammaln(N + 1) - gammaln(n + 1) - gammaln(N - n + 1)
    # Of n spins that determine each other n - 1 are explained, and all n are counted.
    code = np.maximum(rho, n / (n - 1)) * (which + n * np.log(2))
    full = (n == N) & attractive
    seen = (full.sum() if n_full is None else n_full) <= judge.n_seen
    charged = calibration.CHARGED_IF_SEEN if seen else calibration.CHARGED
    noise = charged * N * noise_gain(judge.n_samples / N)
    result: F64 = np.where(full, np.minimum(code, noise) if seen else noise, code) + np.log(N)
    return result


def noise_gain(alpha: float) -> float:
    r"""Return what the best ±1 vector gains on independent fair spins, in nats per spin.

    The largest gain, :math:`2 \cdot 0.763^2 = 1.16` nats per spin for :math:`\alpha = M/N \to
    \infty` (the ground state of the Sherrington–Kirkpatrick model), is smaller for few samples:
    :math:`1.16 (1 - 0.8/(1 + \sqrt\alpha))` fits simulations within a few per cent.

    Examples
    --------
    >>> from dualtap.recovery.objective import noise_gain
    >>> round(noise_gain(1.0) / noise_gain(1e9), 2)
    0.6
    """
    return 1.164 * (1 - 0.8 / (1 + float(np.sqrt(alpha))))


def description_length(fit: Fit, judge: Judge, rho: F64, found: F64) -> float:
    r"""Return the description length of data and model, in nats.

    A pattern costs what it is charged as ``found``, or its entries where that is NaN; a strength
    costs :math:`\frac12 \log M`. Fields are described around zero or, what patterns put on the
    spins at their mean overlaps included, as mean fields.
    """
    costs = pattern_costs(sizes_of(fit.Z), rho, judge, fit.g > 0)
    costs = np.where(np.isnan(found), costs, found)
    number = 0.5 * np.log(judge.n_samples)
    total = costs.sum() + number * fit.n_strengths - likelihood_of_all(fit, judge)
    if fit.parameters.fields:
        w = fit.statistics.variance / judge.weight
        total += number + min(fields_cost(fit.b, w), fields_cost(fit.mean_field, w))
    return float(total)


def likelihood_of_all(fit: Fit, judge: Judge) -> float:
    """Return the log pseudo-likelihood of all samples to expect of a model fitted to some rows.

    Numbers fitted to the rows do not suit the other samples as well: each loses a nat for every
    other sample that a judged one stands for.
    """
    effective = float(fit.n_strengths)
    if fit.parameters.fields:
        w = fit.statistics.variance / judge.weight
        effective += float((w / (w + 1 / fit.spread)).sum())
    return fit.L - (judge.weight - 1) * effective


def fields_cost(b: F64, w: F64) -> float:
    r"""Return what fields cost whose prior variance is the one v that they show, in nats.

    :math:`\frac12 \sum_i [b_i^2/v + \log(1 + v w_i)]`, w the information on each.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.objective import fields_cost
    >>> round(fields_cost(np.array([1.0, -1.0]), np.array([100.0, 100.0])), 2)
    5.62
    """
    v = float(np.mean(np.square(b) + 1 / (w + 1)))
    return 0.5 * float((np.square(b) / v + np.log1p(v * w)).sum())


def sizes_of(Z: F32) -> F64:
    """Return the number of entries that are not 0 of each pattern."""
    result: F64 = np.count_nonzero(Z, axis=1).astype(np.float64)
    return result
