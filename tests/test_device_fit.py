"""Fits to samples of other libraries: what NumPy finds, by products made where the samples are."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import dualtap as dt
from dualtap._namespace import is_foreign, to_numpy
from dualtap.spins import PackedSpins, as_spins, builder
from dualtap.spins.blocks import Blocks
from dualtap.spins.foreign import ForeignBlocks
from dualtap.spins.matrix import blocks_of
from libraries import LIBRARIES
from test_array_api import Place

PHASES = {
    "clustered": (300, 4, 2.0, 80),
    "mixed": (300, 4, 1.2, 600),
    "weak": (300, 3, 0.7, 900),
}


@pytest.fixture(params=LIBRARIES)
def there(request):
    return Place(request.param, {"array_api_strict": "device1"}.get(request.param))


@cache
def samples(phase, *, gaps=False, with_fields=False):
    n_spins, n_patterns, beta, n_samples = PHASES[phase]
    fields = np.random.default_rng(7).uniform(-0.6, 0.6, n_spins) if with_fields else None
    teacher = dt.HopfieldModel.random(n_spins, n_patterns, beta, random_state=0, fields=fields)
    X = teacher.sample(n_samples, random_state=1).astype(np.float32)
    if gaps:
        X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    X.flags.writeable = False
    return X


@cache
def fitted(phase, **options):
    return dt.HopfieldPatterns(random_state=0).fit(samples(phase, **options))


def assert_same(found, expected):
    """The same model, up to rounding; signs and order of patterns are free."""
    assert found.n_patterns_ == expected.n_patterns_ > 0
    A, B = found.patterns_.astype(float), expected.patterns_.astype(float)
    cosine = np.abs(A @ B.T) / np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=1))
    assert cosine.max(axis=0).min() > 0.999
    overlap = found.magnetizations_ @ expected.magnetizations_.T
    order = linear_sum_assignment(-np.abs(overlap.T))[1]
    sign = np.sign(overlap[order, range(len(order))])
    m = sign[:, None] * found.magnetizations_[order]
    np.testing.assert_allclose(m, expected.magnetizations_, atol=1e-4)
    assert found.beta_ == pytest.approx(expected.beta_, rel=1e-4, nan_ok=True)
    np.testing.assert_allclose(found.fields_, expected.fields_, atol=1e-4)
    for name in ("patterns_", "magnetizations_", "fields_", "weights_", "labels_"):
        assert type(getattr(found, name)) is np.ndarray
    for name in ("patterns_", "magnetizations_"):
        assert getattr(found, name).dtype == getattr(expected, name).dtype


class Products:
    """Counts products made elsewhere, and those of factors that were there already."""

    def __init__(self, monkeypatch, there):
        self.n_made, self.n_stayed = 0, 0
        product = ForeignBlocks._made_there

        def counted(blocks, factor, function):
            result = product(blocks, factor, function)
            assert there.holds(blocks._there)
            self.n_made += 1
            self.n_stayed += there.holds(factor) and there.holds(result)
            return result

        monkeypatch.setattr(ForeignBlocks, "_made_there", counted)


@pytest.fixture
def products(monkeypatch, there):
    return Products(monkeypatch, there)


# --- Products -----------------------------------------------------------------------------------


@pytest.mark.parametrize("is_packed", [True, False], ids=["bits", "bytes"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_products_are_those_of_numpy(there, is_packed, missing, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", 0 if is_packed else 10**6)
    monkeypatch.setattr("dualtap.spins.blocks._ENTRIES", 1)
    monkeypatch.setattr("dualtap.spins.blocks._ROWS", 5)  # several pieces are moved
    rng = np.random.default_rng(0)
    S = rng.choice([-1.0, 1.0], size=(33, 21))
    S[rng.random(S.shape) < missing] = np.nan
    # Integers: sums are exact in whatever order.
    V = rng.integers(-3, 4, size=(2, 21)).astype(np.float32)
    X = rng.integers(-3, 4, size=(33, 2)).astype(np.float32)
    t = rng.integers(-3, 4, size=21).astype(np.float32)
    spins = as_spins(S)
    assert isinstance(spins, PackedSpins) == is_packed
    here, elsewhere = Blocks(spins), blocks_of(spins, where=there(np.ones(1, np.float32)))
    assert isinstance(elsewhere, ForeignBlocks)
    pairs = [(here, elsewhere)]
    for change in (
        lambda b: b.minus(t),
        lambda b: b.changed(lambda S, x: S * x[:, :1], X),
        lambda b: b.minus(t).changed(lambda S, x: S + x[:, 1:], X).changed(np.abs),
    ):
        pairs.append((change(here), change(elsewhere)))
    for a, b in pairs:
        assert there.holds(b._there)
        for name, factor in (("dot", V), ("transposed_dot", X), ("gram_dot", V)):
            expected = getattr(a, name)(factor)
            found, moved = getattr(b, name)(factor), getattr(b, name)(there(factor))
            assert type(found) is np.ndarray
            assert there.holds(moved)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(to_numpy(moved), expected)
        np.testing.assert_array_equal(b.map(lambda S: S), a.map(lambda S: S))
        assert b.sum_of_squares() == a.sum_of_squares()
    results = [a.gram_dot(V) for a, _ in pairs]
    assert all(np.any(one != results[0]) for one in results[1:])


def test_a_product_is_a_pass(there, reads):
    spins = as_spins(samples("clustered"))
    blocks = ForeignBlocks(spins, there(np.ones(1, np.float32)))
    assert reads.entries == 0  # moving them is part of reading them
    V = blocks.place(np.ones((1, 300), np.float32))
    assert there.holds(V)
    blocks.dot(V)
    blocks.gram_dot(V)
    blocks.transposed_dot(blocks.place(np.ones((80, 1), np.float32)))
    assert reads.entries == 3 * spins.n_entries


def test_a_gram_matrix_at_hand_is_moved_and_saves_the_pass(there, reads):
    rng = np.random.default_rng(0)
    S, V = rng.choice([-1.0, 1.0], size=(33, 21)), rng.integers(-3, 4, size=(2, 21))
    spins, V = as_spins(S), V.astype(np.float32)
    blocks = ForeignBlocks(spins, there(np.ones(1, np.float32)))
    blocks.gram()
    reads.entries = 0
    for _ in range(2):  # moved, and there already
        moved = blocks.gram_dot(blocks.place(V))
        assert there.holds(moved)
        np.testing.assert_array_equal(to_numpy(moved), V @ S.T @ S)
        np.testing.assert_array_equal(blocks.gram_dot(V), V @ S.T @ S)
    assert reads.entries == 0
    # Changed samples have another one, which may come to hand as well.
    twice = blocks.changed(lambda S: 2 * S)
    np.testing.assert_array_equal(twice.gram_dot(V), 4 * V @ S.T @ S)
    assert reads.entries == S.size
    twice.gram()
    np.testing.assert_array_equal(twice.gram_dot(V), 4 * V @ S.T @ S)
    assert reads.entries == 2 * S.size  # one of them for the matrix


def test_blocks_are_foreign_only_if_samples_are(there):
    spins = as_spins(samples("clustered"))
    assert type(blocks_of(spins)) is Blocks
    assert type(blocks_of(spins, where=np.ones(1))) is Blocks
    assert type(blocks_of(spins, where=there(np.ones(1, np.float32)))) is ForeignBlocks


# --- Fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("phase", PHASES)
def test_a_fit(there, products, phase, gaps):
    expected = fitted(phase, gaps=gaps)
    model = dt.HopfieldPatterns(random_state=0).fit(there(samples(phase, gaps=gaps)))
    assert_same(model, expected)
    assert model.n_passes_ == expected.n_passes_
    assert products.n_made > 1
    # The many iterations of TAP in weak fields bring nothing back.
    assert products.n_stayed > 10 or phase != "weak"


@pytest.mark.parametrize("phase", PHASES)
def test_a_fit_of_packed_samples(there, products, phase, monkeypatch):
    expected = fitted(phase)
    monkeypatch.setattr(builder, "DENSE", 0)
    assert_same(dt.HopfieldPatterns(random_state=0).fit(there(samples(phase))), expected)
    assert products.n_made > 1


@pytest.mark.parametrize(("is_packed", "gaps"), [(False, False), (True, False), (False, True)])
def test_fields_are_taken_off_there(there, products, gaps, is_packed, monkeypatch):
    options = {"gaps": gaps, "with_fields": True}
    expected = fitted("weak", **options)
    assert np.abs(expected.fields_).mean() > 0.1
    n_changed, changed = 0, ForeignBlocks.changed

    def counted(self, function, *arrays):
        nonlocal n_changed
        n_changed += 1
        other = changed(self, function, *arrays)
        assert there.holds(other._there)
        assert to_numpy(other._there != self._there).any()
        return other

    monkeypatch.setattr(ForeignBlocks, "changed", counted)
    monkeypatch.setattr(builder, "DENSE", 0 if is_packed else builder.DENSE)
    model = dt.HopfieldPatterns(random_state=0).fit(there(samples("weak", **options)))
    assert_same(model, expected)
    assert n_changed > 1
    assert products.n_stayed > 10


def test_a_fit_to_some_of_the_samples_first(there, products, monkeypatch):
    """Few samples are looked at on the host; those in weak fields are then gone over there."""
    expected = fitted("weak")
    monkeypatch.setattr(builder, "DENSE", 0)
    monkeypatch.setattr("dualtap.recovery.steps._MOST_SAMPLES", 500)
    model = dt.HopfieldPatterns(random_state=0).fit(there(samples("weak")))
    assert dt.metrics.match(model.patterns_, expected.patterns_).mean_overlap > 0.99
    assert products.n_stayed > 10


ESTIMATORS = {
    "published": lambda: dt.DualTAP(4, beta=2.0, random_state=0),
    "blind": lambda: dt.DualTAP(start="spectral", damping="auto", tol=1e-6, random_state=0),
    "spectral": lambda: dt.DualTAP(
        4, 2.0, start="spectral", damping="auto", tol=1e-6, random_state=0
    ),
}


@pytest.mark.parametrize(("is_packed", "gaps"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_deflation(there, products, name, is_packed, gaps, monkeypatch):
    X = samples("clustered", gaps=gaps)
    expected = ESTIMATORS[name]().fit(X)
    monkeypatch.setattr(builder, "DENSE", 0 if is_packed else builder.DENSE)
    model = ESTIMATORS[name]().fit(there(X))
    assert_same(model, expected)
    assert type(model.history_.magnetizations) is np.ndarray
    np.testing.assert_allclose(model.history_.gammas[:4], expected.history_.gammas[:4], rtol=1e-3)
    # Students stay there; the one that is kept comes over, and is multiplied once more.
    assert products.n_stayed > 20
    assert products.n_stayed >= products.n_made - (1 + 7) * len(model.history_.gammas)


@pytest.mark.parametrize("encode", [lambda X: X > 0, lambda X: (X > 0).astype(np.int64)])
def test_other_types_of_numbers(there, encode):
    X = samples("clustered")
    assert_same(dt.HopfieldPatterns(random_state=0).fit(there(encode(X))), fitted("clustered"))


# --- What follows from a fit --------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_answers_are_those_of_numpy(there, gaps):
    X = samples("clustered", gaps=gaps)
    model = fitted("clustered")
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        found, expected = getattr(model, method)(there(X)), getattr(model, method)(X)
        assert type(found) is np.ndarray
        assert not is_foreign(found)
        np.testing.assert_array_equal(found, expected)
    for found, expected in zip(model.assign(there(X)), model.assign(X), strict=True):
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, expected)
    score = model.score(there(X))
    assert isinstance(score, float)
    assert score == model.score(X)


def test_labels_of_a_fit_are_its_predictions(there):
    X = there(samples("clustered"))
    model = dt.HopfieldPatterns(random_state=0)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))
    with pytest.raises(ValueError, match="299 features"):
        model.predict(there(samples("clustered")[:, 1:]))
