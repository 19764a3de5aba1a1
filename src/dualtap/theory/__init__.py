"""What theory predicts, to measure against."""

from dualtap.theory import curie_weiss, replica, stability, two_patterns
from dualtap.theory.bayes import BayesLimit, paramagnetic_limit

__all__ = [
    "BayesLimit",
    "curie_weiss",
    "paramagnetic_limit",
    "replica",
    "stability",
    "two_patterns",
]
