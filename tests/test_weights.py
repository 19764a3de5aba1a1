"""Sample weights: a row of weight w is w samples, in every sum and in every estimator."""

import io
import json
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.utils import shuffle

import dualtap as dt
from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    NaiveMeanField,
    PseudoLikelihood,
)
from dualtap.fitted.nearest import nearest_patterns
from dualtap.fitted.training import spread_rows
from dualtap.io import read_samples
from dualtap.recovery.halves import halves_of
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import freed, of_sites
from dualtap.recovery.proposers.flat import flat_directions
from dualtap.recovery.proposers.students import residual_couplings
from dualtap.recovery.refit import Parameters, refit
from dualtap.recovery.residuals import residual_of
from dualtap.spins import DenseSpins, SpinsBuilder, as_spins
from dualtap.spins.blocks import Blocks
from dualtap.spins.distinct import _Rows, distinct_rows
from dualtap.spins.foreign import ForeignBlocks
from dualtap.spins.packed import PackedSpins
from dualtap.spins.weights import divided, with_weights
from dualtap.subspace.bits import FewBits, sweep
from dualtap.subspace.factors import iterate, start_factors
from dualtap.subspace.noise import balanced
from dualtap.subspace.spectrum import spectrum
from dualtap.subspace.weak_field import WeakFieldPosterior

CLOSE = {"rtol": 2e-4, "atol": 2e-4}  # of sums in single precision, in another order


def drawn(n_spins=24, n_samples=60, beta=0.9, gaps=0.0, seed=0):
    """Return samples of two patterns, 0 where one is missing, and whole weights of 1 to 4."""
    rng = np.random.default_rng(seed)
    teacher = dt.HopfieldModel.random(n_spins, 2, beta=beta, random_state=seed)
    X = teacher.sample(n_samples, random_state=seed + 1)
    X[rng.random(X.shape) < gaps] = 0
    return X, rng.integers(1, 5, n_samples).astype(float), teacher.patterns.astype(np.float32)


def both(X, w):
    """Return rows with weights, and rows repeated, which nothing has merged."""
    rows = DenseSpins(X, "-1/+1")
    return rows.weighted(w), rows.take(np.repeat(np.arange(len(X)), w.astype(int)))


@pytest.fixture(params=[0.0, 0.1], ids=["whole", "gaps"])
def pair(request):
    X, w, Z = drawn(gaps=request.param)
    return both(X, w), Z


# Storage


def test_rows_equal_to_each_other_are_one_row_with_their_number():
    X = np.array([[1, -1], [1, 1], [1, -1], [-1, 0], [1, -1]], dtype=np.int8)
    rows = distinct_rows(DenseSpins(X, "-1/+1"))
    found = {tuple(row): w for row, w in zip(rows.values.tolist(), rows.weights, strict=True)}
    assert found == {(1, -1): 3, (1, 1): 1, (-1, 0): 1}
    assert rows.total_weight == 5
    assert isinstance(rows.total_weight, int)


def test_distinct_rows_stay_as_they_are():
    spins = as_spins(np.array([[1, 1], [0, 1], [1, 0]]))
    assert distinct_rows(spins) is spins
    same = distinct_rows(spins.weighted(np.ones(3)))
    np.testing.assert_array_equal(same.values, spins.values)
    assert same.weights is None


@pytest.mark.parametrize("n_spins", [5, 70])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_histogram_of_samples_is_the_samples(n_spins, gaps):
    rng = np.random.default_rng(0)
    few = rng.choice(np.array([-1, 0, 1] if gaps else [-1, 1], np.int8), size=(9, n_spins))
    X = few[rng.integers(9, size=200)]
    unique, counts = np.unique(X, axis=0, return_counts=True)
    one = distinct_rows(DenseSpins(X, "-1/+1"))
    other = distinct_rows(DenseSpins(unique, "-1/+1").weighted(counts.astype(float)))
    builder = SpinsBuilder(zero_is_missing=True)
    builder.add(X)
    packed = distinct_rows(builder.part())
    for same in (other, packed):
        np.testing.assert_array_equal(same.values, one.values)
        np.testing.assert_array_equal(same.weights, one.weights)


