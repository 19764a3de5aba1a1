"""Blocks and tiles of samples, those on disk, and parts of larger data."""

import os
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.spins import DenseSpins, PackedSpins, SpinsBuilder, as_spins, blocks, builder, tiles
from dualtap.spins import packed as packed_spins
from dualtap.spins.blocks import Blocks
from dualtap.spins.builder import Seen
from dualtap.spins.packed import joined
from dualtap.spins.storage import spread


def signs(shape, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    S = rng.choice([-1, 1], size=shape).astype(np.int8)
    S[rng.random(shape) < missing] = 0
    return S


def packed(S):
    build = SpinsBuilder(zero_is_missing=True)
    build.add(S)
    return build.part()


def small_numbers(shape, seed):
    """Integers, so that sums in single precision are exact in whatever order."""
    return np.random.default_rng(seed).integers(-3, 4, size=shape)


def reals(shape, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


@pytest.fixture
def small(monkeypatch):
    """Make blocks of five rows and tiles of sixteen, so that small data have several of them."""
    monkeypatch.setattr(blocks, "_ENTRIES", 1)
    monkeypatch.setattr(blocks, "_ROWS", 5)
    monkeypatch.setattr(blocks, "_FEWEST_ROWS", 3)
    monkeypatch.setattr(tiles, "_TILE", 16)
    monkeypatch.setattr(tiles, "_HELD", 16 * 3 * 2)  # two tiles of the products with 3 vectors


# --- Tiles --------------------------------------------------------------------------------------


@given(
    n_samples=st.integers(1, 70),
    n_spins=st.integers(2, 70),
    n_vectors=st.integers(1, 5),
    missing=st.sampled_from([0.0, 0.3]),
    tile=st.sampled_from([8, 16, 24, 512]),
    held=st.sampled_from([1, 200, 2**22]),
    rows=st.integers(1, 20),
    workers=st.integers(1, 2),
)
@settings(max_examples=80)
def test_products_of_tiles(n_samples, n_spins, n_vectors, missing, tile, held, rows, workers):
    S = signs((n_samples, n_spins), missing)
    V, X = small_numbers((n_vectors, n_spins), 1), small_numbers((n_samples, n_vectors), 2)
    t = small_numbers(n_spins, 3)
    exact = S.astype(np.float64)
    centred = exact - t * (S != 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "_TILE", tile)
        patch.setattr(tiles, "_HELD", held)
        patch.setattr(blocks, "_ROWS", rows)
        patch.setattr(blocks, "_FEWEST_ROWS", rows)
        patch.setattr(blocks, "_ENTRIES", 1)
        plain = Blocks(packed(S), workers=workers)
        for b, expected in ((plain, exact), (plain.minus(t.astype(np.float32)), centred)):
            V32, X32 = V.astype(np.float32), X.astype(np.float32)
            np.testing.assert_array_equal(b.dot(V32), expected @ V.T)
            np.testing.assert_array_equal(b.transposed_dot(X32), X.T @ expected)
            np.testing.assert_array_equal(b.gram_dot(V32), V @ expected.T @ expected)
            assert b.sum_of_squares() == np.square(expected).sum()
            assert b.gram_dot(V32).dtype == np.float32


@pytest.mark.parametrize("shape", [(1100, 1030), (513, 2047)])
def test_products_of_tiles_of_their_own_size(shape):
    S = signs(shape, 0.1)
    V, X = small_numbers((3, shape[1]), 1), small_numbers((shape[0], 3), 2)
    b = Blocks(packed(S), workers=2)
    assert len(b._tiles.row_tiles) > 1
    exact = S.astype(np.float64)
    np.testing.assert_array_equal(b.dot(V.astype(np.float32)), exact @ V.T)
    np.testing.assert_array_equal(b.transposed_dot(X.astype(np.float32)), X.T @ exact)
    np.testing.assert_array_equal(b.gram_dot(V.astype(np.float32)), V @ exact.T @ exact)


def test_no_more_than_tiles_and_a_few_products_are_held(small, monkeypatch):
    sizes, groups = [], []
    unpack, add = PackedSpins.floats, tiles.Tiles._add_site_products

    def floats(self, *tile):
        result = unpack(self, *tile)
        sizes.append(result.shape)
        return result

    def added(self, result, X, row_tiles):
        groups.append(X.shape)
        add(self, result, X, row_tiles)

    monkeypatch.setattr(PackedSpins, "floats", floats)
    monkeypatch.setattr(tiles.Tiles, "_add_site_products", added)
    Blocks(packed(signs((85, 41))), workers=1).gram_dot(np.ones((3, 41), np.float32))
    assert max(sizes) == (16, 16)
    assert groups == [(32, 3), (32, 3), (21, 3)]
    # Every tile twice: for S Vᵀ and for the product with it.
    assert sum(rows * sites for rows, sites in sizes) == 2 * 85 * 41


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("kind", [packed, lambda S: DenseSpins(S, "-1/+1")], ids=["bits", "bytes"])
def test_threads_do_not_change_a_bit(small, kind, missing):
    S = signs((83, 45), missing)
    V, X, t = reals((3, 45), 1), reals((83, 3), 2), reals(45, 3)
    spins = kind(S)
    results = []
    for workers in (1, 2, 5):
        b = Blocks(spins, workers=workers)
        c = b.minus(t).changed(lambda S, x: S * x[:, :1], X)
        found = [f for one in (b, c) for f in (one.dot(V), one.transposed_dot(X), one.gram_dot(V))]
        found += [c.map(np.tanh), c.sum(lambda S: S.sum(axis=0)), np.array(c.sum_of_squares())]
        results.append(found)
    for found in results[1:]:
        for mine, theirs in zip(found, results[0], strict=True):
            assert mine.tobytes() == theirs.tobytes()
    # Rounding is there: another order would show.
    assert np.any(results[0][2] != (V.astype(float) @ S.T @ S).astype(np.float32))


@given(
    n_samples=st.integers(1, 12),
    n_spins=st.integers(2, 60),
    missing=st.sampled_from([0.0, 0.4]),
    data=st.data(),
)
@settings(max_examples=60)
def test_a_tile_is_a_part_of_the_matrix(n_samples, n_spins, missing, data):
    S = signs((n_samples, n_spins), missing)
    first = 8 * data.draw(st.integers(0, (n_spins - 1) // 8))
    sites = slice(first, data.draw(st.integers(first + 1, n_spins)))
    row = data.draw(st.integers(0, n_samples - 1))
    rows = slice(row, data.draw(st.integers(row + 1, n_samples)))
    tile = packed(S).floats(rows, sites)
    assert tile.dtype == np.float32
    np.testing.assert_array_equal(tile, S[rows, sites])
    memory = np.full((n_samples + 1, 9, 8), np.nan, dtype=np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_spins, "_AT_ONCE", 5)
        for _ in range(2):  # what an earlier tile left there does not matter
            tile = packed(S).floats(rows, sites, memory)
            np.testing.assert_array_equal(tile, S[rows, sites])


# --- Blocks -------------------------------------------------------------------------------------

KINDS = {
    "bits": lambda S: Blocks(packed(S), workers=2),
    "bytes": lambda S: Blocks(DenseSpins(S, "-1/+1"), workers=2),
    "bytes that are not held": lambda S: Blocks(DenseSpins(S, "-1/+1"), held=False, workers=2),
}


@pytest.fixture(params=KINDS)
def made(request, small):
    return KINDS[request.param]


def test_results_come_in_the_order_of_the_samples(made):
    S = signs((83, 9))
    b, number = made(S), np.arange(83)
    np.testing.assert_array_equal(b.map(lambda S, n: n, number), number)
    np.testing.assert_array_equal(b.map(lambda S: S), S)
    assert b.sum(lambda S, n: list(n), number, add=lambda x, y: x + y) == list(number)
    sizes = b.sum(lambda S: [len(S)], add=lambda x, y: x + y)
    assert sizes == [5] * 16 + [3]
    rows, total = b.map_sum(lambda S, n: (n, S.sum(axis=0)), number)
    np.testing.assert_array_equal(rows, number)
    np.testing.assert_array_equal(total, S.sum(axis=0))
    rows, order = b.map_sum(lambda S, n: (n, list(n)), number, add=lambda x, y: x + y)
    assert list(rows) == order == list(number)
    assert b.sum(lambda S, n: int(n.max()), number, add=max) == 82


def test_several_arrays_are_cut_alike(made):
    S = signs((23, 9))
    A, n = reals((23, 2), 1), np.arange(23)

    def check(S, a, k):
        assert len(S) == len(a) == len(k)
        return np.column_stack([a, k])

    np.testing.assert_allclose(made(S).map(check, A, n), np.column_stack([A, n]))


def test_every_pass_is_counted_once(made, reads):
    b = made(signs((23, 9)))
    V, X = np.ones((2, 9), np.float32), np.ones((23, 2), np.float32)
    c = b.changed(np.tanh)
    passes = [
        lambda b: b.map(lambda S: S),
        lambda b: b.sum(lambda S: S.sum()),
        lambda b: b.map_sum(lambda S: (S, 1)),
        lambda b: b.dot(V),
        lambda b: b.transposed_dot(X),
        lambda b: b.gram_dot(V),
    ]
    for k, one in enumerate(passes * 2):
        one(b if k < len(passes) else c)
        assert reads.entries == (k + 1) * 23 * 9
    b.subsample(10 * 9).map(lambda S: S)
    assert reads.entries == 2 * len(passes) * 23 * 9 + 10 * 9


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_changes_follow_each_other(made, missing):
    S = signs((23, 9), missing)
    a, c = small_numbers((23, 1), 1).astype(np.float32), small_numbers((23, 9), 2)
    plain = made(S)
    once = plain.changed(lambda S, a: S + a, a)
    twice = once.changed(lambda S, c, a: S * c - a, c.astype(np.float32), 2 * a)
    expected = (S + a) * c - 2 * a
    np.testing.assert_array_equal(twice.map(lambda S: S), expected)
    np.testing.assert_array_equal(once.map(lambda S: S), S + a)
    np.testing.assert_array_equal(plain.map(lambda S: S), S)
    V = small_numbers((2, 9), 3)
    np.testing.assert_array_equal(
        twice.gram_dot(V.astype(np.float32)), V @ expected.T.astype(float) @ expected
    )
    assert twice.sum_of_squares() == np.square(expected, dtype=float).sum()


def test_changes_of_packed_samples_wait_for_a_pass(small):
    calls = []

    def change(S, k):
        calls.append(len(S))
        return S * k

    b = Blocks(packed(signs((23, 9))), workers=1)
    changed = b.changed(change, np.ones((23, 1), np.float32)).changed(np.negative)
    assert calls == []
    assert changed.at_hand() is None
    changed.sum(lambda S: S.sum())
    assert sum(calls) == 23
    b.sum(lambda S: S.sum())
    assert sum(calls) == 23


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_means_are_taken_off_what_was_observed(made, missing):
    S, t = signs((23, 9), missing), np.arange(9, dtype=np.float32)
    found = made(S).minus(t).map(lambda S: S)
    np.testing.assert_array_equal(found, np.where(S != 0, S - t, 0))


def test_some_samples(made):
    S = signs((83, 9), 0.2)
    b = made(S)
    few = b.subsample(7 * 9)
    np.testing.assert_array_equal(few.map(lambda S: S), S[spread(83, 7)])
    np.testing.assert_array_equal(few.n_observed, b.n_observed[spread(83, 7)])
    assert (few.n_samples, few._workers) == (7, 2)
    assert b.subsample(83 * 9) is b
    assert b.subsample(84 * 9) is b
    assert b.subsample(9, least=7).n_samples == 7
    np.testing.assert_array_equal(b.chosen(9, least=7), spread(83, 7))


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_parts_come_here_without_a_pass(made, missing, reads):
    S, a = signs((83, 9), missing), np.arange(83, dtype=np.float32)[:, None]
    b, rows, sites = made(S), np.array([80, 3, 3]), np.array([8, 0])
    changed = b.changed(lambda S, x: S * x, a).changed(lambda S: S + 1)
    np.testing.assert_array_equal(b.rows(rows), S[rows])
    np.testing.assert_array_equal(changed.rows(rows), (S * a + 1)[rows])
    for one in (b, changed):  # the spins themselves, whatever was done to them
        np.testing.assert_array_equal(one.columns(sites), S[:, sites])
    assert reads.entries == 0


@pytest.mark.parametrize("shape", [(9, 83), (60, 9)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_products_of_samples_with_each_other(shape, missing, reads):
    S, w = signs(shape, missing), np.arange(1, shape[0] + 1, dtype=float)
    spins = DenseSpins(S, "-1/+1")
    exact = S @ S.T.astype(int)
    np.testing.assert_array_equal(Blocks(spins).row_gram(), exact)
    np.testing.assert_array_equal(Blocks(spins).changed(np.negative).row_gram(), exact)
    assert reads.entries == 2 * S.size
    root = np.sqrt(w)
    weighted = Blocks(spins.weighted(w)).row_gram()
    np.testing.assert_allclose(weighted, root[:, None] * exact * root, rtol=1e-5, atol=1e-4)
    with pytest.raises(ValueError, match="need them as floats"):
        Blocks(spins, held=False).row_gram()


def test_what_was_done_to_samples_is_known(made):
    b = made(signs((83, 9)))
    changed = b.changed(np.negative)
    assert b._plain
    assert b.subsample(7 * 9)._plain
    assert not changed._plain
    assert not b.minus(np.ones(9, np.float32))._plain
    assert not changed.subsample(7 * 9)._plain
    assert not changed.changed(np.negative)._plain
    assert b._plain  # still


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_gram_matrix_at_hand_saves_the_pass(made, missing, reads):
    S, V = signs((83, 9), missing), small_numbers((2, 9), 1)
    b = made(S)
    assert not b.knows_gram
    exact = S.T.astype(np.float64) @ S
    np.testing.assert_array_equal(b.gram(), exact)
    assert b.gram() is b.gram()
    assert reads.entries == S.size
    np.testing.assert_array_equal(b.gram_dot(V.astype(np.float32)), V @ exact)
    assert reads.entries == S.size
    # It is that of all samples as they are, of no others.
    few = S[spread(83, 7)].astype(np.float64)
    for other, T in ((b.changed(lambda S: 2 * S), 2.0 * S), (b.subsample(7 * 9), few)):
        assert not other.knows_gram
        np.testing.assert_array_equal(other.gram_dot(V.astype(np.float32)), V @ T.T @ T)
    assert b.knows_gram


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_squares_of_spins_are_their_number(made, missing, reads):
    S = signs((23, 9), missing)
    b = made(S)
    assert b.sum_of_squares() == np.count_nonzero(S)
    assert reads.entries == (S.size if missing else 0)
    t = small_numbers(9, 1).astype(np.float32)
    assert b.minus(t).sum_of_squares() == np.square(np.where(S != 0, S - t, 0)).sum()


def test_bytes_that_are_not_held():
    spins = DenseSpins(signs((23, 9)), "-1/+1")
    assert Blocks(spins, held=False).at_hand() is None
    np.testing.assert_array_equal(Blocks(spins).at_hand(), spins.values)
    assert Blocks(packed(spins.values)).at_hand() is None


def test_share_of_what_was_observed(made):
    S = signs((40, 9), 0.3)
    S[3] = 0  # a sample without any entry counts as one entry: nothing is divided by zero
    b = made(S)
    observed = np.maximum((S != 0).sum(axis=1), 1)
    np.testing.assert_array_equal(b.n_observed, observed)
    assert b.total_observed == observed.sum()
    assert not b.complete


def test_parts_are_joined():
    whole, gaps = signs((5, 11)), signs((4, 11), 0.4, seed=1)
    complete = joined([packed(whole), packed(whole[:2])])
    assert complete._observed is None
    np.testing.assert_array_equal(complete.values, np.vstack([whole, whole[:2]]))
    mixed = joined([packed(whole), packed(gaps), packed(whole[:1])])
    np.testing.assert_array_equal(mixed.values, np.vstack([whole, gaps, whole[:1]]))
    assert mixed.n_missing == np.count_nonzero(gaps == 0) > 0
    np.testing.assert_array_equal(mixed.transposed().values, mixed.values.T)


# --- Samples that memory cannot hold ------------------------------------------------------------


@pytest.fixture
def little_memory(monkeypatch, tmp_path):
    """Leave room for 300 bytes; return the folder where temporary files go."""
    monkeypatch.setattr(builder, "DENSE", 0)
    monkeypatch.setattr(builder, "_SLAB", 100)
    monkeypatch.setattr(builder, "most_in_memory", lambda: 300)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def on_disk(spins):
    assert isinstance(spins, PackedSpins)
    return isinstance(spins._bits, np.memmap)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_large_samples_are_on_disk(little_memory, missing, monkeypatch):
    monkeypatch.setattr("dualtap.spins.CHUNK", 7 * 45)
    S = signs((130, 45), missing)
    S[100] = S[3]
    S[:, 7] = 1
    spins, here = as_spins(S, zero_is_missing=True), DenseSpins(S, "-1/+1")
    assert on_disk(spins)
    assert isinstance(spins._observed, np.memmap) == bool(missing)
    np.testing.assert_array_equal(spins.values, S)
    assert spins.summary == here.summary
    assert here.summary.n_duplicates == here.summary.n_constant == 1
    np.testing.assert_array_equal(spins.n_observed, here.n_observed)
    rows, sites = np.array([120, 3, 3]), np.array([44, 0, 9])
    np.testing.assert_array_equal(spins.take(rows).values, S[rows])
    assert not on_disk(spins.take(rows))
    np.testing.assert_array_equal(spins.columns(sites), S[:, sites])
    np.testing.assert_array_equal(spins.transposed().values, S.T)
    np.testing.assert_array_equal(spins.subsample(9 * 45).values, here.subsample(9 * 45).values)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("first_gap", [0, 20, 49, 129, 130])
@given(chunk=st.integers(1, 60))
@settings(max_examples=8)
def test_samples_go_to_disk_when_there_are_too_many(known, first_gap, chunk):
    S = signs((130, 45))
    S[first_gap:] = signs((130 - first_gap, 45), 0.2, seed=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "DENSE", 0)
        patch.setattr(builder, "_SLAB", 100)
        patch.setattr(builder, "most_in_memory", lambda: 300)  # fifty samples
        build = SpinsBuilder(zero_is_missing=True, n_samples=130 if known else None)
        for first in range(0, 130, chunk):
            build.add(S[first : first + chunk])
        spins = build.finish()
    assert on_disk(spins)
    assert (spins.n_missing > 0) == (first_gap < 130)
    np.testing.assert_array_equal(spins.values, S)


def test_bytes_that_become_too_many_go_to_disk(little_memory, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", 40 * 45)
    S = signs((130, 45), 0.1)
    build = SpinsBuilder(zero_is_missing=True)
    for first in range(0, 130, 20):
        build.add(S[first : first + 20])
        assert (build._values is None) == (first >= 40)
    spins = build.finish()
    assert on_disk(spins)
    np.testing.assert_array_equal(spins.values, S)


def test_what_fits_stays_in_memory(little_memory):
    assert not on_disk(as_spins(signs((50, 45))))  # 300 bytes
    assert on_disk(as_spins(signs((51, 45))))


def test_half_of_the_memory_may_be_taken(monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1001}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert builder.most_in_memory() == 4096 * 1001 // 2

    def unknown(name):
        raise ValueError(f"unrecognized configuration name {name}")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert builder.most_in_memory() == 2**32


def test_the_file_has_no_name(little_memory, monkeypatch):
    spins = as_spins(signs((130, 45), 0.1), zero_is_missing=True)
    assert spins._bits.filename is None
    assert list(little_memory.iterdir()) == []
    spins.values  # noqa: B018 (reads the file)
    assert list(little_memory.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(little_memory / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere"):  # it is that folder that is used
        as_spins(signs((130, 45)))


def test_samples_on_disk_cannot_be_changed(little_memory):
    spins = as_spins(signs((130, 45)))
    with pytest.raises(ValueError, match="read-only"):
        spins._bits[0] = 0


class Pages:
    """Stands for the mapping behind an array, and counts how often it is given back."""

    def __init__(self):
        self.n_given = 0

    def madvise(self, advice):
        self.n_given += 1


def test_a_pass_gives_back_what_the_last_one_read(little_memory, reads):
    S = signs((130, 45), 0.1)
    spins = as_spins(S, zero_is_missing=True)
    for _ in range(3):
        spins.begin_pass()
        np.testing.assert_array_equal(spins.values, S)
    assert reads.entries == 3 * S.size
    planes = spins._bits, spins._observed
    kept = [plane._mmap for plane in planes]
    for plane in planes:
        plane._mmap = Pages()
    Blocks(spins).gram_dot(np.ones((1, 45), np.float32))
    Blocks(spins).map(lambda S: S)
    assert [plane._mmap.n_given for plane in planes] == [2, 2]
    for plane, mapping in zip(planes, kept, strict=True):
        plane._mmap = mapping


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(
    "estimator",
    [dt.HopfieldPatterns(random_state=0), dt.DualTAP(n_patterns=3, beta=2.0, random_state=0)],
    ids=["joint", "deflation"],
)
def test_fits_of_samples_on_disk_are_the_fits(little_memory, estimator, missing, monkeypatch):
    teacher = dt.HopfieldModel.random(203, 3, beta=2.0, random_state=0)
    X = teacher.sample(66, random_state=1)
    X[signs(X.shape, missing, seed=2) == 0] = 0
    disk = as_spins(X, zero_is_missing=True)
    monkeypatch.setattr(builder, "most_in_memory", lambda: 2**32)
    memory = as_spins(X, zero_is_missing=True)
    assert (on_disk(disk), on_disk(memory)) == (True, False)
    found = estimator.fit(disk)
    patterns, m, beta, passes = (
        found.patterns_,
        found.magnetizations_,
        found.beta_,
        found.n_passes_,
    )
    expected = estimator.fit(memory)
    assert dt.metrics.match(patterns, teacher.patterns).n_recovered() == 3
    np.testing.assert_array_equal(patterns, expected.patterns_)
    np.testing.assert_array_equal(m, expected.magnetizations_)
    assert (beta, passes) == (expected.beta_, expected.n_passes_)
    np.testing.assert_array_equal(estimator.predict(disk), estimator.predict(memory))


# --- Parts of larger data -----------------------------------------------------------------------


def part(chunk, first_row=0, **options):
    """Return a part and what was seen in it."""
    build = SpinsBuilder(first_row=first_row, **options)
    build.add(chunk)
    return build.part(), build.seen


@pytest.mark.parametrize(
    ("chunks", "encoding"),
    [
        ([[[1, 1]], [[1, 0]]], "0/1"),
        ([[[1, 0]], [[1, 1]]], "0/1"),
        ([[[1, 1]], [[1, -1]]], "-1/+1"),
        ([[[1, 1]], [[1, 1]]], "-1/+1"),
        ([[[True, False]], [[True, True]]], "boolean"),
        ([[[True, True]], [[1, 0]]], "0/1"),
        ([[[np.nan, np.nan]], [[1.0, 0.0]]], "0/1"),
    ],
)
def test_parts_say_together_how_they_are_read(chunks, encoding):
    parts, seen = zip(*(part(chunk, k) for k, chunk in enumerate(chunks)), strict=True)
    both = seen[0].also(seen[1])
    assert both.checked(2, 2) == encoding
    whole = SpinsBuilder()
    for chunk in chunks:
        whole.add(chunk)
    expected = whole.finish()
    assert expected.encoding == encoding
    assert all(type(one) is PackedSpins for one in parts)
    np.testing.assert_array_equal(joined(parts).values, expected.values)


def test_parts_that_hold_three_values_together_are_refused():
    zeros = part([[1, 1, 0], [0, 1, 1]], first_row=40)[1]
    minus = part([[1, -1, 1]], first_row=10)[1]
    later = part([[0, 0, 0]], first_row=90)[1]
    assert (zeros.first, minus.first) == ({0: (40, 2)}, {-1: (10, 1)})
    for seen in (minus.also(zeros).also(later), minus.also(zeros.also(later))):
        assert seen.first == {0: (40, 2), -1: (10, 1)}
        with pytest.raises(ValueError, match=r"-1, 0 and \+1 \(the first 0 at row 40, column 2"):
            seen.checked(100, 3)
    gaps = [part([[1, s, 1]], zero_is_missing=True)[1] for s in (0, -1)]
    assert gaps[0].also(gaps[1]).checked(2, 3) == "-1/+1"


def test_parts_without_any_value_are_no_data():
    nothing = part([[np.nan, np.nan]])[1]
    something = part([[np.nan, 1.0]])[1]
    assert not nothing.any_observed
    with pytest.raises(ValueError, match="every value is missing"):
        nothing.also(nothing).checked(2, 2)
    assert nothing.also(something).checked(2, 2) == something.also(nothing).checked(2, 2) == "-1/+1"


def test_the_shape_of_all_parts_is_checked():
    seen = part([[1, 1]])[1]
    with pytest.raises(ValueError, match=r"found 0 sample\(s\) and 2 feature"):
        seen.checked(0, 2)
    with pytest.raises(ValueError, match="at least two"):
        seen.checked(2, 1)
    assert Seen().encoding() == "boolean"


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ([[1, 1, 1], [1, 5, 1]], "third value: 5 at row 1003, column 1"),
        ([[1.0, 1.0, np.inf]], "infinity, at row 1002, column 2"),
        ([[1, 1, 1], [1, 1, -1], [0, 1, 1]], "first 0 at row 1004, column 0"),
        ([["yes", None, 1]], "'yes' at row 1002, column 0"),
        ([[10**400, None, 1]], "at row 1002, column 0"),
        ([[1, 1]], "2 values in row 1002, and 3 in the rows before"),
    ],
)
def test_errors_name_rows_of_the_whole(chunk, message):
    build = SpinsBuilder(first_row=1000)
    build.add([[1, 1, 1], [1, 1, 1]])
    chunk = np.array(chunk, dtype=object if None in chunk[0] else None)
    with pytest.raises(ValueError, match=message):
        build.add(chunk)


def test_changes_go_with_some_samples():
    S = signs((60, 45))
    a = np.arange(60, dtype=np.float32)[:, None]
    for spins in (DenseSpins(S, "-1/+1"), packed(S)):
        changed = Blocks(spins).changed(lambda s, x: s * x, a).changed(lambda s: s + 1)
        chosen = spread(60, 7)
        found = changed.subsample(7 * 45).map(lambda s: s)
        np.testing.assert_array_equal(found, (S * a + 1)[chosen])


def test_a_part_may_be_empty():
    one = SpinsBuilder()
    one.add(np.empty((0, 5)))
    assert one.part().shape == (0, 5)
