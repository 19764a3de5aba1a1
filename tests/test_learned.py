"""What follows from patterns with zeros, a strength each, and samples with nothing observed."""

import numpy as np
import pytest

import dualtap as dt
from dualtap import HopfieldModel, HopfieldPatterns, as_spins
from dualtap.cli.terminal import print_result
from dualtap.fitted.nearest import nearest_patterns, pull_of
from dualtap.report.contents import contents
from dualtap.report.material import checked
from dualtap.report.summary import describe, headline
from dualtap.spins import PackedSpins, builder


def made(patterns, strengths, fields=None, weights=None):
    """A model with what was learned set by hand."""
    patterns = np.array(patterns, dtype=np.int8)
    n_patterns, n_spins = patterns.shape
    model = HopfieldPatterns()
    model.patterns_, model.magnetizations_ = patterns, patterns.astype(np.float32)
    model.strengths_ = np.array(strengths, dtype=np.float64)
    model.fields_ = np.zeros(n_spins) if fields is None else np.asarray(fields, dtype=np.float64)
    model.means_, model.objective_ = np.tanh(model.fields_), 0.0
    model.weights_ = np.full(n_patterns, 1 / max(n_patterns, 1)) if weights is None else weights
    model.labels_ = np.zeros(10, dtype=np.int64)
    model._typical_overlaps, model._median_overlap = np.ones(n_patterns), 1.0
    model.trace_, model.path_, model.reason_ = [], None, "made by hand"
    model.n_features_in_ = n_spins
    return model


PATTERNS = [[1, 1, -1, -1, 0, 0], [0, 0, 1, 1, 1, 0], [1, -1, 1, -1, 1, -1]]
NAN = np.nan
X = np.array(
    [
        [1, 1, -1, -1, 1, 1],
        [1, NAN, -1, 1, NAN, NAN],
        [1, 1, NAN, NAN, NAN, 1],
        [NAN, NAN, -1, -1, -1, NAN],
        [NAN] * 6,
    ]
)


def expected_overlaps(patterns):
    result = np.full((len(X), len(patterns)), np.nan)
    for a, s in enumerate(X):
        for mu, zeta in enumerate(np.array(patterns)):
            common = ~np.isnan(s) & (zeta != 0)
            if not np.isnan(s).all():
                result[a, mu] = (s * zeta)[common].mean() if common.any() else 0
    return result


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("patterns", [PATTERNS, PATTERNS[2:], np.sign(np.array(PATTERNS) + 0.5)])
def test_overlaps_are_means_over_what_is_observed_of_the_support(patterns, packed, monkeypatch):
    model = made(patterns, np.ones(len(patterns)))
    expected = expected_overlaps(patterns)
    monkeypatch.setattr(builder, "DENSE", 0 if packed else builder.DENSE)
    spins = as_spins(X)
    assert isinstance(spins, PackedSpins) == packed
    np.testing.assert_allclose(model.transform(spins), expected, atol=1e-7)
    found = model.assign(spins)
    n_common = np.isfinite(X).astype(int) @ (np.array(patterns) != 0).T
    best = np.abs(np.nan_to_num(expected) * np.sqrt(n_common)).argmax(axis=1)
    np.testing.assert_array_equal(found.label, np.where(np.isnan(expected[:, 0]), -1, best))
    np.testing.assert_allclose(found.overlap, np.abs(expected)[np.arange(5), best], atol=1e-7)
    assert found.label[-1] == -1
    assert found.sign[-1] == 1


def test_ties_go_to_the_first_pattern():
    model = made([[1, 1, 0, 0], [0, 0, 1, 1]], [1, 1])
    assert model.predict([[1, 1, 1, 1], [-1, -1, 1, 1], [1, -1, 1, 1]]).tolist() == [0, 0, 1]


def test_a_pattern_of_few_spins_is_not_nearest_to_everything():
    model = made([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]], [1, 1])
    assert model.predict([[1, 1, 1, 1, 1, -1], [1, 1, 1, -1, -1, -1]]).tolist() == [1, 0]


def test_a_sample_without_an_observed_entry_has_no_score():
    model = made([[1, -1, 1, 1, 1, -1]], [1.5])
    scores = model.score_samples(X)
    assert np.isnan(scores).tolist() == [False] * 4 + [True]
    assert model.score(X) == pytest.approx(model.score(X[:4]))


def test_probabilities_are_those_of_independent_spins_on_the_support():
    strengths, weights = np.array([1.0, 2.0, 0.5]), np.array([0.5, 0.3, 0.2])
    model = made(PATTERNS, strengths, weights=weights)
    found = model.predict_proba(X)
    expected = np.empty((5, 3))
    for a, s in enumerate(X):
        for mu, zeta in enumerate(np.array(PATTERNS)):
            field = strengths[mu] * np.count_nonzero(zeta) / 6 * zeta
            known = ~np.isnan(s)
            states = [np.prod(1 / (1 + np.exp(-2 * s * h))[known]) for h in (field, -field)]
            expected[a, mu] = weights[mu] * sum(states)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found[-1], weights)  # nothing observed: the shares


