"""What a data set is: samples, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualtap.hopfield import HopfieldModel


class Mixture(NamedTuple):
    """A Bernoulli mixture: groups of samples, in each of which spins are independent."""

    weights: NDArray[np.float64]
    """Share of each group, (n_groups,)."""
    means: NDArray[np.float64]
    """Mean of every spin in each group, (n_groups, n_spins), between -1 and 1."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Samples, and what is known of them.

    Attributes
    ----------
    X : array of shape (n_samples, n_spins)
        int8 ±1; float32 with NaN if entries are missing.
    names : tuple of str
        What each spin is called.
    description : str
        Where the data come from and how they became spins.
    y : array of shape (n_samples,), int, or None
        The label of each sample, which no fit sees.
    target_names : tuple of str
        What the labels mean; empty without labels.
    shape : tuple of int, or None
        Rows and columns of a picture, if samples are pictures.
    teacher : HopfieldModel, Mixture or None
        What the samples were drawn from, if they were drawn.

    Examples
    --------
    >>> from dualtap.datasets import load_digits
    >>> digits = load_digits()
    >>> digits
    Dataset(1797 samples of 64 spins, 10 labels)
    """

    X: NDArray[Any]
    names: tuple[str, ...]
    description: str
    y: NDArray[np.int64] | None = None
    target_names: tuple[str, ...] = ()
    shape: tuple[int, int] | None = None
    teacher: HopfieldModel | Mixture | None = None

    def __repr__(self) -> str:
        labels = f", {len(self.target_names)} labels" if self.target_names else ""
        return f"Dataset({self.X.shape[0]} samples of {self.X.shape[1]} spins{labels})"


def signs_of(on: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return +1 where a spin is on, -1 elsewhere."""
    return np.where(on, np.int8(1), np.int8(-1))


def package_folder(package: str, what: str) -> Path:
    """Return where a package is installed, without importing it: that may take seconds."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise missing_package(what, package)
    return Path(found.submodule_search_locations[0])


def missing_package(what: str, package: str) -> ImportError:
    """Return the error to raise if data need a package that is not installed."""
    return ImportError(f"{what} needs {package}; install it with: pip install 'dualtap[datasets]'")
