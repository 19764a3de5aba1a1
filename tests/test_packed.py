"""One bit a spin: the same answers as with a byte each, from every kind of input."""

import mmap

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import dualtap as dt
from dualtap.spins import DenseSpins, PackedSpins, SpinsBuilder, as_spins, builder, numbers
from dualtap.spins.blocks import Blocks
from dualtap.subspace.noise import balanced
from dualtap.subspace.singular import leading
from dualtap.subspace.spectrum import spectrum

SIGNS = arrays(
    np.int8,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=40),
    elements=st.sampled_from([-1, 0, 1]),
).filter(lambda S: S.any())


def packed_of(S, chunk=7):
    """Pack by hand, a few rows at a time."""
    build = SpinsBuilder(zero_is_missing=True)
    build._values = None  # as if there were many
    for first in range(0, len(S), chunk):
        build.add(S[first : first + chunk])
    spins = build.finish()
    assert isinstance(spins, PackedSpins)
    return spins


@given(SIGNS)
@settings(max_examples=60)
def test_packed_spins_are_the_same_spins(S):
    spins, dense = packed_of(S), DenseSpins(S, "-1/+1")
    np.testing.assert_array_equal(spins.values, S)
    np.testing.assert_array_equal(spins.floats(slice(1, 3)), S[1:3].astype(np.float32))
    np.testing.assert_array_equal(spins.n_observed, dense.n_observed)
    np.testing.assert_array_equal(spins.transposed().values, S.T)
    assert spins.summary == dense.summary
    assert (spins.shape, len(spins), spins.complete) == (S.shape, len(S), bool(S.all()))
    rng = np.random.default_rng(0)
    rows, sites = rng.integers(len(S), size=5), rng.integers(S.shape[1], size=5)
    np.testing.assert_array_equal(spins.take(rows).values, S[rows])
    np.testing.assert_array_equal(spins.columns(sites), S[:, sites])
    np.testing.assert_array_equal(dense.columns(sites), S[:, sites])