def test_rows_of_equal_hashes_are_told_apart(monkeypatch):
    X = np.random.default_rng(0).choice(np.array([-1, 1], np.int8), size=(50, 70))
    X = np.vstack([X, X[:9]])
    right, hashes = distinct_rows(DenseSpins(X, "-1/+1")), _Rows._numbers
    made = []

    def poor(self, rows):  # those of the first kind are all but equal
        if self not in made:
            made.append(self)
        return hashes(self, rows) % np.uint64(3) if self is made[0] else hashes(self, rows)

    monkeypatch.setattr(_Rows, "_numbers", poor)
    found = distinct_rows(DenseSpins(X, "-1/+1"))
    assert len(made) == 2
    np.testing.assert_array_equal(found.values, right.values)
    np.testing.assert_array_equal(found.weights, right.weights)


@pytest.mark.parametrize("n_bytes", [5, 13])
def test_rows_that_hardly_repeat_take_bounded_memory(n_bytes):
    """Another copy of them, packed, and 20 bytes for each; that of 5 bytes took 40."""
    M, blocks = 2**20, 3e6
    bits = np.random.default_rng(0).integers(256, size=(M, n_bytes), dtype=np.uint8)
    bits[-1] = bits[0]
    spins = PackedSpins(bits, None, 8 * n_bytes, "0/1")
    tracemalloc.start()
    try:
        rows = distinct_rows(spins)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert M - 100 < len(rows) < M
    assert rows.total_weight == M
    assert peak < (n_bytes + 20) * M + blocks


@given(
    weights=st.lists(st.integers(0, 30), min_size=2, max_size=8).filter(lambda w: sum(w) > 1),
    seed=st.integers(0, 100),
)
@settings(max_examples=50, deadline=None)
def test_a_division_loses_no_sample(weights, seed):
    X = np.array([[k >> bit & 1 for bit in range(3)] for k in range(len(weights))])
    spins = with_weights(as_spins(X), np.array(weights, float))
    n = int(spins.total_weight) // 2
    parts = divided(spins, n, np.random.default_rng(seed))
    assert [part.total_weight for part in parts] == [n, spins.total_weight - n]
    counts = np.zeros(8)
    for part in parts:
        np.add.at(counts, (part.values > 0) @ [1, 2, 4], part.weights)
    np.testing.assert_array_equal(counts[: len(weights)], weights)


def test_samples_of_one_row_part_as_any_samples_do():
    spins = as_spins([[1, 0], [0, 1]]).weighted(np.array([40.0, 60.0]))
    rng = np.random.default_rng(0)
    first = [divided(spins, 50, rng)[0].weights[0] for _ in range(2000)]
    # Hypergeometric: mean 20, variance 50 · 0.4 · 0.6 · 50/99.
    assert abs(np.mean(first) - 20) < 5 * np.sqrt(6.06 / 2000)
    assert abs(np.var(first) / 6.06 - 1) < 0.2


