"""From samples to patterns: starts, deflation, stopping, temperature, and the estimator."""

from dualtap.recovery.estimator import Assignment, DualTAP
from dualtap.recovery.history import History

__all__ = ["Assignment", "DualTAP", "History"]
