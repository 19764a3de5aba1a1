"""The inverse temperature that the data themselves suggest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualtap.hopfield import as_fields
from dualtap.metrics.likelihoods import field_blocks
from dualtap.spins import Spins
from dualtap.spins.blocks import F32

BETA_RANGE = 0.01, 50.0
"""Where β is looked for; data without a single misaligned spin push it to the upper end."""

_ENOUGH_ENTRIES = 2**22
_BINS = 8192
_BLOCK = 2**16
"""Entries looked at together: a quarter of a megabyte, which stays in the cache."""
_FEWEST_ROWS = 16
"""Samples multiplied together: products of fewer are slow."""
_NEWTON_STEPS = 30
_SETTLED = 1e-3
_EXACT = 1e-4  # the next Newton step would be the square of this
_MOST_STEPS = 100
_MANY = 4  # blocks from which it pays to begin with one of them
_MAX_ENTRIES = 2_000_000  # used with fields: at β = 2 they pin it down to a part in a thousand


def enough(spins: Spins) -> NDArray[np.int8]:
    """Return all samples, or so many of large data that more would add nothing.

    Four million spins pin a temperature down to a part in a thousand.

    Examples
    --------
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.temperature import enough
    >>> enough(as_spins([[0, 1], [1, 1]])).shape
    (2, 2)
    """
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
    return _best_beta(_entries(X, patterns, fields))


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
    entries = _entries(X, patterns, fields)
    beta = _best_beta(entries)
    return beta, -entries.cost(beta)


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
    blocks = [(s, s * aligned) for s, aligned in field_blocks(S, zeta, _BLOCK)]
    b, x = np.zeros(S.shape[1]), fit_beta(S, zeta) if beta is None else beta
    low, high = BETA_RANGE
    for _ in range(_NEWTON_STEPS):
        change, alone, slope = _newton_step(blocks, x, b)
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
    blocks: list[tuple[F32, F32]], beta: float, b: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the change of β, that of the fields alone, and what β takes off it per unit.

    ``blocks`` are spins and the fields h on them.
    """
    from dualtap._kernels.fields import newton_sums

    sums, common = np.zeros((3, len(b))), np.zeros(2)
    for s, h in blocks:
        T = np.float32(beta) * h
        T += b.astype(np.float32)
        newton_sums(s, h, np.tanh(T, out=T), sums, common)
    residual, curvature, mixed = sums
    precision = 1 / (np.mean(np.square(b)) + np.mean(1 / (curvature + 1)))
    diagonal = curvature + precision
    gradient = residual - precision * b
    slope = float(common[0] - mixed @ (gradient / diagonal))
    stiffness = float(common[1] - mixed @ (mixed / diagonal))
    return slope / max(stiffness, 1e-9), gradient / diagonal, mixed / diagonal


class _Entries(NamedTuple):
    """Observed spins with the arguments βa + c, each counted n times."""

    blocks: list[tuple[NDArray[np.floating], NDArray[np.floating], NDArray[np.floating]]]
    """a, c and n, not so many at a time that they leave the cache."""

    def cost(self, beta: float) -> float:
        """Return the mean of log(1 + e^{-2(βa + c)})."""
        total = 0.0
        for a, c, n in self.blocks:
            x = -2 * (beta * a + c)
            total += float(n @ (np.maximum(x, 0) + np.log(1 + np.exp(-np.abs(x)))))
        return total / float(sum(n.sum(dtype=np.float64) for _, _, n in self.blocks))

    def derivatives(self, beta: float) -> tuple[float, float]:
        """Return the first and second derivative of the cost, not divided by the count."""
        slope = curvature = 0.0
        for a, c, n in self.blocks:
            T = beta * a
            T += c
            np.tanh(T, out=T)
            T *= a
            slope += float(n @ (T - a))
            curvature += float(n @ (a * a - T * T))
        return slope, curvature


def _entries(X: ArrayLike, patterns: ArrayLike, fields: ArrayLike | None) -> _Entries:
    S, zeta = np.asarray(X), np.asarray(patterns, dtype=np.float32)
    if not S.any():
        raise ValueError("X has no observed entry to fit beta to")
    if fields is None:
        return _histogram(S, zeta)
    return _with_offsets(_some_samples(S), zeta, as_fields(fields, S.shape[1]).astype(np.float32))


def _best_beta(entries: _Entries) -> float:
    """Return the minimum of the cost, which is convex: Newton steps within what is known."""
    low, high = BETA_RANGE
    beta = 1.0
    if len(entries.blocks) >= _MANY:
        beta = _best_beta(_Entries(entries.blocks[:1]))
    for _ in range(_MOST_STEPS):
        slope, curvature = entries.derivatives(beta)
        low, high = (low, beta) if slope > 0 else (beta, high)
        step = slope / curvature if curvature > 0 else np.inf
        new = beta - step if low < beta - step < high else float(np.sqrt(low * high))
        settled = abs(new - beta) < _EXACT * beta
        beta = new
        if settled:
            break
    return beta


def _histogram(S: NDArray[np.generic], zeta: NDArray[np.float32]) -> _Entries:
    from dualtap._kernels.fields import count_aligned

    own = np.square(zeta).sum(axis=0)
    bound = float(own.max()) + 1e-3  # |h_i| ≤ P
    counts = np.zeros(_BINS + 1, dtype=np.int64)
    step = max(_FEWEST_ROWS, _BLOCK // S.shape[1])
    for first in range(0, len(S), step):
        s = S[first : first + step].astype(np.float32)
        count_aligned(s, (s @ zeta.T) @ zeta, own, bound, counts)
    filled = np.flatnonzero(counts[:_BINS])
    centres = (filled + 0.5) * (2 * bound / _BINS) - bound
    return _Entries([(centres, np.zeros_like(centres), counts[filled].astype(np.float64))])


def _with_offsets(
    S: NDArray[np.generic], zeta: NDArray[np.float32], b: NDArray[np.float32]
) -> _Entries:
    blocks, once = [], np.ones(max(_BLOCK, S.shape[1]), dtype=np.float32)
    for s, aligned in field_blocks(S, zeta, _BLOCK):
        n = once[: s.size] if s.all() else np.abs(s).ravel()
        s *= b
        blocks.append((aligned.ravel(), s.ravel(), n))
    return _Entries(blocks)


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
