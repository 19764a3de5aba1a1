r"""Patterns of spins that have means of their own, as those of most real data.

Site fields and patterns are fitted together from the start: fields explain the means, signals are
what stands out of the noise around them, and there are as many patterns as pay for themselves.
Such data are rarely samples of a Hopfield model, and no law of noise ends their spectrum; so the
number of patterns is the one with which data and model take the fewest words together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dualtap.metrics import pseudo_likelihood
from dualtap.recovery.rotate import binary, row_basis, unmixed
from dualtap.recovery.space import site_sums
from dualtap.recovery.spectrum import Spectrum, spectrum
from dualtap.recovery.temperature import fit_fields
from dualtap.recovery.weak_field import WeakFieldPosterior
from dualtap.spins import Spins
from dualtap.spins.blocks import F32, Blocks

_SCANNED = 2**19
"""Entries by which numbers of patterns are compared; the last fit takes more."""
_IN_VAIN = 2
"""Larger numbers of patterns that are tried without success."""


class Biased(NamedTuple):
    """Patterns and fields."""

    m: F32
    """Posterior means of the bits, shape (n_patterns, n_spins)."""
    beta: float
    fields: F32
    spectrum: Spectrum
    """Of the samples around their means."""


def description_gain(
    likelihood: float, n_patterns: int, n_samples: int, *, with_fields: bool
) -> float:
    r"""Return the likelihood per spin less what it costs to write the model down.

    A pattern costs :math:`\log 2` a spin and a field :math:`\frac12 \log M`, over M samples.

    Examples
    --------
    >>> from dualtap.recovery.biased import description_gain
    >>> round(description_gain(-0.3, 10, 1000, with_fields=True), 4)
    -0.3104
    """
    cost = n_patterns * np.log(2) + (0.5 * np.log(n_samples) if with_fields else 0.0)
    return float(likelihood - cost / n_samples)


def recover_biased(
    blocks: Blocks,
    rng: np.random.Generator,
    n_patterns: int | None = None,
    beta: float | None = None,
    effort: int = 1,
) -> Biased | None:
    """Recover patterns and fields together; None if nothing stands out around the means.

    Parameters
    ----------
    blocks : Blocks
    rng : Generator
    n_patterns : int, optional
        When not given, as many as make the description shortest.
    beta : float, optional
        Fitted when not given.
    effort : int
        Rotations of the signals that are tried, in pairs.

    Returns
    -------
    Biased or None

    Examples
    --------
    >>> import numpy as np
    >>> from dualtap import HopfieldModel, as_spins
    >>> from dualtap.metrics import match
    >>> from dualtap.recovery.biased import recover_biased
    >>> from dualtap.spins.blocks import Blocks
    >>> b = np.random.default_rng(0).uniform(-1, 1, 200)
    >>> teacher = HopfieldModel.random(200, 2, beta=1.0, random_state=0, fields=b)
    >>> blocks = Blocks(as_spins(teacher.sample(1000, random_state=1)))
    >>> found = recover_biased(blocks, np.random.default_rng(0))
    >>> match(np.sign(found.m), teacher.patterns).n_recovered()
    2
    """
    mean = _means(blocks)
    b, D = np.arctanh(mean), 1 - np.square(mean)
    around = spectrum(blocks.minus(mean), rng, n_patterns or 1, D)
    if n_patterns is None and around.n_signal == 0:
        return None
    most = min(len(around.vectors), min(blocks.spins.shape) // 2 or 1)
    scanned = blocks.spins.some(max(_SCANNED // blocks.n_spins, 256))
    best: tuple[float, F32] | None = None
    in_vain = 0
    for k in [min(n_patterns, most)] if n_patterns else _numbers(most):
        u = row_basis(around.vectors[:k] / np.sqrt(D))
        posterior = WeakFieldPosterior(blocks, b, len(u))
        for rotation in range(2 * effort if k > 1 else 1):
            Z = binary(unmixed(u, int(rng.integers(2**31)), ("logcosh", "cube")[rotation % 2]))
            m = posterior.drawn(posterior.means(Z), rng).m
            value = _gain(scanned, binary(m), beta, blocks.n_samples)
            if best is None or value > best[0]:
                best, in_vain = (value, m), -1
        in_vain += 1
        if in_vain > _IN_VAIN:
            break
    assert best is not None  # there is at least one number to try
    fitted, fields = fit_fields(blocks.spins, binary(best[1]), beta)
    return Biased(best[1], fitted, fields.astype(np.float32), around)


def _means(blocks: Blocks) -> F32:
    """Return the mean of every spin, as if it had been seen up once and down once more."""
    total, observed = site_sums(blocks)
    result: F32 = (total / (observed + 2)).astype(np.float32)
    return result


def _numbers(most: int) -> Iterator[int]:
    """Yield 1, 2, 3, 4, 6, 8, 12, … up to the most."""
    k = 1
    while k < most:
        yield k
        if k >= 2 and k + k // 2 < most:
            yield k + k // 2
        k *= 2
    yield most


def _gain(spins: Spins, Z: F32, beta: float | None, n_samples: int) -> float:
    fitted, fields = fit_fields(spins, Z, beta)
    likelihood = pseudo_likelihood(spins, Z, fitted, fields)
    return description_gain(likelihood, len(Z), n_samples, with_fields=True)
