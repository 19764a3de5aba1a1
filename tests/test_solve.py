"""The fixed-point loop: on toy schemes whose course is known, and on the real ones."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualtap.couplings import (
    DeflatedCouplings,
    DenseCouplings,
    HebbianCouplings,
    StackedCouplings,
)
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP, OpperWinther, SequentialAMP, SequentialTAP, StepInfo
from dualtap.solve import StopReason, solve

SCHEMES = {
    "TAP": TAP,
    "AMP": AMP,
    "OW": OpperWinther,
    "OW printed": lambda J, beta: OpperWinther(J, beta, printed=True),
    "sequential TAP": lambda J, beta: SequentialTAP(J, beta, damping=0.5),
    "sequential AMP": lambda J, beta: SequentialAMP(J, beta, damping=0.5),
    "sequential AMP printed": lambda J, beta: SequentialAMP(
        J, beta, damping=0.5, damps="magnetization"
    ),
}


# --- A toy scheme -------------------------------------------------------------------------------


class ToyState(NamedTuple):
    m: np.ndarray
    factor: np.ndarray
    stiffness: np.ndarray
    student: np.ndarray
    step: np.ndarray


class Toy:
    """m' = factor · m, each student with a factor of its own.

    ``bad`` puts that value into the magnetizations of student ``victim`` at step ``at``, and
    ``guard`` says at which steps a student reports a guard.
    """

    def __init__(self, factors, stiffness=None, bad=None, victim=1, at=3, guard=()):
        self.factors = np.asarray(factors, dtype=float)
        self.stiffness = np.zeros(len(factors)) if stiffness is None else np.asarray(stiffness)
        self.bad, self.victim, self.at, self.guard = bad, victim, at, guard

    def init(self, m):
        n = len(m)
        return ToyState(m, self.factors, self.stiffness, np.arange(n), np.zeros(n, dtype=int))

    def step(self, state):
        m, factor, stiffness, student, step = state
        step = step + 1
        new = factor[:, None] * m
        residual = np.abs(new - m).mean(axis=1)
        if self.bad is not None:
            hit = (student == self.victim) & (step == self.at)
            new[hit, 0] = self.bad
            residual[hit] = self.bad
        guarded = np.array([t in self.guard for t in step])
        info = StepInfo(residual, stiffness, guarded)
        return ToyState(new, factor, stiffness, student, step), info

    def damped(self, state, m):
        return state._replace(m=m)

    def taking(self, students):
        return self


def steps_until(factor, start, tol):
    """Steps after which |factor - 1| |m| has fallen below tol, m shrinking by factor."""
    n, m = 0, start
    while True:
        n += 1
        if abs(factor - 1) * m < tol:
            return n
        m *= factor


def test_each_student_stops_when_it_has_converged():
    factors = [0.1, 0.5, 0.9]
    solution = solve(Toy(factors), np.ones((3, 4)), tol=1e-3)
    expected = [steps_until(f, 1.0, 1e-3) for f in factors]
    assert solution.n_iter.tolist() == expected
    assert len(set(expected)) == 3
    assert solution.converged.all()
    assert solution.reason.tolist() == [StopReason.CONVERGED] * 3
    assert (solution.residual < 1e-3).all()
    # A retired student moves no further.
    for f, n, m in zip(factors, expected, solution.magnetizations, strict=True):
        np.testing.assert_allclose(m, f**n, rtol=1e-12)


def test_students_that_do_not_settle_stop_at_max_iter():
    solution = solve(Toy([-1.0, 0.1]), np.full((2, 3), 0.5), max_iter=17)
    assert solution.reason.tolist() == [StopReason.MAX_ITER, StopReason.CONVERGED]
    assert solution.converged.tolist() == [False, True]
    assert solution.n_iter[0] == 17
    assert solution.n_iter[1] < 17
    np.testing.assert_allclose(solution.residual[0], 1.0)
    np.testing.assert_allclose(solution.magnetizations[0], -0.5)  # 17 flips


def test_a_two_cycle_is_recognised_and_the_others_go_on():
    solution = solve(Toy([0.9, -1.0, 0.95]), np.ones((3, 4)), max_iter=500)
    assert [str(reason) for reason in solution.reason] == ["converged", "cycle", "converged"]
    assert solution.n_iter[1] == 18  # the first look
    assert solution.residual[1] == pytest.approx(2.0)
    np.testing.assert_array_equal(np.abs(solution.magnetizations[1]), 1)
    assert solution.n_iter[0] > 40


def test_a_slow_oscillation_that_dies_out_is_no_cycle():
    solution = solve(Toy([-0.998]), np.ones((1, 4)), max_iter=5000)
    assert solution.converged.all()


def test_a_recorded_trajectory_is_whole():
    solution = solve(Toy([-1.0]), np.ones((1, 4)), max_iter=40, record=True)
    assert solution.trajectory.shape == (41, 1, 4)


@pytest.mark.parametrize("name", SCHEMES)
def test_students_with_couplings_of_their_own_are_experiments_of_their_own(name):
    """Forty teachers at once, which end at different steps, against one at a time."""
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1.0, 1.0], size=(40, 3, 60))
    starts = rng.uniform(-1, 1, size=(40, 60))
    starts[::3] *= 1e-5  # the paramagnet: these are done at once
    together = solve(
        SCHEMES[name](StackedCouplings(patterns, np.float64), 1.3), starts, max_iter=60
    )
    assert len(set(together.n_iter)) >= 2
    for a in range(40):
        J = HebbianCouplings(patterns[a], np.float64)
        alone = solve(SCHEMES[name](J, 1.3), starts[a : a + 1], max_iter=60)
        assert alone.n_iter[0] == together.n_iter[a]
        assert alone.reason[0] == together.reason[a]
        np.testing.assert_allclose(alone.magnetizations[0], together.magnetizations[a], atol=1e-7)


def test_convergence_is_strictly_below_tol():
    # |f(m) - m| = 0.5 exactly, then 0.25.
    solution = solve(Toy([0.5]), np.ones((1, 2)), tol=0.5)
    assert solution.n_iter.tolist() == [2]
    assert solution.residual.tolist() == [0.25]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_divergence_returns_the_last_finite_magnetizations_and_spares_the_others(bad):
    factors, start = [0.7, 0.8, 0.9], np.ones((3, 5))
    healthy = solve(Toy(factors), start)
    solution = solve(Toy(factors, bad=bad, victim=1, at=3), start, record=True)
    assert solution.reason.tolist() == [
        StopReason.CONVERGED,
        StopReason.DIVERGED,
        StopReason.CONVERGED,
    ]
    assert solution.converged.tolist() == [True, False, True]
    assert solution.n_iter[1] == 3
    np.testing.assert_allclose(solution.magnetizations[1], 0.8**2)
    np.testing.assert_array_equal(solution.magnetizations[[0, 2]], healthy.magnetizations[[0, 2]])
    assert solution.n_iter[[0, 2]].tolist() == healthy.n_iter[[0, 2]].tolist()
    assert np.isfinite(solution.trajectory).all()


def test_divergence_at_the_first_step_returns_the_start():
    start = np.full((1, 3), 0.3)
    solution = solve(Toy([0.5], bad=np.nan, victim=0, at=1), start)
    assert solution.reason.tolist() == [StopReason.DIVERGED]
    np.testing.assert_array_equal(solution.magnetizations, start)


# --- Damping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 0.25, 0.95])
def test_damping_is_the_share_of_the_old_magnetizations(damping):
    solution = solve(
        Toy([-0.8]), np.ones((1, 2)), damping=damping, tol=1e-30, max_iter=6, record=True
    )
    multiplier = (1 - damping) * -0.8 + damping
    np.testing.assert_allclose(solution.trajectory[:, 0, 0], multiplier ** np.arange(7), rtol=1e-12)


def test_residual_is_measured_before_damping():
    solution = solve(Toy([0.5]), np.ones((1, 2)), damping=0.9, max_iter=1)
    assert solution.residual.tolist() == [0.5]
    np.testing.assert_allclose(solution.magnetizations, 0.95)


def test_automatic_damping_follows_the_stiffness_of_each_student():
    stiffness = np.array([0.0, 1.0, 3.0])
    solution = solve(
        Toy([-0.5, -0.5, -0.5], stiffness),
        np.ones((3, 2)),
        damping="auto",
        tol=1e-30,
        max_iter=4,
        record=True,
    )
    d = stiffness / (1 + stiffness)
    multiplier = (1 - d) * -0.5 + d
    for t in range(5):
        np.testing.assert_allclose(solution.trajectory[t, :, 0], multiplier**t, rtol=1e-12)


def test_automatic_damping_cancels_the_stiffest_mode():
    """A mode multiplied by -c, the worst that stiffness c allows, is gone after one step."""
    solution = solve(Toy([-4.0], [4.0]), np.ones((1, 2)), damping="auto", max_iter=1)
    np.testing.assert_allclose(solution.magnetizations, 0, atol=1e-15)


def test_automatic_damping_keeps_single_precision():
    V = np.random.default_rng(0).choice([-1, 1], size=(30, 20))
    start = np.random.default_rng(1).uniform(-1, 1, size=(2, 20)).astype(np.float32)
    seen = []

    class Spy(TAP):
        def step(self, state):
            seen.append(state.m.dtype)
            return super().step(state)

    solution = solve(Spy(HebbianCouplings(V), 0.5), start, damping="auto", max_iter=3)
    assert seen == [np.float32] * 3
    assert solution.magnetizations.dtype == np.float32


@pytest.mark.parametrize("damping", [-0.1, 1.0, 1.5, float("nan")])
def test_damping_outside_zero_one_is_refused(damping):
    with pytest.raises(ValueError, match=r"damping must be 'auto' or a number in \[0, 1\)"):
        solve(Toy([0.5]), np.ones((1, 2)), damping=damping)


def test_automatic_damping_stops_the_oscillation_of_the_dual_problem():
    """β = 0.5, M = 3N: naive TAP oscillates, the reaction term being too large."""
    teacher = HopfieldModel.random(200, 1, 0.5, random_state=0)
    X = teacher.sample(600, random_state=1)
    tap = TAP(HebbianCouplings(X, np.float64), 0.5)
    start = np.random.default_rng(2).uniform(-1, 1, size=(5, 200))
    naive = solve(tap, start, max_iter=300)
    damped = solve(tap, start, max_iter=300, damping="auto")
    assert not naive.converged.any()
    assert damped.converged.all()


# --- Trajectories, counts, and what goes in and comes out ---------------------------------------


def test_trajectory_runs_from_the_start_and_holds_students_that_are_done():
    factors = [0.1, 0.9]
    start = np.array([[1.0, 0.5], [0.8, -1.0]])
    solution = solve(Toy(factors), start, record=True)
    n_fast, n_slow = solution.n_iter
    assert n_fast < n_slow
    assert solution.trajectory.shape == (n_slow + 1, 2, 2)
    np.testing.assert_array_equal(solution.trajectory[0], start)
    np.testing.assert_array_equal(solution.trajectory[-1], solution.magnetizations)
    for a, n in enumerate(solution.n_iter):
        t = np.minimum(np.arange(n_slow + 1), n)
        expected = factors[a] ** t[:, None] * start[a]
        np.testing.assert_allclose(solution.trajectory[:, a], expected, rtol=1e-10)


def test_no_trajectory_unless_asked_for():
    assert solve(Toy([0.5]), np.ones((1, 2))).trajectory is None


def test_start_is_left_alone():
    start = np.random.default_rng(0).uniform(-1, 1, size=(3, 20))
    original = start.copy()
    J = HebbianCouplings(np.random.default_rng(1).choice([-1, 1], size=(2, 20)), np.float64)
    for make in SCHEMES.values():
        solution = solve(make(J, 2.0), start, max_iter=5, damping=0.5)
        assert not np.shares_memory(solution.magnetizations, start)
        np.testing.assert_array_equal(start, original)


def test_guarded_steps_are_counted_while_a_student_runs():
    # The first student retires at step 4 and cannot be guarded at step 6.
    factors = [0.1, 0.9]
    assert steps_until(0.1, 1.0, 1e-3) == 4
    solution = solve(Toy(factors, guard=(2, 4, 6)), np.ones((2, 2)))
    assert solution.n_guarded.tolist() == [2, 3]


def test_guarded_steps_of_a_real_scheme_are_counted():
    J = HebbianCouplings(np.random.default_rng(0).choice([-1, 1], size=(2, 64)), np.float64)
    start = np.full((2, 64), 0.99)
    start[0] = np.repeat([1.0, 0.0], 32)  # q = 1/2 = 1 - 1/β
    solution = solve(TAP(J, 2.0), start, max_iter=1)
    assert solution.n_guarded.tolist() == [1, 0]


@pytest.mark.parametrize("name", SCHEMES)
def test_a_batch_gives_what_each_student_gives_alone(name):
    """Students retire at different times; nobody may notice the others leave.

    Few steps: AMP from a random start is chaotic and would blow rounding errors up.
    """
    rng = np.random.default_rng(4)
    teacher = HopfieldModel.random(120, 3, 2.0, random_state=0)
    start = rng.uniform(-1, 1, size=(6, 120))
    start[:3] = teacher.patterns * rng.uniform(0.7, 1, size=(3, 120))
    scheme = SCHEMES[name](teacher.coupling_operator(), 2.0)
    together = solve(scheme, start, max_iter=15, record=True)
    assert len(set(together.n_iter.tolist())) > 1
    assert together.converged.any()
    for a in range(len(start)):
        alone = solve(scheme, start[a : a + 1], max_iter=15, record=True)
        np.testing.assert_allclose(
            together.magnetizations[a], alone.magnetizations[0], rtol=0, atol=1e-8
        )
        assert together.n_iter[a] == alone.n_iter[0]
        assert together.reason[a] == alone.reason[0]
        assert together.n_guarded[a] == alone.n_guarded[0]
        np.testing.assert_allclose(together.residual[a], alone.residual[0], atol=1e-8)


@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_converged_means_a_fixed_point_to_within_tol(tol):
    teacher = HopfieldModel.random(200, 3, 2.0, random_state=0)
    tap = TAP(teacher.coupling_operator(), 2.0)
    start = np.random.default_rng(0).uniform(-1, 1, size=(10, 200))
    solution = solve(tap, start, tol=tol)
    assert solution.converged.all()
    assert (solution.residual < tol).all()
    # The iteration contracts there, so one more step is nearer still.
    _, info = tap.step(tap.init(solution.magnetizations))
    assert (info.residual < tol).all()


# --- Never NaN or inf ---------------------------------------------------------------------------

corner = st.sampled_from([-1.0, 0.0, 1.0])
magnetization = st.one_of(corner, st.floats(-1, 1, allow_subnormal=False))


def arrays(elements, rows, columns):
    return st.lists(
        st.lists(elements, min_size=columns, max_size=columns), min_size=rows, max_size=rows
    ).map(np.array)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 7))
    kind = draw(st.sampled_from(["hebbian", "deflated", "dense"]))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    if kind == "dense":
        A = draw(arrays(st.floats(-3, 3), n, n))
        couplings, dtype = DenseCouplings((A + A.T) / 2), np.float64
    else:
        V = draw(arrays(corner, draw(st.integers(1, 6)), n))
        couplings = HebbianCouplings(V, dtype)
        if kind == "deflated":
            directions = draw(arrays(magnetization, 2, n))
            couplings = DeflatedCouplings(couplings, directions, np.array([1.0, 4.0]))
    start = draw(arrays(magnetization, 3, n)).astype(dtype)
    # Values where 1 - u can vanish exactly are worth more than their share.
    beta = draw(st.one_of(st.floats(0.05, 5), st.sampled_from([1.0, 2.0, 4.0])))
    return couplings, beta, start


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=30, deadline=None, derandomize=True)
@given(problem=problems(), damping=st.sampled_from([0.0, 0.5, "auto"]))
def test_nothing_but_finite_magnetizations_comes_out(name, problem, damping):
    couplings, beta, start = problem
    # The memory fields of AMP and Opper-Winther may overflow on the way.
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve(
            SCHEMES[name](couplings, beta), start, damping=damping, max_iter=25, record=True
        )
    assert np.isfinite(solution.trajectory).all()
    assert np.abs(solution.trajectory).max() <= 1 + 1e-6
    assert set(solution.reason) <= set(StopReason)
    np.testing.assert_array_equal(solution.converged, solution.reason == StopReason.CONVERGED)
    assert (solution.residual[solution.converged] < 1e-3).all()


def test_damped_parallel_amp_keeps_field_and_magnetization_together():
    """m = tanh βH after damping too: H left alone is multiplied by -u/(1-u) until it overflows."""
    beta, damping = 0.6, 0.4
    V = np.random.default_rng(0).choice([-1.0, 1.0], size=(5, 24))
    J, alpha = V.T @ V / 24, 5 / 24
    start = np.random.default_rng(1).uniform(-1, 1, size=(3, 24))
    amp = AMP(HebbianCouplings(V, np.float64), beta)
    solution = solve(amp, start, damping=damping, tol=1e-30, max_iter=5, record=True)
    for a in range(3):
        m_prev = m = start[a]
        for t in range(5):
            u, u_prev = (beta * (1 - np.mean(x**2)) for x in (m, m_prev))
            H = np.arctanh(m) / beta
            H = (J @ m - alpha * m - u * H - alpha * u / (1 - u_prev) * m_prev) / (1 - u)
            m_prev, m = m, (1 - damping) * np.tanh(beta * H) + damping * m
            np.testing.assert_allclose(solution.trajectory[t + 1, a], m, atol=1e-9)


@pytest.mark.parametrize("damping", [0.5, 0.95, "auto"])
def test_damped_parallel_amp_does_not_overflow(damping):
    teacher = HopfieldModel.random(1000, 10, 2.0, random_state=0)
    start = np.random.default_rng(0).choice([-1.0, 1.0], size=(5, 1000))
    # Warnings are errors.
    solution = solve(AMP(teacher.coupling_operator(), 2.0), start, damping=damping, max_iter=300)
    assert StopReason.DIVERGED not in solution.reason


# --- The direct problem, N = 1000, P = 10, T = 0.5 ----------------------------------------------


@pytest.fixture(scope="module")
def direct_problem():
    """Four teachers and fifty random sign vectors for each: 200 runs a scheme."""
    teachers = [HopfieldModel.random(1000, 10, 2.0, random_state=k) for k in range(4)]
    starts = np.random.default_rng(0).choice([-1.0, 1.0], size=(4, 50, 1000))
    return teachers, starts


def success_rate(direct_problem, make, size=1.0):
    """Share of runs that end with overlap above 0.7 with a pattern."""
    teachers, starts = direct_problem
    hits = []
    for teacher, start in zip(teachers, starts, strict=True):
        solution = solve(make(teacher.coupling_operator(), 2.0), size * start)
        overlap = np.abs(solution.magnetizations @ teacher.patterns.T) / 1000
        hits.append(overlap.max(axis=1) > 0.7)
    return np.mean(hits)


def test_tap_retrieves_a_pattern_from_random_starts(direct_problem):
    assert success_rate(direct_problem, TAP) > 0.95


def test_parallel_amp_does_not(direct_problem):
    assert success_rate(direct_problem, AMP) < 0.02


def test_corrected_opper_winther_does(direct_problem):
    assert success_rate(direct_problem, OpperWinther, size=0.1) > 0.9


def test_an_infinite_stiffness_ends_a_student_not_its_magnetizations():
    """d = c/(1+c) is NaN there, and would be mixed into m one step before anybody looks."""

    class Stiff(Toy):
        def step(self, state):
            new, info = super().step(state)
            hit = (state.student == 1) & (new.step == 3)
            return new, info._replace(stiffness=np.where(hit, np.inf, info.stiffness))

    solution = solve(Stiff([0.5, 0.9]), np.ones((2, 4)), damping="auto", tol=1e-3)
    assert [str(reason) for reason in solution.reason] == ["converged", "diverged"]
    assert np.isfinite(solution.magnetizations).all()
    np.testing.assert_allclose(solution.magnetizations[1], 0.9**2)
