"""The parts of the recovery: starts, Rayleigh value, deflation, kink, temperature."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize_scalar

from dualtap._random import as_generator
from dualtap.couplings import DeflatedCouplings, DenseCouplings, HebbianCouplings
from dualtap.hopfield import HopfieldModel
from dualtap.metrics import match, pseudo_likelihood
from dualtap.published import DualTAP
from dualtap.published.deflate import (
    PARALLEL,
    SEQUENTIAL,
    Students,
    deflate,
    rayleigh,
)
from dualtap.published.starts import random_students, spectral_student
from dualtap.published.stopping import kink
from dualtap.recovery import calibration
from dualtap.recovery.refit import fit_beta
from dualtap.schemes import AMP, TAP, OpperWinther, SequentialAMP, SequentialTAP
from dualtap.solve import Solution, StopReason, solve
from dualtap.spins import as_spins

# --- Starts -------------------------------------------------------------------------------------


def test_random_students_have_fair_signs_and_uniform_sizes():
    m = random_students(50, 2000, np.random.default_rng(0))
    assert m.shape == (50, 2000)
    assert m.dtype == np.float32
    size = np.abs(m.astype(np.float64))
    assert size.min() >= np.float32(0.1)
    assert size.max() <= 1
    # 100 000 fair signs: five standard deviations.
    assert abs(np.sign(m).mean()) < 5 / np.sqrt(m.size)
    assert stats.kstest(size.ravel(), "uniform", args=(0.1, 0.9)).pvalue > 1e-3
    # Sizes and signs are independent of each other.
    positive, negative = size[m > 0], size[m < 0]
    assert stats.ks_2samp(positive, negative).pvalue > 1e-3


def test_random_students_follow_their_generator():
    first = random_students(3, 10, np.random.default_rng(7))
    np.testing.assert_array_equal(first, random_students(3, 10, np.random.default_rng(7)))
    assert not np.array_equal(first, random_students(3, 10, np.random.default_rng(8)))


def samples(n_spins=150, n_patterns=3, n_samples=30, beta=2.0, seed=0):
    teacher = HopfieldModel.random(n_spins, n_patterns, beta, random_state=seed)
    return teacher, teacher.sample(n_samples, random_state=seed + 1)


def undeflated(X):
    """The couplings of the first round."""
    base = HebbianCouplings(X, np.float64)
    return DeflatedCouplings(base, np.empty((0, base.n_spins)), np.empty(0))


def top_vector(J):
    """Leading eigenvector of a dense J as the spectral start should be: √N v clipped."""
    vector = np.linalg.eigh(J)[1][:, -1]
    return np.clip(np.sqrt(len(J)) * vector, -1, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_removed", [0, 1])
def test_spectral_student_is_the_top_eigenvector(dtype, n_removed):
    _, X = samples(n_patterns=1)
    base = HebbianCouplings(X, dtype)
    rng = np.random.default_rng(3)
    # Removing the first sample moves the top without closing the gap.
    directions = X[:n_removed].astype(dtype)
    couplings = DeflatedCouplings(base, directions, np.full(n_removed, 4.0))
    J = X.T.astype(float) @ X / 150 - 4 * directions.T.astype(float) @ directions / 150
    found = spectral_student(couplings, rng)
    expected = top_vector(J)
    assert found.shape == (1, 150)
    assert found.dtype == dtype
    sign = np.sign(found[0] @ expected)
    # Lanczos stops at a relative accuracy of 1e-3: enough for a start.
    np.testing.assert_allclose(sign * found[0], expected, atol=2e-2)


def test_spectral_student_is_the_largest_not_the_largest_in_size():
    """Deflation makes J indefinite: a large negative eigenvalue is not a pattern."""
    rng = np.random.default_rng(0)
    v, w = np.linalg.qr(rng.normal(size=(40, 2)))[0].T
    J = DenseCouplings(2 * np.outer(v, v) - 9 * np.outer(w, w))
    found = spectral_student(J, rng)[0]
    assert abs(found @ v) / np.linalg.norm(found) > 0.9
    assert abs(found @ w) / np.linalg.norm(found) < 0.3


def test_spectral_student_of_vanishing_couplings_is_some_start():
    """Where deflation may well arrive; ARPACK refuses such a matrix."""
    found = spectral_student(DenseCouplings(np.zeros((5, 5))), np.random.default_rng(0))
    assert found.shape == (1, 5)
    assert np.isfinite(found).all()
    assert 0 < np.abs(found).max() <= 1


def test_one_student_of_a_spectral_round_starts_at_the_top_eigenvector():
    _, X = samples(n_patterns=1)
    couplings = undeflated(X)
    # No steps: the starts come back.
    students = Students(4, 2.0, start="spectral", max_iter=0)
    m = students.run(couplings, np.random.default_rng(0)).magnetizations
    expected = top_vector(X.T.astype(float) @ X / 150)
    cosines = np.abs(m @ expected) / np.linalg.norm(m, axis=1) / np.linalg.norm(expected)
    assert cosines[0] > 0.999
    assert cosines[1:].max() < 0.5
    random = Students(4, 2.0, start="random", max_iter=0)
    m = random.run(couplings, np.random.default_rng(0)).magnetizations
    np.testing.assert_array_equal(m, random_students(4, 150, np.random.default_rng(0)))


def test_students_run_tap_with_their_options():
    _, X = samples()
    couplings = undeflated(X)
    options = {"damping": 0.4, "tol": 1e-5, "max_iter": 7}
    found = Students(5, 1.7, **options).run(couplings, np.random.default_rng(0))
    start = random_students(5, 150, np.random.default_rng(0))
    expected = solve(TAP(couplings, 1.7), start, **options)
    np.testing.assert_array_equal(found.magnetizations, expected.magnetizations)
    assert found.n_iter.tolist() == expected.n_iter.tolist()


@pytest.mark.parametrize("scheme", [*PARALLEL, *SEQUENTIAL])
def test_students_run_any_scheme(scheme):
    _, X = samples()
    couplings = undeflated(X)
    found = Students(5, 1.7, scheme=scheme, max_iter=7).run(couplings, np.random.default_rng(0))
    start = random_students(5, 150, np.random.default_rng(0))
    rule = {
        "tap": TAP(couplings, 1.7),
        "amp": AMP(couplings, 1.7),
        "opper-winther": OpperWinther(couplings, 1.7),
        "opper-winther-printed": OpperWinther(couplings, 1.7, printed=True),
        "sequential-tap": SequentialTAP(couplings, 1.7, 0.95),
        "sequential-amp": SequentialAMP(couplings, 1.7, 0.95, "field"),
    }[scheme]
    expected = solve(rule, start, max_iter=7)
    np.testing.assert_array_equal(found.magnetizations, expected.magnetizations)


@pytest.mark.parametrize("scheme", ["amp", "opper-winther", "opper-winther-printed"])
def test_other_schemes_recover_what_tap_does(scheme):
    teacher, X = samples()
    model = DualTAP(3, 2.0, scheme=scheme, n_students=6, random_state=0).fit(X)
    assert match(model.patterns_, teacher.patterns).n_recovered() == 3


def test_sequential_students_take_their_damping_from_the_estimator():
    _, X = samples()
    couplings, start = undeflated(X), random_students(3, 150, np.random.default_rng(0))
    found = Students(3, 1.7, scheme="sequential-tap", damping=0, max_iter=3).run(
        couplings, np.random.default_rng(0)
    )
    expected = solve(SequentialTAP(couplings, 1.7, 0.0), start, max_iter=3)
    np.testing.assert_array_equal(found.magnetizations, expected.magnetizations)


def test_the_printed_alpha_is_that_of_the_reaction_term():
    X = np.random.default_rng(3).choice([-1, 1], size=(60, 150))
    options = {"n_students": 1, "max_iter": 1, "random_state": 0}
    start = random_students(1, 150, as_generator(0))
    J = X.T @ X / 150
    for name, alpha in (("patterns", 1 / 150), ("samples", 60 / 150)):
        model = DualTAP(1, 0.6, alpha=name, **options).fit(X)
        expected = solve(TAP(DenseCouplings(J, alpha=alpha), 0.6), start, max_iter=1)
        np.testing.assert_allclose(model.magnetizations_, expected.magnetizations, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"n_patterns": 2, "scheme": "amp"}])
def test_the_printed_alpha_needs_p_and_tap(options):
    _, X = samples()
    with pytest.raises(ValueError, match='alpha="patterns" is the P/N of the printed TAP'):
        DualTAP(beta=2.0, alpha="patterns", **options).fit(X)


# --- Rayleigh -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_rayleigh_deflation_leaves_nothing_along_m(seed):
    rng = np.random.default_rng(seed)
    V = rng.choice([-1.0, 1.0], size=(8, 60))
    base = HebbianCouplings(V, np.float64)
    first = rng.uniform(-1, 1, size=60)
    J = DeflatedCouplings(base, first[None], np.array([0.7]))
    m = rng.uniform(-1, 1, size=60)
    explained, gamma = rayleigh(J, m)
    dense = V.T @ V / 60 - 0.7 * np.outer(first, first) / 60
    assert explained == pytest.approx(m @ dense @ m)
    assert gamma == pytest.approx(60 * (m @ dense @ m) / (m @ m) ** 2)
    after = DeflatedCouplings(base, np.stack([first, m]), np.array([0.7, gamma]))
    assert m @ after.dot(m[None])[0] == pytest.approx(0, abs=1e-10)


def test_rayleigh_of_nothing_is_nothing():
    J = HebbianCouplings(np.ones((2, 10)), np.float64)
    assert rayleigh(J, np.zeros(10)) == (0.0, 0.0)


# --- The kink -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        ([], None),
        ([5.0], None),
        ([5.0, 5.0, 5.0, 5.0], None),  # all equal
        ([0.0, 0.0, 0.0], 1),  # nobody ever converged: no second pattern
        ([1.0, 2.0, 3.0, 9.0], None),  # rising
        ([10.0, 9.0, 8.0, 7.0, 6.0, 5.5], None),  # falling, never by half of the median
        ([10.0, 8.0, 6.0, 4.0, 2.0], 3),  # falling, until it is: 4 = 8/2
        ([10.0, 1.0], 1),
        ([9.0, 8.5, 8.7, 1.2, 1.1], 3),
        ([9.0, 8.5, 8.7, 0.0], 3),  # a round in which nobody converged
        ([10.0, 1.0, 10.0, 10.0, 1.0], 1),  # the first of two
        ([10.0, 10.0, 10.0, 40.0, 8.0], None),  # the median: half of the mean would be 8.75
        ([8.0, 4.0], 1),  # exactly half is a kink
        ([8.0, 8.0, 8.0, 4.0], 3),
        ([8.0, np.nextafter(4.0, 5)], None),
    ],
)
def test_kink(gains, expected):
    assert kink(gains) == expected


def test_kink_with_another_factor():
    gains = [10.0, 10.0, 3.0]
    assert kink(gains, drop=0.2) is None
    assert kink(gains, drop=0.3) == 2  # exactly at the threshold
    assert kink(gains, drop=0.29) is None


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12), st.integers(-8, 8))
def test_kink_has_no_units_and_does_not_look_ahead(gains, exponent):
    found = kink([float(g) for g in gains])
    assert kink([g * 2.0**exponent for g in gains]) == found
    if found is not None:
        assert kink(gains[: found + 1]) == found
        assert kink(gains[:found]) is None


# --- Deflation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [None, 10.0])
def test_deflation_equals_brute_force_with_a_dense_matrix(gamma):
    """Every round again, with J an explicit matrix and the scores summed sample by sample."""
    n, n_rounds = 150, 3  # as many as there are patterns: what follows does not converge
    _, X = samples(n_spins=n)
    students = Students(6, 2.0, tol=1e-9, max_iter=400)
    base = HebbianCouplings(X, np.float64)
    steps = list(islice(deflate(base, students, gamma, np.random.default_rng(5)), n_rounds))

    S = X.astype(np.float64)
    J = S.T @ S / n
    alpha = len(S) / n
    rng = np.random.default_rng(5)
    for step in steps:
        tap = TAP(DenseCouplings(J, alpha=alpha), 2.0)
        solution = solve(tap, random_students(6, n, rng), tol=1e-9, max_iter=400)
        score = [sum((s @ m) ** 2 for s in S) for m in solution.magnetizations]
        eligible = [a for a in range(6) if solution.converged[a]]
        assert eligible
        m = solution.magnetizations[max(eligible, key=lambda a: score[a])]
        np.testing.assert_allclose(step.m, m, atol=1e-6)
        assert step.score == pytest.approx(max(score[a] for a in eligible), rel=1e-6)
        assert step.gain == pytest.approx(m @ J @ m / 2, abs=1e-5)
        expected = n * (m @ J @ m) / (m @ m) ** 2 if gamma is None else gamma
        assert step.gamma == pytest.approx(expected, rel=1e-5)
        assert step.n_converged == len(eligible)
        assert step.n_iter == solution.n_iter.max()
        J = J - step.gamma * np.outer(step.m, step.m) / n


class ScriptedStudents:
    """Stands in for Students: returns given magnetizations, and keeps the couplings it saw."""

    def __init__(self, m, converged):
        self.m, self.converged, self.seen = m, np.asarray(converged), []
        self.n_students = len(m)

    def run(self, couplings, rng):
        self.seen.append(couplings)
        n = len(self.m)
        return Solution(
            magnetizations=self.m,
            converged=self.converged,
            n_iter=np.arange(1, n + 1),
            residual=np.zeros(n),
            reason=np.where(self.converged, StopReason.CONVERGED, StopReason.MAX_ITER),
            n_guarded=np.zeros(n, dtype=np.int64),
        )


@pytest.fixture
def scripted():
    """Three students along a sample, in the order of their scores: large, small, middle."""
    _, X = samples()
    base = HebbianCouplings(X, np.float64)
    m = np.array([[0.9], [0.1], [0.5]]) * X[0]
    return base, m


@pytest.mark.parametrize(
    ("converged", "picked"),
    [
        ([True, True, True], 0),
        ([False, True, True], 2),  # the best did not converge
        ([False, True, False], 1),
        ([False, False, False], 0),  # nobody did: the best of all
    ],
)
def test_the_best_converged_student_is_kept(scripted, converged, picked):
    base, m = scripted
    students = ScriptedStudents(m, converged)
    step = next(deflate(base, students, None, np.random.default_rng(0)))
    np.testing.assert_array_equal(step.m, m[picked])
    assert step.n_converged == sum(converged)
    assert step.n_iter == 3
    expected = m[picked] @ base.dot(m[picked][None])[0] / 2
    # Without convergence there is no gain, which is what the kink is to see.
    assert step.gain == pytest.approx(expected if any(converged) else 0.0)


def test_each_round_sees_what_earlier_rounds_left(scripted):
    base, m = scripted
    students = ScriptedStudents(m, [True, True, True])
    rounds = deflate(base, students, None, np.random.default_rng(0))
    first, second = next(rounds), next(rounds)
    v = np.random.default_rng(1).normal(size=(2, base.n_spins))
    np.testing.assert_allclose(students.seen[0].dot(v), base.dot(v), atol=1e-12)
    removed = first.gamma * np.outer(first.m, first.m) / base.n_spins
    np.testing.assert_allclose(students.seen[1].dot(v), base.dot(v) - v @ removed, atol=1e-10)
    # The same direction again explains nothing more, but its score is that on the data.
    assert second.gain == pytest.approx(0, abs=1e-8)
    assert second.score == pytest.approx(first.score)


def test_deflation_recovers_every_pattern():
    teacher, X = samples(n_spins=400, n_patterns=4, n_samples=40)
    rounds = deflate(HebbianCouplings(X), Students(10, 2.0), 10.0, np.random.default_rng(0))
    m = np.stack([step.m for step in islice(rounds, 4)])
    overlap = np.abs(np.sign(m) @ teacher.patterns.T.astype(float)) / 400
    assert overlap.max(axis=0).min() > 0.95
    assert sorted(overlap.argmax(axis=1).tolist()) == [0, 1, 2, 3]


# --- Temperature --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[0.8, 1.5, 2.0, 3.0])
def warm_data(request):
    beta = request.param
    teacher = HopfieldModel.random(1000, 3, beta, random_state=0)
    start = "random" if beta < 1 else "patterns"
    # The paramagnet says little about β: more samples.
    n_samples = 1500 if beta < 1 else 200
    return teacher, teacher.sample(n_samples, start=start, random_state=1)


def test_beta_of_the_teacher_is_recovered(warm_data):
    teacher, X = warm_data
    assert fit_beta(as_spins(X), teacher.patterns) == pytest.approx(teacher.beta, rel=0.05)


def test_beta_maximises_the_pseudo_likelihood(warm_data):
    teacher, X = warm_data
    X = X[:200]
    found = fit_beta(as_spins(X), teacher.patterns)
    best = minimize_scalar(
        lambda beta: -pseudo_likelihood(X, teacher.patterns, beta),
        bounds=(0.1, 10),
        method="bounded",
        options={"xatol": 1e-6},
    )
    assert found == pytest.approx(best.x, rel=2e-3)


def test_beta_from_incomplete_data():
    teacher = HopfieldModel.random(1000, 3, 2.0, random_state=0)
    X = teacher.sample(200, random_state=1)
    X[np.random.default_rng(2).random(X.shape) < 0.3] = 0
    spins = as_spins(X, zero_is_missing=True)
    assert fit_beta(spins, teacher.patterns) == pytest.approx(2.0, rel=0.05)


def test_beta_stays_in_its_range():
    pattern = np.where(np.arange(100) % 3, 1, -1)[None]
    cold = fit_beta(as_spins(np.repeat(pattern, 5, axis=0)), pattern)
    # No spin is against its field, 0.99 β: the slope of the prior balances that of L.
    slope = cold / calibration.LARGEST_FIELD**2
    assert 495 * (1 - np.tanh(0.99 * cold)) == pytest.approx(slope, rel=1e-3)
    # Samples that avoid the pattern want β = 0.
    against = np.where(np.arange(100) % 2, pattern, -pattern)
    assert 0 <= fit_beta(as_spins(against), pattern) < 0.01
