"""Update rules for the magnetizations, one a file; :func:`dualtap.solve.solve` runs them."""

from dualtap.schemes._base import Scheme, StepInfo
from dualtap.schemes.amp import AMP
from dualtap.schemes.opper_winther import OpperWinther
from dualtap.schemes.sequential import SequentialAMP, SequentialTAP
from dualtap.schemes.tap import TAP

__all__ = [
    "AMP",
    "TAP",
    "OpperWinther",
    "Scheme",
    "SequentialAMP",
    "SequentialTAP",
    "StepInfo",
]