def test_weights_beyond_whole_numbers_and_beyond_counting_are_divided():
    for weights in (np.full(2000, 0.4), np.full(2000, 1e7)):
        spins = DenseSpins(np.ones((2000, 2), np.int8), "-1/+1").weighted(weights)
        one, other = divided(spins, int(spins.total_weight // 2), np.random.default_rng(0))
        assert one.total_weight + other.total_weight == pytest.approx(spins.total_weight)
        assert one.total_weight == pytest.approx(other.total_weight, rel=0.15)


def test_some_rows_are_spread_over_the_samples_they_stand_for():
    X, w, _ = drawn(n_samples=400)
    w[:100] = 50
    some = as_spins(X).weighted(w).subsample(150 * X.shape[1])
    assert some.n_samples <= 150 == some.total_weight
    heavy = some.weights[(some.values[:, None] == X[:100]).all(axis=2).any(axis=1)].sum()
    assert heavy == pytest.approx(150 * w[:100].sum() / w.sum(), abs=2)


# Sums over samples


@pytest.mark.parametrize("kind", ["dense", "packed", "foreign"])
def test_products_count_rows_with_their_weights(kind):
    X, w, Z = drawn(gaps=0.1)
    rows = DenseSpins(X, "-1/+1")
    if kind == "packed":
        builder = SpinsBuilder(zero_is_missing=True)
        builder.add(X)
        rows = builder.part()
    blocks = Blocks(rows.weighted(w))
    if kind == "foreign":
        xp = pytest.importorskip("array_api_strict")
        blocks = ForeignBlocks(rows.weighted(w), xp.empty(0, dtype=xp.float32))
    S = X.astype(float)
    C = (S * w[:, None]).T @ S
    x = np.random.default_rng(0).normal(size=(len(X), 3)).astype(np.float32)
    np.testing.assert_allclose(blocks.gram_dot(Z), Z @ C, **CLOSE)
    np.testing.assert_allclose(blocks.transposed_dot(x), (x * w[:, None]).T @ S, **CLOSE)
    assert blocks.sum_of_squares() == pytest.approx(np.trace(C))
    assert blocks.total_observed == pytest.approx(np.trace(C))
    assert blocks.total_weight == w.sum()


def test_the_judge_of_rows_with_weights_is_that_of_repeated_rows(pair):
    (weighted, repeated), Z = pair
    one, other = Judge(weighted), Judge(repeated)
    g, b = np.array([0.8, -0.5]), np.random.default_rng(0).normal(size=24)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-12)
    for judge in (one, other):
        judge.fill(Z, g, b)
    for a, c in zip(one.statistics(Z, g, b), other.statistics(Z, g, b), strict=True):
        np.testing.assert_allclose(a, c, **CLOSE)
    for a, c in zip(one.curvature(Z, g, b), other.curvature(Z, g, b), strict=True):
        np.testing.assert_allclose(a, c, **CLOSE)
    assert one.log_likelihood(Z, g, b) == pytest.approx(other.log_likelihood(Z, g, b), rel=1e-5)
    slopes = (judge.one_strength(Z).derivatives(0.7) for judge in (one, other))
    np.testing.assert_allclose(*slopes, **CLOSE)
    assert one.n_entries == other.n_entries
    assert one.n_judged == other.n_judged == one.n_samples


def test_fits_and_what_follows_from_them(pair):
    (weighted, repeated), Z = pair
    fits = []
    for spins in (weighted, repeated):
        judge = Judge(spins)
        state = freed(judge, null(judge))
        fit = refit(judge, Z, np.ones(2), np.zeros(24), Parameters())
        couplings = residual_couplings(judge, state)
        fits.append([fit.g, fit.b, [state.objective], *of_sites(judge, fit), *couplings])
    for a, c in zip(*fits, strict=True):
        np.testing.assert_allclose(a, c, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("n_spins", [24, 150], ids=["of spins", "of samples"])
@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_spectra(n_spins, gaps):
    X, w, _ = drawn(n_spins, gaps=gaps)
    found = [spectrum(Blocks(s), np.random.default_rng(0), 3) for s in both(X, w)]
    n = 3
    np.testing.assert_allclose(found[0].values[:n], found[1].values[:n], rtol=1e-3)
    np.testing.assert_allclose(found[0].deviates[:n], found[1].deviates[:n], rtol=0.02)
    overlap = np.abs(found[0].vectors[:n] @ found[1].vectors[:n].T)
    np.testing.assert_allclose(overlap, np.eye(n), atol=0.02)
    if found[0].coefficients is not None:
        S = X.astype(np.float32)
        np.testing.assert_allclose(found[0].coefficients, S @ found[0].vectors.T, atol=0.01)


def test_residuals_are_scaled_alike():
    X, w, Z = drawn(gaps=0.1)
    left = []
    for spins in both(X, w):
        judge, blocks = Judge(spins), Blocks(spins)
        fit = refit(judge, Z, np.ones(2), np.zeros(24), Parameters())
        residual = residual_of(blocks, fit, np.random.default_rng(0))
        flat = flat_directions(residual.blocks, residual.variance, Z)
        left.append((residual.variance, residual.spectrum.values[:3], [len(flat)]))
        first = balanced(blocks, blocks.changed(np.square)).at_hand()[0]
        left[-1] += (first,)
    for a, c in zip(*left, strict=True):
        np.testing.assert_allclose(a, c, rtol=2e-3)


def test_factor_models(pair):
    (weighted, repeated), Z = pair
    found = []
    for spins in (weighted, repeated):
        blocks = Blocks(spins)
        factors = start_factors(blocks, Z + np.float32(0.1))
        found.append(iterate(blocks, factors, 4, n_fixed=1))
    one, other = found
    for a, c in ((one.V, other.V), (one.prior, other.prior)):
        np.testing.assert_allclose(a, c, rtol=5e-3, atol=5e-4)


def test_bits_and_few_bits():
    X, w, Z = drawn(gaps=0.1, beta=0.5)
    weighted, repeated = both(X, w)
    b = np.random.default_rng(0).normal(size=24).astype(np.float32)
    means = []
    for spins in (weighted, repeated):
        blocks = Blocks(spins)
        x = 0.1 * blocks.dot(Z) / 24
        means.append(sweep(blocks, Z, x, b)[1])
        few = FewBits(blocks.at_hand(), Z, Z, b, blocks.weights)
        visit = tuple(axis.ravel() for axis in np.indices((24, 2)))
        few.draw(x, visit, np.random.default_rng(0))
        means.append(few.m)
    np.testing.assert_allclose(means[0], means[2], atol=1e-5)
    np.testing.assert_allclose(means[1], means[3], atol=1e-5)
    assert 0.01 < np.abs(means[0]).mean() < 0.9


def test_tap_for_all_patterns():
    X, w, Z = drawn(60, 80, beta=0.7)
    one = np.ones(60, np.float32)
    means = [WeakFieldPosterior(Blocks(s), one, 2).means(Z) for s in both(X, w)]
    np.testing.assert_allclose(*means, atol=2e-3)


def test_patterns_are_counted_by_samples():
    X, w, Z = drawn(beta=2.0)
    found = []
    for spins in both(X, w):
        nearest = nearest_patterns(spins, Z.astype(np.int8))[0]
        found.append([*nearest.canonical(2, spins.weights), *nearest.totals(2, spins.weights)])
    for a, c in zip(*found, strict=True):
        np.testing.assert_allclose(a, c, rtol=1e-12)


def test_halves_are_of_samples():
    X, w, _ = drawn()
    halves = halves_of(Judge(as_spins(X).weighted(w)), np.random.default_rng(0))
    assert halves.one.n_samples + halves.other.n_samples == w.sum()
    assert halves.one.n_samples == w.sum() // 2


def test_rows_kept_of_training_stand_for_samples():
    X, w, _ = drawn(n_samples=30)
    rows = spread_rows(as_spins(X).weighted(w))
    np.testing.assert_array_equal(rows, np.repeat(X, w.astype(int), axis=0))


# Estimators

ESTIMATORS = [
    dt.HopfieldPatterns(random_state=0),
    dt.HopfieldPatterns(3, random_state=0),
    dt.DualTAP(2, 1.2, random_state=0),
    dt.DualTAP(2, random_state=0),
    NaiveMeanField(),
    NaiveMeanField(0.1),
    PseudoLikelihood(random_state=0),
    PseudoLikelihood(0.1, fields=True),
    InteractionScreening(random_state=0),
    InteractionScreening(0.1, logarithm=True, fields=True),
    DecimatedPseudoLikelihood(),
]
LEARNED = [
    *("patterns_", "magnetizations_", "strengths_", "fields_", "means_", "weights_"),
    *("objective_", "couplings_", "regularization_", "shrinkage_", "_training_scores"),
    *("_strength_covariance", "_median_overlap", "_typical_overlaps"),
]


def same(one, other):
    for name in LEARNED:
        if hasattr(one, name):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_whole_weights_are_repeated_rows(estimator):
    X, w, _ = drawn(10, 50, gaps=0.1)
    w[::3] = 0
    X = np.where(X == 0, np.nan, X)
    repeated = shuffle(np.repeat(X, w.astype(int), axis=0), random_state=0)
    one = clone(estimator).fit(repeated)
    other = clone(estimator).fit(X, sample_weight=w)
    same(one, other)
    score = one.score(repeated)
    assert other.score(X, sample_weight=w) == pytest.approx(score, abs=1e-8)
    assert other.score(repeated) == pytest.approx(score, abs=1e-8)
    if hasattr(one, "labels_"):
        assert len(other.labels_) == len(X)
        np.testing.assert_array_equal(other.labels_, other.predict(X))
        assert one.reason_ == other.reason_
        assert one.summary() == other.summary()
    if isinstance(one, dt.HopfieldPatterns):
        for name, path in one.path_.items():
            np.testing.assert_array_equal(path, other.path_[name])


def test_samples_and_their_histogram_in_any_order():
    teacher = dt.HopfieldModel.random(8, 1, beta=1.2, random_state=0)
    X = teacher.sample(2000, random_state=1)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    assert len(rows) < 300
    for estimator in (dt.HopfieldPatterns(random_state=0), dt.DualTAP(1, 1.2, random_state=0)):
        one = clone(estimator).fit(X)
        same(one, clone(estimator).fit(rows, sample_weight=counts))
        same(one, clone(estimator).fit(X[::-1]))
        np.testing.assert_allclose(np.abs(one.patterns_), 1)


def test_weights_that_are_no_whole_numbers():
    X, w, _ = drawn(10, 80)
    twice = np.concatenate([X, X])
    halved = np.concatenate([0.3 * w, 0.7 * w])
    for estimator in (dt.HopfieldPatterns(random_state=0), NaiveMeanField()):
        same(
            clone(estimator).fit(X, sample_weight=w),
            clone(estimator).fit(twice, sample_weight=np.round(halved, 12)),
        )


def test_more_samples_than_memory_holds():
    teacher = dt.HopfieldModel.random(8, 1, beta=1.2, random_state=0)
    rows, counts = np.unique(teacher.sample(3000, random_state=1), axis=0, return_counts=True)
    model = dt.HopfieldPatterns(1, random_state=0).fit(rows, sample_weight=1e7 * counts)
    np.testing.assert_allclose(np.abs(model.patterns_ @ teacher.patterns.T), 8)
    assert "30000000000" in model.summary() or "3e+10" in model.summary()


def test_a_model_file_keeps_the_number_of_samples(tmp_path):
    X, w, _ = drawn(beta=2.0)
    model = dt.HopfieldPatterns(2, random_state=0).fit(X, sample_weight=w)
    dt.save(model, tmp_path / "model.npz")
    assert dt.load(tmp_path / "model.npz").summary() == model.summary()


def test_an_imputer_passes_weights_on():
    X, w, _ = drawn(12, 60, gaps=0.1)
    X = np.where(X == 0, np.nan, X)
    imputer = dt.PatternImputer(dt.DualTAP(2, 1.5, random_state=0), random_state=0)
    one = clone(imputer).fit(np.repeat(X, w.astype(int), axis=0))
    other = clone(imputer).fit(X, sample_weight=w)
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], r"shape \(2,\); one weight for each of the 4 samples"),
        (np.ones((4, 1)), r"shape \(4, 1\)"),
        ([1, -1, 1, 1], "-1 at sample 1"),
        ([1, 1, np.nan, 1], "nan at sample 2"),
        ([1, 1, 1, np.inf], "inf at sample 3"),
        ([0, 0, 0, 0], "zero for all samples"),
        (["a", "b", "c", "d"], "not a number"),
    ],
)
@pytest.mark.parametrize("estimator", ESTIMATORS[:1] + ESTIMATORS[4:5], ids=str)
def test_wrong_weights_are_told(estimator, weights, message):
    X = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [1, 0, 0]])
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(X).score(X, sample_weight=weights)


