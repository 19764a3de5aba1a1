"""Spins as words of bits, and products by counting them: what NumPy computes, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap._kernels import overlaps
from dualtap._kernels.overlaps import overlaps_of_bits, products_of_bits
from dualtap.spins import DenseSpins, PackedSpins, SpinsBuilder, words
from dualtap.spins.blocks import Blocks
from dualtap.spins.cluster import ClusterSpins
from dualtap.spins.words import padded_words, words_of
from dualtap.subspace import singular
from dualtap.subspace.posterior import overlaps_of

# One word and several of them, whole ones and not.
sides = st.sampled_from([1, 2, 7, 8, 9, 63, 64, 65, 71, 128, 130])
seeds = st.integers(0, 2**32 - 1)


def signs(shape, seed=0):
    return np.random.default_rng(seed).choice(np.array([-1, 1], dtype=np.int8), size=shape)


def dirty(S, seed=0):
    """Pack by hand; whatever is behind the last spin of a row is random."""
    bits = np.packbits(S > 0, axis=1)
    used = np.packbits(np.ones((1, S.shape[1]), dtype=bool), axis=1)
    rubbish = np.random.default_rng(seed).integers(0, 256, size=bits.shape, dtype=np.uint8)
    return PackedSpins(bits | (rubbish & ~used), None, S.shape[1], "-1/+1")


def stored(S, kind, seed=0):
    return DenseSpins(S, "-1/+1") if kind == "bytes" else dirty(S, seed)


kinds = st.sampled_from(["bytes", "bits"])


def test_the_padding_of_these_tests_is_dirty():
    assert dirty(signs((30, 9))).bits[:, 1].max() > 128


# --- Words --------------------------------------------------------------------------------------


@settings(max_examples=120)
@given(sides, sides, kinds, st.booleans(), seeds)
def test_words_hold_the_spins_and_zeros(n_samples, n_spins, kind, of_sites, seed):
    S = signs((n_samples, n_spins), seed)
    words = words_of(stored(S, kind, seed), of_sites=of_sites)
    rows = S.T if of_sites else S
    assert words.dtype == np.uint64
    assert words.shape == (len(rows), -(-rows.shape[1] // 64))
    bits = np.unpackbits(words.view(np.uint8), axis=1)
    np.testing.assert_array_equal(bits[:, : rows.shape[1]], rows > 0)
    assert not bits[:, rows.shape[1] :].any()
    np.testing.assert_array_equal(padded_words(rows > 0), words)


@pytest.mark.parametrize("of_sites", [True, False])
def test_words_do_not_touch_the_spins(of_sites):
    for kind in ("bytes", "bits"):
        spins = stored(signs((9, 11)), kind)
        before = spins.bits.copy() if kind == "bits" else spins.values.copy()
        words_of(spins, of_sites=of_sites)[:] = 0
        np.testing.assert_array_equal(spins.bits if kind == "bits" else spins.values, before)


@pytest.mark.parametrize("of_sites", [True, False])
def test_missing_or_distant_spins_have_no_words(of_sites):
    S = signs((9, 11))
    S[4, 5] = 0
    build = SpinsBuilder(zero_is_missing=True)
    build.add(S)
    assert words_of(DenseSpins(S, "-1/+1"), of_sites=of_sites) is None
    assert words_of(build.part(), of_sites=of_sites) is None
    elsewhere = ClusterSpins(None, [], [9], 11, "-1/+1", 0)
    assert words_of(elsewhere, of_sites=of_sites) is None


# --- Counting -----------------------------------------------------------------------------------


@settings(max_examples=60)
@given(sides, sides, seeds)
def test_counted_overlaps_are_products(n_vectors, n_bits, seed):
    S = signs((n_vectors, n_bits), seed)
    result = np.full((n_vectors, n_vectors), np.nan, dtype=np.float32)
    overlaps_of_bits(padded_words(S > 0), n_bits, result)
    np.testing.assert_array_equal(result, S.astype(int) @ S.T.astype(int))


@settings(max_examples=60)
@given(st.integers(1, 9), st.integers(1, 9), sides, seeds)
def test_counted_products_of_two_sets_are_products(n, m, n_bits, seed):
    a, b = signs((n, n_bits), seed), signs((m, n_bits), seed + 1)
    result = np.full((n, m), np.nan, dtype=np.float32)
    products_of_bits(padded_words(a > 0), padded_words(b > 0), n_bits, result)
    np.testing.assert_array_equal(result, a.astype(int) @ b.T.astype(int))


@pytest.fixture
def counted(monkeypatch):
    """Count bits from the first one on, and say how often."""
    calls, count = [], overlaps.overlaps_of_bits

    def spy(*arguments):
        calls.append(arguments)
        return count(*arguments)

    monkeypatch.setattr(words, "_WORTH_GRAM", 0)
    monkeypatch.setattr(overlaps, "overlaps_of_bits", spy)
    return calls


@pytest.mark.parametrize("shape", [(130, 71), (71, 130), (65, 65), (2, 200), (200, 2), (1, 9)])
@pytest.mark.parametrize("kind", ["bytes", "bits"])
def test_gram_matrices_are_products_bit_for_bit(shape, kind, counted, monkeypatch, reads):
    S = signs(shape)
    exact = S.astype(int)
    tall = shape[1] <= shape[0]
    exact = exact.T @ exact if tall else exact @ exact.T
    blocks = Blocks(stored(S, kind))
    G = singular.gram_of(blocks)
    assert len(counted) == 1
    np.testing.assert_array_equal(G, exact)
    assert G.dtype == np.float32
    # Of the sites it serves products later; that of the samples would be the wrong one.
    assert blocks.knows_gram == tall
    assert reads.entries == S.size
    if tall or kind == "bytes":  # floats of packed samples are not at hand
        monkeypatch.setattr(words, "_WORTH_GRAM", 2**60)
        np.testing.assert_array_equal(singular.gram_of(Blocks(stored(S, kind))), exact)
        assert len(counted) == 1


@pytest.mark.parametrize("shape", [(60, 31), (31, 60)])
def test_changed_samples_are_not_counted(shape, counted):
    S = signs(shape)
    t = np.linspace(-0.5, 0.5, shape[1], dtype=np.float32)
    changed = Blocks(DenseSpins(S, "-1/+1")).minus(t)
    exact = S.astype(float) - t
    exact = exact.T @ exact if shape[1] <= shape[0] else exact @ exact.T
    np.testing.assert_allclose(singular.gram_of(changed), exact, atol=1e-3)
    assert not counted


def test_incomplete_samples_are_not_counted(counted):
    S = signs((60, 31))
    S[::3, ::2] = 0
    G = singular.gram_of(Blocks(DenseSpins(S, "-1/+1")))
    np.testing.assert_array_equal(G, S.T.astype(int) @ S.astype(int))
    assert not counted


# --- Overlaps -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n_spins", [64, 71])
@pytest.mark.parametrize("kind", ["bytes", "bits", "gaps", "changed"])
@pytest.mark.parametrize("worth", [0, 2**60])
def test_products_with_patterns_are_products(n_spins, kind, worth, monkeypatch, reads):
    monkeypatch.setattr(words, "_WORTH_PRODUCTS", worth)
    S, Z = signs((30, n_spins)), signs((4, n_spins), 1).astype(np.float32)
    if kind == "gaps":
        S[::3, ::2] = 0
    blocks = Blocks(dirty(S) if kind == "bits" else DenseSpins(S, "-1/+1"))
    if kind == "changed":
        blocks, S = blocks.changed(lambda S: S + 2), S + 2
    exact = S.astype(int) @ Z.T.astype(int)
    np.testing.assert_array_equal(blocks.sign_dot(Z), exact)
    assert reads.entries == S.size  # one pass, whichever way
    observed = (S != 0).sum(axis=1) if kind == "gaps" else n_spins
    np.testing.assert_allclose(overlaps_of(blocks, Z).T, exact.T / observed, rtol=1e-6)
