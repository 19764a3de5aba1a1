"""All patterns at once, with nothing known: space, patterns, fields, temperature, confidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap._threads import one_blas_thread
from dualtap.recovery.biased import description_gain, recover_biased
from dualtap.recovery.bits import sweep
from dualtap.recovery.factors import Factors
from dualtap.recovery.overlaps import overlaps_of
from dualtap.recovery.posterior import (
    Posterior,
    coefficients,
    confidence_in_space,
    strong_field_posterior,
)
from dualtap.recovery.rotate import are_products, binary, row_basis, unmixed
from dualtap.recovery.search import at_first_sight, fill, paying, search
from dualtap.recovery.space import (
    leave_noise,
    likely_ranks,
    linear_space,
    marginals_explained,
    pattern_space,
    static_fields,
)
from dualtap.recovery.spectrum import Spectrum, spectrum
from dualtap.recovery.task import CHANCE, Recovery, Regime, Task
from dualtap.recovery.temperature import fit_fields, spectral_beta
from dualtap.recovery.weak_field import WeakFieldPosterior
from dualtap.spins.blocks import F32, Blocks
from dualtap.spins.cluster import blocks_of

WEAK = 0.2
"""Share of the variance that signals explain below which fields are weak: tanh θ is nearly θ."""

_ENOUGH_SAMPLES = 2**16
"""Samples deep in a state say so much about it that no more of them are looked at."""

_MOST_PAIRED = 40
_MOST_LOADED = 0.25
_ROTATIONS = 6
_SAME_ANSWER = 0.9
_FIELD_GAIN = 1e-3  # nats a spin
_ONE_PATTERN = 0.75  # share of the squared overlaps of a sample


def recover(task: Task) -> Recovery:
    """Recover the patterns behind samples, as many as stand out of the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.recovery.joint import recover
    >>> from dualtap.recovery.task import Task
    >>> X = HopfieldModel.random(300, 3, beta=2.0, random_state=0).sample(30, random_state=1)
    >>> result = recover(Task(as_spins(X), np.random.default_rng(0)))
    >>> len(result.m), round(result.beta, 1)
    (3, 2.0)
    """
    blocks = blocks_of(task.spins, where=task.where)
    with one_blas_thread():
        some = blocks if blocks.dense is not None else blocks.some(_ENOUGH_SAMPLES)
        whole = spectrum(some, task.rng, task.n_patterns or 1)
        if whole.n_signal and not _is_weak(whole, some):
            return _recover_strong(some, whole, task)
        if some is not blocks:
            whole = spectrum(blocks, task.rng, task.n_patterns or 1)
        if task.n_patterns is None and whole.n_signal == 0:
            return _nothing(blocks, whole, task)
        return _recover_weak(blocks, whole, task)


def _nothing(blocks: Blocks, whole: Spectrum, task: Task) -> Recovery:
    none = np.empty((0, blocks.n_spins), dtype=np.float32)
    fields = static_fields(blocks)
    return Recovery(none, np.nan if task.beta is None else task.beta, fields, whole, Regime.NOTHING)


def _is_weak(whole: Spectrum, blocks: Blocks) -> bool:
    excess = whole.values[: whole.n_signal] - whole.edge
    return bool(np.maximum(excess, 0).sum() < WEAK * blocks.n_samples * blocks.n_spins)


def _recover_weak(blocks: Blocks, whole: Spectrum, task: Task) -> Recovery:
    """Rotate the signal space in several ways, refine each, keep the likeliest answer."""
    fields = static_fields(blocks)
    D = 1 - np.square(np.tanh(fields))
    if fields.any():
        whole = spectrum(blocks.minus(np.tanh(fields)), task.rng, task.n_patterns or 1, D)
    k = task.n_patterns or whole.n_signal
    if k == 0:
        return _nothing(blocks, whole, task)
    u = row_basis(whole.vectors[:k] / np.sqrt(D))
    refined = WeakFieldPosterior(blocks, fields, len(u))
    start = best = np.empty((0, blocks.n_spins), dtype=np.float32)
    likelihood = -np.inf
    for rotation in range(_ROTATIONS * task.effort if k > 1 else 1):
        contrast = ("logcosh", "cube")[rotation % 2]
        Z = binary(unmixed(u, int(task.rng.integers(2**31)), contrast))
        if _agree(Z, start):
            break
        m = refined.means(Z)
        if _agree(m, best):
            break
        value = task.likelihood(binary(m), fields) if k > 1 else 0.0
        if value > likelihood:
            start, best, likelihood = Z, m, value
    posterior = refined.drawn(best, task.rng)
    beta = _weak_beta(blocks, whole, k, D, task)
    if np.isnan(beta):
        beta = task.fit_beta(posterior.Z, fields)
    return Recovery(posterior.m, beta, fields, whole, Regime.WEAK)


def _weak_beta(blocks: Blocks, whole: Spectrum, k: int, D: F32, task: Task) -> float:
    """Return β, given or as the k signals say; a field weakens the response of its site."""
    if task.beta is not None:
        return task.beta
    beta = spectral_beta(
        whole.values[:k], whole.total, blocks.n_samples, blocks.n_spins, blocks.share
    )
    return beta / float(D.mean())


def _agree(a: F32, b: F32) -> bool:
    """Say whether two answers have the same patterns, up to sign and order."""
    overlap = np.abs(binary(a) @ binary(b).T) / a.shape[1]
    return bool(len(b)) and bool(overlap.max(axis=1).min() > _SAME_ANSWER)


def _recover_strong(blocks: Blocks, whole: Spectrum, task: Task) -> Recovery:
    """Look for patterns alone; if spins have means that those do not explain, for both together."""
    found = _recover_patterns(blocks, whole, task)
    if _explains_means(blocks, whole, found):
        return found
    biased = recover_biased(blocks, task.rng, task.n_patterns, task.beta, task.effort)
    if biased is None:
        return found
    overlaps = blocks.minus(np.tanh(biased.fields)).dot(binary(biased.m))
    regime = Regime.CLUSTERED if near_one_pattern(overlaps) else Regime.MIXED
    other = Recovery(biased.m, biased.beta, biased.fields, biased.spectrum, regime, by_length=True)
    return max(found, other, key=lambda one: _description_gain(one, task))


def _explains_means(blocks: Blocks, whole: Spectrum, found: Recovery) -> bool:
    """Say whether patterns explain the means of spins, or do beside fields what they should."""
    if not len(found.m):
        return not static_fields(blocks).any()
    if not found.fields.any() or not _share_direction(blocks, whole):
        return True
    x = blocks.dot(binary(found.m))
    return found.regime is Regime.CLUSTERED and not _constant(x).any()


def _share_direction(blocks: Blocks, whole: Spectrum) -> bool:
    """Say whether all samples lie on one side of the leading direction: their common mean."""
    return bool(_constant(blocks.dot(whole.vectors[:1])).any())


def _constant(x: F32) -> NDArray[np.bool_]:
    """Return which patterns do nothing but shift the means, by coefficients of the samples."""
    result: NDArray[np.bool_] = np.square(x.mean(axis=0)) > 4 * x.var(axis=0)
    return result


def _description_gain(found: Recovery, task: Task) -> float:
    Z = binary(found.m) if len(found.m) else np.zeros((1, found.m.shape[1]), np.float32)
    fields = bool(found.fields.any())
    likelihood = task.likelihood(Z, found.fields)
    return description_gain(likelihood, len(found.m), task.spins.n_samples, with_fields=fields)


def _recover_patterns(blocks: Blocks, whole: Spectrum, task: Task) -> Recovery:
    """Find the space, the patterns in it, the fields they leave unexplained, the confidence."""
    V, Z = _space_and_patterns(blocks, whole, task)
    if not len(Z):
        return _nothing(blocks, whole, task)
    overlaps = overlaps_of(blocks, Z)
    kept, fields, beta = _with_fields(blocks, Z, overlaps, task)
    Z, overlaps = Z[kept], overlaps[:, kept]
    if not len(Z):
        return _nothing(blocks, whole, task)
    if not near_one_pattern(overlaps):
        m = confidence_in_space(Z, row_basis(V))
        return Recovery(
            m, _corrected_beta(blocks, Z, beta, fields, task), fields, whole, Regime.MIXED
        )
    if task.n_patterns is None:
        kept = _supported(blocks, Z, overlaps, task)
        Z, overlaps = Z[kept], overlaps[:, kept]
    posterior = strong_field_posterior(blocks, Z, beta, fields, task.rng, overlaps)
    if posterior.drawn:
        posterior = _never_worse(blocks, posterior, Z, beta, fields, task)
        beta = task.fit_beta(posterior.Z, fields)
    return Recovery(posterior.m, beta, fields, whole, Regime.CLUSTERED)


def _space_and_patterns(blocks: Blocks, whole: Spectrum, task: Task) -> tuple[F32, F32]:
    """Return vectors that span the space, and the patterns in it."""
    sights = list(_at_first_sight(blocks, whole, task))
    if sights and sights[-1].beyond_doubt:
        return whole.vectors[: len(sights[-1].factors.V)], sights[-1].Z
    factors = pattern_space(blocks, whole, task.rng, task.n_patterns)
    searched = _Sight(factors, _likeliest_patterns(blocks, whole, factors, task))
    best = max([searched, *sights], key=lambda one: task.shortening(one.Z))
    return best.factors.V, best.Z


class _Sight(NamedTuple):
    """Patterns, and the space in which they were found."""

    factors: Factors
    Z: F32
    beyond_doubt: bool = False


def _at_first_sight(blocks: Blocks, whole: Spectrum, task: Task) -> Iterator[_Sight]:
    """Yield patterns that need no search, until they are beyond doubt."""
    if task.start != "auto" or task.effort > 1:
        return
    ranks, settled = likely_ranks(whole, *blocks.spins.shape)
    told = task.n_patterns is not None
    for rank in ranks if task.n_patterns is None else [task.n_patterns]:
        factors = linear_space(blocks, whole, rank)
        Z = at_first_sight(factors, task.rng)
        if not len(Z) or not (settled or (rank <= _MOST_PAIRED and not are_products(Z))):
            continue
        beyond_doubt = told or settled or leave_noise(blocks, Z, task.rng)
        yield _Sight(factors, Z, beyond_doubt)
        if beyond_doubt:
            return


def _hopeless(blocks: Blocks, whole: Spectrum, factors: Factors) -> bool:
    """Say that patterns alone will not do, however long they are searched one by one.

    The samples share one direction, so their spins have means of their own, and the space has
    more dimensions than a Hopfield model holds patterns.
    """
    loaded = len(factors.V) > max(_MOST_LOADED * blocks.n_spins, 8)
    return loaded and _share_direction(blocks, whole)


def _likeliest_patterns(blocks: Blocks, whole: Spectrum, factors: Factors, task: Task) -> F32:
    """Search as often as effort says and return the patterns that make the data likeliest."""
    best = np.empty((0, blocks.n_spins), dtype=np.float32)
    likelihood = -np.inf
    hopeless = task.n_patterns is None and _hopeless(blocks, whole, factors)
    for _ in range(task.effort):
        found = search(blocks, factors, task.rng, task.start, one_by_one=not hopeless)
        Z = paying(found, task.shortening)
        if task.n_patterns is not None and len(Z) < task.n_patterns:
            Z = fill(found, Z, task.n_patterns, task.rng)
        if task.effort == 1:
            return Z
        value = task.likelihood(Z, np.zeros(blocks.n_spins)) if len(Z) else -np.inf
        if value > likelihood:
            best, likelihood = Z, value
    return best


def _with_fields(
    blocks: Blocks, Z: F32, overlaps: F32, task: Task
) -> tuple[NDArray[np.bool_], F32, float]:
    """Fit site fields if patterns leave the marginals unexplained and data are likelier so.

    Returns which patterns are still needed, the fields, and β.
    """
    every = np.ones(len(Z), dtype=np.bool_)
    none = np.zeros(blocks.n_spins, dtype=np.float32)
    beta = task.fit_beta(Z, none)
    if marginals_explained(blocks, Z, np.float32(beta) * overlaps):
        return every, none, beta
    fitted, fields = fit_fields(task.some, Z, task.beta)
    value = task.likelihood(Z, fields)
    if value < task.likelihood(Z, none) + _FIELD_GAIN:
        return every, none, beta
    constant = _constant(overlaps)
    if task.n_patterns is None and constant.any():
        # Patterns that do nothing but shift the means are fields, if fields do as well.
        kept = Z[~constant]
        rest = kept if len(kept) else np.zeros_like(Z[:1])
        other, others = fit_fields(task.some, rest, task.beta)
        if task.likelihood(rest, others) > value - _FIELD_GAIN:
            every, fitted, fields = ~constant, other, others
    return every, fields.astype(np.float32), fitted


def _supported(blocks: Blocks, Z: F32, overlaps: F32, task: Task) -> NDArray[np.bool_]:
    """Return which patterns more than one sample lies near to, or which pay for themselves.

    One sample proves nothing, but those that mix several patterns may prove one near none.
    """
    size = np.abs(overlaps)
    near = size.max(axis=1) > CHANCE / np.sqrt(blocks.n_observed)
    kept = np.bincount(np.argmax(size, axis=1)[near], minlength=size.shape[1]) > 1
    if not kept.any():
        return ~kept
    for mu in np.flatnonzero(~kept):
        kept[mu] = True
        without = kept & (np.arange(len(Z)) != mu)
        kept[mu] = task.shortening(Z[kept]) > task.shortening(Z[without])
    return kept


def near_one_pattern(overlaps: NDArray[np.floating]) -> bool:
    """Say whether a typical sample leans on one pattern, not on many.

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap.recovery.joint import near_one_pattern
    >>> near_one_pattern(np.array([[0.9, 0.1]])), near_one_pattern(np.array([[0.5, -0.5]]))
    (True, False)
    """
    square = np.square(overlaps)
    share = square.max(axis=1) / np.maximum(square.sum(axis=1), 1e-12)
    return bool(np.median(share) > _ONE_PATTERN)


def _corrected_beta(blocks: Blocks, Z: F32, beta: float, fields: F32, task: Task) -> float:
    """Return β for the bits that follow from Z, if the data are likelier with them.

    Among many patterns wrong bits add up to noise in the field of every spin, and β comes out
    too small. Turning bits until the samples are likelier corrects β more than the bits.
    """
    turned, _ = sweep(blocks, Z, coefficients(blocks, Z, beta), fields)
    if task.likelihood(turned, fields) <= task.likelihood(Z, fields):
        return beta
    return task.fit_beta(turned, fields)


def _never_worse(
    blocks: Blocks, posterior: Posterior, Z: F32, beta: float, fields: F32, task: Task
) -> Posterior:
    """Return the drawn posterior, or conditional means if the draws have left the patterns."""
    if task.likelihood(binary(posterior.m), fields) >= task.likelihood(Z, fields) - 1e-3:
        return posterior
    return Posterior(sweep(blocks, Z, coefficients(blocks, Z, beta), fields)[1], Z, drawn=False)