def test_beta_is_the_common_strength():
    assert made([[1, 1], [1, -1]], [1.5, 1.5]).beta_ == 1.5
    assert np.isnan(made([[1, 1], [1, -1]], [1.5, 1.0]).beta_)
    assert np.isnan(made(np.empty((0, 2)), []).beta_)


def test_a_summary_names_the_range_of_strengths_and_counts_bits_of_the_support():
    text = made(PATTERNS, [0.5, 1.0, 2.0]).summary()
    assert "strengths 0.5–2" in text
    assert "0 of 13 uncertain" in text


def test_without_patterns_samples_are_independent_spins_in_their_fields():
    fields = np.array([-1.0, -0.3, 0.0, 0.4, 2.0])
    model = made(np.empty((0, 5)), [], fields)
    drawn = model.sample(20_000, random_state=0)
    assert drawn.dtype == np.int8
    assert set(np.unique(drawn)) == {-1, 1}
    np.testing.assert_allclose(drawn.mean(axis=0), np.tanh(fields), atol=0.03)
    log_p = -np.log1p(np.exp(-2 * drawn * fields))
    assert model.score(drawn) == pytest.approx(log_p.mean(), abs=1e-5)


def test_a_fit_leaves_out_samples_without_an_observed_entry():
    teacher = HopfieldModel.random(300, 3, beta=2.0, random_state=0)
    complete = teacher.sample(60, random_state=1).astype(float)
    samples = np.insert(complete, [0, 30], np.nan, axis=0)
    model = HopfieldPatterns(random_state=0).fit(samples)
    assert model.n_patterns_ == 3
    assert np.flatnonzero(model.labels_ < 0).tolist() == [0, 31]
    np.testing.assert_array_equal(model.labels_, model.predict(samples))
    assert model.weights_.sum() == pytest.approx(60 / 62)
    assert "samples per pattern: 20" in model.summary()
    assert np.isfinite(model._typical_overlaps).all()


def test_samples_belong_to_the_pattern_that_explains_most_of_them():
    """Loops over the definition; repulsive patterns explain nothing."""
    rng = np.random.default_rng(0)
    Z = rng.choice([-1, 0, 1], size=(4, 9))
    Z[:, 0] = 1
    g, means, X = np.array([2.0, -9.0, 0.5, 1.0]), rng.uniform(-0.9, 0.9, 9), np.ones((40, 9))
    X = rng.choice([-1, 0, 1], size=(40, 9), p=[0.4, 0.2, 0.4]).astype(np.int8)
    X[0] = 0
    fields = np.arctanh(means)
    spins = as_spins(X, zero_is_missing=True)
    found = nearest_patterns(spins, Z.astype(np.int8), pull_of(g, fields, means))[0]
    assert found.label[0] == -1
    for s, label, sign in zip(X[1:], found.label[1:], found.sign[1:], strict=True):
        apart = [sum(z[i] * (s[i] - means[i]) for i in range(9) if s[i]) for z in Z]
        explained = [max(g[k], 0) * apart[k] ** 2 for k in range(4)]
        assert explained[label] == pytest.approx(max(explained), rel=1e-5)
        assert sign == (-1 if apart[label] < 0 else 1)


@pytest.mark.parametrize(
    ("strengths", "fields"), [([1.0, 1.0], [0.0, 0.0]), ([-1.0, -2.0], [0.5, 0.0])]
)
def test_patterns_of_one_strength_draw_samples_equally(strengths, fields):
    assert pull_of(np.array(strengths), np.array(fields), np.zeros(2)) is None


def test_what_is_shown_of_zeros_strengths_and_empty_samples(capsys, tmp_path):
    model = made(PATTERNS, [0.5, 1.0, 2.0])
    result = describe(model)
    assert result["beta"] is None
    assert (result["strengths"], result["support"]) == ([0.5, 1.0, 2.0], [4, 3, 6])
    assert result["mean_confidence"] == [1, 1, 1]
    assert result["uncertain_bits"] == [0, 0, 0]
    print_result(result, headline(result))
    out = capsys.readouterr().out
    assert out.startswith("3 patterns found\n")
    assert "strength" in out
    alike = made(PATTERNS, [1.0, 1.0, 1.0])
    shown = contents(checked(alike, X))
    assert [card["count"] for card in shown["patterns"]] == [3, 1, 0]  # the empty one left out
    assert alike.predict(X).tolist() == [0, 0, 0, 1, -1]
    assert shown["patterns"][0]["nearest"][0]["n_different"] == 0
    assert shown["confidence"]["bits"] == 13
    same = made([[1, 1, 1, 1, 1, -1]], [2.0])
    print_result(describe(same), "one")
    assert "strength" not in capsys.readouterr().out
    dt.save(model, tmp_path / "model.npz")
    np.testing.assert_array_equal(dt.load(tmp_path / "model.npz").transform(X), model.transform(X))
