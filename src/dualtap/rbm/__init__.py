"""The RBM: model, training, monitors, likelihood, patterns, and the estimator `HopfieldRBM`."""

from dualtap.rbm.estimator import HopfieldRBM
from dualtap.rbm.monitors import LearningCurve

__all__ = ["HopfieldRBM", "LearningCurve"]
