r"""Linear stability of the paramagnet m = 0 under the parallel iterations.

Around m = 0 an iteration multiplies the component of m along an eigenvector of J, J with its
diagonal and :math:`\alpha = \mathrm{Tr} J/N`, by a number that depends on the eigenvalue λ alone.
For random patterns the spectrum is that of Marchenko and Pastur: zeros, if α < 1, and a bulk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.theory.curie_weiss import Floats


class SpectrumEdges(NamedTuple):
    """Ends of the bulk of the spectrum of J."""

    lower: float
    upper: float


class TwoStepModes(NamedTuple):
    """How a rule with a memory treats modes of J around m = 0; arrays of the eigenvalues' shape."""

    roots: NDArray[np.complex128]
    """Both multipliers, one more axis of length 2, larger modulus first."""
    radius: Floats
    """Larger modulus: the mode grows where this is above 1."""
    oscillates: NDArray[np.bool_]
    """True where the leading multiplier is negative or complex."""


def marchenko_pastur_edges(alpha: float) -> SpectrumEdges:
    r"""Return the ends of the bulk of :math:`J = \xi^\top \xi / N`, P = αN random patterns.

    .. math:: \lambda_\pm = (1 \pm \sqrt\alpha)^2.

    For α < 1 the other N - P eigenvalues are 0.

    Parameters
    ----------
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    SpectrumEdges

    Examples
    --------
    >>> from dualtap.theory import marchenko_pastur_edges
    >>> marchenko_pastur_edges(0.25)
    SpectrumEdges(lower=0.25, upper=2.25)
    """
    root = np.sqrt(checked_alpha(alpha))
    return SpectrumEdges(float((1 - root) ** 2), float((1 + root) ** 2))


def tap_multiplier(eigenvalue: ArrayLike, beta: float, alpha: float) -> Floats:
    r"""Return the factor by which one step of parallel TAP multiplies a mode around m = 0.

    .. math:: x' = \left[\beta\lambda - \frac{\alpha\beta}{1-\beta}\right] x.

    Parameters
    ----------
    eigenvalue : float or array
        λ, of J with its diagonal.
    beta : float
        Inverse temperature, positive and not 1.
    alpha : float
        Mean diagonal of J, not negative.

    Returns
    -------
    array of the shape of ``eigenvalue``

    Examples
    --------
    >>> from dualtap.theory import tap_multiplier
    >>> tap_multiplier([0.0, 1.0, 2.25], beta=0.5, alpha=0.25)
    array([-0.25 ,  0.25 ,  0.875])
    """
    kappa = _kappa(beta)
    multiplier: Floats = beta * np.asarray(eigenvalue, float) - checked_alpha(alpha) * kappa
    return multiplier


def amp_modes(eigenvalue: ArrayLike, beta: float, alpha: float) -> TwoStepModes:
    r"""Return both multipliers of parallel AMP around m = 0, and what they imply.

    .. math:: x' = \frac{\beta}{1-\beta}
              \left[(\lambda - \alpha - 1)\, x - \frac{\alpha\beta}{1-\beta}\, x_{\rm prev}\right],

    whose multipliers are the roots of :math:`\rho^2 - \kappa(\lambda-\alpha-1)\rho
    + \alpha\kappa^2`, :math:`\kappa = \beta/(1-\beta)`. At λ = 0 they are -κ and -ακ; in the
    bulk of Marchenko and Pastur both have modulus :math:`\kappa\sqrt\alpha`.

    Parameters
    ----------
    eigenvalue : float or array
        λ, of J with its diagonal.
    beta : float
        Inverse temperature, positive and not 1.
    alpha : float
        Mean diagonal of J, not negative.

    Returns
    -------
    TwoStepModes

    Examples
    --------
    >>> from dualtap.theory import amp_modes
    >>> modes = amp_modes([0.0, 1.0], beta=0.6, alpha=0.01)
    >>> modes.radius.round(3), modes.oscillates
    (array([1.5 , 0.15]), array([ True,  True]))
    """
    kappa = _kappa(beta)
    trace = kappa * (np.asarray(eigenvalue, float) - checked_alpha(alpha) - 1)
    return _modes(trace, alpha * kappa**2)


def opper_winther_modes(
    eigenvalue: ArrayLike, beta: float, alpha: float, *, printed: bool = False
) -> TwoStepModes:
    r"""Return both multipliers of the Opper–Winther iteration around m = 0.

    There q = 0, A and c are constants, and the memory is :math:`z = m - A m_{\rm prev}`, so

    .. math:: x' = A(\lambda - \alpha + c)\, x - c A^2\, x_{\rm prev},

    whose multipliers are the roots of :math:`\rho^2 - A(\lambda-\alpha+c)\rho + cA^2`. For
    α → 0, A = β and c = 0: the multipliers are βλ and 0, as under TAP, and at λ = 0 nothing is left
    of the factor -β/(1-β) by which AMP multiplies what is orthogonal to the patterns.
    In the corrected form :math:`A = \beta(1 - \alpha\kappa)`, :math:`c = \alpha\kappa/A`,
    :math:`\kappa = \beta/(1-\beta)`; as printed :math:`A = \beta/(1+\alpha\beta)`, c = α.

    Parameters
    ----------
    eigenvalue : float or array
        λ, of J with its diagonal.
    beta : float
        Inverse temperature, positive, and not 1 in the corrected form.
    alpha : float
        Mean diagonal of J, not negative.
    printed : bool
        Use A and c as the paper prints them.

    Returns
    -------
    TwoStepModes

    Examples
    --------
    >>> from dualtap.theory import opper_winther_modes
    >>> opper_winther_modes([0.0, 1.0], beta=0.6, alpha=0.01).radius.round(3)
    array([0.094, 0.585])
    """
    A, c = _opper_winther_coefficients(beta, checked_alpha(alpha), printed)
    trace = A * (np.asarray(eigenvalue, float) - alpha + c)
    return _modes(trace, c * A**2)


