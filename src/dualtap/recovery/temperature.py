"""The inverse temperature that the data themselves suggest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from dualtap.hopfield import as_fields
from dualtap.metrics import aligned_fields, field_blocks
from dualtap.spins import DenseSpins, Spins

BETA_RANGE = 0.01, 50.0
"""Where β is looked for; data without a single misaligned spin push it to the upper end."""

_ENOUGH_ENTRIES = 2**24
_BINS = 8192
_NEWTON_STEPS = 30
_SETTLED = 1e-3
_MAX_ENTRIES = 2_000_000  # used with fields: at β = 2 they pin it down to a part in a thousand


def enough(spins: Spins) -> NDArray[np.int8]:
    """Return all samples, or so many of large data that more would add nothing.

    Sixteen million spins pin a temperature down to a part in a thousand.

    Examples
    --------
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.temperature import enough
    >>> enough(as_spins([[0, 1], [1, 1]])).shape
    (2, 2)
    """
    if isinstance(spins, DenseSpins):
        return spins.values
    return spins.some(max(_ENOUGH_ENTRIES // spins.n_spins, 256)).values


def fit_beta(X: ArrayLike, patterns: ArrayLike, fields: ArrayLike | None = None) -> float:
    r"""Return the β that maximises the pseudo-likelihood of X given the patterns and fields.

    Without fields the pseudo-likelihood depends on the data only through the distribution of the
    aligned fields :math:`s_i h_i`; their histogram is taken once and the maximum found on it.
    With fields every entry :math:`\beta s_i h_i + s_i b_i` has its own offset: they are kept, for
    all samples up to two million entries and for a fixed random choice of samples beyond.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (n_patterns, n_spins), ±1
    fields : array-like of shape (n_spins,), optional
        The b_i, which β does not multiply.

    Returns
    -------
    float

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.recovery.temperature import fit_beta
    >>> teacher = dt.HopfieldModel.random(500, 3, beta=1.5, random_state=0)
    >>> round(fit_beta(teacher.sample(100, random_state=1), teacher.patterns), 1)
    1.5
    """
    return best_temperature(X, patterns, fields)[0]


def best_temperature(
    X: ArrayLike, patterns: ArrayLike, fields: ArrayLike | None = None
) -> tuple[float, float]:
    """Return the β of :func:`fit_beta`, and the pseudo-likelihood per spin that it reaches.

    Examples
    --------
    >>> from dualtap.recovery.temperature import best_temperature
    >>> beta, likelihood = best_temperature([[1, 1, 1, 1, 1, -1]], [[1, 1, 1, 1, 1, 1]])
    >>> -0.6931 < likelihood < -0.5
    True
    """
    S, zeta = np.asarray(X), np.asarray(patterns)
    if not S.any():
        raise ValueError("X has no observed entry to fit beta to")
    if fields is None:
        cost = _cost_without_fields(S, zeta)
    else:
        cost = _cost_with_fields(S, zeta, as_fields(fields, S.shape[1]))
    low, high = np.log(BETA_RANGE)
    best = minimize_scalar(lambda x: cost(float(np.exp(x))), bounds=(low, high), method="bounded")
    return float(np.exp(best.x)), -float(best.fun)


def fit_fields(
    X: ArrayLike | Spins, patterns: ArrayLike, beta: float | None = None
) -> tuple[float, NDArray[np.float64]]:
    r"""Return the β and the site fields b that maximise the pseudo-likelihood together.

    :math:`P(s_i | s_{\setminus i}) \propto e^{s_i (\beta h_i + b_i)}`. The fields have a Gaussian
    prior of the variance that they show, so that they vanish where the data do not need them.
    Newton steps in β and all b at once: their Hessian is a diagonal with one more row.

    Parameters
    ----------
    X : Spins or array-like of shape (n_samples, n_spins), ±1 with 0 for missing
    patterns : array-like of shape (n_patterns, n_spins), ±1
    beta : float, optional
        Kept as it is when given.

    Returns
    -------
    beta : float
    fields : array of shape (n_spins,)

    Examples
    --------
    >>> import dualtap as dt
    >>> import numpy as np
    >>> from dualtap.recovery.temperature import fit_fields
    >>> b = np.random.default_rng(0).uniform(-0.5, 0.5, 300)
    >>> teacher = dt.HopfieldModel.random(300, 2, beta=1.5, random_state=0, fields=b)
    >>> beta, fields = fit_fields(teacher.sample(1000, random_state=1), teacher.patterns)
    >>> round(beta, 1), bool(np.corrcoef(b, fields)[0, 1] > 0.9)
    (1.5, True)
    """
    S, zeta = _some_samples(X), np.asarray(patterns)
    s, aligned = (np.concatenate(x) for x in zip(*field_blocks(S, zeta), strict=True))
    h, observed = s * aligned, np.abs(s)
    b, x = np.zeros(s.shape[1]), fit_beta(S, zeta) if beta is None else beta
    low, high = BETA_RANGE
    for _ in range(_NEWTON_STEPS):
        T = np.tanh(np.float32(x) * h + b.astype(np.float32)) * observed
        C = observed - np.square(T)
        change, alone, slope = _newton_step(s - T, C, h, b)
        if beta is None:
            change = float(np.clip(x + change, max(x / 2, low), min(x + max(x, 1), high))) - x
        else:
            change = 0.0
        step = np.clip(alone - slope * change, -1, 1)
        b, x = b + step, x + change
        if abs(change) < _SETTLED * x and np.abs(step).max() < _SETTLED:
            break
    return x, b


def _newton_step(
    residual: NDArray[np.float32],
    C: NDArray[np.float32],
    h: NDArray[np.float32],
    b: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the change of β, that of the fields alone, and what β takes off it per unit."""
    curvature = C.sum(axis=0, dtype=np.float64)
    precision = 1 / (np.mean(np.square(b)) + np.mean(1 / (curvature + 1)))
    diagonal = curvature + precision
    gradient = residual.sum(axis=0, dtype=np.float64) - precision * b
    mixed = (h * C).sum(axis=0, dtype=np.float64)
    toward = float((h * residual).sum(dtype=np.float64)) - float(mixed @ (gradient / diagonal))
    stiffness = float((np.square(h) * C).sum(dtype=np.float64)) - float(mixed @ (mixed / diagonal))
    change = toward / max(stiffness, 1e-9)
    return change, gradient / diagonal, mixed / diagonal


