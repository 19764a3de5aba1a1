"""What the fields on all spins say of a model, in one pass over them, in single precision.

For a spin s = ±1 in a field h everything follows from x = 2 s h and e = exp(-|x|): the logarithm of
its probability, -log(1 + e) or that and x if x is negative, the residual s - tanh h, which is
2s e/(1 + e) or 2s/(1 + e), and the variance 1 - tanh² h = 4e/(1 + e)². A missing spin has s = 0 and
adds nothing. Sums of at most a thousand terms are in single precision, sums of these in double.

Samples come one after the other, and what belongs to sites or to samples is repeated for as many
samples as together have about a thousand spins: loops of a few dozen sites would hardly be
vectorised. Every sample has a weight, the number of samples that it stands for.
"""

from typing import Any

import numpy as np
from numba import njit

from dualtap._kernels.compiled import compiled

Array = Any  # Numba infers the types; the docstrings say them

TOGETHER = 1024
"""Spins in a loop."""
_FAST = {"reassoc", "nsz", "contract", "arcp", "nnan"}
_PERIODS = 64  # summed in single precision
_f32 = np.float32
_PER_TWO = _f32(1 / np.log(2))


@njit(inline="always")
def _exponential(x: Any) -> Any:
    """Return exp(-x) in float32 for x ≥ 0, to 2e-7; it vectorises, unlike the functions of libm.

    2^-n times the polynomial of degree 6 with the least relative error, 2e-9, on |t - n| ≤ 1/2.
    """
    t = min(x * _PER_TWO, _f32(115))
    n = np.int32(t + _f32(0.5))
    r = t - _f32(n)
    p = _f32(0.00015345811)
    p = p * r + _f32(-0.0013399931)
    p = p * r + _f32(0.0096184891)
    p = p * r + _f32(-0.0555032864)
    p = p * r + _f32(0.2402264625)
    p = p * r + _f32(-0.6931471825)
    p = p * r + _f32(1)
    exponent = np.int32((np.int32(127) - n) << np.int32(23))
    return p * exponent.view(np.float32)


@njit(inline="always")
def log_of_one_and(e: Any) -> Any:
    """Return log(1 + e) in float32 for 0 ≤ e ≤ 1, by the best polynomial of degree 10."""
    p = _f32(-0.0032440211)
    p = p * e + _f32(0.0198514441)
    p = p * e + _f32(-0.0569594999)
    p = p * e + _f32(0.1060365141)
    p = p * e + _f32(-0.1530559052)
    p = p * e + _f32(0.1967593854)
    p = p * e + _f32(-0.2495413352)
    p = p * e + _f32(0.3332996240)
    p = p * e + _f32(-0.4999990242)
    p = p * e + _f32(0.9999999953)
    return p * e


# The python error model looks for division by zero, and then nothing is vectorised. Nor is it if a
# loop that writes does not start from 0: of other indices Numba does not know that they are safe.
# Functions that are linked rather than inlined round differently when they come from the cache.
@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _log_likelihood(s: Array, f: Array, own: Array, b: Array, v: Array) -> Any:
    total = _f32(0)
    for i in range(s.shape[0]):
        spin = _f32(s[i])
        x = _f32(2) * spin * (f[i] - own[i] * spin + b[i])
        cost = log_of_one_and(_exponential(abs(x))) - min(x, _f32(0))
        total += cost * spin * spin * v[i]
    return -np.float64(total)


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _add(s: Array, f: Array, own: Array, b: Array, v: Array, r: Array, w: Array, rs: Array) -> Any:
    total = _f32(0)
    for i in range(s.shape[0]):
        spin = _f32(s[i])
        counts = spin * spin * v[i]
        x = _f32(2) * spin * (f[i] - own[i] * spin + b[i])
        e = _exponential(abs(x))
        q = _f32(2) / (_f32(1) + e)
        toward = q * (e if x >= _f32(0) else _f32(1)) * counts
        f[i] = toward * spin
        r[i] += toward * spin
        w[i] += q * q * e * counts
        rs[i] += toward
        total += (log_of_one_and(e) - min(x, _f32(0))) * counts
    return -np.float64(total)


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _split(s: Array, f: Array, own: Array, b: Array, W: Array) -> None:
    for i in range(s.shape[0]):
        spin = _f32(s[i])
        x = _f32(2) * spin * (f[i] - own[i] * spin + b[i])
        e = _exponential(abs(x))
        q = _f32(2) / (_f32(1) + e)
        f[i] = q * (e if x >= _f32(0) else _f32(1)) * spin
        W[i] = q * q * e * spin * spin


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _vary(s: Array, f: Array, own: Array, b: Array, signed: Array) -> None:
    for i in range(s.shape[0]):
        spin = _f32(s[i])
        x = _f32(2) * spin * (f[i] - own[i] * spin + b[i])
        e = _exponential(abs(x))
        q = _f32(2) / (_f32(1) + e)
        signed[i] = q * q * e * spin
        f[i] = q * q * e * spin * spin


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _relax(s: Array, f: Array, own: Array, b: Array, step: Any, t: Array) -> None:
    for i in range(s.shape[0]):
        h = f[i] - own[i] * t[i] + b[i]
        e = _exponential(_f32(2) * abs(h))
        mean = (_f32(1) - e) / (_f32(1) + e)
        mean = mean if h >= _f32(0) else -mean
        t[i] = t[i] + step * (mean - t[i]) if s[i] == 0 else t[i]


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _align(s: Array, f: Array, own: Array) -> None:
    for i in range(s.shape[0]):
        spin = _f32(s[i])
        f[i] = spin * (f[i] - own[i] * spin)