def test_too_little_weight_is_told():
    X = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]])
    for estimator in (NaiveMeanField(), PseudoLikelihood()):
        with pytest.raises(ValueError, match=r"weights that add up to 0\.3 samples"):
            estimator.fit(X, sample_weight=[0.1, 0.1, 0.1])


# Files

CONFIGURATIONS = "a,b,c,d,count\n1,0,1,1,5\n0,1,0,0,3.5\n1,1,1,0,0\n0,0,0,1,2\n"
COUNTS = [5, 3.5, 0, 2]


def histogram(path):
    """Write configurations and their numbers, in a format that the name says."""
    frame = pd.read_csv(io.StringIO(CONFIGURATIONS))
    if path.suffix == ".npz":
        np.savez(path, X=frame.to_numpy()[:, :4], count=frame["count"].to_numpy())
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        path.write_text(CONFIGURATIONS)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_column_of_weights(tmp_path, suffix):
    file = read_samples(histogram(tmp_path / f"data{suffix}"), weights="count")
    np.testing.assert_array_equal(file.weights, COUNTS)
    assert file.spins.shape == (4, 4)
    assert not file.label_columns


def test_a_row_of_weights(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("name,s1,s2,s3\na,1,0,1\nb,0,1,1\ncount,2,1,7\n")
    file = read_samples(path, weights="count", transpose=True)
    np.testing.assert_array_equal(file.weights, [2, 1, 7])
    assert file.names == ("a", "b")


@pytest.mark.parametrize(
    ("word", "message"),
    [("x", "'x' at sample 1, not a number"), ("-1", "-1 at sample 1"), ("", "nan at sample 1")],
)
def test_weights_that_are_wrong_in_a_file(tmp_path, word, message):
    path = tmp_path / "data.csv"
    path.write_text(CONFIGURATIONS.replace("3.5", word))
    with pytest.raises(ValueError, match=f"data.csv: weight 'count' is {message}"):
        read_samples(path, weights="count")


def test_an_array_alone_has_no_weights(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(3))
    with pytest.raises(ValueError, match="holds no labels or weights"):
        read_samples(tmp_path / "X.npy", weights="count")


def test_a_forgotten_column_of_weights_is_recognised(tmp_path):
    with pytest.raises(ValueError, match="weights='count' takes it for numbers of samples"):
        read_samples(histogram(tmp_path / "data.csv"))


def test_the_command_fits_a_histogram(tmp_path, run):
    data, model = histogram(tmp_path / "data.csv"), tmp_path / "model.npz"
    found = json.loads(run("fit", data, "--weights", "count", "-o", model, "--json")[1])
    file = read_samples(data, weights="count")
    own = dt.HopfieldPatterns(random_state=0).fit(file.spins, sample_weight=file.weights)
    np.testing.assert_array_equal(dt.load(model).patterns_, own.patterns_)
    assert found["n_patterns"] == own.n_patterns_
    shown = json.loads(run("show", model, "--data", data, "--weights", "count", "--json")[1])
    assert shown["score"] == pytest.approx(own.score(file.spins, sample_weight=COUNTS))
    np.testing.assert_allclose(shown["weights"], own.weights_)
    code, _, error = run("fit", data, "--weights", "counts", "-o", "other.npz")
    assert code == 2
    assert "no column is named 'counts'; the nearest: 'count'" in error


def test_rows_that_differ_in_single_bits_of_two_words_are_told_apart():
    """Differences in the highest bits of a word must not cancel those of the next one."""
    X = np.ones((1000, 200), np.int8)
    X[np.random.default_rng(0).random(X.shape) < 0.01] = -1
    X[500:] = X[:500]
    rows = distinct_rows(as_spins(X))
    assert rows.n_samples == len(np.unique(X, axis=0))
    assert rows.weights.sum() == 1000
