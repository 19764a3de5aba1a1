"""Recover the hidden ±1 patterns behind binary data, and the couplings they imply."""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualtap import metrics
    from dualtap.comparison import compare
    from dualtap.hopfield import HopfieldModel
    from dualtap.io import load, save
    from dualtap.published import DualTAP
    from dualtap.rbm import HopfieldRBM
    from dualtap.recovery import HopfieldPatterns, PatternImputer
    from dualtap.resampling import stability
    from dualtap.spins import as_spins

__version__ = "0.2.0"

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

_HOMES = {
    "DualTAP": "published",
    "HopfieldModel": "hopfield",
    "HopfieldPatterns": "recovery",
    "HopfieldRBM": "rbm",
    "PatternImputer": "recovery",
    "as_spins": "spins",
    "compare": "comparison",
    "load": "io",
    "save": "io",
    "stability": "resampling",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: all of it takes seconds, in which Ctrl-C would be a traceback."""
    if name in _HOMES:
        value = getattr(import_module(f"dualtap.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in {module.name for module in iter_modules(__path__)}:
        return import_module(f"dualtap.{name}")
    raise AttributeError(f"module 'dualtap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