@njit(fastmath=_FAST, error_model="numpy", forceinline=True)
def _along(x: Array, beta: float) -> Any:
    r, c = _f32(0), _f32(0)
    for k in range(x.shape[0]):
        y = _f32(2) * beta * x[k]
        e = _exponential(abs(y))
        q = _f32(2) / (_f32(1) + e)
        r += x[k] * q * (e if y >= _f32(0) else _f32(1))
        c += x[k] * x[k] * q * q * e
    return np.float64(r), np.float64(c)


@njit(error_model="numpy")
def _repeat(weights: Array, first: int, n_spins: int, v: Array) -> None:
    """Put the weights of the samples from ``first`` on into v, each for all of its spins."""
    for k in range(v.shape[0] // n_spins):
        v[k * n_spins : (k + 1) * n_spins] = weights[first + k]


@compiled()
def log_likelihood_of(s: Array, f: Array, own: Array, b: Array, weights: Array) -> Any:
    """Return Σ w log σ(2 s h), h = f - own s + b.

    Parameters
    ----------
    s : (M, N) int8
        Spins, 0 where one is missing.
    f : (M, N) float32
        Fields, with what a spin adds to its own.
    own, b : (period,) float32
        That, and fields of the sites, repeated for period / N samples.
    weights : (M,) float32
    """
    (M, N), period, total = s.shape, own.shape[0], 0.0
    s, f, v = s.reshape(M * N), f.reshape(M * N), np.empty(period, np.float32)
    for start in range(0, M * N, period):
        n_here = min(period, M * N - start)
        _repeat(weights, start // N, N, v[:n_here])
        for first in range(0, n_here, TOGETHER):
            sites = slice(first, min(first + TOGETHER, n_here))
            here = slice(start + sites.start, start + sites.stop)
            total += _log_likelihood(s[here], f[here], own[sites], b[sites], v[sites])
    return total


@compiled()
def statistics_of(s: Array, f: Array, own: Array, b: Array, weights: Array, sums: Array) -> Any:
    """Return Σ w log σ(2 s h), put w times the residuals into f and add weighted sums.

    Parameters
    ----------
    s, f, own, b, weights : as in `log_likelihood_of`
    sums : (3, period) float64
        Of the residuals r, their variances, and r s. Changed in place.
    """
    (M, N), period, total = s.shape, own.shape[0], 0.0
    s, f, v = s.reshape(M * N), f.reshape(M * N), np.empty(period, np.float32)
    few = np.zeros((3, period), np.float32)
    last = (M * N - 1) // period
    for k in range(last + 1):
        start = k * period
        n_here = min(period, M * N - start)
        _repeat(weights, start // N, N, v[:n_here])
        for first in range(0, n_here, TOGETHER):
            sites = slice(first, min(first + TOGETHER, n_here))
            here = slice(start + sites.start, start + sites.stop)
            r, w, rs = few[0, sites], few[1, sites], few[2, sites]
            total += _add(s[here], f[here], own[sites], b[sites], v[sites], r, w, rs)
        if k % _PERIODS == _PERIODS - 1 or k == last:
            sums += few
            few[:] = _f32(0)
    return total


@compiled()
def residuals_of(s: Array, f: Array, own: Array, b: Array, W: Array) -> None:
    """Put residuals s - tanh h into f and their variances into W.

    Parameters
    ----------
    s : (n,) int8
    f : (n,) float32
    own, b : as in `log_likelihood_of`
    W : (n,) float32
    """
    period = own.shape[0]
    for start in range(0, s.shape[0], period):
        here = slice(start, start + period)
        n = s[here].shape[0]
        _split(s[here], f[here], own[:n], b[:n], W[here])


@compiled()
def variances_of(s: Array, f: Array, own: Array, b: Array, signed: Array) -> None:
    """Put the variances 1 - tanh² h into f, and those times the spins into ``signed``.

    Parameters
    ----------
    s, f, own, b : as in `residuals_of`
    signed : (n,) float32
    """
    period = own.shape[0]
    for start in range(0, s.shape[0], period):
        here = slice(start, start + period)
        n = s[here].shape[0]
        _vary(s[here], f[here], own[:n], b[:n], signed[here])


@compiled()
def align(s: Array, f: Array, own: Array) -> None:
    """Put s (f - own s) into f: the fields of the others on a spin, times the spin.

    Parameters
    ----------
    s, f, own : as in `residuals_of`
    """
    period = own.shape[0]
    for start in range(0, s.shape[0], period):
        here = slice(start, start + period)
        n = s[here].shape[0]
        _align(s[here], f[here], own[:n])


@compiled()
def relax(s: Array, f: Array, own: Array, b: Array, steps: Array, t: Array) -> None:
    """Move missing spins towards their means: t + step (tanh h - t), h = f - own t + b.

    Parameters
    ----------
    s : (M, N) int8
        Spins, 0 where one is missing.
    f : (M, N) float32
        Fields, with what a spin adds to its own.
    own, b : (N,) float32
    steps : (M,) float32
    t : (M, N) float32
        Spins, and what is known of the missing ones. Changed in place.
    """
    for a in range(s.shape[0]):
        _relax(s[a], f[a], own, b, steps[a], t[a])


@compiled()
def along_one_strength(x: Array, weights: Array, beta: float) -> Any:
    """Return slope and curvature in β of Σ w log σ(2 β x).

    Parameters
    ----------
    x : (M, N) float32
        Fields of strength 1, times the spins; 0 where one is missing.
    weights : (M,) float32
    beta : float32
    """
    slope, curvature = 0.0, 0.0
    for a in range(x.shape[0]):
        for first in range(0, x.shape[1], TOGETHER):
            r, c = _along(x[a, first : first + TOGETHER], beta)
            slope += weights[a] * r
            curvature += weights[a] * c
    return slope, curvature
