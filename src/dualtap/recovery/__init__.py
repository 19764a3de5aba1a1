"""From samples to patterns: starts, deflation, stopping, temperature, and the estimator."""

from dualtap.recovery.estimator import DualTAP
from dualtap.recovery.history import History
from dualtap.recovery.learned import Assignment

__all__ = ["Assignment", "DualTAP", "History"]
