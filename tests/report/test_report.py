"""The HTML report: its numbers are those of the estimator."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from examples import TRACE
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import dualtap as dt
from dualtap import metrics
from dualtap.fitted.meaning import profiles
from dualtap.report import write_report
from dualtap.report.charts import charts
from dualtap.report.contents import contents
from dualtap.report.encode import quantised, script_json
from dualtap.report.labels import adjusted_rand, label_table
from dualtap.report.material import checked
from dualtap.report.summary import agreement
from dualtap.report.words import lead, tiles, title

# What is shown.


def test_numbers_are_those_of_the_estimator(digits):
    model, X, y = digits
    shown = contents(checked(model, X, labels=y))
    labels = model.predict(X)
    assert [p["count"] for p in shown["patterns"]] == np.bincount(labels, minlength=8).tolist()
    np.testing.assert_allclose([p["share"] for p in shown["patterns"]], model.weights_)
    size, part = np.abs(model.magnetizations_), model.patterns_ != 0
    sure = [m[of] for m, of in zip(size, part, strict=True)]
    np.testing.assert_allclose(
        [p["confidence"] for p in shown["patterns"]], list(map(np.mean, sure))
    )
    assert [p["uncertain"] for p in shown["patterns"]] == [(m < 0.8).sum() for m in sure]
    assert shown["confidence"]["counts"].sum() == part.sum()
    assert shown["likelihood"]["model"] == model.score(X)
    rows = shown["samples"]["rows"]
    np.testing.assert_allclose(shown["samples"]["overlaps"].T, model.transform(X)[rows], atol=0.006)
    assert (np.diff(labels[rows]) >= 0).all()
    assert shown["samples"]["best"]["counts"].sum() == 600


def test_independent_spins_have_their_own_means(votes):
    model, X = votes
    logs = []
    for column in X.T:
        seen = column[~np.isnan(column)]
        p = np.mean(seen == 1)
        logs += [np.log(p if value == 1 else 1 - p) for value in seen]
    shown = contents(checked(model, X))
    assert shown["likelihood"]["independent"] == pytest.approx(np.mean(logs))


def test_nearest_samples_are_the_nearest_and_differ_where_said(votes):
    model, X = votes
    shown = contents(checked(model, X))
    assigned = model.assign(X)
    for k, pattern in enumerate(shown["patterns"]):
        best = np.sort(assigned.overlap[assigned.label == k])[::-1][:24]
        np.testing.assert_allclose([s["overlap"] for s in pattern["nearest"]], best, atol=1e-4)
        for sample in pattern["nearest"]:
            a = sample["row"]
            state = assigned.sign[a] * model.patterns_[k]
            unlike = set(np.flatnonzero(~np.isnan(X[a]) & (X[a] != state) & (state != 0)))
            assert sample["n_different"] == len(unlike)
            assert set(sample["different"]) <= unlike


def test_cards_name_the_surest_spins(taught):
    model = taught[0]
    for m, pattern in zip(model.magnetizations_, contents(checked(model))["patterns"], strict=True):
        assert np.abs(m[pattern["top"]]).min() >= np.sort(np.abs(m))[-8] - 0.01
        stored = np.frombuffer(base64.b64decode(quantised(m)), dtype=np.int8) / 100
        np.testing.assert_allclose(stored, m, atol=0.0051)


def test_cards_say_what_patterns_mean_and_how_stable_they_are(votes, tmp_path):
    model, X = votes
    found = dt.stability(model, X, 3, random_state=0)
    shown = contents(checked(model, X, stability=found))
    sides = profiles(dt.as_spins(X).values, model.patterns_)
    for k, card in enumerate(shown["patterns"]):
        effect = np.abs(sides.effect[k])
        assert list(effect[card["top"]]) == sorted(effect[model.patterns_[k] != 0], reverse=True)
        assert card["effect"] == quantised(sides.effect[k])
        np.testing.assert_array_equal(card["side_share"], sides.share[k])
        assert card["returned"] == found.returned[k]
        assert card["n_stable"] == found.stable[k].sum()
    assert "returned" in [chart.key for chart in charts(shown)]
    assert any("3 refits to random halves" in line for line in lead(shown))
    other = dt.HopfieldPatterns(1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="stability belongs to another model"):
        write_report(other, tmp_path / "page.html", spins=X, stability=found)


def test_a_page_says_what_is_left_and_which_patterns_have_no_samples(votes):
    model, X = votes
    shown = contents(checked(model, X))
    left = shown["unexplained"]
    assert len(left["pairs"]) == len(left["z"]) == 10
    assert np.all(np.diff(np.abs(left["z"])) <= 0)
    shown["patterns"][1]["share"] = 0.001
    assert "Almost no sample is nearest to pattern 1." in lead(shown)
    shown["model"]["warning"] = "patterns do not explain the couplings"
    assert "Warning: patterns do not explain the couplings." in lead(shown)


def test_labels_are_compared_with_patterns(digits):
    model, X, y = digits
    table = contents(checked(model, X, labels=y))["labels"]
    nearest = model.assign(X)
    state = 2 * nearest.label + (nearest.sign < 0)
    kinds = np.unique(state)
    assert table["labels"] == [str(digit) for digit in range(10)]
    assert len(table["states"]) == len(table["counts"]) >= model.n_patterns_
    filled = table["counts"][table["counts"].any(axis=1)]
    assert filled[3, 7] == np.sum((state == kinds[3]) & (y == 7))
    assert table["rand"] == pytest.approx(adjusted_rand_score(y, state))
    most = [np.bincount(y[state == k]).max() for k in kinds]
    assert table["purity"] == pytest.approx(sum(most) / 600)


def test_unknown_labels_do_not_count_and_many_are_joined():
    pattern = np.array([0, 0, 1, -1, *([1] * 40)])
    labels = ["a", "", "a", "a", *(str(i) for i in range(40))]
    table = label_table(pattern, np.ones(44, dtype=int), labels, 3)
    assert table["n"] == 42
    assert table["n_left_out"] == 2
    assert len(table["labels"]) == table["counts"].shape[1] == 30
    assert table["labels"][:2] == ["0", "1"]
    assert table["counts"].sum() == 42
    assert table["majority"][2] is None
    assert label_table(np.array([-1]), np.array([1]), ["a"], 0)["rand"] is None


def test_agreement_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    for n_rows, n_columns in ((1, 1), (1, 4), (3, 3), (5, 2)):
        x, y = rng.integers(n_rows, size=40), rng.integers(n_columns, size=40)
        counts = np.zeros((n_rows, n_columns), dtype=int)
        np.add.at(counts, (x, y), 1)
        assert adjusted_rand(counts) == pytest.approx(adjusted_rand_score(x, y), abs=1e-12)


def test_rows_with_weights_are_as_many_samples():
    """The numbers of a page are those of the samples that its rows stand for."""
    teacher = dt.HopfieldModel.random(n_spins=30, n_patterns=2, beta=1.6, random_state=0)
    X = teacher.sample(60, random_state=1)
    w = np.random.default_rng(2).integers(0, 4, len(X))
    labels = np.where(X @ teacher.patterns[0] > 0, "a", "b")
    model = dt.HopfieldPatterns(2, random_state=0).fit(X, sample_weight=w)
    one = contents(checked(model, X, labels=labels, sample_weight=w))
    two = contents(checked(model, np.repeat(X, w, axis=0), labels=np.repeat(labels, w)))
    assert one["likelihood"] == pytest.approx(two["likelihood"])
    for card, other in zip(one["patterns"], two["patterns"], strict=True):
        numbers = ("count", "share", "n_flipped")
        assert [card[key] for key in numbers] == pytest.approx([other[key] for key in numbers])
        assert isinstance(card["count"], int)
    np.testing.assert_array_equal(
        one["samples"]["best"]["counts"], two["samples"]["best"]["counts"]
    )
    assert one["samples"]["mean_best"] == pytest.approx(two["samples"]["mean_best"])
    assert one["labels"]["counts"].tolist() == two["labels"]["counts"].tolist()
    assert one["labels"]["counts"].dtype == one["samples"]["best"]["counts"].dtype == np.int64
    for key in ("rand", "purity", "n", "n_left_out"):
        assert one["labels"][key] == pytest.approx(two["labels"][key])
    by_name = ({"kind": labels}, {"kind": np.repeat(labels, w)})
    counted = agreement(model, dt.as_spins(X), by_name[0], w.astype(float))
    assert counted == pytest.approx(
        agreement(model, dt.as_spins(np.repeat(X, w, axis=0)), by_name[1])
    )
    with pytest.raises(ValueError, match="one weight for each of the 60 samples"):
        checked(model, X, sample_weight=[1])


def test_the_truth_is_compared_with(taught):
    model, X, teacher = taught
    truth = contents(checked(model, X, teacher=teacher))["truth"]
    found = metrics.match(model.patterns_, teacher.patterns)
    np.testing.assert_array_equal(truth["overlaps"], found.overlaps)
    expected = metrics.calibration(model.magnetizations_, teacher.patterns)
    assert truth["calibration"]["error"] == expected.error
    same = contents(checked(model, X, teacher=teacher.patterns))["truth"]
    assert same["recovered"] == truth["recovered"]


def test_large_data_are_capped_and_it_is_said(large):
    model, X = large
    names = ["n" * 200] * 100_000
    shown = contents(checked(model, X, names=names, shape=(250, 400)))
    notes = " ".join(shown["notes"])
    assert "cut to 40 characters" in notes
    assert "nearest" in notes
    many = np.tile(np.array([[1, 1, -1], [1, -1, 1]]), (3000, 1))
    small = dt.HopfieldPatterns(n_patterns=2, random_state=0).fit(many)
    shown = contents(checked(small, many))
    assert shown["samples"]["n_shown"] == shown["samples"]["overlaps"].shape[1] == 2000
    assert "2000 of 6000 samples" in shown["notes"][0]


def test_patterns_that_do_not_fit_a_page_keep_their_card(votes, monkeypatch):
    monkeypatch.setattr("dualtap.report.contents._MOST_ENTRIES", 16)
    shown = contents(checked(*votes))
    assert ["m" in pattern for pattern in shown["patterns"]] == [True, False]
    assert shown["notes"] == ["1 of 2 patterns are drawn."]


def test_images_of_samples_say_which_entries_are_missing(votes):
    model, X = votes
    shown = contents(checked(model, X, shape=(4, 4)))
    for sample in (s for pattern in shown["patterns"] for s in pattern["nearest"]):
        x = X[sample["row"]]
        bits = np.unpackbits(np.frombuffer(base64.b64decode(sample["bits"]), np.uint8))
        np.testing.assert_array_equal(bits, x == 1)
        assert ("observed" in sample) == np.isnan(x).any()
        if "observed" in sample:
            seen = np.unpackbits(np.frombuffer(base64.b64decode(sample["observed"]), np.uint8))
            np.testing.assert_array_equal(seen, ~np.isnan(x))


def test_labels_from_files_are_read_as_they_were_written(votes):
    import pandas as pd

    labels = [3.0, 2.5, None, float("nan"), pd.NA, "x", *([True] * 74)]
    texts = checked(*votes, labels=labels).labels
    assert texts[:7] == ("3", "2.5", "", "", "", "x", "True")
    assert checked(*votes, labels=np.arange(80)).labels[:2] == ("0", "1")


def test_an_rbm_that_learned_nothing_says_so():
    X = np.random.default_rng(0).integers(0, 2, (50, 40))
    shown = contents(checked(dt.HopfieldRBM.paper(n_hidden=3, random_state=0).partial_fit(X), X))
    assert title(shown) == "No pattern found"
    assert lead(shown)[0].endswith("trained for 1 update.")
    assert "Train longer" in lead(shown)[1]


def test_charts_are_drawn_for_what_is_known(rbm, taught, fair_spins):
    def keys(model, *arguments, **options):
        return {chart.key for chart in charts(contents(checked(model, *arguments, **options)))}

    model, X, teacher = taught
    assert keys(model) == {"sizes", "spectrum", "confidence", "path"}
    assert keys(model, X, teacher=teacher) == {
        *("overlaps", "sizes", "best", "likelihood", "spectrum", "confidence", "calibration"),
        *("path", "unexplained"),
    }
    assert keys(rbm[0], rbm[1]) == {
        *("overlaps", "sizes", "best", "likelihood", "learning", "singular")
    }
    assert keys(*fair_spins) == {"likelihood", "spectrum"}


def test_strengths_zeros_steps_and_path_are_shown(general):
    model, X = general
    shown = contents(checked(model, X))
    cards = shown["patterns"]
    assert [card["strength"] for card in cards] == [2.0, 20.0, -4.0]
    assert [card["n_part"] for card in cards] == np.count_nonzero(model.patterns_, 1).tolist()
    assert set(cards[1]["top"]) == {0, 1, 2}
    assert shown["trace"] == TRACE
    assert shown["path"]["held_out"] == [-0.68, -0.6, None, -0.5]
    drawn = {chart.key: chart.figure for chart in charts(shown)}
    assert drawn["strengths"]["data"][0]["marker"]["color"] == ["$accent", "$accent", "$minus"]
    length, score = drawn["path"]["data"]
    assert length["y"] == [1100.0, 999.5, 900.0, 850.0]
    assert score["yaxis"] == "y2"
    values = {fact.name: fact.value for fact in tiles(shown)}
    assert values["strengths"] == "−4 to 20"


def test_steps_beyond_two_hundred_are_left_out_and_it_is_said(general, monkeypatch):
    monkeypatch.setattr("dualtap.report.contents._MOST_STEPS", 2)
    shown = contents(checked(general[0]))
    assert len(shown["trace"]) == 2
    assert "The first 2 of 3 steps of the search are shown." in shown["notes"]


def test_spins_that_take_no_part_have_a_number_of_their_own():
    stored = base64.b64decode(quantised(np.array([0.0, np.nan, -1.0])))
    assert np.frombuffer(stored, dtype=np.int8).tolist() == [0, -128, -100]


@given(st.text(), st.floats())
@settings(max_examples=60)
def test_json_in_a_script_element_is_the_same_json_and_no_markup(text, number):
    written = script_json({"text": text, text: [number]})
    assert written.isascii()
    assert not re.search("[<>&]", written)
    back = json.loads(written)
    assert back["text"] == text or text == "text"
    assert back[text] == ([number] if np.isfinite(number) else [None])


# The file.


def test_the_same_input_gives_the_same_bytes(tmp_path, taught):
    model, X, teacher = taught
    for name in ("a.html", "b.html"):
        write_report(model, tmp_path / name, spins=X, teacher=teacher)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_nothing_is_overwritten_without_force(tmp_path, fair_spins):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="pass force=True"):
        write_report(fair_spins[0], path)
    assert path.read_text() == "mine"
    write_report(fair_spins[0], path, force=True)
    assert "No pattern found" in path.read_text(encoding="utf-8")


def test_without_plotly_it_says_what_to_install(tmp_path, fair_spins, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"pip install 'dualtap\[report\]'"):
        write_report(fair_spins[0], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (7, 7)}, r"shape \(7, 7\) is not .* picture of 16 spins.*such as \(4, 4\)"),
        ({"names": ["a"]}, "there are 1 spin names, but 16 spins"),
        ({"labels": ["a"]}, "labels were given without samples"),
        ({"spins": np.eye(16), "labels": ["a"]}, "there are 1 labels, but 16 samples"),
        ({"spins": np.eye(8)}, "the samples have 8 spins, but the model has 16"),
        ({"teacher": np.ones((2, 9))}, r"shape \(2, 9\); expected \(n_patterns, 16\)"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, votes, options, message):
    with pytest.raises(ValueError, match=message):
        write_report(votes[0], tmp_path / "report.html", **options)
    assert not list(tmp_path.iterdir())


def test_only_models_are_reported(tmp_path):
    with pytest.raises(TypeError, match="needs HopfieldPatterns, DualTAP or HopfieldRBM, got dict"):
        write_report({}, tmp_path / "report.html")


def test_names_default_to_those_of_the_fit(tmp_path):
    import pandas as pd

    frame = pd.DataFrame(np.eye(6, dtype=int), columns=list("uvwxyz"))
    model = dt.HopfieldPatterns(n_patterns=1, random_state=0).fit(frame)
    assert contents(checked(model))["names"] == tuple("uvwxyz")


def test_the_page_forbids_all_scripts_but_its_own(pages):
    text = (pages / "digits.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert "default-src 'none'" in policy
    assert policy.count("'sha256-") == 2
    assert "script-src 'unsafe" not in policy
    assert not re.search(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="?http', text)


def test_large_pages_stay_small(pages):
    assert (pages / "large.html").stat().st_size < 25e6


def test_resources_are_packaged():
    folder = Path(sys.modules["dualtap.report"].__file__).parent
    assert {path.suffix for path in folder.iterdir()} >= {".py", ".css", ".js"}
