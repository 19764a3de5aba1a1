"""How estimators take in samples."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import _check_n_features, validate_data

from dualtap.spins import Spins, as_spins


def validated_spins(estimator: Any, X: Any, *, reset: bool = False) -> Spins:
    """Return X as spins; learn the number and names of spins if ``reset``, else check them.

    Spins that were validated before carry no names, so only their number is checked.
    """
    spins = as_spins(X)
    if isinstance(X, Spins):
        _check_n_features(estimator, spins.values, reset=reset)
    else:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return spins
