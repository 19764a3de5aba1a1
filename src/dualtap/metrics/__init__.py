"""How good a recovery is: overlaps, matching, errors of the couplings, likelihood, calibration.

Patterns are known only up to sign and order, and every function here respects that. Nothing
forms an N×N matrix: couplings are compared through the overlaps of their factors.
"""

from dualtap.metrics.coupling_errors import CouplingError, coupling_error, coupling_error_path
from dualtap.metrics.likelihoods import (
    pseudo_likelihood,
    sample_pseudo_likelihoods,
    scores,
    simplified_likelihood,
)
from dualtap.metrics.matching import Calibration, Match, calibration, match, n_recovered, overlaps

__all__ = [
    "Calibration",
    "CouplingError",
    "Match",
    "calibration",
    "coupling_error",
    "coupling_error_path",
    "match",
    "n_recovered",
    "overlaps",
    "pseudo_likelihood",
    "sample_pseudo_likelihoods",
    "scores",
    "simplified_likelihood",
]
