"""Array libraries other than NumPy. `make test` does not install PyTorch, which is large."""

import importlib
import importlib.util
import os

import pytest

TORCH = pytest.mark.torch  # what `make test-torch` runs
LIBRARIES = [pytest.param("torch", marks=TORCH), "array_api_strict"]


def library(name):
    """Import a library; a test skips without it, except under CI, where it fails."""
    if not os.environ.get("CI") and importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed: make test-torch")
    return importlib.import_module(name)
