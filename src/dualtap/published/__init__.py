"""The published algorithm, round by round: initial guesses, deflation, stopping, history."""

from dualtap.published.estimator import DualTAP
from dualtap.published.history import History

__all__ = ["DualTAP", "History"]
