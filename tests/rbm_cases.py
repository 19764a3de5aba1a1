"""Cases that tests of `HopfieldRBM` share."""

import numpy as np

import teachers
from dualtap import HopfieldRBM


def data(n_spins=300, n_patterns=3, n_samples=200, seed=0):
    """A teacher at β = 2 and its samples; shared, hence read-only."""
    return teachers.data(n_spins, n_patterns, 2.0, n_samples, seed)


def easy_case():
    """Three patterns of 300 spins: the teacher, its samples, and eight hidden units fitted."""
    teacher, X = data()
    return teacher, X, HopfieldRBM.paper(8, random_state=0).fit(X, teacher=teacher)


def short(**options):
    """An estimator that makes a few updates and stops."""
    return HopfieldRBM.paper(
        **({"n_hidden": 4, "max_updates": 7, "early_stopping": False, "random_state": 0} | options)
    )


def assert_same(one, two):
    """Bit for bit: weights, fields, chains and what was seen on the way."""
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.fields_, two.fields_)
    np.testing.assert_array_equal(one.sample(5, random_state=0), two.sample(5, random_state=0))
    for name in ("update", "pseudo_likelihood", "pseudo_likelihood_one_step", "singular_values"):
        np.testing.assert_array_equal(getattr(one.history_, name), getattr(two.history_, name))
    assert (one.n_updates_, one.stop_reason_) == (two.n_updates_, two.stop_reason_)
