"""The HTML report: its numbers are the estimator's, and a real browser can use it."""

import base64
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

import dualtap as dt
from dualtap import metrics
from dualtap.fitted.meaning import profiles
from dualtap.report import write_report
from dualtap.report.charts import charts
from dualtap.report.contents import contents
from dualtap.report.encode import quantised, script_json
from dualtap.report.labels import label_table
from dualtap.report.material import checked
from dualtap.report.words import headline, lead, tiles

HOSTILE = "</script><img src=x onerror=alert(1)>"
CHROMIUM_OPTIONS = [
    *("--no-sandbox", "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


# Material: a model of images with labels, one of named votes, one that knows its truth.


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    X = (data.data[:600] >= 8).astype(int)
    return dt.HopfieldPatterns(n_patterns=8, random_state=0).fit(X), X, data.target[:600]


@pytest.fixture(scope="module")
def taught():
    teacher = dt.HopfieldModel.random(n_spins=200, n_patterns=3, beta=0.8, random_state=0)
    X = teacher.sample(300, random_state=1)
    return dt.HopfieldPatterns(n_patterns=3, random_state=0).fit(X), X, teacher


@pytest.fixture(scope="module")
def votes():
    teacher = dt.HopfieldModel.random(n_spins=16, n_patterns=2, beta=1.6, random_state=3)
    X = teacher.sample(80, random_state=4).astype(float)
    X[::7, 3] = np.nan
    return dt.HopfieldPatterns(n_patterns=2, random_state=0).fit(X), X


@pytest.fixture(scope="module")
def rbm():
    teacher = dt.HopfieldModel.random(n_spins=120, n_patterns=2, beta=2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    return dt.HopfieldRBM.paper(n_hidden=4, random_state=0).fit(X), X, teacher


@pytest.fixture(scope="module")
def coins():
    X = np.random.default_rng(0).integers(0, 2, (60, 90))
    return dt.HopfieldPatterns(random_state=0).fit(X), X


@pytest.fixture(scope="module")
def large():
    """A model as large as one gets, put together by hand: fitting it is not what is tested."""
    rng = np.random.default_rng(0)
    model = dt.HopfieldPatterns()
    model.n_features_in_ = 100_000
    model.magnetizations_ = rng.uniform(-1, 1, (50, 100_000)).astype(np.float32)
    model.patterns_ = np.where(model.magnetizations_ < 0, -1, 1).astype(np.int8)
    model.labels_ = np.arange(100) % 50
    model.weights_ = np.full(50, 0.02)
    model.fields_ = np.zeros(100_000)
    model.strengths_, model.reason_ = np.full(50, 2.0), "made by hand"
    model.trace_, model.path_, model.means_ = [], None, np.zeros(100_000)
    model._median_overlap = 0.5
    X = model.patterns_[model.labels_] * rng.choice([-1, 1, 1, 1], (100, 100_000)).astype(np.int8)
    return model, X


TRACE = [
    {"step": k, "move": move, "source": HOSTILE, "n_patterns": n}
    | {"objective": length, "gain": gain, "accepted": gain > 0}
    for k, (move, n, length, gain) in enumerate(
        [("add", 2, 900.0, 99.5), ("add", 3, 850.0, 50.0), ("add", 4, 853.0, -3.0)]
    )
]


@pytest.fixture(scope="module")
def general():
    """Zeros, strengths of both signs, a trace and a path, put together by hand."""
    rng = np.random.default_rng(0)
    model = dt.HopfieldPatterns()
    model.n_features_in_ = 64
    model.patterns_ = rng.choice(np.array([-1, 0, 0, 1], dtype=np.int8), size=(3, 64))
    model.patterns_[1] = 0
    model.patterns_[1, :3] = 1, -1, 1
    model.magnetizations_ = (rng.uniform(0.5, 1, (3, 64)) * model.patterns_).astype(np.float32)
    X = rng.choice(np.array([-1, 1], dtype=np.int8), size=(40, 64))
    model.labels_ = np.arange(40) % 3
    model.weights_ = np.array([14, 13, 13]) / 40
    model.fields_ = rng.normal(size=64)
    model.means_ = np.tanh(model.fields_)
    model.strengths_, model.reason_ = np.array([2.0, 20.0, -4.0]), "made by hand"
    model._median_overlap, model._typical_overlaps = 0.5, np.full(3, 0.5)
    model.trace_ = TRACE
    model.path_ = {
        "n_patterns": np.arange(4),
        "objective": np.array([1100.0, 999.5, 900.0, 850.0]),
        "held_out": np.array([-0.68, -0.6, np.nan, -0.5]),
    }
    return model, X


@pytest.fixture(scope="module")
def pages(tmp_path_factory, digits, taught, votes, rbm, coins, large, general):
    """Write every kind of page once."""
    folder = tmp_path_factory.mktemp("pages")
    names = [HOSTILE, "<b>bold</b>", "a & b", *(f"vote {i}" for i in range(13))]
    sample_names = [f"<b>{HOSTILE}</b> {i}" for i in range(80)]  # Plotly knows <b>
    parties = [HOSTILE if i % 2 else "'\"><svg onload=alert(2)>" for i in range(80)]
    deflated = dt.DualTAP(n_patterns=2, beta=2.0, random_state=0).fit(rbm[1])
    reports = {
        "digits": (digits[0], {"spins": digits[1], "labels": digits[2], "shape": (8, 8)}),
        "taught": (taught[0], {"spins": taught[1], "teacher": taught[2]}),
        "votes": (
            votes[0],
            {
                "spins": votes[1],
                "names": names,
                "sample_names": sample_names,
                "labels": parties,
                "command": f"dualtap show {HOSTILE} \udcff",
            },
        ),
        "rbm": (rbm[0], {"spins": rbm[1], "teacher": rbm[2]}),
        "deflation": (deflated, {"spins": rbm[1]}),
        "nothing": (coins[0], {"spins": coins[1]}),
        "bare": (taught[0], {}),
        "general": (general[0], {"spins": general[1]}),
        "images": (general[0], {"spins": general[1], "shape": (8, 8)}),
        "large": (
            large[0],
            {"spins": large[1], "shape": (250, 400), "names": [f"x{i}" for i in range(100_000)]},
        ),
    }
    for name, (model, options) in reports.items():
        write_report(model, folder / f"{name}.html", **options)
    return folder


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
    assert [p["unsure"] for p in shown["patterns"]] == [(m < 0.8).sum() for m in sure]
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
    with pytest.raises(ValueError, match="the stability is that of another model"):
        write_report(other, tmp_path / "page.html", spins=X, stability=found)


def test_a_page_says_what_is_left_and_which_patterns_have_no_samples(votes):
    model, X = votes
    shown = contents(checked(model, X))
    left = shown["unexplained"]
    assert len(left["pairs"]) == len(left["z"]) == 10
    assert np.all(np.diff(np.abs(left["z"])) <= 0)
    shown["patterns"][1]["share"] = 0.001
    assert "Hardly any sample is nearest to pattern 1." in lead(shown)
    shown["model"]["warning"] = "patterns are the wrong model"
    assert "Warning: patterns are the wrong model." in lead(shown)


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
    assert shown["notes"] == ["1 of 2 patterns are drawn: more would not fit a page."]


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
    assert headline(shown) == "No pattern found"
    assert lead(shown)[0].endswith("trained for 1 updates.")
    assert "train longer" in lead(shown)[1]


def test_charts_are_drawn_for_what_is_known(rbm, taught, coins):
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
    assert keys(*coins) == {"likelihood", "spectrum"}


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


def test_nothing_is_overwritten_without_force(tmp_path, coins):
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="use --force"):
        write_report(coins[0], path)
    assert path.read_text() == "mine"
    write_report(coins[0], path, force=True)
    assert "No pattern found" in path.read_text(encoding="utf-8")


def test_without_plotly_it_says_what_to_install(tmp_path, coins, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(ImportError, match=r"pip install 'dualtap\[report\]'"):
        write_report(coins[0], tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shape": (7, 7)}, r"shape \(7, 7\) is not .* picture of 16 spins.*such as \(4, 4\)"),
        ({"names": ["a"]}, "there are 1 spin names, but 16 spins"),
        ({"labels": ["a"]}, "labels need the samples"),
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


# In a browser.


@pytest.fixture(scope="module")
def browser():
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        reason = "NO CHROMIUM ON THIS MACHINE: the report is NOT tested in a browser"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def tabs(browser, pages):
    """Open a page, or come back to it: reading Plotly takes longer than any test."""
    opened, wrong = {}, []

    def _open(name, options):
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(120_000)  # also on a busy machine
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: _only_local(request.url, wrong))
        page.goto((pages / f"{name}.html").as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    def _tab(name, options):
        key = name, json.dumps(options)
        if key not in opened:
            opened[key] = _open(name, options)
        return opened[key]

    yield _tab, wrong
    for page in opened.values():
        page.context.close()


@pytest.fixture
def visit(tabs):
    """Go to a page as it was opened; nothing may go wrong in it and nothing be requested."""
    tab, wrong = tabs

    def _visit(name, **options):
        page = tab(name, options)
        page.evaluate(
            "document.querySelector('dialog').close(), document.activeElement.blur(), "
            "scrollTo(0, 0), document.querySelector('[data-sort=order]')?.click()"
        )
        return page

    yield _visit
    assert not wrong


def _only_local(url, wrong):
    if not url.startswith(("file:", "data:", "blob:")):
        wrong.append(f"requested {url}")


PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}
NAMES = ["digits", "taught", "votes", "rbm", "deflation", "nothing", "bare", "general", "large"]


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_page_opens_also_on_a_phone(visit, name):
    page = visit(name, **PHONE)
    assert page.locator("h1").inner_text().endswith("found")
    n_charts = page.locator("[data-chart]").count()
    assert n_charts >= 2
    assert page.locator("[data-chart] > .plot-container").count() == n_charts
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if page.locator(".card").count():
        page.locator(".card").first.tap()
        assert page.locator("dialog").is_visible()
        assert page.evaluate("document.querySelector('.sheet').scrollWidth") <= 360


def test_clicking_a_pattern_shows_its_samples(visit, digits):
    page = visit("digits")
    assert page.locator(".card").count() == 8
    page.locator(".card").nth(2).click()
    assert page.locator("#pattern-title").inner_text() == "Pattern 2"
    count = int(np.sum(digits[0].predict(digits[1]) == 2))
    pictures = page.locator(".samples canvas")
    assert pictures.count() == min(24, count)
    assert "overlap" in page.locator(".samples figcaption").first.inner_text()
    page.locator("#close").click()
    assert not page.locator("dialog").is_visible()


def test_images_show_the_model_pixel_by_pixel(visit, digits):
    model = digits[0]
    page = visit("digits")
    pixels = page.evaluate(
        "[...document.querySelector('.card canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    colour = [tuple(pixels[4 * i : 4 * i + 3]) for i in range(64)]
    m = np.round(model.magnetizations_[0], 2)
    on, off = ({colour[i] for i in np.flatnonzero(m == sign)} for sign in (1, -1))
    assert len(on) == len(off) == 1
    assert on != off
    style = "getComputedStyle(document.querySelector('.card canvas')).imageRendering"
    assert page.evaluate(style) == "pixelated"


def test_the_keyboard_does_what_the_mouse_does(visit):
    page = visit("digits")
    focused = "document.activeElement.dataset.pattern"

    def leave():
        """Press Escape, and wait for the event that brings the focus back."""
        page.evaluate(
            """() => { window.left = new Promise((done) => document.querySelector('dialog')
                .addEventListener('close', () => done(true), { once: true })); }"""
        )
        page.keyboard.press("Escape")
        assert page.evaluate("() => window.left")

    page.locator(".card").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "1"
    page.keyboard.press("Enter")
    assert page.locator("#pattern-title").inner_text() == "Pattern 1"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#pattern-title").inner_text() == "Pattern 2"
    leave()
    assert not page.locator("dialog").is_visible()
    assert page.evaluate(focused) == "2"
    page.keyboard.press("Space")
    assert page.locator("dialog").is_visible()
    leave()
    page.keyboard.press("End")
    assert page.evaluate(focused) == "7"
    page.keyboard.press("ArrowUp")
    assert int(page.evaluate(focused)) < 7


def test_cards_can_be_sorted(visit, digits):
    model = digits[0]
    page = visit("digits")

    def order():
        cards = page.locator(".card").all()
        return [int(card.get_attribute("data-pattern")) for card in cards]

    page.locator("[data-sort=confidence]").click()
    part = model.patterns_ != 0
    sure = np.abs(model.magnetizations_).sum(axis=1) / part.sum(axis=1)
    assert (np.diff(sure[order()]) <= 1e-6).all()
    assert page.locator("[data-sort=confidence]").get_attribute("aria-pressed") == "true"
    page.locator("[data-sort=share]").press("Enter")
    assert (np.diff(model.weights_[order()]) <= 0).all()
    page.locator("[data-sort=order]").click()
    assert order() == list(range(8))


def test_tables_can_be_sorted_by_mouse_and_keyboard(visit):
    page = visit("digits")
    heading = page.locator("#labels thead th").nth(11)
    assert heading.inner_text() == "samples"

    def column():
        return [int(cell.inner_text()) for cell in page.locator("#labels td:nth-child(12)").all()]

    heading.locator("button").click()
    assert column() == sorted(column(), reverse=True)
    assert heading.get_attribute("aria-sort") == "descending"
    heading.locator("button").press("Enter")
    assert column() == sorted(column())
    assert heading.get_attribute("aria-sort") == "ascending"


def test_spins_can_be_filtered_and_sorted_and_all_are_reachable(visit, taught):
    model, X, _ = taught
    page = visit("taught", **PHONE)
    page.locator(".card").first.click()
    rows = page.locator(".spins tbody tr")
    assert rows.count() == 100
    page.get_by_role("button", name="Show more").click()
    assert rows.count() == 200
    effect = np.abs(profiles(X, model.patterns_).effect[0])
    assert rows.first.locator("td").first.inner_text()[1:] == f"{effect.max():.2f}"
    page.locator(".spins thead button").nth(4).click()
    largest = model.magnetizations_[0].max()
    assert rows.first.locator("td").nth(3).inner_text() == f"+{largest:.2f}"
    page.get_by_role("searchbox").fill("spin 17")
    assert rows.count() == 11  # 17 and 170 … 179


def test_dark_and_light(visit):
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "document.querySelector('[data-chart]')._fullLayout.font.color"
    page = visit("taught", **PHONE)
    light = page.evaluate(background), page.evaluate(ink)
    page.get_by_role("button", name="Use dark colours").click()
    dark = page.evaluate(background), page.evaluate(ink)
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    page.get_by_role("button", name="Use light colours").click()
    assert (page.evaluate(background), page.evaluate(ink)) == light
    page.evaluate("delete document.documentElement.dataset.theme")
    page.emulate_media(color_scheme="dark")
    _until(page, ink, dark[1])
    assert page.evaluate(background) == dark[0]
    page.emulate_media(color_scheme="light")


def _until(page, expression, value):
    """Wait for a listener to have run; the page's policy forbids Playwright's own way to wait."""
    for _ in range(100):
        if page.evaluate(expression) == value:
            return
        page.wait_for_timeout(50)
    assert page.evaluate(expression) == value


@pytest.mark.parametrize("options", [{}, {"color_scheme": "dark"}], ids=["light", "dark"])
def test_text_has_contrast(visit, options):
    page = visit("digits", **options)
    page.locator(".card").first.click()
    for selector in (
        *(".lead p:last-child", ".card .fact", "figcaption", ".bar nav a", ".note"),
        *("thead th[aria-sort] button", ".facts dt", "footer p"),
    ):
        colours = page.evaluate(COLOURS_OF, selector)
        assert _contrast(*colours) >= 4.5, (selector, colours)


COLOURS_OF = """(selector) => {
  let node = document.querySelector(selector);
  const text = getComputedStyle(node).color;
  const clear = 'rgba(0, 0, 0, 0)';
  while (getComputedStyle(node).backgroundColor === clear) node = node.parentElement;
  return [text, getComputedStyle(node).backgroundColor];
}"""


def _contrast(first, second):
    def luminance(colour):
        c = np.array([float(x) for x in re.findall(r"[\d.]+", colour)[:3]]) / 255
        return np.where(c <= 0.03928, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [
            *(0.2126, 0.7152, 0.0722)
        ]

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def test_focus_can_be_seen(visit):
    page = visit("digits")
    page.locator(".skip").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid"


def test_what_comes_from_files_is_never_markup(visit):
    page = visit("votes", **PHONE)
    assert page.locator("img, svg[onload], b:text-is('bold')").count() == 0
    assert HOSTILE in page.locator(".card .name").all_inner_texts()
    assert HOSTILE in page.locator("pre").inner_text()
    assert page.locator("#labels thead").inner_text().count(HOSTILE) == 1
    page.locator(".card").first.click()
    assert page.locator(".spins tbody").inner_text().count(HOSTILE) == 1
    assert f"<b>{HOSTILE}</b>" in page.locator(".nearest tbody th").first.inner_text()
    page.keyboard.press("Escape")
    page.locator("[data-chart=overlaps] .nsewdrag").hover()
    page.wait_for_selector("[data-chart=overlaps] .hovertext")
    assert (
        f"<b>{HOSTILE}</b>" in page.locator("[data-chart=overlaps] .hovertext").first.text_content()
    )
    assert page.locator("img").count() == 0


def test_when_nothing_is_found_the_page_says_why(visit, coins):
    page = visit("nothing", **PHONE)
    assert page.locator("h1").inner_text() == "No pattern found"
    assert coins[0].reason_[1:] in page.locator(".lead").inner_text()
    assert page.locator("#patterns").count() == 0
    assert page.locator("[data-chart=spectrum] .point").count() > 10


def test_the_page_marks_repulsive_patterns_and_names_their_spins(visit, general):
    model = general[0]
    page = visit("general", **PHONE)
    cards = page.locator(".card")
    assert cards.locator(".badge").all_inner_texts() == ["repulsive"]
    assert cards.nth(2).locator(".badge").count() == 1
    assert "−4 strength, repulsive" in cards.nth(2).inner_text()
    assert "3 of 64 spins" in cards.nth(1).inner_text()
    assert cards.nth(1).locator(".row").count() == 3  # no spin that takes no part
    assert page.locator(".legend").inner_text().endswith("takes no part")
    page.locator("[data-sort=n_part]").click()
    sizes = np.count_nonzero(model.patterns_, axis=1)
    order = [int(card.get_attribute("data-pattern")) for card in cards.all()]
    assert (np.diff(sizes[order]) <= 0).all()
    page.locator("[data-sort=order]").click()
    cards.nth(1).click()
    rows = page.locator(".spins tbody tr")
    assert page.locator(".spins tbody tr.absent").count() == 61
    assert "no part" not in rows.nth(2).inner_text()
    assert "no part" in rows.nth(3).inner_text()


def test_pixels_that_take_no_part_have_a_neutral_colour(visit, general):
    page = visit("images")
    pixels = page.evaluate(
        "[...document.querySelector('.card canvas').getContext('2d').getImageData(0,0,8,8).data]"
    )
    colour = np.reshape(pixels, (64, 4))[:, :3]
    zeros = general[0].patterns_[0] == 0
    neutral = np.unique(colour[zeros], axis=0)
    assert len(neutral) == 1
    assert not (colour[~zeros] == neutral).all(axis=1).any()


def test_the_page_has_the_steps_of_the_search(visit):
    page = visit("general", **PHONE)
    rows = page.locator("#search tbody tr")
    assert rows.count() == 3
    assert rows.nth(0).locator("td").all_inner_texts() == [
        *("add", HOSTILE, "2", "900.0", "99.5", "yes")
    ]
    assert rows.nth(2).locator("td").all_inner_texts()[-2:] == ["−3.0", "no"]
    assert page.locator("[data-chart=path] .scatterlayer .trace").count() == 2
    assert page.locator("[data-chart=strengths] .point").count() == 3


def test_an_rbm_shows_its_learning(visit, rbm):
    page = visit("rbm", **PHONE)
    assert page.locator(".card").count() == rbm[0].n_patterns_ == 2
    assert "Gaussian hidden units" in page.locator(".lead").inner_text()
    assert page.locator("[data-chart=singular] .scatterlayer .trace").count() == 4
    assert page.locator("[data-sort=confidence]").count() == 0


def test_on_paper_it_is_light_and_whole(visit):
    page = visit("digits", color_scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".bar nav").is_visible()
    assert not page.locator("#theme").is_visible()
    for section in page.locator("main section").all():
        assert section.is_visible()
    _until(page, "document.querySelector('[data-chart]')._fullLayout.width", 640)
    style = "getComputedStyle(document.querySelector('.card')).breakInside"
    assert page.evaluate(style) == "avoid"
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_resources_are_packaged():
    folder = Path(sys.modules["dualtap.report"].__file__).parent
    assert {path.suffix for path in folder.iterdir()} >= {".py", ".css", ".js"}
