"""Teachers and their samples, shared by tests."""

from functools import cache

from dualtap import HopfieldModel, as_spins, metrics
from dualtap.spins.blocks import Blocks


@cache
def data(n_spins, n_patterns, beta, n_samples, seed=0):
    """A teacher and its samples; shared, hence read-only."""
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed)
    X = teacher.sample(n_samples, random_state=1000 + seed)
    X.flags.writeable = False
    return teacher, X


def smallest_overlap(model, teacher):
    return metrics.match(model.patterns_, teacher.patterns).overlaps.min()


def blocks_of(X):
    """Return ±1 samples as blocks, 0 for a missing entry."""
    return Blocks(as_spins(X, zero_is_missing=True))
