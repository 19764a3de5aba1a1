"""Arrays of other libraries: the same numbers as NumPy's, found where the arrays are.

``array_api_strict`` has nothing but the standard, and its "device1" refuses what is on the host.
"""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import dualtap as dt
import libraries
from dualtap._namespace import is_foreign, like, namespace, origin, take, to_numpy
from dualtap.couplings import (
    DeflatedCouplings,
    DenseCouplings,
    GramCouplings,
    HebbianCouplings,
    factors_of,
)
from dualtap.rbm.gibbs import Chains, advance, random_chains
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import PRIORS
from dualtap.schemes import AMP, TAP, OpperWinther, SequentialAMP, SequentialTAP
from dualtap.schemes.rank_tap import RankTAP, RankTAPState
from dualtap.solve import join, solve
from dualtap.spins import PackedSpins, as_spins, builder
from dualtap.spins.blocks import Blocks

N, M, BETA = 200, 60, 2.0
CLOSE = {"rtol": 1e-4, "atol": 1e-4}  # what float32 leaves after many steps


class Place:
    """A library and a device."""

    def __init__(self, library, device=None):
        self.xp = libraries.library(library)
        self.device = device and self.xp.Device(device)

    def __call__(self, array):
        """Put an array of NumPy there."""
        return self.xp.asarray(np.array(array), device=self.device)

    def holds(self, x):
        if type(x) is not type(self(np.ones(1))):
            return False
        return self.device is None or x.device == self.device


@pytest.fixture(params=libraries.LIBRARIES)
def there(request):
    return Place(request.param, {"array_api_strict": "device1"}.get(request.param))


@pytest.fixture(scope="module", name="X")
def samples():
    teacher = dt.HopfieldModel.random(N, 3, BETA, random_state=0)
    return teacher.sample(M, random_state=1)


def students(n=6, seed=2):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, N)).astype(np.float32)


class Held:
    """Samples in one array, of any namespace."""

    def __init__(self, S):
        self.S = S
        self.total_weight, self.n_spins = S.shape

    def gram_dot(self, V):
        return (self.S @ V.T).T @ self.S

    def sum_of_squares(self):
        return float(np.square(to_numpy(self.S)).sum())


# --- Arrays there and back ----------------------------------------------------------------------


def test_there_and_back(there):
    x = there(np.zeros(1, dtype=np.float32))
    for array in (np.array([[1.5, np.nan]]), np.array([3, 4], dtype=np.int8), np.array([True])):
        moved = like(x, array)
        assert there.holds(moved)
        assert namespace(moved) is namespace(x)
        np.testing.assert_array_equal(to_numpy(moved), array)
    assert like(x, np.array([0.5])).dtype == x.dtype  # precision is that of x
    assert to_numpy(like(x, np.array([3], dtype=np.int8))).dtype == np.int8
    assert like(x, x) is x
    back = like(np.ones(1), there(np.array([0.5], dtype=np.float32)))
    assert (type(back), back.dtype) == (np.ndarray, np.float64)


def test_what_is_read_only_can_be_moved(there):
    array = np.arange(3.0)
    array.flags.writeable = False
    np.testing.assert_array_equal(to_numpy(like(there(np.ones(1)), array)), array)


def test_rows_are_taken_in_order(there):
    x = np.arange(12.0).reshape(4, 3)
    rows = np.array([2, 0, 3])
    np.testing.assert_array_equal(to_numpy(take(there(x), rows)), x[rows])


def test_origin_of_data(there, X):
    for data in (X, X == 1, X.astype(np.float64)):
        empty = origin(there(data))
        assert there.holds(empty)
        assert empty.dtype == there(np.float32(0)).dtype


@pytest.mark.parametrize("wrapped", [list, np.array, pd.DataFrame, as_spins])
def test_all_else_is_on_the_host(wrapped):
    data = wrapped([[1, 0], [0, 1]])
    assert not is_foreign(data)
    assert type(origin(data)) is np.ndarray


