"""The published algorithm, round by round: initial guesses, deflation, stopping, history."""

from dualtap.recovery.published.estimator import DualTAP
from dualtap.recovery.published.history import History

__all__ = ["DualTAP", "History"]