@given(SIGNS, st.integers(1, 10), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_chunks_do_not_matter(S, chunk, known, transpose):
    build = SpinsBuilder(zero_is_missing=True, n_samples=len(S) if known else None)
    for first in range(0, len(S), chunk):
        build.add(S[first : first + chunk])
    np.testing.assert_array_equal(build.finish(transpose=transpose).values, S.T if transpose else S)


def test_large_data_are_packed_and_small_ones_are_not(monkeypatch):
    S = np.random.default_rng(0).choice([-1, 1], size=(30, 10))
    assert isinstance(as_spins(S), DenseSpins)
    monkeypatch.setattr(builder, "DENSE", 299)
    assert isinstance(as_spins(S), PackedSpins)
    monkeypatch.setattr(builder, "DENSE", 300)
    assert isinstance(as_spins(S), DenseSpins)


def test_a_gap_after_complete_samples_is_found():
    S = np.ones((20, 9), dtype=np.int8)
    S[17, 8] = 0
    spins = packed_of(S)
    assert (spins.complete, spins.n_missing) == (False, 1)
    np.testing.assert_array_equal(spins.values, S)


def test_more_rows_than_promised_are_kept():
    build = SpinsBuilder(n_samples=2)
    build._values = None
    for _ in range(5):
        build.add([[1, -1, 1]])
    np.testing.assert_array_equal(build.finish().values, np.tile([[1, -1, 1]], (5, 1)))


def test_errors_name_rows_of_the_whole(monkeypatch):
    monkeypatch.setattr("dualtap.spins.CHUNK", 8)
    X = np.ones((50, 4))
    X[41, 2] = 7
    with pytest.raises(ValueError, match=r"third value: 7\.0 at row 41, column 2"):
        as_spins(X)
    X[41, 2], X[30, 1], X[45, 0] = 1, -1, 0
    with pytest.raises(ValueError, match=r"first 0 at row 45, column 0"):
        as_spins(X)
    rows = X[:40].astype(object)
    rows[33, 3] = "yes"
    with pytest.raises(ValueError, match=r"'yes' at row 33, column 3"):
        as_spins(rows)


def test_rows_of_another_length_are_refused():
    build = SpinsBuilder()
    build.add([[1, 0, 1]])
    with pytest.raises(ValueError, match="2 values in row 1, and 3 in the rows before"):
        build.add([[1, 0]])


def test_some_samples_are_spread_evenly():
    spins = DenseSpins(np.sign(np.arange(-10, 11))[:, None].astype(np.int8).repeat(2, 1), "-1/+1")
    np.testing.assert_array_equal(spins.subsample(3 * 2).values[:, 0], [-1, 0, 1])
    assert spins.subsample(21 * 2) is spins


# --- Input of every kind ------------------------------------------------------------------------

RNG = np.random.default_rng(3)
ZO = RNG.integers(0, 2, size=(30, 6))
GAPS = np.where(RNG.random(ZO.shape) < 0.2, np.nan, ZO)
COLUMNS = [f"c{k}" for k in range(ZO.shape[1])]


def rows_with_none(values):
    return [[None if np.isnan(x) else int(x) for x in row] for row in values]


def mapped(values, path):
    np.save(path, values)
    return np.load(path, mmap_mode="r")


KINDS = {
    "polars": lambda _: pl.DataFrame(ZO, schema=COLUMNS),
    "polars with null": lambda _: pl.DataFrame(rows_with_none(GAPS), schema=COLUMNS, orient="row"),
    "polars boolean": lambda _: pl.DataFrame(ZO.astype(bool), schema=COLUMNS),
    "arrow": lambda _: pa.table({c: ZO[:, k] for k, c in enumerate(COLUMNS)}),
    "arrow with null": lambda _: pa.table(
        {c: [row[k] for row in rows_with_none(GAPS)] for k, c in enumerate(COLUMNS)}
    ),
    "arrow batch": lambda _: pa.RecordBatch.from_arrays(
        [pa.array(ZO[:, k]) for k in range(6)], names=COLUMNS
    ),
    "pandas": lambda _: pd.DataFrame(ZO, columns=COLUMNS),
    "pandas nullable": lambda _: pd.DataFrame(rows_with_none(GAPS), columns=COLUMNS).astype(
        "Int64"
    ),
    "csr": lambda _: scipy.sparse.csr_matrix(ZO),
    "csc array": lambda _: scipy.sparse.csc_array(ZO.astype(bool)),
    "coo array": lambda _: scipy.sparse.coo_array(ZO.astype(float)),
    "memmap": lambda tmp: mapped(ZO.astype(np.int8), tmp / "X.npy"),
    "memmap by columns": lambda tmp: mapped(np.asfortranarray(ZO), tmp / "X.npy"),
    "masked": lambda _: np.ma.masked_invalid(GAPS),
    "lists": lambda _: rows_with_none(GAPS),
}


@pytest.mark.parametrize("size", [2**22, 13])
@pytest.mark.parametrize("limit", [0, 10**6])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_input_is_read(kind, limit, size, tmp_path, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", limit)
    monkeypatch.setattr("dualtap.spins.CHUNK", size)
    expected = as_spins(GAPS if "null" in kind or kind in ("masked", "lists") else ZO).values
    np.testing.assert_array_equal(as_spins(KINDS[kind](tmp_path)).values, expected)


def test_a_sparse_matrix_of_other_values_is_refused():
    with pytest.raises(ValueError, match="third value: 2 at row 1, column 0"):
        as_spins(scipy.sparse.csr_array([[0, 1], [2, 0]]))


class Pages:
    """Stands for the mapping behind an array, and counts what it gives back."""

    def __init__(self):
        self.given_back = 0

    def madvise(self, advice):
        assert advice == mmap.MADV_DONTNEED
        self.given_back += 1


def test_pages_of_a_mapped_file_are_given_back(tmp_path):
    X = mapped(ZO.astype(np.int8), tmp_path / "X.npy")
    X._mmap, kept = Pages(), X._mmap
    assert [block.shape for block in numbers.chunks(X, 12)] == 15 * [(2, 6)]
    assert X._mmap.given_back == 15
    X._mmap = kept
    np.testing.assert_array_equal(as_spins(X).values, as_spins(ZO).values)
    np.testing.assert_array_equal(X, ZO)  # still there


def test_changes_to_a_private_mapping_are_not_lost(tmp_path, monkeypatch):
    monkeypatch.setattr("dualtap.spins.CHUNK", 12)
    np.save(tmp_path / "X.npy", np.zeros((30, 6), dtype=np.int8))
    X = np.load(tmp_path / "X.npy", mmap_mode="c")
    X[:] = ZO
    np.testing.assert_array_equal(as_spins(X).values, as_spins(ZO).values)
    np.testing.assert_array_equal(X, ZO)


# --- Blocks, spectrum, fits ---------------------------------------------------------------------


def both(S):
    return Blocks(as_spins(S, zero_is_missing=True)), Blocks(packed_of(S, 500))


@pytest.fixture(params=[0.0, 0.3], ids=["complete", "gaps"])
def signs(request):
    rng = np.random.default_rng(5)
    S = rng.choice([-1, 1], size=(700, 523)).astype(np.int8)
    S[rng.random(S.shape) < request.param] = 0
    return S


def test_blocks_compute_the_same(signs):
    dense, packed = both(signs)
    assert packed.at_hand() is None
    rng = np.random.default_rng(1)
    V = rng.normal(size=(3, 523)).astype(np.float32)
    X = rng.normal(size=(700, 3)).astype(np.float32)
    t = rng.uniform(-0.5, 0.5, size=523).astype(np.float32)
    for a, b in ((dense, packed), (dense.minus(t), packed.minus(t))):
        np.testing.assert_allclose(a.dot(V), b.dot(V), atol=1e-4)
        np.testing.assert_allclose(a.transposed_dot(X), b.transposed_dot(X), atol=1e-3)
        np.testing.assert_allclose(a.gram_dot(V), b.gram_dot(V), rtol=1e-4, atol=0.1)
        assert a.sum_of_squares() == pytest.approx(b.sum_of_squares(), rel=1e-6)
    assert dense.subsample(10 * 523).n_samples == packed.subsample(10 * 523).n_samples == 10
    D = dense.changed(np.square), packed.changed(np.square)
    W = balanced(dense, D[0]), balanced(packed, D[1])
    np.testing.assert_allclose(W[0].at_hand(), W[1].map(lambda S: S), rtol=1e-5)


def test_gram_products_are_products(signs):
    V = np.random.default_rng(1).normal(size=(3, 523)).astype(np.float32)
    S = signs.astype(float)
    np.testing.assert_allclose(both(signs)[1].gram_dot(V), V @ S.T @ S, rtol=1e-3, atol=0.1)


def test_leading_values_are_those_of_the_matrix():
    teacher = dt.HopfieldModel.random(400, 5, beta=2.0, random_state=0)
    X = teacher.sample(300, random_state=1)
    _, sigma, Vt = np.linalg.svd(X.astype(float), full_matrices=False)
    for blocks in both(X):
        values, vectors = leading(blocks, 5, np.random.default_rng(0))
        np.testing.assert_allclose(values, sigma[:5] ** 2, rtol=1e-4)
        np.testing.assert_allclose(np.abs(np.sum(vectors * Vt[:5], axis=1)), 1, atol=1e-3)


def test_spectra_agree(signs):
    dense, packed = (spectrum(b, np.random.default_rng(0)) for b in both(signs))
    np.testing.assert_allclose(dense.values[:20], packed.values[:20], rtol=1e-4)
    assert dense.n_signal == packed.n_signal == 0


PHASES = {
    "clustered": (300, 4, 2.0, 80),
    "mixed": (300, 4, 1.2, 600),
    "weak": (300, 3, 0.7, 900),
}


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("phase", PHASES)
def test_fits_of_packed_spins_are_the_fits(phase, missing, monkeypatch):
    n_spins, n_patterns, beta, n_samples = PHASES[phase]
    teacher = dt.HopfieldModel.random(n_spins, n_patterns, beta=beta, random_state=0)
    X = teacher.sample(n_samples, random_state=1).astype(float)
    X[np.random.default_rng(2).random(X.shape) < missing] = np.nan
    dense = dt.HopfieldPatterns(random_state=0).fit(X)
    monkeypatch.setattr(builder, "DENSE", 0)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert model.n_patterns_ == dense.n_patterns_ == n_patterns
    assert dt.metrics.match(model.patterns_, dense.patterns_).mean_overlap > 0.99
    assert model.beta_ == pytest.approx(dense.beta_, rel=0.02)
    o = np.nan_to_num(X) @ model.patterns_.T / np.sum(~np.isnan(X), axis=1, keepdims=True)
    np.testing.assert_allclose(model.transform(X), o, atol=1e-5)
    assert model.score(X) == pytest.approx(dense.score(X), abs=2e-3)
    assert model.predict_proba(X).shape == (n_samples, n_patterns)


def test_strong_fields_need_no_more_than_enough_samples(monkeypatch):
    teacher = dt.HopfieldModel.random(300, 4, beta=2.0, random_state=0)
    X = teacher.sample(500, random_state=1)
    monkeypatch.setattr(builder, "DENSE", 0)
    monkeypatch.setattr("dualtap.recovery.steps._MOST_SAMPLES", 100)
    monkeypatch.setattr("dualtap.recovery.calibration.JUDGED_ENTRIES", 300 * 300)
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    assert dt.metrics.match(model.patterns_, teacher.patterns).n_recovered(0.999) == 4
    assert model.beta_ == pytest.approx(2.0, rel=0.03)
    assert len(model.labels_) == 500
