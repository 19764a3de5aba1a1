r"""Strengths and fields given the patterns: a concave problem, solved by Newton steps.

The fields have a Gaussian prior of the variance v that they show, so that they shrink to nothing
where the data do not need them; :math:`g_\mu n_\mu/N`, the largest field that a pattern with n
entries makes, has a wide one, so that separable data keep finite answers.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dualtap.fitted.later import Once
from dualtap.fitted.training import prior_precision
from dualtap.recovery import calibration
from dualtap.recovery.derivatives import F64
from dualtap.recovery.judge import Curvature, Judge, OneStrength, Statistics
from dualtap.spins import Spins
from dualtap.spins.protocol import F32

_STEPS = 60
_STIFFER, _STIFFEST = 10.0, 1e3  # what is added to the curvature after a step too far
_SHORTER = 10.0  # times that a step is shorter after one too far
_RELAXED = 2.0  # times that both are relaxed after one that gained
_SETTLED = 2e-2  # nats for each strength
_MOVED = 1.0  # nats for each strength, after which it is computed again at the end
_SLOW = 0.1  # share of the last rise, above which the curvature is computed again
_FILLINGS, _SHORTER_FILLED = 8, 4.0  # times that gaps are filled anew, and steps shortened
_SLACK = 0.1  # nats for each strength that filling the gaps anew may still gain
_FILLED = 3e-3  # share by which filling the gaps anew would still change a strength
_EXACT = 1e-4
_ENOUGH = 2**19  # entries that pin one strength down while patterns are looked for
_CONDENSED = 1 - 1e-6
_WEAK = 1e-3
_SMALLEST = 1e-9
_ROUNDING = 1e-4  # of a curvature, which single precision and few entries may lose


class Parameters(NamedTuple):
    """What is fitted: a strength for each pattern or one for all, fields or none."""

    tied: bool = False
    fields: bool = True


HOPFIELD = Parameters(tied=True, fields=False)
"""One strength for all patterns, no fields."""


class Fit(NamedTuple):
    """Patterns, with strengths and fields at the maximum of the pseudo-likelihood."""

    Z: F32
    g: F64
    b: F64
    L: float
    """Log pseudo-likelihood of all samples, nats."""
    parameters: Parameters
    statistics: Statistics
    """At fixed mean fields."""
    curving: Once[Curvature]
    """Returns the curvature near the maximum: a pass that not every model needs."""
    mean_field: F64
    """Fields at the mean overlaps, b + g A; b without fields, shape (n_spins,)."""
    spread: float
    """Variance v of the fields; 0 without fields."""

    @property
    def curvature(self) -> Curvature:
        """Second derivatives near the maximum, at fixed mean fields."""
        return self.curving()

    @property
    def n_strengths(self) -> int:
        """Strengths that were fitted."""
        return min(len(self.g), 1) if self.parameters.tied else len(self.g)


def refit(judge: Judge, Z: F32, g: F64, b: F64, parameters: Parameters) -> Fit:
    """Return the fit of strengths and fields from a start.

    Parameters
    ----------
    judge : Judge
    Z : array of shape (n_patterns, n_spins)
        -1, 0 or +1.
    g : array of shape (n_patterns,)
    b : array of shape (n_spins,)
    parameters : Parameters
    """
    if not len(Z):
        return _independent(judge, parameters)
    if not parameters.fields:
        b = np.zeros(judge.n_spins)
    if parameters.tied:
        g = np.full(len(Z), _common_strength(judge, Z, float(g.mean())))
        if not parameters.fields:
            return at(judge, Z, g, b, parameters, 0.0)
    judge.fill(Z, g, b)
    fit = _climbed(judge, Z, g, b, parameters)
    return _with_gaps(judge, fit, g, b) if judge.has_gaps else fit


def _with_gaps(judge: Judge, fit: Fit, g: F64, b: F64) -> Fit:
    """Return a model that is no less likely than its start when it fills the gaps itself.

    The steps from g and b to the fit left the gaps as they were filled at first. They go as far as
    the likelihood rises with the gaps that the model at their end fills, and again from there.
    """
    Z, parameters, share = fit.Z, fit.parameters, 1.0
    precision, A = strength_precision(Z), _shift(judge, Z, parameters)

    def value(g: F64, b: F64) -> float:
        judge.fill(Z, g, b)
        return _penalised(judge.log_likelihood(Z, g, b), g, b + g @ A, precision, fit.spread)

    best = value(g, b)
    for _ in range(_FILLINGS):
        further = g + share * (fit.g - g), b + share * (fit.b - b)
        gain = value(*further) - best
        if gain < 0:
            share /= _SHORTER_FILLED
            continue
        (g, b), best = further, best + gain
        left = _to_gain(fit, judge.statistics(Z, g, b), A) if share == 1 else np.inf
        if left < _SLACK * (len(g) + 1):
            break  # the fit was judged with gaps as its start filled them
        fit, share = _climbed(judge, Z, g, b, parameters), 1.0
    return at(judge, Z, g, b, parameters, fit.spread)


def _to_gain(fit: Fit, now: Statistics, A: F64) -> float:
    """Return what a Newton step from a fit would gain by what the samples say of it now."""
    precision = strength_precision(fit.Z)
    slope = now.slope - A @ now.residual - precision * fit.g
    stiff = precision + _ROUNDING * np.diag(fit.curvature.H)
    step = newton_step(now, slope, fit.curvature, fit.mean_field, stiff, fit.spread, fit.parameters)
    gain = slope @ step[0]
    if fit.parameters.fields:
        gain += (now.residual - fit.mean_field / fit.spread) @ step[1]
    return 0.5 * float(gain)


def _climbed(judge: Judge, Z: F32, g: F64, b: F64, parameters: Parameters) -> Fit:
    """Return the fit at the maximum of the likelihood, with gaps as they are filled."""
    precision, A = strength_precision(Z), _shift(judge, Z, parameters)
    now, v, ridge = judge.statistics(Z, g, b), 0.0, _ROUNDING
    moved, share = False, 1.0
    C, fresh, last = judge.curvature(Z, g, b), True, np.inf
    for _ in range(_STEPS):
        mean_field = b + g @ A
        v = _spread(mean_field, now) if parameters.fields else 0.0
        value = _penalised(now.L, g, mean_field, precision, v)
        slope = now.slope - A @ now.residual - precision * g
        stiff = precision + ridge * np.diag(C.H)
        dg, db = newton_step(now, slope, C.around(A), mean_field, stiff, v, parameters)
        dg, db = share * dg, share * db
        new = judge.statistics(Z, g + dg, b + db - dg @ A)
        risen = _penalised(new.L, g + dg, mean_field + db, precision, v) - value
        if risen < 0:
            if risen > -_SETTLED * (len(g) + 1):
                break
            if fresh:  # where spins are certain there is no curvature to stiffen
                ridge, share = ridge * _STIFFER, share / _SHORTER
            if ridge > _STIFFEST:
                break
            if not fresh:
                C, fresh = judge.curvature(Z, g, b), True
            continue
        slow, moved = risen > _SLOW * last, risen > _MOVED * (len(g) + 1)
        g, b, now, ridge = g + dg, b + db - dg @ A, new, max(ridge / _RELAXED, _ROUNDING)
        share = min(_RELAXED * share, 1.0)
        if risen < _SETTLED * (len(g) + 1):
            break
        last, fresh = risen, False
        if slow:
            C, fresh = judge.curvature(Z, g, b), True
    if not fresh and moved:
        C = judge.curvature(Z, g, b)
    now = now._replace(slope=now.slope - A @ now.residual)
    return Fit(Z, g, b, now.L, parameters, now, Once(partial(C.around, A)), b + g @ A, v)


def numbers_of(
    judge: Judge, Z: F32, g: F64, b: F64, parameters: Parameters
) -> tuple[F64, F64, float]:
    """Return strengths, fields and their variance as :func:`refit` does, without the rest.

    One strength is fitted to all rows of the judge: of weak patterns each says little.
    """
    if len(Z) and parameters == HOPFIELD:
        beta = _common_strength(judge, Z, float(g.mean()), None)
        return np.full(len(Z), beta), np.zeros(judge.n_spins), 0.0
    fit = refit(judge, Z, g, b, parameters)
    return fit.g, fit.b, fit.spread


def at(judge: Judge, Z: F32, g: F64, b: F64, parameters: Parameters, v: float) -> Fit:
    """Return strengths and fields as they are as a fit of other patterns."""
    judge.fill(Z, g, b)
    A, now = _shift(judge, Z, parameters), judge.statistics(Z, g, b)
    now = now._replace(slope=now.slope - A @ now.residual)
    curving = Once(partial(_curvature, judge, Z, g, b, A))
    if judge.has_gaps:
        curving()  # later, another model may have filled them
    return Fit(Z, g, b, now.L, parameters, now, curving, b + g @ A, v)


def fields_for(judge: Judge, fit: Fit, Z: F32, g: F64) -> F64:
    """Return the fields with which other patterns or strengths leave the mean fields as they are.

    Where a spin hardly varies, an entry that changes would otherwise act as a field.
    """
    return fit.mean_field - g @ judge.shift(Z) if fit.parameters.fields else fit.b


def _curvature(judge: Judge, Z: F32, g: F64, b: F64, A: F64) -> Curvature:
    """Return the curvature at fixed mean fields."""
    return judge.curvature(Z, g, b).around(A)


def _shift(judge: Judge, Z: F32, parameters: Parameters) -> F64:
    """Return what strengths add to the mean fields, which have the prior; nothing without."""
    return judge.shift(Z) if parameters.fields else np.zeros(Z.shape)


def _independent(judge: Judge, parameters: Parameters) -> Fit:
    """Return independent spins, which need no pass: fair, or with the fields of their means."""
    up, down = judge.n_up, judge.n_observed - judge.n_up
    b, v = np.zeros(judge.n_spins), 0.0
    for _ in range(_STEPS if parameters.fields else 0):
        t = np.tanh(b)
        variance = judge.weight * judge.n_observed * (1 - t * t)
        v = max(float(np.mean(np.square(b) + 1 / (variance + 1))), _SMALLEST)
        slope = judge.weight * (up - down - judge.n_observed * t) - b / v
        step = np.clip(slope / (variance + 1 / v), -1, 1)
        b = b + step
        if np.abs(step).max() < _EXACT:
            break
    t = np.tanh(b)
    none = np.empty((0, judge.n_spins))
    Z = none.astype(np.float32)
    statistics = Statistics(
        judge.log_likelihood(Z, np.empty(0), b),
        judge.weight * (up - down - judge.n_observed * t),
        judge.weight * judge.n_observed * (1 - t * t),
        np.empty(0),
    )
    parameters = parameters._replace(tied=False)
    C = Once(partial(Curvature, np.empty((0, 0)), none, statistics.variance))
    return Fit(Z, np.empty(0), b, statistics.L, parameters, statistics, C, b, v)


def strength_precision(Z: F32) -> F64:
    """Return the inverse prior variance of the strengths."""
    return prior_precision(Z, calibration.LARGEST_FIELD)


def _spread(b: F64, s: Statistics) -> float:
    """Return the variance that the fields show, with what is not known of each."""
    v = float(np.mean(np.square(b)))
    return v + float(np.mean(1 / (s.variance + 1 / max(v, 1e-2))))


def _penalised(L: float, g: F64, b: F64, precision: F64, v: float) -> float:
    fields = float(np.square(b).sum()) / v if v else 0.0
    return L - 0.5 * (float(precision @ np.square(g)) + fields)


def fit_beta(spins: Spins, patterns: ArrayLike) -> float:
    """Return the one strength of patterns that makes samples likeliest, without fields.

    Examples
    --------
    >>> import dualtap as dt
    >>> from dualtap.recovery.refit import fit_beta
    >>> teacher = dt.HopfieldModel.random(500, 3, beta=1.5, random_state=0)
    >>> spins = dt.as_spins(teacher.sample(100, random_state=1))
    >>> round(fit_beta(spins, teacher.patterns), 1)
    1.5
    """
    judge = Judge(spins, calibration.REFINED_ENTRIES)
    return _common_strength(judge, np.asarray(patterns, dtype=np.float32), 1.0, None)


def _common_strength(judge: Judge, Z: F32, beta: float, most: int | None = _ENOUGH) -> float:
    """Return the likeliest strength that all patterns have in common, without fields."""
    none, precision = np.zeros(judge.n_spins), float(strength_precision(Z).mean())
    shrinks = 1.0  # by which factor every step is shorter than the last
    for n in (calibration.CURVATURE_ENTRIES, most):  # a few samples first
        last = 0.0
        for _ in range(_FILLINGS if judge.has_gaps else 1):
            before = beta
            judge.fill(Z, np.full(len(Z), beta), none, n)
            beta = _likeliest_strength(judge.one_strength(Z, n), beta, precision)
            step = abs(beta - before)
            shrinks = min(step / last, 1.0) if last else shrinks
            if shrinks * step < _FILLED * before:
                break
            last = step
    return beta


def _likeliest_strength(some: OneStrength, beta: float, precision: float) -> float:
    """Return the strength at which the slope of the likelihood and its prior vanishes."""
    low, high = 0.0, np.inf
    for _ in range(_STEPS):
        slope, curvature = some.derivatives(beta)
        slope, curvature = slope - precision * beta, curvature + precision
        low, high = (beta, high) if slope > 0 else (low, beta)
        new = min(beta + slope / curvature, 2 * beta + 1)
        new = new if low < new < high else (low + min(high, 2 * low + 1)) / 2
        settled = abs(new - beta) < _EXACT * (beta + 1e-3)
        beta = new
        if settled:
            break
    return beta


def newton_step(
    s: Statistics,
    slope: F64,
    C: Curvature,
    mean_field: F64,
    stiff: F64,
    v: float,
    parameters: Parameters,
) -> tuple[F64, F64]:
    """Return the Newton step of strengths and mean fields; the fields are eliminated first."""
    H, mixed = C.H + np.diag(stiff), C.mixed
    if parameters.fields:
        residual = s.residual - mean_field / v
        H = H + C.without_fields(v) - C.H
        slope = slope - mixed @ (residual / (C.variance + 1 / v))
    dg: F64 = np.full(len(slope), slope.sum() / H.sum())
    if not parameters.tied:
        dg = np.linalg.solve(H, slope).astype(np.float64, copy=False)
    if not parameters.fields:
        return dg, np.zeros_like(mean_field)
    return dg, (residual - dg @ mixed) / (np.maximum(s.variance, C.variance) + 1 / v)


def information(fit: Fit) -> F64:
    """Return the inverse information K of the strengths, shape (n_patterns, n_patterns)."""
    if not len(fit.g):
        return np.empty((0, 0))
    C = fit.curvature
    H = C.without_fields(fit.spread) if fit.parameters.fields else C.H
    ridge = strength_precision(fit.Z) + _ROUNDING * np.diag(C.H)
    K = np.linalg.inv(H + np.diag(ridge))
    return K.astype(np.float64, copy=False)


def times_counted(Z: F32, g: F64, judge: Judge) -> F64:
    r"""Return how often the pseudo-likelihood counts the evidence for each pattern.

    It sees a pair of spins from both ends, and a sum of n spins that hardly varies n times. For a
    normal mode whose variance is :math:`1 + \ell` times that of independent spins,
    :math:`\ell = g'/(1 - g')` with :math:`g' = \frac gN \sum_i \zeta_i^2 (1 - \bar s_i^2)`, it
    gains :math:`\ell^2 / 2(1 + \ell)` per sample where the likelihood gains
    :math:`\frac12 [\ell - \log(1 + \ell)]`. The ratio is 2 for weak patterns, 1 for strong ones and
    grows without bound for repulsive ones.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import as_spins
    >>> from dualtap.recovery.judge import Judge
    >>> from dualtap.recovery.refit import times_counted
    >>> judge = Judge(as_spins(np.random.default_rng(0).choice([-1, 1], size=(1000, 4))))
    >>> times_counted(np.ones((3, 4)), np.array([1e-3, 0.8, -20]), judge).round(1)
    array([2. , 1.3, 9.1])
    """
    free = 1 - np.square(judge.mean)
    strength = g * (np.square(Z) @ free) / judge.n_spins
    ell = np.where(strength < _CONDENSED, strength / (1 - np.minimum(strength, _CONDENSED)), 1e9)
    ell = np.maximum(np.where(np.abs(ell) < _WEAK, _WEAK, ell), -_CONDENSED)
    ratio = np.square(ell) / ((1 + ell) * (ell - np.log1p(ell)))
    result: F64 = np.maximum(ratio, 1.0)
    return result
