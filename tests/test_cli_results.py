"""Commands that use a fitted model: rows, filled files, edges, patterns; columns by name."""

import csv
import json
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import pytest

import dualtap as dt
from dualtap.cli.tables import rows_table, units_table
from dualtap.io import SampleFile, matched, read_samples, write_samples
from dualtap.io.matching import in_order
from dualtap.spins import PackedSpins, as_spins, builder

N = 30
NAMES = [f"q{k}" for k in range(N)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Samples of a teacher, with gaps and names, and models that were fitted to them."""
    here = tmp_path_factory.mktemp("models")
    teacher = dt.HopfieldModel.random(N, 2, beta=1.8, random_state=0)
    X = (teacher.sample(200, random_state=1) + 1) // 2
    holes = np.random.default_rng(2).random(X.shape) < 0.1
    people = [f"p{k}" for k in range(200)]
    write_samples(here / "whole.csv", X, names=NAMES, sample_names=people)
    Y = np.where(holes, np.nan, X)
    write_samples(here / "gaps.csv", Y, names=NAMES, sample_names=people)
    frame = pd.DataFrame(Y, columns=NAMES)
    dt.save(dt.HopfieldPatterns(2, random_state=0).fit(frame), here / "model.npz")
    options = {"max_updates": 40, "n_chains": 20, "early_stopping": False, "random_state": 0}
    dt.save(dt.HopfieldRBM.paper(3, **options).fit(frame), here / "rbm.npz")
    return here


@pytest.fixture
def data(folder, run):
    """The files, in the folder that the command runs in."""
    for path in folder.iterdir():
        Path(path.name).write_bytes(path.read_bytes())
    return run


def table(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_stability(data):
    options = ["-n", "3", "-o", "s.csv", "--edges", "e.csv", "--top", "20"]
    code, out, err = data("stability", "model.npz", "gaps.csv", *options)
    assert (code, err) == (0, "")
    assert "again" in out
    model = dt.load("model.npz")
    found = dt.stability(model, read_samples("gaps.csv").spins, 3, top=20, random_state=0)
    bits = pd.read_csv("s.csv")
    assert list(bits["name"]) == NAMES
    np.testing.assert_allclose(bits["stability_1"], found.agreement[1])
    edges = pd.read_csv("e.csv")
    np.testing.assert_allclose(edges["high"], found.edges.high)
    X = pd.read_csv("gaps.csv", index_col=0).reset_index(drop=True)
    X.assign(count=[2, 0] * 100).to_csv("counts.csv", index=False)
    options = ["-n", "3", "-o", "w.csv", "--weights", "count"]
    assert data("stability", "model.npz", "counts.csv", *options)[0] == 0
    half = dt.as_spins(X.to_numpy()[::2])
    found = dt.stability(model, half, 3, sample_weight=np.full(100, 2), random_state=0)
    np.testing.assert_allclose(pd.read_csv("w.csv")["stability_1"], found.agreement[1])
    code, out, err = data("stability", "model.npz", "gaps.csv", "-o", "s.csv")
    assert (code, out) == (2, "")
    assert "s.csv" in err
    options = ["-n", "2", "-o", "t.csv", "--edges", "f.csv"]
    assert data("stability", "rbm.npz", "gaps.csv", *options)[0] == 0
    edges = pd.read_csv("f.csv")
    assert (edges["low"] < edges["high"]).all()
    code, _, err = data("show", "model.npz", "--refits", "3")
    assert code == 2
    assert "--refits needs --data" in err


def test_an_interrupted_stability_writes_nothing(data, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("dualtap.resampling._refit", interrupt)
    code, _, err = data("stability", "model.npz", "gaps.csv", "-o", "s.csv")
    assert (code, err) == (130, "dualtap: interrupted; nothing was written\n")
    assert not Path("s.csv").exists()


def test_compare(data):
    """The second group has its columns in another order, and one pattern more."""
    X = read_samples("whole.csv").spins.values
    zeta = dt.HopfieldModel.random(N, 2, beta=1.8, random_state=0).patterns
    Y = dt.HopfieldModel(zeta, strengths=np.array([1.8, 0.5])).sample(200, random_state=5)
    pd.DataFrame(Y[:, ::-1], columns=NAMES[::-1]).to_csv("other.csv", index=False)
    options = ["--permutations", "19", "--patterns", "2", "-o", "p.csv"]
    code, out, err = data("compare", "whole.csv", "other.csv", *options)
    assert (code, err) == (0, "")
    assert "difference of couplings: p = 0.05" in out
    models = [dt.HopfieldPatterns(2, random_state=0).fit(group) for group in (X, Y)]
    found = dt.compare(*models, X, Y, 19, random_state=0)
    written = pd.read_csv("p.csv")
    for name, values in found.patterns.items():
        np.testing.assert_allclose(written[name], values)
    code, out, _ = data("compare", "whole.csv", "whole.csv", "--permutations", "9", "--json")
    assert json.loads(out)["p_difference_of_couplings"] == 1
    pd.DataFrame(X, columns=NAMES).assign(count=2).to_csv("counts.csv", index=False)
    pd.DataFrame(Y, columns=NAMES).assign(count=1).to_csv("ones.csv", index=False)
    options = ["--permutations", "9", "--patterns", "2", "--weights", "count", "--json"]
    code, out, _ = data("compare", "counts.csv", "ones.csv", *options)
    weights = {"sample_weight_a": np.full(len(X), 2)}
    counted = dt.compare(*models, X, Y, 9, **weights, random_state=0)
    np.testing.assert_allclose(json.loads(out)["strength_a"], counted.strengths_a)
    pd.DataFrame(Y, columns=[*NAMES[1:], "r"]).to_csv("foreign.csv", index=False)
    code, _, err = data("compare", "whole.csv", "foreign.csv", "-o", "q.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "does not have the columns of whole.csv: missing 'q0'; not in whole.csv 'r'" in err
    code, _, err = data("compare", "whole.csv", "other.csv", "-o", "p.csv")
    assert code == 2
    assert "p.csv" in err


def test_doubtful_couplings_come_with_a_warning(data):
    model = dt.load("model.npz")
    model._pair_share = 0.5
    dt.save(model, "doubt.npz")
    code, out, err = data("couplings", "doubt.npz", "-o", "doubt.csv", "--json")
    assert code == 0
    assert "dualtap.baselines.PseudoLikelihood" in json.loads(out)["warning"]
    assert err.startswith("dualtap: warning: patterns do not explain the couplings")


def test_rows(data):
    assert data("predict", "model.npz", "gaps.csv", "-o", "rows.csv") == (
        0,
        "200 rows written to rows.csv\nsamples  200\nfile     rows.csv\n",
        "",
    )
    model, file = dt.load("model.npz"), read_samples("gaps.csv")
    found = pd.read_csv("rows.csv")
    overlaps = ["overlap_0", "overlap_1"]
    assert found.columns.tolist() == [
        *("sample", "label", "sign", *overlaps),
        *("probability", "score", "typicality"),
    ]
    assert found["sample"].tolist() == list(file.sample_names)
    np.testing.assert_array_equal(found["label"], model.predict(file.spins))
    np.testing.assert_array_equal(found["sign"], model.assign(file.spins).sign)
    np.testing.assert_allclose(found[overlaps], model.transform(file.spins))
    proba = model.predict_proba(file.spins)[np.arange(200), found["label"]]
    np.testing.assert_allclose(found["probability"], proba)
    np.testing.assert_allclose(found["score"], model.score_samples(file.spins))
    # These are the training samples: their shares are those of their ranks.
    ranks = found["score"].rank(method="min") - 1
    np.testing.assert_allclose(found["typicality"], ranks / 200, atol=1e-9)


def test_rows_of_an_rbm_and_of_unusual_samples(data):
    assert data("predict", "rbm.npz", "whole.csv", "-o", "rows.tsv", "-q") == (0, "", "")
    found = pd.read_csv("rows.tsv", sep="\t")
    assert found.columns.tolist() == [
        *("sample", "hidden_0", "hidden_1", "hidden_2", "score", "typicality"),
    ]
    assert found["typicality"].between(0, 1).all()
    rng = np.random.default_rng(0)
    write_samples("noise.csv", rng.integers(0, 2, (200, N)), names=NAMES)
    assert data("predict", "model.npz", "noise.csv", "-o", "noise-rows.csv", "-q")[0] == 0
    noise = pd.read_csv("noise-rows.csv")
    assert noise["typicality"].mean() < 0.1
    assert noise["sample"].tolist() == list(range(200))


def test_rows_keep_known_labels_and_empty_samples(data):
    lines = Path("whole.csv").read_text().splitlines()[:4]
    lines = [lines[0] + ",party"] + [f"{line},left" for line in lines[1:]]
    lines.append("nobody" + "," * N + ",right")
    Path("labelled.csv").write_text("\n".join(lines) + "\n")
    code, out, err = data(
        *("predict", "model.npz", "labelled.csv", "--labels", "party", "-o", "r.csv", "--json")
    )
    assert (code, err) == (0, "")
    assert json.loads(out) == {"samples": 4, "file": "r.csv"}
    rows = table("r.csv")
    assert [row["known_label"] for row in rows] == ["left"] * 3 + ["right"]
    last = rows[-1]
    assert (last["label"], last["overlap_0"], last["score"]) == ("-1", "", "")
    assert (last["probability"], last["typicality"]) == ("", "")


def test_filled_files_keep_everything_else(data):
    code, out, err = data("impute", "gaps.csv", "model.npz", "-o", "filled.csv")
    assert (code, err) == (0, "")
    given, filled = read_samples("gaps.csv"), read_samples("filled.csv")
    n_gaps = given.spins.n_missing
    assert out.startswith(f"{n_gaps} missing entries filled; written to filled.csv\n")
    assert filled.spins.complete
    assert (filled.names, filled.sample_names) == (given.names, given.sample_names)
    assert filled.spins.encoding == "0/1"
    seen = given.spins.values != 0
    np.testing.assert_array_equal(filled.spins.values[seen], given.spins.values[seen])
    whole = read_samples("whole.csv").spins.values
    assert (filled.spins.values == whole)[~seen].mean() > 0.8
    again = data("impute", "gaps.csv", "rbm.npz", "-o", "filled.parquet", "--json")
    assert json.loads(again[1]) == {"filled": n_gaps, "samples": 200, "file": "filled.parquet"}


def test_filled_text_speaks_the_words_that_it_was_read_with(data):
    words = {"1": "yes", "0": "no"}
    lines = [line.split(",") for line in Path("gaps.csv").read_text().splitlines()]
    n_spins = len(read_samples("gaps.csv").names)
    first = len(lines[0]) - n_spins
    worded = [lines[0], *([*x[:first], *(words.get(v, v) for v in x[first:])] for x in lines[1:])]
    Path("worded.csv").write_text("\n".join(map(",".join, worded)) + "\n")
    options = ("--true", "Yes", "--false", "No")
    assert data("impute", "gaps.csv", "model.npz", "-o", "plain.csv")[0] == 0
    assert data("impute", "worded.csv", "model.npz", "-o", "spoken.csv", *options)[0] == 0
    plain = pd.read_csv("plain.csv", dtype=str, keep_default_na=False).iloc[:, first:]
    spoken = pd.read_csv("spoken.csv", dtype=str, keep_default_na=False).iloc[:, first:]
    assert spoken.equals(plain.replace({"1": "Yes", "0": "No"}))


@pytest.mark.parametrize("name", ["filled.csv", "filled.npz"])
def test_a_filled_histogram_keeps_its_counts(data, name):
    X = pd.read_csv("gaps.csv", index_col=0).reset_index(drop=True)
    counts = [1, 2, 4, 2.5] * 50
    X.assign(count=counts, kind="a").to_csv("counts.csv", index=False)
    options = ("--weights", "count", "--labels", "kind", "-o", name)
    assert data("impute", "counts.csv", "model.npz", *options)[0] == 0
    filled = read_samples(name, weights="count", labels="kind")
    np.testing.assert_array_equal(filled.weights, counts)
    assert set(filled.labels) == {"a"}
    assert filled.spins.complete


def test_the_same_seed_fills_the_same(data):
    for name, seed in (("a", 1), ("b", 1)):
        assert data("impute", "gaps.csv", "model.npz", "--seed", seed, "-o", f"{name}.csv")[0] == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_edges_as_tables_and_as_a_graph(data):
    model = dt.load("model.npz")
    expected = model.edges(top=12)
    for name in ("edges.csv", "edges.parquet", "edges.graphml"):
        code, out, _ = data("couplings", "model.npz", "--top", 12, "-o", name)
        assert code == 0
        assert out.startswith(f"12 edges written to {name}\n")
    for frame in (pd.read_csv("edges.csv"), pd.read_parquet("edges.parquet")):
        assert frame.columns.tolist() == ["i", "j", "name_i", "name_j", "J", "low", "high"]
        np.testing.assert_allclose(frame["J"], expected.J, rtol=1e-15)
        np.testing.assert_allclose(frame["low"], expected.low, rtol=1e-15)
        assert frame["name_j"].tolist() == expected.names[:, 1].tolist()
    graph = networkx.read_graphml("edges.graphml")
    same = expected.to_networkx()
    assert graph.number_of_edges() == 12
    for i, j, weights in same.edges(data=True):
        assert graph.edges[f"n{i}", f"n{j}"] == pytest.approx(weights)
        assert graph.nodes[f"n{i}"] == same.nodes[i]


def test_edges_of_an_rbm_have_no_interval(data):
    assert data("couplings", "rbm.npz", "-o", "edges.csv", "-q") == (0, "", "")
    rows = table("edges.csv")
    assert len(rows) == N * (N - 1) / 2
    assert {row["low"] for row in rows} == {""}
    assert data("couplings", "rbm.npz", "-o", "e.parquet", "--top", 2, "-q")[0] == 0
    assert pd.read_parquet("e.parquet")["low"].isna().all()
    assert data("couplings", "rbm.npz", "-o", "e.graphml", "--top", 2, "-q")[0] == 0
    assert "low" not in next(iter(networkx.read_graphml("e.graphml").edges(data=True)))[2]


def test_names_in_a_graph_may_hold_anything(tmp_path):
    X = pd.DataFrame([[1, 0], [0, 1], [1, 0]], columns=["<a> & 'b'", "bell \x07"])
    edges = dt.HopfieldPatterns(1, random_state=0).fit(X).edges()
    dt.io.write_edges(tmp_path / "e.graphml", edges)
    graph = networkx.read_graphml(tmp_path / "e.graphml")
    assert [node["name"] for _, node in graph.nodes(data=True)] == ["<a> & 'b'", "bell \ufffd"]


def test_patterns_as_a_table(data):
    code, out, _ = data("export", "model.npz", "-o", "patterns.csv", "--json")
    assert code == 0
    assert json.loads(out) == {"n_spins": N, "n_patterns": 2, "file": "patterns.csv"}
    model, found = dt.load("model.npz"), pd.read_csv("patterns.csv")
    assert found.columns.tolist() == [
        *("name", "field", "pattern_0", "confidence_0", "effect_0"),
        *("pattern_1", "confidence_1", "effect_1"),
    ]
    assert found["name"].tolist() == NAMES
    np.testing.assert_allclose(found["field"], model.fields_)
    for k in range(2):
        zeta = found[f"pattern_{k}"]
        np.testing.assert_array_equal(zeta, model.patterns_[k])
        part = zeta != 0
        likely = (1 + np.abs(model.magnetizations_[k])) / 2
        np.testing.assert_allclose(found[f"confidence_{k}"][part], likely[part], atol=1e-6)
        assert found[f"confidence_{k}"][~part].isna().all()
    assert data("export", "rbm.npz", "-o", "weights.csv", "-q")[0] == 0
    assert "confidence_0" not in Path("weights.csv").read_text()


def test_models_without_names_number_their_units():
    X = dt.HopfieldModel.random(20, 1, beta=2.0, random_state=0).sample(30, random_state=1)
    model = dt.HopfieldPatterns(1, random_state=0).fit(X)
    assert units_table(model)["name"].tolist() == list(range(20))
    del model._training_scores  # as in a file of 0.1.0
    assert np.isnan(rows_table(model, as_spins(X))["typicality"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "model.npz", "gaps.csv", "-o", "rows.txt"), "must end in .csv or .tsv or"),
        (("predict", "gaps.csv", "model.npz", "-o", "r.csv"), "'gaps.csv' must end in .npz"),
        (("predict", "model.npz", "no.csv", "-o", "r.csv"), "there is no file 'no.csv'"),
        (("couplings", "gaps.npz", "-o", "e.csv"), "there is no file 'gaps.npz'"),
        (("couplings", "model.npz", "-o", "e.npz"), "must end in .csv or .tsv or .parquet or"),
        (("couplings", "model.npz", "-o", "model.csv"), "exists; use --force"),
        (("impute", "gaps.csv", "model.npz", "-o", "gaps.csv"), "'gaps.csv' exists; use --force"),
        (("impute", "gaps.csv", "model.npz", "-o", "no/f.csv"), "there is no folder 'no'"),
        (("export", "model.npz", "-o", "model.csv"), "'model.csv' exists; use --force"),
    ],
)
def test_mistakes_are_one_line(data, arguments, message):
    Path("model.csv").write_text("precious")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    code, out, err = data(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in Path().iterdir()} == before
    if "exists" in message and arguments[0] != "impute":
        assert data(*arguments, "--force", "-q") == (0, "", "")
        assert "precious" not in Path("model.csv").read_text()


def test_top_must_be_positive(data):
    code, _, err = data("couplings", "model.npz", "-o", "e.csv", "--top", 0)
    assert code == 2
    assert "--top" in err


# --- Columns by name ----------------------------------------------------------------------------


@pytest.fixture
def reversed_columns(data):
    frame = pd.read_csv("gaps.csv", index_col=0)
    frame[frame.columns[::-1]].to_csv("reversed.csv")
    return data


def test_reordered_columns_are_put_in_order(reversed_columns):
    run = reversed_columns
    for name in ("gaps", "reversed"):
        command = ("predict", "model.npz", f"{name}.csv", "-o", f"{name}-rows.csv", "-q")
        assert run(*command) == (0, "", "")
        assert run("impute", f"{name}.csv", "model.npz", "-o", f"{name}-filled.csv", "-q")[0] == 0
    assert Path("gaps-rows.csv").read_bytes() == Path("reversed-rows.csv").read_bytes()
    filled, other = (
        pd.read_csv(f"{name}-filled.csv", index_col=0) for name in ("gaps", "reversed")
    )
    assert other.columns.tolist() == NAMES[::-1]  # as they were given
    pd.testing.assert_frame_equal(other[NAMES], filled)
    shown = [
        json.loads(run("show", "model.npz", "--data", f"{name}.csv", "--json")[1])
        for name in ("gaps", "reversed")
    ]
    assert shown[0]["score"] == shown[1]["score"]
    assert shown[0]["weights"] == shown[1]["weights"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns=["q3", "q7"]), "missing 'q3', 'q7'"),
        (lambda f: f.assign(extra=0, more=1), "not in the model 'extra', 'more'"),
        (lambda f: f.rename(columns={"q3": "Q3"}), "missing 'q3'; not in the model 'Q3'"),
        (lambda f: f.rename(columns=str.upper), "missing 'q0', 'q1', 'q2', 'q3', 'q4' and 25 more"),
        (lambda f: pd.concat([f, f[["q3"]]], axis=1), "more than once 'q3'"),
    ],
)
def test_missing_and_foreign_columns_are_named(data, change, message):
    change(pd.read_csv("gaps.csv", index_col=0)).to_csv("other.csv")
    for command in (
        ("predict", "model.npz", "other.csv", "-o", "r.csv"),
        ("impute", "other.csv", "model.npz", "-o", "f.csv"),
        ("show", "model.npz", "--data", "other.csv"),
    ):
        code, out, err = data(*command)
        assert (code, out) == (2, "")
        assert err.startswith("dualtap: other.csv does not have the columns of the model: ")
        assert message in err
        assert err.count("\n") == 1
    assert not Path("r.csv").exists()


def test_without_names_the_number_must_match(data):
    values = read_samples("gaps.csv").spins.values
    write_samples("nameless.npy", as_spins(values, zero_is_missing=True))
    assert data("predict", "model.npz", "nameless.npy", "-o", "r.csv", "-q") == (0, "", "")
    write_samples("short.npy", as_spins(values[:, :20], zero_is_missing=True))
    code, _, err = data("predict", "model.npz", "short.npy", "-o", "s.csv")
    assert code == 2
    assert "short.npy has 20 columns, and the model 30 spins" in err


def test_packed_samples_are_put_in_order_too(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((50, 4)) < 0.2, np.nan, rng.integers(0, 2, (50, 4)))
    monkeypatch.setattr(builder, "DENSE", 0)
    spins = as_spins(X)
    found = in_order(SampleFile(spins, names=tuple("abcd")), list("cadb"), "X").spins
    assert isinstance(found, PackedSpins)
    assert found.encoding == "0/1"
    np.testing.assert_array_equal(found.values, spins.values[:, [2, 0, 3, 1]])


def test_a_model_without_names_takes_columns_as_they_are():
    X = np.random.default_rng(0).integers(0, 2, (30, 4))
    model = dt.HopfieldPatterns(1, random_state=0).fit(X)
    file = SampleFile(as_spins(X), names=tuple("dcba"))
    assert matched(file, model, "X") is file


# --- What a model file keeps --------------------------------------------------------------------


def test_files_keep_what_is_usual_and_how_samples_are_written(tmp_path):
    X = dt.HopfieldModel.random(20, 1, beta=2.0, random_state=0).sample(30, random_state=1)
    model = dt.HopfieldPatterns(1, random_state=0).fit((X + 1) // 2)
    dt.save(model, tmp_path / "m.npz")
    same = dt.load(tmp_path / "m.npz")
    np.testing.assert_array_equal(same._usual_scores(), np.sort(model.score_samples(X)))
    ones = np.where(np.arange(20) < 4, np.nan, 1.0)[None]
    assert (same.impute(ones) >= 0).all()
    contents = dict(np.load(tmp_path / "m.npz"))
    np.savez(tmp_path / "bad.npz", **contents | {"encoding": np.array("yes/no")})
    with pytest.raises(ValueError, match=r"bad\.npz is damaged: unknown encoding 'yes/no'"):
        dt.load(tmp_path / "bad.npz")


def test_every_command_is_in_the_help(run):
    code, out, _ = run("--help")
    assert code == 0
    for command in ("predict", "impute", "couplings", "export"):
        assert command in out
