"""From samples to patterns: one model, one objective, and how sure both are."""

from dualtap.recovery.estimator import HopfieldPatterns
from dualtap.recovery.imputer import PatternImputer
from dualtap.recovery.loop import refined_from

__all__ = ["HopfieldPatterns", "PatternImputer", "refined_from"]
