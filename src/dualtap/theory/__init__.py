"""What theory predicts, to measure against."""

from dualtap.theory.bayes import BayesLimit, paramagnetic_limit

__all__ = ["BayesLimit", "paramagnetic_limit"]