@libraries.TORCH
def test_tensors_of_a_graph_and_of_half_precision():
    torch = Place("torch").xp
    x = torch.ones(2, requires_grad=True)
    np.testing.assert_array_equal(to_numpy(x), np.ones(2))
    np.testing.assert_array_equal(to_numpy(torch.ones(2, dtype=torch.bfloat16)), np.ones(2))


NUMPY_ALONE = """
import sys
import numpy as np
import dualtap as dt
from dualtap.couplings import HebbianCouplings
from dualtap.schemes import TAP
from dualtap.solve import solve

solve(TAP(HebbianCouplings(np.ones((1, 9))), 2.0), np.full((1, 9), 0.5, dtype=np.float32))
print([name for name in ("array_api_compat", "torch") if name in sys.modules])
"""


def test_numpy_needs_nothing_else():
    result = subprocess.run([sys.executable, "-c", NUMPY_ALONE], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("[]\n", "")


# --- Couplings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_hebbian_couplings(there, X, dtype):
    expected, found = HebbianCouplings(X), HebbianCouplings(there(X.astype(dtype)))
    m = students()
    product = found.dot(there(m))
    assert there.holds(product)
    np.testing.assert_allclose(to_numpy(product), expected.dot(m), atol=1e-5)
    assert found.alpha == expected.alpha == pytest.approx(M / N)
    for mine, theirs in zip(factors_of(found), factors_of(expected), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("moved", [True, False])
def test_deflated_couplings(there, X, moved):
    directions, gammas, m = students(2, seed=3), np.array([20.0, 30.0]), students()
    J = HebbianCouplings(X)
    expected = DeflatedCouplings(J, directions, gammas).dot(m)
    assert np.abs(expected - J.dot(m)).max() > 0.1
    move = there if moved else np.asarray
    base = HebbianCouplings(there(X))
    found = DeflatedCouplings(base, move(directions), move(gammas.astype(np.float32)))
    product = found.dot(there(m))
    assert there.holds(product)
    np.testing.assert_allclose(to_numpy(product), expected, atol=1e-5)
    V, w = found.factors()
    np.testing.assert_allclose(m @ (V.T * w) @ V / N, expected, atol=1e-4)


def test_dense_couplings(there, X):
    J = X.T.astype(np.float64) @ X / N
    expected, found = DenseCouplings(J), DenseCouplings(there(J))
    m = students()
    product = found.dot(there(m))
    assert there.holds(product)
    np.testing.assert_allclose(to_numpy(product), expected.dot(m), atol=1e-12)
    assert found.alpha == expected.alpha
    np.testing.assert_array_equal(found.factors()[1], expected.factors()[1])
    with pytest.raises(ValueError, match=r"square matrix, got shape \(60, 200\)"):
        DenseCouplings(there(X.astype(np.float64)))


def test_gram_couplings_there(there, X):
    m = students()
    S = X.astype(np.float32)
    product = GramCouplings(Held(there(S))).dot(there(m))
    assert there.holds(product)
    np.testing.assert_allclose(to_numpy(product), HebbianCouplings(X).dot(m), atol=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_gram_couplings_of_packed_samples(X, missing, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", 0)
    S = X * (np.random.default_rng(0).random(X.shape) >= missing)
    spins = as_spins(S, zero_is_missing=True)
    assert isinstance(spins, PackedSpins)
    found, expected = GramCouplings(Blocks(spins)), HebbianCouplings(S)
    m = students()
    np.testing.assert_allclose(found.dot(m), expected.dot(m), atol=1e-5)
    assert found.alpha == pytest.approx(np.count_nonzero(S) / N**2, rel=1e-12)
    assert (found.n_spins, found.dtype) == (N, np.float32)


def test_products_alone_have_no_factors(X):
    J = GramCouplings(Held(X.astype(np.float32)))
    with pytest.raises(TypeError, match="GramCouplings has no factors"):
        SequentialTAP(J, BETA)
    with pytest.raises(TypeError, match="GramCouplings has no factors"):
        DeflatedCouplings(J, students(1), np.ones(1)).factors()


# --- Update rules and the loop ------------------------------------------------------------------

RULES = {
    "tap": lambda J: TAP(J, BETA),
    "amp": lambda J: AMP(J, BETA),
    "opper-winther": lambda J: OpperWinther(J, BETA),
    "printed": lambda J: OpperWinther(J, BETA, printed=True),
}


def starts():
    """Random students; two of them at q = 1 - 1/β, where 1 - u is zero and the guard acts."""
    m = students()
    m[4:] = np.sqrt(1 - 1 / BETA) * np.sign(m[4:])
    return m


@pytest.mark.parametrize("rule", RULES)
def test_a_step(there, X, rule):
    m = starts()
    here, elsewhere = RULES[rule](HebbianCouplings(X)), RULES[rule](HebbianCouplings(there(X)))
    expected, info = here.step(here.init(m))
    found, found_info = elsewhere.step(elsewhere.init(there(m)))
    for mine, theirs in zip(found, expected, strict=True):
        assert there.holds(mine)
        # At the guard fields are of order 1000: errors of float32 are relative to that.
        np.testing.assert_allclose(to_numpy(mine), theirs, rtol=1e-4, atol=1e-3)
    for mine, theirs in zip(found_info, info, strict=True):
        np.testing.assert_allclose(to_numpy(mine), theirs, rtol=1e-4, atol=1e-6)
    assert info.guarded.tolist() == [False] * 4 + [rule != "printed"] * 2


@pytest.mark.parametrize(
    ("rule", "damping"),
    # AMP with a fixed damping cycles: there is nothing to compare.
    [(rule, d) for rule in RULES for d in (0.0, 0.3, "auto") if (rule, d) != ("amp", 0.3)],
)
def test_solutions(there, X, rule, damping):
    options = {"damping": damping, "tol": 1e-5, "max_iter": 300}
    m = 0.5 * dt.HopfieldModel.random(N, 3, BETA, random_state=0).patterns.astype(np.float32)
    m = np.concatenate([m, m + 0.3 * students(3)]).clip(-1, 1)
    expected = solve(RULES[rule](HebbianCouplings(X)), m, **options)
    found = solve(RULES[rule](HebbianCouplings(there(X))), there(m), **options)
    assert there.holds(found.magnetizations)
    assert found.reason.tolist() == expected.reason.tolist()
    ended = expected.converged
    assert ended.any()
    magnetizations = to_numpy(found.magnetizations)
    np.testing.assert_allclose(magnetizations[ended], expected.magnetizations[ended], **CLOSE)
    for name in ("converged", "n_iter", "residual", "reason", "n_guarded"):
        assert type(getattr(found, name)) is np.ndarray


def test_students_end_at_different_times_and_for_every_reason(there, X):
    m = starts()
    m[1] = np.nan
    options = {"tol": 1e-4, "max_iter": 4, "record": True}
    expected = solve(TAP(HebbianCouplings(X), BETA), m, **options)
    found = solve(TAP(HebbianCouplings(there(X)), BETA), there(m), **options)
    assert len(set(expected.reason)) == 3
    assert found.reason.tolist() == expected.reason.tolist()
    np.testing.assert_array_equal(found.n_iter, expected.n_iter)
    assert there.holds(found.trajectory)
    for name in ("magnetizations", "trajectory"):
        mine, theirs = to_numpy(getattr(found, name)), getattr(expected, name)
        np.testing.assert_allclose(mine, theirs, **CLOSE)


def test_solutions_are_joined_there(there, X):
    tap, m = TAP(HebbianCouplings(there(X)), BETA), students()
    parts = [solve(tap, there(part)) for part in (m[:2], m[2:])]
    joined = join(parts)
    assert there.holds(joined.magnetizations)
    assert joined.magnetizations.shape == m.shape
    np.testing.assert_array_equal(joined.n_iter, np.concatenate([p.n_iter for p in parts]))


def test_magnetizations_stay_there(there, X, monkeypatch):
    sizes = []

    def counted(x):
        sizes.append(np.prod(x.shape))
        return to_numpy(x)

    J, m = HebbianCouplings(there(X)), there(students())
    monkeypatch.setattr("dualtap.solve.to_numpy", counted)
    solve(TAP(J, BETA), m, max_iter=3, tol=0)
    assert set(sizes) == {len(students())}


@pytest.mark.parametrize("rule", [SequentialTAP, SequentialAMP])
def test_sites_one_after_the_other_are_updated_on_the_host(there, X, rule):
    m = students(2)
    expected = solve(rule(HebbianCouplings(X), BETA), m, max_iter=3, record=True)
    found = solve(rule(HebbianCouplings(there(X)), BETA), there(m), max_iter=3, record=True)
    np.testing.assert_array_equal(found.trajectory, expected.trajectory)


def test_a_device_without_double_precision(X):
    there = Place("array_api_strict", "no_float64")
    m = students()
    expected = solve(TAP(HebbianCouplings(X), BETA), m, damping="auto", tol=1e-4)
    found = solve(TAP(HebbianCouplings(there(X)), BETA), there(m), damping="auto", tol=1e-4)
    np.testing.assert_allclose(to_numpy(found.magnetizations), expected.magnetizations, **CLOSE)


# --- Coupled students ---------------------------------------------------------------------------


def coupled(n_patterns=3):
    """Return samples of a paramagnet, the variances of their spins, and a start."""
    teacher = dt.HopfieldModel.random(N, n_patterns, beta=0.8, random_state=3)
    S = teacher.sample(1000, random_state=4).astype(np.float32)
    D = np.random.default_rng(5).uniform(0.8, 1, size=N).astype(np.float32)
    noise = np.random.default_rng(6).uniform(-1, 1, size=teacher.patterns.shape)
    m = np.clip(teacher.patterns * 0.5 + 0.5 * noise, -1, 1)
    return S, D, m.reshape(1, -1).astype(np.float32)


@pytest.mark.parametrize("moved", [True, False])
def test_a_step_of_coupled_students(there, moved):
    S, D, m = coupled()
    here = RankTAP(Held(S), 3, D)
    elsewhere = RankTAP(Held(there(S)), 3, there(D) if moved else D)
    state = here.init(m)
    np.testing.assert_allclose(elsewhere.init(there(m)).prior, state.prior, rtol=1e-5)
    expected, info = here.step(state)
    found, found_info = elsewhere.step(RankTAPState(there(m), state.prior))
    assert there.holds(found.m)
    np.testing.assert_allclose(to_numpy(found.m), expected.m, atol=1e-4)
    np.testing.assert_allclose(found.prior, expected.prior, rtol=1e-4)
    for mine, theirs in zip(found_info, info, strict=True):
        np.testing.assert_allclose(to_numpy(mine), theirs, rtol=1e-4)


def test_solutions_of_coupled_students(there):
    S, D, m = coupled()
    options = {"damping": "auto", "tol": 1e-6, "max_iter": 400}
    expected = solve(RankTAP(Held(S), 3, D), m, **options)
    found = solve(RankTAP(Held(there(S)), 3, there(D)), there(m), **options)
    assert expected.converged.all()
    assert found.converged.all()
    assert np.abs(expected.magnetizations).mean() > 0.3  # not the trivial one
    np.testing.assert_allclose(to_numpy(found.magnetizations), expected.magnetizations, **CLOSE)


# --- The RBM ------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n_hidden", [1, 35])
def test_chains_draw_the_same_numbers(there, prior, n_hidden):
    """Strong fields leave little to rounding: each spin is as the kernel draws it."""
    rng = np.random.default_rng(0)
    weights = rng.normal(scale=0.3, size=(n_hidden, 70)).astype(np.float32)
    fields = rng.normal(size=70).astype(np.float32)
    chains = random_chains(5, 70, rng)
    held = chains.spins * (rng.random(chains.spins.shape) < 0.2)
    for hold in (None, held):
        expected = advance(RBM(weights, fields, PRIORS[prior]), chains, 3, hold)
        model = RBM(there(weights), there(fields), PRIORS[prior])
        moved = Chains(there(chains.spins), chains.generators)
        found = advance(model, moved, 3, None if hold is None else there(hold))
        assert there.holds(found.spins)
        np.testing.assert_array_equal(to_numpy(found.spins), expected.spins)
        np.testing.assert_array_equal(found.generators, expected.generators)
    assert (expected.spins == held)[held != 0].all()
    assert not np.array_equal(expected.spins, chains.spins)


def with_missing(X):
    X = X.astype(np.float32)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X


RBMS = {
    "plain": {"learning_rate": 0.005},
    "fields": {"learning_rate": 0.005, "fields": True, "centering": True, "momentum": 0.5},
    "binary": {"hidden": "binary", "weight_decay": 0.1},
    "cd": {"learning_rate": 0.005, "estimate": "cd"},
}


def rbm(**options):
    small = {"batch_size": 25, "n_chains": 21, "n_steps": 3, "random_state": 0, "max_updates": 20}
    return dt.HopfieldRBM.paper(6, early_stopping=False, **{**small, **options})


def assert_close(found, expected):
    """The same run, up to rounding."""
    for name in ("components_", "fields_"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (type(mine), mine.dtype) == (np.ndarray, np.float32)
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
    mine, theirs = found.history_, expected.history_
    np.testing.assert_allclose(mine.pseudo_likelihood, theirs.pseudo_likelihood, atol=1e-4)


@pytest.mark.parametrize("name", RBMS)
@pytest.mark.parametrize("data", [np.asarray, with_missing])
def test_an_rbm_is_trained_there(there, X, name, data):
    # A spin that rounding turns sends a chain another way: few updates, so that none is met.
    options = {**RBMS[name], "max_updates": 8}
    found = rbm(**options).fit(there(data(X)))
    expected = rbm(**options).fit(data(X))
    assert_close(found, expected)
    start = rbm(**{**options, "learning_rate": 1e-12}).fit(X)
    assert np.abs(expected.components_ - start.components_).max() > 5e-4  # it has moved


def test_training_happens_there(there, X):
    seen = []

    def look(model):
        seen.append(type(model.components_))
        assert there.holds(model._run.state.weights)
        assert there.holds(model._run.state.chains.spins)
        assert model.sample(2, n_steps=1, random_state=0).shape == (2, N)

    model = rbm().fit(there(X), callbacks=[look])
    assert seen == [np.ndarray] * 3
    assert type(model._run.state.weights) is np.ndarray  # what is kept is on the host
    np.testing.assert_array_equal(model.transform(there(X)), model.transform(X))
    assert model.score(there(X)) == model.score(X)


def test_a_run_goes_on_elsewhere(there, X, tmp_path):
    path = tmp_path / "run.npz"
    half = rbm().set_params(max_updates=10).fit(there(X), checkpoint=path)
    assert half.n_updates_ == 10
    expected = rbm().fit(X)
    assert_close(rbm().fit(there(X), resume_from=path), expected)
    assert_close(rbm().fit(X, resume_from=path), expected)


def test_partial_fit(there, X):
    found, expected = rbm(), rbm()
    for _ in range(3):
        found.partial_fit(there(X))
        expected.partial_fit(X)
    assert found.n_updates_ == expected.n_updates_ == 9
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-4)


@pytest.mark.parametrize("hidden", PRIORS)
def test_divergence_is_noticed_there(there, X, hidden):
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model = rbm(hidden=hidden, learning_rate=1e4).fit(there(X))
    assert model.stop_reason_ == "diverged"
    assert np.isfinite(model.components_).all()


@pytest.mark.parametrize("name", ["fields", "cd"])
@pytest.mark.parametrize("data", [np.asarray, with_missing])
def test_packed_samples_train_bit_for_bit(X, name, data, monkeypatch):
    teacher = dt.HopfieldModel.random(N, 3, BETA, random_state=0)
    expected = rbm(**RBMS[name]).fit(data(X), teacher=teacher)
    monkeypatch.setattr(builder, "DENSE", 0)
    spins = as_spins(data(X))
    assert isinstance(spins, PackedSpins)
    found = rbm(**RBMS[name]).fit(spins, teacher=teacher)
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.fields_, expected.fields_)
    np.testing.assert_array_equal(found.history_.error, expected.history_.error)
    assert found._run.data == expected._run.data  # the fingerprint: either goes on from the other


def test_packed_samples_are_never_unpacked_whole(X, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", 0)
    spins = as_spins(np.tile(X, (2, 1)))
    monkeypatch.setattr("dualtap.spins.storage.CHUNK", 16 * N)
    monkeypatch.setattr(PackedSpins.blocks, "__defaults__", (16 * N,))
    most, unpack = 0, PackedSpins.block

    def counted(self, rows):
        nonlocal most
        result = unpack(self, rows)
        most = max(most, len(result))
        return result

    monkeypatch.setattr(PackedSpins, "block", counted)
    monkeypatch.setattr("dualtap.rbm.samples._MOST_SAMPLES", 30)
    monkeypatch.setattr("dualtap.rbm.samples._WATCHED_SAMPLES", 30)
    rbm(fields=True).fit(spins)
    rbm().partial_fit(spins)
    assert 0 < most <= 30


# --- Samples ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        [[True, False], [False, False]],
        [[1, -1], [-1, -1]],
        [[0, 1], [1, 1]],
        [[1.0, np.nan], [0.0, 1.0]],
    ],
)
@pytest.mark.parametrize("dense", [builder.DENSE, 0])
def test_samples_there_are_read_as_on_the_host(there, values, dense, monkeypatch):
    monkeypatch.setattr(builder, "DENSE", dense)
    expected, found = as_spins(np.array(values)), as_spins(there(np.array(values)))
    np.testing.assert_array_equal(found.values, expected.values)
    assert (type(found), found.encoding) == (type(expected), expected.encoding)


def test_samples_come_over_in_blocks(there, X, monkeypatch):
    monkeypatch.setattr("dualtap.spins.CHUNK", 7 * N)
    np.testing.assert_array_equal(as_spins(there(X)).values, X)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, -1.0], "got 1D array"),
        (1.0, "got 0D array"),
        ([[[1.0]]], "got 3D array"),
        (np.empty((0, 3)), "X is empty"),
        ([[1.0], [0.0]], "at least two"),
        ([[1, 2], [0, 1]], "third value: 2 at row 0, column 1"),
        ([[1, 0], [-1, 1]], "first 0 at row 0, column 1"),
        ([[1.0, 0.0], [0.0, np.inf]], "infinity, at row 1, column 1"),
        ([[np.nan, np.nan]], "every value is missing"),
        ([[1j, 1.0]], "Complex data not supported"),
    ],
)
def test_errors_are_those_of_the_host(there, values, message):
    for array in (np.array(values), there(np.array(values))):
        with pytest.raises(ValueError, match=message):
            as_spins(array)


def test_the_number_of_spins_is_checked(there, X):
    model = rbm().fit(there(X))
    assert model.n_features_in_ == N
    with pytest.raises(ValueError, match="199 features"):
        model.score(there(X[:, 1:]))
