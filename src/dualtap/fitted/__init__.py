"""What every fitted model of patterns offers: scores, labels, couplings, meaning, checks."""

from dualtap.fitted.nearest import Assignment

__all__ = ["Assignment"]
