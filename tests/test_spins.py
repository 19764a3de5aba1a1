"""Reading sample matrices: every encoding comes out the same, every bad input is named."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dualtap.spins import PackedSpins, Spins, as_spins

PM = np.array([[1, -1, -1, 1], [-1, -1, 1, 1], [-1, 1, -1, 1]])
ZO = (PM + 1) // 2
# One entry missing, and every column still holding an observed value.
GAP = np.zeros(PM.shape, dtype=bool)
GAP[1, 2] = True
PM_GAP = np.where(GAP, 0, PM)


def with_gap(values, marker):
    """Return a list of lists with ``marker`` at the missing entry."""
    rows = np.asarray(values).tolist()
    rows[1][2] = marker
    return rows


def nullable(values, dtype, gap=False):
    rows = with_gap(values, pd.NA) if gap else np.asarray(values).tolist()
    return pd.DataFrame(
        {f"c{j}": pd.array([row[j] for row in rows], dtype=dtype) for j in range(len(rows[0]))}
    )


COMPLETE = {
    "int8 ±1": (PM.astype(np.int8), "-1/+1"),
    "int16 ±1": (PM.astype(np.int16), "-1/+1"),
    "int64 ±1": (PM.astype(np.int64), "-1/+1"),
    "float16 ±1": (PM.astype(np.float16), "-1/+1"),
    "float32 ±1": (PM.astype(np.float32), "-1/+1"),
    "float64 ±1": (PM.astype(np.float64), "-1/+1"),
    "longdouble ±1": (PM.astype(np.longdouble), "-1/+1"),
    "list ±1": (PM.tolist(), "-1/+1"),
    "tuple of tuples": (tuple(map(tuple, PM.tolist())), "-1/+1"),
    "list of arrays": (list(PM), "-1/+1"),
    "object ±1": (PM.astype(object), "-1/+1"),
    "Fortran order": (np.asfortranarray(PM), "-1/+1"),
    "strided view": (np.repeat(PM, 2, axis=1)[:, ::2], "-1/+1"),
    "negative strides": (PM[::-1, ::-1].copy()[::-1, ::-1], "-1/+1"),
    "big endian": (PM.astype(">i4"), "-1/+1"),
    "uint8 0/1": (ZO.astype(np.uint8), "0/1"),
    "uint64 0/1": (ZO.astype(np.uint64), "0/1"),
    "int8 0/1": (ZO.astype(np.int8), "0/1"),
    "float32 0/1": (ZO.astype(np.float32), "0/1"),
    "float64 0/1": (ZO.astype(np.float64), "0/1"),
    "list 0/1": (ZO.tolist(), "0/1"),
    "negative zero": (np.where(ZO == 0, -0.0, 1.0), "0/1"),
    "object 0/1": (ZO.astype(object), "0/1"),
    "object numpy scalars": (
        np.array([[np.int8(v) for v in row] for row in ZO], dtype=object),
        "0/1",
    ),
    "bool": (ZO.astype(bool), "boolean"),
    "list of bool": (ZO.astype(bool).tolist(), "boolean"),
    "DataFrame int": (pd.DataFrame(PM), "-1/+1"),
    "DataFrame 0/1": (pd.DataFrame(ZO), "0/1"),
    "DataFrame float": (pd.DataFrame(PM.astype(float)), "-1/+1"),
    "DataFrame bool": (pd.DataFrame(ZO.astype(bool)), "boolean"),
    "DataFrame mixed int and float": (pd.DataFrame(PM).astype({0: float, 2: np.int8}), "-1/+1"),
    "DataFrame Int8": (nullable(PM, "Int8"), "-1/+1"),
    "DataFrame Int64 0/1": (nullable(ZO, "Int64"), "0/1"),
    "DataFrame Float32": (nullable(PM, "Float32"), "-1/+1"),
    "DataFrame with odd index": (pd.DataFrame(PM, index=[7, 7, -1]), "-1/+1"),
}

GAPPED = {
    "float32 NaN": (np.array(with_gap(PM, np.nan), dtype=np.float32), "-1/+1"),
    "float64 NaN": (np.array(with_gap(PM, np.nan)), "-1/+1"),
    "float64 NaN 0/1": (np.array(with_gap(ZO, np.nan)), "0/1"),
    "list None": (with_gap(PM, None), "-1/+1"),
    "list None 0/1": (with_gap(ZO, None), "0/1"),
    "list nan": (with_gap(PM, float("nan")), "-1/+1"),
    "object None": (np.array(with_gap(PM, None), dtype=object), "-1/+1"),
    "object NaN": (np.array(with_gap(ZO, np.nan), dtype=object), "0/1"),
    "object numpy NaN": (np.array(with_gap(PM, np.float32("nan")), dtype=object), "-1/+1"),
    "object pd.NA": (np.array(with_gap(PM, pd.NA), dtype=object), "-1/+1"),
    "object pd.NaT": (np.array(with_gap(PM, pd.NaT), dtype=object), "-1/+1"),
    "DataFrame NaN": (pd.DataFrame(with_gap(PM, np.nan)), "-1/+1"),
    "DataFrame None": (pd.DataFrame(with_gap(ZO, None)), "0/1"),
    "DataFrame Int8": (nullable(PM, "Int8", gap=True), "-1/+1"),
    "DataFrame UInt8 0/1": (nullable(ZO, "UInt8", gap=True), "0/1"),
    "DataFrame Float64": (nullable(PM, "Float64", gap=True), "-1/+1"),
}


@pytest.mark.parametrize("name", COMPLETE)
def test_every_encoding_gives_the_same_values(name):
    X, encoding = COMPLETE[name]
    spins = as_spins(X)
    np.testing.assert_array_equal(spins.values, PM)
    assert spins.values.dtype == np.int8
    assert spins.values.flags.c_contiguous
    assert spins.encoding == encoding
    assert (spins.n_samples, spins.n_spins) == PM.shape
    assert spins.summary.n_missing == 0


@pytest.mark.parametrize("name", GAPPED)
def test_missing_entries_become_zero_whatever_marks_them(name):
    X, encoding = GAPPED[name]
    spins = as_spins(X)
    np.testing.assert_array_equal(spins.values, PM_GAP)
    assert spins.values.dtype == np.int8
    assert spins.encoding == encoding
    assert spins.summary.n_missing == 1


@pytest.mark.parametrize("gap", [False, True])
def test_nullable_booleans_are_read(gap):
    spins = as_spins(nullable(ZO.astype(bool), "boolean", gap=gap))
    np.testing.assert_array_equal(spins.values, PM_GAP if gap else PM)
    assert spins.summary.n_missing == int(gap)


def test_booleans_with_none_are_read():
    spins = as_spins(with_gap(ZO.astype(bool), None))
    np.testing.assert_array_equal(spins.values, PM_GAP)


@pytest.mark.parametrize(
    "X",
    [PM_GAP, PM_GAP.astype(np.float32), PM_GAP.tolist(), pd.DataFrame(PM_GAP)],
    ids=["int", "float", "list", "DataFrame"],
)
def test_zero_is_missing(X):
    spins = as_spins(X, zero_is_missing=True)
    np.testing.assert_array_equal(spins.values, PM_GAP)
    assert spins.encoding == "-1/+1"
    assert spins.summary.n_missing == 1


def test_zero_is_missing_joins_nan():
    X = PM_GAP.astype(float)
    X[0, 0] = np.nan
    spins = as_spins(X, zero_is_missing=True)
    assert spins.values[0, 0] == spins.values[1, 2] == 0
    assert spins.summary.n_missing == 2


def test_zero_is_missing_where_no_minus_one_is_left():
    # 0 and 1 only: with the option the zeros are gaps, without it they are -1.
    X = [[1, 0, 1], [1, 1, 1]]
    np.testing.assert_array_equal(as_spins(X, zero_is_missing=True).values, X)
    np.testing.assert_array_equal(as_spins(X).values, [[1, -1, 1], [1, 1, 1]])


def test_zero_is_missing_does_not_touch_booleans():
    # False is a value, not the number 0.
    X = ZO.astype(bool)
    spins = as_spins(X, zero_is_missing=True)
    np.testing.assert_array_equal(spins.values, PM)
    assert spins.encoding == "boolean"


@pytest.mark.parametrize(
    ("X", "values", "encoding"),
    [
        ([[1, 1], [1, 1]], 1, "-1/+1"),
        ([[-1, -1], [-1, -1]], -1, "-1/+1"),
        ([[0, 0], [0, 0]], -1, "0/1"),
        ([[False, False]], -1, "boolean"),
    ],
)
def test_a_single_value_is_still_read(X, values, encoding):
    spins = as_spins(X)
    assert (spins.values == values).all()
    assert spins.encoding == encoding
    assert spins.summary.n_constant == 2


def test_constant_spins_and_duplicates_are_counted_not_dropped():
    X = np.array(
        [
            [1, 1, -1, 1, 1],
            [1, -1, -1, 1, 1],
            [1, 1, -1, 1, 1],  # equal to row 0
            [1, 1, -1, -1, 1],
            [1, 1, -1, 1, 1],  # and again
            [1, -1, -1, 1, 1],  # equal to row 1
        ]
    )
    spins = as_spins(X)
    np.testing.assert_array_equal(spins.values, X)
    assert spins.summary.n_constant == 3
    assert spins.summary.n_duplicates == 3
    assert (spins.summary.n_samples, spins.summary.n_spins) == X.shape


def test_missing_entries_do_not_make_a_spin_vary():
    X = np.array([[1, np.nan, 1], [np.nan, np.nan, -1], [1, np.nan, 1]])
    summary = as_spins(X).summary
    assert summary.n_constant == 2  # +1 wherever observed, and never observed
    assert summary.n_duplicates == 1
    assert summary.n_missing == 4


def test_samples_that_differ_only_by_a_gap_are_not_duplicates():
    summary = as_spins([[1, -1, 1], [1, -1, None]]).summary
    assert summary.n_duplicates == 0


@pytest.mark.parametrize("missing", [False, True])
def test_duplicates_are_found_whatever_the_padding(missing):
    bits = np.array([[0b10100000], [0b10111111], [0b11000000]], dtype=np.uint8)
    observed = np.array([[0b11100000], [0b11101010], [0b11100000]], dtype=np.uint8)
    spins = PackedSpins(bits, observed if missing else None, 3, "0/1")
    assert spins.summary.n_duplicates == 1


def test_summary_says_everything():
    text = str(as_spins([[0, 1, 1, None], [0, 1, 1, None], [1, 1, 0, 0], [0, 0, 0, 1]]).summary)
    assert text == (
        "4 samples of 4 spins, read as 0/1; 2 missing entries (12.5%), "
        "0 constant spins, 1 duplicate samples"
    )


def test_spins_pass_through_unchanged():
    spins = as_spins(PM)
    assert as_spins(spins) is spins
    assert as_spins(spins, zero_is_missing=True) is spins


def test_spins_cannot_be_reassigned():
    spins = as_spins(PM)
    with pytest.raises(AttributeError):
        spins.values = ZO


@pytest.mark.parametrize("name", [*COMPLETE, *GAPPED])
def test_input_is_neither_modified_nor_shared(name):
    X, _ = (COMPLETE | GAPPED)[name]
    before = copy.deepcopy(X)
    spins = as_spins(X)
    spins.values[:] = 0  # a shared buffer would carry this into X
    if isinstance(X, pd.DataFrame):
        pd.testing.assert_frame_equal(X, before)
    else:
        # As text, so that missing markers of every kind compare equal to themselves.
        assert str(X) == str(before)


def test_zero_is_missing_does_not_modify_the_input():
    X = PM_GAP.copy()
    as_spins(X, zero_is_missing=True)
    np.testing.assert_array_equal(X, PM_GAP)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 0)])
@pytest.mark.parametrize("dtype", [np.int8, np.float64, bool, object])
def test_empty_input(shape, dtype):
    with pytest.raises(ValueError, match=rf"X is empty: found {shape[0]} .* {shape[1]} feature"):
        as_spins(np.empty(shape, dtype=dtype))


@pytest.mark.parametrize("X", [[[]], pd.DataFrame()])
def test_empty_list_and_frame(X):
    with pytest.raises(ValueError, match="X is empty"):
        as_spins(X)


@pytest.mark.parametrize(
    ("X", "ndim"),
    [
        (1, 0),
        ([], 1),
        ([1, -1, 1], 1),
        (np.array([1, None], dtype=object), 1),
        (pd.Series([1, 0, 1]), 1),
        (np.ones((2, 3, 4)), 3),
        (np.full((2, 3, 4), None), 3),
    ],
)
def test_wrong_number_of_dimensions(X, ndim):
    with pytest.raises(ValueError, match=f"Expected 2D array, got {ndim}D array"):
        as_spins(X)


@pytest.mark.parametrize("X", [[[1], [-1], [1]], [[None], [1]], np.ones((5, 1), dtype=bool)])
def test_fewer_than_two_spins(X):
    with pytest.raises(ValueError, match=r"1 feature\(s\).*at least two.*transposed"):
        as_spins(X)


@pytest.mark.parametrize(
    ("value", "dtype", "shown"),
    [
        (2, np.int64, "2"),
        (-2, np.int8, "-2"),
        (255, np.uint8, "255"),  # -1 modulo 256 is still not a spin
        (0.5, np.float32, "0.5"),
        (1 + 2**-20, np.float64, "1.0000009536743164"),
        (3, object, "3.0"),
    ],
)
def test_third_value_is_named_with_its_place(value, dtype, shown):
    X = ZO.astype(dtype)
    X[2, 1] = value
    with pytest.raises(ValueError, match=rf"third value: {shown} at row 2, column 1;"):
        as_spins(X)


def test_the_first_of_several_third_values_is_named():
    X = PM.astype(float)
    X[2, 0], X[1, 3], X[1, 2] = 7, 8, 9
    with pytest.raises(ValueError, match=r"third value: 9\.0 at row 1, column 2;"):
        as_spins(X)


def test_third_value_in_a_frame_is_named_by_position():
    X = pd.DataFrame(ZO, index=["x", "y", "z"], columns=list("abcd"))
    X.loc["y", "d"] = 7
    with pytest.raises(ValueError, match="third value: 7 at row 1, column 3"):
        as_spins(X)


def test_third_value_is_refused_with_zero_is_missing_too():
    with pytest.raises(ValueError, match="third value: 5 at row 0, column 1"):
        as_spins([[1, 5], [-1, 0]], zero_is_missing=True)


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
def test_infinity_is_named_with_its_place(value, dtype):
    X = PM.astype(dtype)
    X[1, 3] = value
    with pytest.raises(ValueError, match="infinity, at row 1, column 3"):
        as_spins(X)


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ([["1", "-1"], ["1", "1"]], r"type <U2 \(the first is '1'\)"),
        (np.array([[b"a", b"b"]]), r"type \|S1 \(the first is b'a'\)"),
        (np.array([[1j, 1]]), r"type complex128 \(the first is 1j\)"),
        (np.array([["2020-01-01", "2020-01-02"]], dtype="M8[D]"), r"type datetime64\[D\]"),
        (np.empty((0, 2), dtype=str), r"type <U1 \(the first is ''\)"),
    ],
)
def test_text_and_other_types_are_refused(X, said):
    with pytest.raises(ValueError, match=said):
        as_spins(X)


@pytest.mark.parametrize("value", ["1", "", b"1", 1j, (), np.datetime64("2020-01-01")])
def test_object_arrays_name_what_is_not_a_number(value):
    X = ZO.astype(object)
    X[1, 2] = value
    with pytest.raises(ValueError, match=r"and holds .* at row 1, column 2;") as error:
        as_spins(X)
    assert repr(value) in str(error.value)


def test_a_frame_with_a_text_column_names_the_first_text():
    X = pd.DataFrame({"a": [1, 0], "b": ["yes", "no"]})
    with pytest.raises(ValueError, match="holds 'yes' at row 0, column 1"):
        as_spins(X)


@pytest.mark.parametrize(
    "make", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array]
)
def test_what_a_sparse_matrix_does_not_store_is_zero(make):
    spins = as_spins(make(ZO))
    np.testing.assert_array_equal(spins.values, PM)
    assert spins.encoding == "0/1"


@pytest.mark.parametrize(
    ("X", "zero_is_missing"),
    [
        (np.full((2, 3), np.nan), False),
        (np.full((2, 3), None), False),
        (np.full((2, 3), np.nan), True),
        (np.zeros((2, 3)), True),
    ],
)
def test_all_missing(X, zero_is_missing):
    with pytest.raises(ValueError, match="no observed entry"):
        as_spins(X, zero_is_missing=zero_is_missing)


@pytest.mark.parametrize("dtype", [np.int8, np.float64, object])
def test_three_valued_data_are_ambiguous(dtype):
    said = r"-1, 0 and \+1 \(the first 0 at row 1, column 2\).*zero_is_missing=True"
    with pytest.raises(ValueError, match=said):
        as_spins(PM_GAP.astype(dtype))
    X = PM_GAP.copy()
    X[2, 0] = 0  # a second zero, further down
    with pytest.raises(ValueError, match=said):
        as_spins(X.astype(dtype))


def test_minus_one_and_zero_alone_are_ambiguous_too():
    with pytest.raises(ValueError, match="zero_is_missing=True"):
        as_spins([[-1, 0], [-1, -1]])


def test_ragged_lists_are_refused():
    with pytest.raises(ValueError, match="inhomogeneous"):
        as_spins([[1, 0], [1]])


shapes = array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=8)
signs = arrays(np.int8, shapes, elements=st.sampled_from([-1, 1]))
gapped = arrays(np.int8, shapes, elements=st.sampled_from([-1, 0, 1])).filter(np.any)


@settings(max_examples=50, deadline=None)
@given(signs)
def test_round_trip_through_every_encoding(S):
    bits = S > 0
    inputs = [
        S,
        S.astype(np.float32),
        S.astype(object),
        S.tolist(),
        pd.DataFrame(S),
        bits,
        bits.tolist(),
        pd.DataFrame(bits),
        pd.DataFrame(bits).astype("boolean"),
    ]
    if not bits.all():  # ones alone are read as +1 either way, but as another encoding
        inputs += [bits.astype(np.uint8), bits.astype(float), pd.DataFrame(bits).astype("Int8")]
    for X in inputs:
        np.testing.assert_array_equal(as_spins(X).values, S)


@settings(max_examples=50, deadline=None)
@given(gapped)
def test_round_trip_with_missing_entries(S):
    with_nan = np.where(S == 0, np.nan, S)
    with_none = np.where(S == 0, None, S.astype(object))
    bits = np.where(S == 0, np.nan, S > 0)
    inputs = [with_nan, with_none, with_none.tolist(), pd.DataFrame(with_nan).astype("Int8")]
    if (S == -1).any():  # else 0/1 and -1/+1 look alike, which changes nothing either
        inputs += [bits, pd.DataFrame(bits).astype("boolean")]
    for X in inputs:
        np.testing.assert_array_equal(as_spins(X).values, S)
    np.testing.assert_array_equal(as_spins(S, zero_is_missing=True).values, S)


@settings(max_examples=50, deadline=None)
@given(signs)
def test_summary_counts_by_brute_force(S):
    summary = as_spins(S).summary
    assert summary.n_constant == sum(len(set(column)) == 1 for column in S.T.tolist())
    assert summary.n_duplicates == len(S) - len({tuple(row) for row in S.tolist()})


@settings(max_examples=50, deadline=None)
@given(
    signs,
    st.data(),
    st.sampled_from([2, -3, 0.25, 1e300, -1.5]),
    st.sampled_from([np.float64, object]),
    st.booleans(),
)
def test_a_third_value_is_reported_exactly_where_it_is(S, data, value, dtype, zero_one):
    row = data.draw(st.integers(0, S.shape[0] - 1))
    column = data.draw(st.integers(0, S.shape[1] - 1))
    X = ((S + 1) // 2 if zero_one else S).astype(dtype)
    X[row, column] = value
    with pytest.raises(ValueError, match=f"at row {row}, column {column};") as error:
        as_spins(X)
    assert f"third value: {float(value)!r} at" in str(error.value)


@settings(max_examples=25, deadline=None)
@given(signs)
def test_reading_twice_changes_nothing(S):
    once = as_spins(S)
    again = as_spins(once.values)
    np.testing.assert_array_equal(again.values, once.values)
    assert isinstance(again, Spins)
    assert again.summary == once.summary


def test_masked_entries_are_missing():
    X = np.ma.MaskedArray([[1, -1], [1, 1]], mask=[[0, 1], [0, 0]])
    np.testing.assert_array_equal(as_spins(X).values, [[1, 0], [1, 1]])


def test_an_integer_beyond_floats_is_a_third_value():
    with pytest.raises(ValueError, match=r"third value: 1000.* at row 0, column 0"):
        as_spins([[10**400, 1], [1, 0]])
