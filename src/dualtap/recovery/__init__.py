"""From samples to patterns: all of them together, or one per round as published."""

from dualtap.recovery.estimator import HopfieldPatterns
from dualtap.recovery.imputer import PatternImputer
from dualtap.recovery.loop import refined_from
from dualtap.recovery.nearest import Assignment
from dualtap.recovery.published import DualTAP, History

__all__ = [
    "Assignment",
    "DualTAP",
    "History",
    "HopfieldPatterns",
    "PatternImputer",
    "refined_from",
]
