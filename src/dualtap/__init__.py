"""Recover the hidden ±1 patterns behind binary data, and the couplings they imply."""

from dualtap import metrics
from dualtap.comparison import compare
from dualtap.hopfield import HopfieldModel
from dualtap.io import load, save
from dualtap.rbm import HopfieldRBM
from dualtap.recovery import DualTAP, HopfieldPatterns, PatternImputer
from dualtap.resampling import stability
from dualtap.spins import as_spins

__version__ = "0.1.0"

__all__ = [
    "DualTAP",
    "HopfieldModel",
    "HopfieldPatterns",
    "HopfieldRBM",
    "PatternImputer",
    "__version__",
    "as_spins",
    "compare",
    "load",
    "metrics",
    "save",
    "stability",
]