def _cost_without_fields(
    S: NDArray[np.generic], zeta: NDArray[np.generic]
) -> Callable[[float], float]:
    bound = float(len(zeta)) + 1e-6  # |h_i| ≤ P
    counts = np.zeros(_BINS)
    for aligned in aligned_fields(S, zeta):
        place = ((aligned + bound) * (_BINS / (2 * bound))).astype(np.int32)
        counts += np.bincount(place, minlength=_BINS)[:_BINS]
    filled = np.flatnonzero(counts)
    counts = counts[filled]
    centres = (filled + 0.5) * (2 * bound / _BINS) - bound
    return lambda beta: float(counts @ np.logaddexp(0, -2 * beta * centres) / counts.sum())


def _cost_with_fields(
    S: NDArray[np.generic], zeta: NDArray[np.generic], b: NDArray[np.float64]
) -> Callable[[float], float]:
    slopes, offsets = [], []
    for s, aligned in field_blocks(_some_samples(S), zeta):
        observed = s != 0
        slopes.append(aligned[observed])
        offsets.append((s * b.astype(np.float32))[observed])
    a, c = np.concatenate(slopes), np.concatenate(offsets)
    return lambda beta: float(np.logaddexp(0, -2 * (beta * a + c)).mean(dtype=np.float64))


def _some_samples(X: ArrayLike | Spins) -> NDArray[np.generic]:
    """Return at most ``_MAX_ENTRIES`` entries' worth of samples, always the same ones."""
    if isinstance(X, Spins):
        X = X.some(max(1, _MAX_ENTRIES // X.n_spins)).values
    S = np.asarray(X)
    chosen = np.flatnonzero(S.any(axis=1))
    most = max(1, _MAX_ENTRIES // S.shape[1])
    if len(chosen) > most:
        chosen = np.sort(np.random.default_rng(0).choice(chosen, most, replace=False))
    return S[chosen]


def spectral_beta(
    values: NDArray[np.float64], total: float, n_samples: int, n_spins: int, share: float = 1.0
) -> float:
    r"""Return the β of a paramagnet that the signals of the spectrum imply, patterns unknown.

    A signal at :math:`\lambda = (1 + \ell)(1 + \gamma/\ell)`, γ = N/M, in units of the noise is
    a direction in which the spins vary 1+ℓ times as much as noise. In the paramagnet
    :math:`\beta = (1 + c)\,\langle \ell/(1+\ell) \rangle` with
    :math:`c = \frac PN \frac{\beta}{1-\beta}`.

    Parameters
    ----------
    values : array of shape (n_patterns,)
        Squared singular values of the signals.
    total : float
        Sum of all squared singular values.
    n_samples, n_spins : int
    share : float
        Share of the entries that were observed; missing ones weaken the signals by it.

    Returns
    -------
    float
        NaN if the signals leave no noise to compare with.

    Examples
    --------
    >>> import dualtap as dt
    >>> import numpy as np
    >>> from dualtap.recovery.temperature import spectral_beta
    >>> X = dt.HopfieldModel.random(500, 3, beta=0.8, random_state=0).sample(2000, random_state=1)
    >>> values = np.linalg.svd(X, compute_uv=False)[:3] ** 2
    >>> round(spectral_beta(values, X.size, 2000, 500), 1)
    0.8
    """
    P = len(values)
    rest = total - float(values.sum())
    if min(n_samples, n_spins) <= P or rest <= 1e-6 * total:
        return np.nan
    variance = rest / ((n_samples - P) * (n_spins - P))
    gamma = n_spins / n_samples
    excess = values / (n_samples * variance) - 1 - gamma
    ell = (excess + np.sqrt(np.maximum(excess**2 - 4 * gamma, 0))) / (2 * share)
    response = float(np.mean(ell / (1 + np.maximum(ell, 0))))

    # β² - Bβ + r = 0; the smaller root is the paramagnet.
    B = 1 + response * (1 - P / n_spins)
    return float(max(BETA_RANGE[0], (B - np.sqrt(max(B**2 - 4 * response, 0))) / 2))
