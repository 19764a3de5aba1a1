"""The RBM: model, training, monitors, likelihood, patterns, and the estimator `HopfieldRBM`."""

from dualtap.rbm.estimator import HopfieldRBM
from dualtap.rbm.monitors import LearningCurve
from dualtap.rbm.priors import (
    BinaryPrior,
    GaussianPrior,
    LaplacePrior,
    Prior,
    ReluPrior,
    SpikeSlabPrior,
    UniformPrior,
    ZeroOnePrior,
)

__all__ = [
    "BinaryPrior",
    "GaussianPrior",
    "HopfieldRBM",
    "LaplacePrior",
    "LearningCurve",
    "Prior",
    "ReluPrior",
    "SpikeSlabPrior",
    "UniformPrior",
    "ZeroOnePrior",
]