def _opper_winther_coefficients(beta: float, alpha: float, printed: bool) -> tuple[float, float]:
    """Return A and c of the iteration at q = 0."""
    if printed:
        if not 0 < beta < np.inf:
            raise ValueError(f"beta must be positive, got {beta!r}")
        return beta / (1 + alpha * beta), alpha
    A = beta * (1 - alpha * _kappa(beta))
    if A == 0:
        raise ValueError(f"A = β(1 - αβ/(1-β)) vanishes at beta={beta!r}, alpha={alpha!r}")
    return A, 1 / A - 1 / beta


def _modes(trace: ArrayLike, determinant: float) -> TwoStepModes:
    """Return the roots of ρ² - trace ρ + determinant."""
    t = np.asarray(trace)
    # The root without cancellation first, the other from the product of the two.
    half = np.sqrt((t**2 / 4 - determinant).astype(np.complex128))
    first = t / 2 + np.where(t < 0, -half, half)
    second = np.divide(determinant, first, out=np.zeros_like(first), where=first != 0)
    roots = np.stack([first, second], axis=-1)
    return TwoStepModes(roots, np.abs(first), (first.real < 0) | (first.imag != 0))


def tap_critical_beta(alpha: float) -> float:
    r"""Return β_c, where the upper edge of the bulk becomes marginal under TAP.

    .. math:: \beta_c = \frac{1}{1 + \sqrt\alpha},

    the spin-glass temperature of replica theory (the paper prints :math:`T_c`). For α → 0 it
    is 1: the patterns. The edge's multiplier touches 1 there from below and falls again, so
    only an eigenvalue beyond the edge grows, and what truly ends the stability of the parallel
    iteration is :func:`tap_oscillation_beta`.

    Parameters
    ----------
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import tap_critical_beta
    >>> tap_critical_beta(0.25)
    0.6666666666666666
    """
    return float(1 / (1 + np.sqrt(checked_alpha(alpha))))


def tap_oscillation_beta(alpha: float) -> float:
    r"""Return the β above which parallel TAP oscillates out of the paramagnet.

    The lowest eigenvalue reaches multiplier -1 where

    .. math:: \lambda_{\min} \beta^2 + (1 + \alpha - \lambda_{\min})\,\beta = 1,

    with :math:`\lambda_{\min} = 0`, hence :math:`\beta = 1/(1+\alpha)`, for α ≤ 1, and
    :math:`(1-\sqrt\alpha)^2` above, where this comes before β_c.

    Parameters
    ----------
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import tap_oscillation_beta
    >>> tap_oscillation_beta(0.25)
    0.8
    >>> round(tap_oscillation_beta(4.0), 4)
    0.2361
    """
    lam = marchenko_pastur_edges(alpha).lower if alpha > 1 else 0.0
    b = 1 + checked_alpha(alpha) - lam
    return float(2 / (b + np.sqrt(b**2 + 4 * lam)))


def amp_critical_beta(alpha: float) -> float:
    r"""Return the β above which parallel AMP leaves the paramagnet.

    .. math:: \beta = \tfrac12 \quad (\alpha < 1), \qquad
              \beta = \frac{1}{1 + \sqrt\alpha} \quad (\alpha \ge 1).

    Below α = 1 the directions orthogonal to all patterns, λ = 0, go first, with multiplier
    :math:`-\beta/(1-\beta)`: an oscillation that knows nothing of the patterns. Above, J has no
    such directions and the bulk goes at β_c.

    Parameters
    ----------
    alpha : float
        Patterns per spin, not negative.

    Returns
    -------
    float

    Examples
    --------
    >>> from dualtap.theory import amp_critical_beta
    >>> amp_critical_beta(0.01), amp_critical_beta(9.0)
    (0.5, 0.25)
    """
    return min(0.5, tap_critical_beta(alpha))


def _kappa(beta: float) -> float:
    if not 0 < beta < np.inf or beta == 1:
        raise ValueError(
            f"beta must be positive and not 1, got {beta!r}; at 1 the reaction term has its pole"
        )
    return beta / (1 - beta)


def checked_alpha(alpha: float) -> float:
    """Return ``alpha`` if it can be a number of stored vectors per spin."""
    if not 0 <= alpha < np.inf:
        raise ValueError(
            f"alpha must be finite and not negative, got {alpha!r}; it is stored vectors per spin"
        )
    return alpha
