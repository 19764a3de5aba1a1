"""One pattern in the paramagnet, sought by a student whose temperature is not the teacher's."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import erf

from dualtap.theory.stability import checked_alpha

# Evenly spaced, unlike Gauss's: tanh(σz) of a cold student is nearly a step.
_NODES = np.linspace(-8, 8, 801)
_WEIGHTS = np.exp(-(_NODES**2) / 2) / np.exp(-(_NODES**2) / 2).sum()
_NOTHING = 1e-5  # a p that is still on its way to 0
_DAMPING = 0.5  # undamped, q oscillates where the student is far too cold


class StudentLimit(NamedTuple):
    """What a student reaches for N → ∞."""

    magnetization: float
    """p = mean of m_i ζ_i, m the student's posterior means."""
    size: float
    """q = mean of m_i²; equal to p only if the student's β is the teacher's."""
    sign: float
    """Overlap of sign(m) with ζ."""


def student_limit(
    beta: float, student_beta: float, alpha: float, tol: float = 1e-8
) -> StudentLimit:
    r"""Return the state evolution of a student at β' on α = M/N samples per spin drawn at β < 1.

    Given λ_a, of variance :math:`v = 1/(1-\beta)`, a sample is
    :math:`s_i = \sqrt{\beta/N}\,\lambda_a \zeta_i` plus noise of unit variance. With
    :math:`u = \beta'(1-q)` the field on a bit has mean and variance

    .. math:: h = \frac{\alpha\beta\beta' v\, p}{1-u}, \qquad
              \sigma^2 = \frac{\alpha\beta'^2 (\beta v p^2 + q)}{(1-u)^2},

    and :math:`p = \mathbb{E}_z \tanh(h + \sigma z)`, :math:`q = \mathbb{E}_z \tanh^2(h+\sigma z)`;
    the sign overlap is :math:`\mathrm{erf}(h/\sqrt{2\sigma^2})`. At β' = β, p = q and this is
    :func:`paramagnetic_limit`. Replica symmetric: where the student is a spin glass, β' above β and
    few samples, it is an approximation.

    Parameters
    ----------
    beta : float in (0, 1)
        The teacher's β.
    student_beta : float
        The student's β', positive.
    alpha : float
        Samples per spin, not negative.
    tol : float
        Change of p and q at which the iteration stops.

    Returns
    -------
    StudentLimit

    Examples
    --------
    >>> from dualtap.theory import student_limit
    >>> [round(student_limit(0.6, b, alpha=1.0).sign, 3) for b in (0.4, 0.6, 1.0)]
    [0.521, 0.534, 0.524]
    """
    _check(beta, student_beta)
    v = 1 / (1 - beta)
    p = q = 1.0
    h = sigma = 0.0
    for _ in range(20_000):
        one_minus_u = 1 - student_beta * (1 - q)
        h = checked_alpha(alpha) * beta * student_beta * v * p / one_minus_u
        sigma = np.sqrt(alpha * (beta * v * p**2 + q)) * student_beta / abs(one_minus_u)
        t = np.tanh(h + sigma * _NODES)
        change_p, change_q = float(_WEIGHTS @ t) - p, float(_WEIGHTS @ t**2) - q
        if max(abs(change_p), abs(change_q)) < tol:
            break
        p += (1 - _DAMPING) * change_p
        q += (1 - _DAMPING) * change_q
    if abs(p) < _NOTHING:
        return StudentLimit(0.0, q if q > _NOTHING else 0.0, 0.0)
    return StudentLimit(p, q, float(erf(h / np.sqrt(2) / sigma)))


def student_threshold(beta: float, student_beta: float) -> float:
    r"""Return α = M/N above which a student at β' has found the pattern of a teacher at β < 1.

    For β' ≤ β the paramagnet of the student ends towards the pattern, at

    .. math:: \alpha = \Big(\frac1\beta - 1\Big)\Big(\frac1{\beta'} - 1\Big) \ge
              \Big(\frac1\beta - 1\Big)^2,

    the Bayes limit. For β' > β a spin glass comes first, at :math:`(1/\beta'-1)^2`, and the pattern
    is found where, in it, :math:`u/(1-u) = (1-\beta)/(\alpha\beta)`, replica symmetric.

    Parameters
    ----------
    beta : float in (0, 1)
        The teacher's β.
    student_beta : float
        The student's β', positive.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import student_threshold
    >>> [round(student_threshold(0.5, b), 3) for b in (0.25, 0.5, 2.0)]
    [3.0, 1.0, 1.309]
    """
    _check(beta, student_beta)
    noise = 1 / beta - 1
    if student_beta <= beta:
        return noise * (1 / student_beta - 1)

    def excess(alpha: float) -> float:
        """Return q of the spin glass at this α, less the one that leaves p marginal."""
        u = 1 / (1 + alpha / noise)
        q = 1 - u / student_beta
        sigma = np.sqrt(alpha * q) * student_beta / (1 - u)
        return float(_WEIGHTS @ np.tanh(sigma * _NODES) ** 2) - q

    # Between the smallest α at which such a q is positive, and one at which it is nearly 1.
    lowest = max(0.0, noise * (1 / student_beta - 1)) + 1e-9
    return float(brentq(excess, lowest * (1 + 1e-6), 1e3 * noise**2))


def _check(beta: float, student_beta: float) -> None:
    if not 0 < beta < 1:
        raise ValueError(f"the teacher must be a paramagnet, 0 < beta < 1, got beta={beta!r}")
    if not 0 < student_beta < np.inf:
        raise ValueError(f"student_beta must be positive, got {student_beta!r}")
