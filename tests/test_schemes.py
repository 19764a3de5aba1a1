"""The update rules against plain transcriptions of their formulas, and against the symmetries,
fixed points and linear stability that the formulas imply."""

import math
from typing import NamedTuple

import numpy as np
import pytest

from dualtap.couplings import (
    DeflatedCouplings,
    DenseCouplings,
    HebbianCouplings,
    StackedCouplings,
)
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import AMP, TAP, OpperWinther, SequentialAMP, SequentialTAP
from dualtap.schemes._base import SINGULARITY
from dualtap.schemes.amp import AMPState
from dualtap.schemes.opper_winther import OpperWintherState
from dualtap.solve import solve

N = 24
KINDS = ["hebbian", "deflated", "dense"]
PARALLEL = {
    "TAP": TAP,
    "AMP": AMP,
    "OW": OpperWinther,
    "OW printed": lambda J, beta: OpperWinther(J, beta, printed=True),
}
SEQUENTIAL = {
    "sequential TAP": lambda J, beta: SequentialTAP(J, beta, damping=0.3),
    "sequential AMP": lambda J, beta: SequentialAMP(J, beta, damping=0.3),
    "sequential AMP printed": lambda J, beta: SequentialAMP(
        J, beta, damping=0.3, damps="magnetization"
    ),
}
ALL = PARALLEL | SEQUENTIAL


class Problem(NamedTuple):
    couplings: HebbianCouplings | DeflatedCouplings | DenseCouplings
    J: np.ndarray
    alpha: float


def make_problem(kind, seed=0, *, gauge=None, order=None):
    """An operator with the dense matrix and the α that it must stand for.

    ``gauge`` multiplies every stored vector by a sign vector, ``order`` permutes the spins.
    """
    rng = np.random.default_rng(seed)
    gauge = np.ones(N) if gauge is None else gauge
    order = np.arange(N) if order is None else order
    if kind == "dense":
        A = rng.normal(size=(N, N)) / np.sqrt(N)
        J = ((A + A.T) / 2 * np.outer(gauge, gauge))[np.ix_(order, order)]
        return Problem(DenseCouplings(J), J, np.trace(J) / N)
    V = (rng.choice([-1.0, 1.0], size=(5, N)) * gauge)[:, order]
    base = HebbianCouplings(V, np.float64)
    J = V.T @ V / N
    if kind == "hebbian":
        return Problem(base, J, 5 / N)
    D = (rng.uniform(-1, 1, size=(2, N)) * gauge)[:, order]
    gammas = np.array([1.3, 0.4])
    J = J - sum(g * np.outer(d, d) for g, d in zip(gammas, D, strict=True)) / N
    return Problem(DeflatedCouplings(base, D, gammas), J, 5 / N)


def random_starts(n_students=4, seed=1):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n_students, N))


def run(scheme, m, n_steps):
    """Magnetizations after each of n_steps."""
    state, out = scheme.init(m), []
    for _ in range(n_steps):
        state, _ = scheme.step(state)
        out.append(state.m)
    return np.stack(out)


# --- The formulas, one student at a time, with the full matrix J --------------------------------


def u_of(m, beta):
    return beta * (1 - np.mean(m**2))


def reference_tap(J, alpha, beta, m, n_steps):
    out = []
    for _ in range(n_steps):
        u = u_of(m, beta)
        m = np.tanh(beta * (J @ m) - alpha * beta / (1 - u) * m)
        out.append(m)
    return np.stack(out)


def reference_amp(J, alpha, beta, m, n_steps):
    H = np.arctanh(m) / beta
    history = [m, m]  # the start counts as its own predecessor
    for _ in range(n_steps):
        m_prev, m = history[-2:]
        u, u_prev = u_of(m, beta), u_of(m_prev, beta)
        H = (J @ m - alpha * m - u * H - alpha * u / (1 - u_prev) * m_prev) / (1 - u)
        history.append(np.tanh(beta * H))
    return np.stack(history[2:])


def reference_opper_winther(J, alpha, beta, m, n_steps, printed):
    z, out = np.zeros(N), []
    for _ in range(n_steps):
        q = np.mean(m**2)
        u = beta * (1 - q)
        if printed:
            A, c = beta / (1 + alpha * u), alpha * (1 - q)
        else:
            A = beta * (1 - alpha * u / (1 - u))
            c = 1 / A - 1 / beta
        z = A * (J @ m - alpha * m - m) + c * A * z
        m = np.tanh(z + A * m)
        out.append(m)
    return np.stack(out)


REFERENCES = {
    "TAP": reference_tap,
    "AMP": reference_amp,
    "OW": lambda *a: reference_opper_winther(*a, printed=False),
    "OW printed": lambda *a: reference_opper_winther(*a, printed=True),
}


@pytest.mark.parametrize("beta", [0.6, 2.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_steps_equal_the_formula(name, kind, beta):
    couplings, J, alpha = make_problem(kind)
    starts = random_starts()
    found = run(PARALLEL[name](couplings, beta), starts, n_steps=4)
    for a, m in enumerate(starts):
        expected = REFERENCES[name](J, alpha, beta, m, 4)
        np.testing.assert_allclose(found[:, a], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PARALLEL)
def test_residual_is_the_mean_change(name):
    couplings, J, alpha = make_problem("hebbian")
    starts = random_starts()
    scheme = PARALLEL[name](couplings, 0.6)
    _, info = scheme.step(scheme.init(starts))
    expected = [np.abs(REFERENCES[name](J, alpha, 0.6, m, 1)[0] - m).mean() for m in starts]
    np.testing.assert_allclose(info.residual, expected, rtol=1e-10)
    assert info.stiffness.shape == info.guarded.shape == (len(starts),)


def test_first_step_of_amp_remembers_a_start_that_was_always_there():
    couplings, J, alpha = make_problem("hebbian")
    beta, m = 0.6, random_starts(1)
    u = u_of(m[0], beta)
    H = np.arctanh(m[0]) / beta
    H_new = (J @ m[0] - alpha * m[0] - u * H - alpha * u / (1 - u) * m[0]) / (1 - u)
    amp = AMP(couplings, beta)
    state, _ = amp.step(amp.init(m))
    np.testing.assert_allclose(state.H[0], H_new, rtol=1e-9)
    np.testing.assert_array_equal(state.m_prev, m)
    np.testing.assert_allclose(state.u_prev, [[u]], rtol=1e-12)


@pytest.mark.parametrize("name", PARALLEL)
def test_parallel_schemes_keep_the_precision_of_the_couplings(name):
    vectors = np.random.default_rng(0).choice([-1, 1], size=(5, N))
    start = random_starts().astype(np.float32)
    state = PARALLEL[name](HebbianCouplings(vectors, np.float32), 0.6).init(start)
    for _ in range(2):
        state, info = PARALLEL[name](HebbianCouplings(vectors, np.float32), 0.6).step(state)
    assert all(x.dtype == np.float32 for x in state)
    assert info.residual.dtype == np.float32


# --- What every rule promises -------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_steps_are_pure(name):
    scheme = ALL[name](make_problem("hebbian").couplings, 0.6)
    start = random_starts()
    original = start.copy()
    state = scheme.init(start)
    for _ in range(3):  # later states carry memory
        state, _ = scheme.step(state)
    before = [x.copy() for x in state]
    first, _ = scheme.step(state)
    second, _ = scheme.step(state)
    for x, y in zip(state, before, strict=True):
        np.testing.assert_array_equal(x, y)
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(start, original)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_a_batch_is_its_students_one_at_a_time(name, kind):
    scheme = ALL[name](make_problem(kind).couplings, 0.6)
    starts = random_starts(5)
    together = run(scheme, starts, 3)
    for a in range(5):
        alone = run(scheme, starts[a : a + 1], 3)[:, 0]
        np.testing.assert_allclose(together[:, a], alone, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_spin_flip_symmetry(name, kind):
    scheme = ALL[name](make_problem(kind).couplings, 0.6)
    starts = random_starts()
    np.testing.assert_allclose(run(scheme, -starts, 3), -run(scheme, starts, 3), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ALL)
def test_gauge_symmetry(name, kind):
    xi = np.random.default_rng(9).choice([-1.0, 1.0], size=N)
    starts = random_starts()
    plain = run(ALL[name](make_problem(kind).couplings, 0.6), starts, 3)
    gauged = run(ALL[name](make_problem(kind, gauge=xi).couplings, 0.6), starts * xi, 3)
    np.testing.assert_allclose(gauged, plain * xi, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PARALLEL)  # a sequential sweep depends on the order by design
def test_permutation_symmetry(name, kind):
    order = np.random.default_rng(9).permutation(N)
    starts = random_starts()
    plain = run(PARALLEL[name](make_problem(kind).couplings, 0.6), starts, 3)
    permuted = run(
        PARALLEL[name](make_problem(kind, order=order).couplings, 0.6), starts[:, order], 3
    )
    np.testing.assert_allclose(permuted, plain[:, :, order], rtol=0, atol=1e-11)


# --- Sequential sweeps --------------------------------------------------------------------------


def reference_tap_sweep(J, alpha, beta, damping, m):
    """One sweep in place; returns mean |f(m) - m|."""
    u, total = u_of(m, beta), 0.0  # u of the magnetizations before the sweep
    for i in range(N):
        field = sum(J[i, j] * m[j] for j in range(N))
        target = math.tanh(beta * field - alpha * beta / (1 - u) * m[i])
        total += abs(target - m[i])
        m[i] = (1 - damping) * target + damping * m[i]
    return total / N


def reference_amp_sweep(J, alpha, beta, damping, damps, H, m, m_prev, u_prev):
    """One sweep in place; returns mean |tanh βH' - m| and u before the sweep."""
    u, total = u_of(m, beta), 0.0
    for i in range(N):
        field = sum(J[i, j] * m[j] for j in range(N)) - alpha * m[i]
        H_new = (field - u * H[i] - alpha * u / (1 - u_prev) * m_prev[i]) / (1 - u)
        target = math.tanh(beta * H_new)
        total += abs(target - m[i])
        m_prev[i] = m[i]
        if damps == "field":
            H[i] = (1 - damping) * H_new + damping * H[i]
            m[i] = math.tanh(beta * H[i])
        else:
            m[i] = (1 - damping) * target + damping * m[i]
            H[i] = math.atanh(m[i]) / beta
    return total / N, u


@pytest.mark.parametrize("damping", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_sequential_tap_equals_a_plain_loop(kind, damping):
    couplings, J, alpha = make_problem(kind)
    starts = random_starts(3)
    scheme = SequentialTAP(couplings, 0.6, damping)
    expected, state = starts.copy(), scheme.init(starts)
    for _ in range(4):
        state, info = scheme.step(state)
        residuals = [reference_tap_sweep(J, alpha, 0.6, damping, m) for m in expected]
        np.testing.assert_allclose(state.m, expected, rtol=0, atol=1e-11)
        np.testing.assert_allclose(info.residual, residuals, rtol=1e-8)


@pytest.mark.parametrize("damps", ["field", "magnetization"])
@pytest.mark.parametrize("damping", [0.0, 0.5, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_sequential_amp_equals_a_plain_loop(kind, damping, damps):
    couplings, J, alpha = make_problem(kind)
    starts = random_starts(3)
    scheme = SequentialAMP(couplings, 0.4, damping, damps)
    m, m_prev, H = starts.copy(), starts.copy(), np.arctanh(starts) / 0.4
    u = [u_of(x, 0.4) for x in m]
    state = scheme.init(starts)
    for _ in range(4):
        state, info = scheme.step(state)
        residuals = []
        for a in range(len(starts)):
            r, u[a] = reference_amp_sweep(
                J, alpha, 0.4, damping, damps, H[a], m[a], m_prev[a], u[a]
            )
            residuals.append(r)
        np.testing.assert_allclose(state.m, m, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.H, H, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(state.m_prev, m_prev, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.u_prev[:, 0], u, rtol=1e-9)
        np.testing.assert_allclose(info.residual, residuals, rtol=1e-6)


def test_undamped_it_does_not_matter_what_is_damped():
    couplings, _, _ = make_problem("hebbian")
    field, m = (
        run(SequentialAMP(couplings, 0.4, 0.0, damps), random_starts(), 3)
        for damps in ("field", "magnetization")
    )
    np.testing.assert_allclose(field, m, atol=1e-9)


@pytest.mark.parametrize("rule", [SequentialTAP, SequentialAMP])
def test_students_beyond_one_group_of_lanes(rule):
    """The kernel advances students in groups; the last one is not full."""
    scheme = rule(make_problem("hebbian").couplings, 0.6, 0.3)
    starts = random_starts(37)
    together = run(scheme, starts, 3)
    for a in (0, 15, 16, 31, 36):
        alone = run(scheme, starts[a : a + 1], 3)[:, 0]
        np.testing.assert_allclose(together[:, a], alone, rtol=0, atol=1e-13)


def test_what_is_damped_decides_the_direct_problem():
    """N = 500, P = 5, T = 0.5: twelve teachers and starts, each rule on all of them."""
    rng = np.random.default_rng(0)
    patterns = rng.choice([-1.0, 1.0], size=(12, 5, 500))
    starts = rng.choice([-1.0, 1.0], size=(12, 500))
    reached = {}
    for damps in ("field", "magnetization"):
        rule = SequentialAMP(StackedCouplings(patterns), 2.0, damps=damps)
        solution = solve(rule, starts, max_iter=400)
        overlap = np.abs(np.einsum("api,ai->ap", patterns, solution.magnetizations)) / 500
        reached[damps] = solution.converged & (overlap.max(axis=1) > 0.7)
        for a in np.flatnonzero(reached[damps]):  # and what is reached solves TAP's equations
            tap = TAP(HebbianCouplings(patterns[a], np.float64), 2.0)
            m = solution.magnetizations[a : a + 1]
            assert tap.step(tap.init(m))[1].residual[0] < 2e-3
    assert reached["field"].sum() >= 11
    assert not reached["magnetization"].any()


def test_what_cannot_be_damped_is_refused():
    with pytest.raises(ValueError, match="damps must be 'field' or 'magnetization', got 'both'"):
        SequentialAMP(make_problem("hebbian").couplings, 0.6, damps="both")


@pytest.mark.parametrize("rule", [SequentialTAP, SequentialAMP])
def test_sequential_schemes_work_in_float64_and_leave_damping_to_themselves(rule):
    scheme = rule(make_problem("hebbian").couplings, 0.6)
    assert scheme.damping == 0.95  # the appendix
    state, info = scheme.step(scheme.init(random_starts().astype(np.float32)))
    assert state.m.dtype == np.float64
    np.testing.assert_array_equal(info.stiffness, 0)


@pytest.mark.parametrize("damping", [-0.1, 1.0, 2.0, float("nan")])
@pytest.mark.parametrize("rule", [SequentialTAP, SequentialAMP])
def test_sequential_schemes_refuse_a_damping_outside_zero_one(rule, damping):
    with pytest.raises(ValueError, match=r"damping must be in \[0, 1\)"):
        rule(make_problem("hebbian").couplings, 0.6, damping)


# --- Fixed points -------------------------------------------------------------------------------

BETA_RETRIEVAL = 1 / 0.65


@pytest.fixture(scope="module", params=[0, 1])
def retrieval(request):
    """A teacher at T = 0.65, P/N = 0.01, and TAP's solutions at its ten patterns."""
    teacher = HopfieldModel.random(1000, 10, BETA_RETRIEVAL, random_state=request.param)
    couplings = teacher.coupling_operator()
    solution = solve(
        TAP(couplings, BETA_RETRIEVAL),
        teacher.patterns.astype(np.float64),
        tol=1e-13,
        max_iter=5000,
    )
    assert solution.converged.all()
    # Retrieval states, not the paramagnet, which is a fixed point of everything.
    overlap = np.sum(solution.magnetizations * teacher.patterns, axis=1) / 1000
    assert overlap.min() > 0.6
    return teacher, couplings, solution.magnetizations


def test_tap_solutions_are_fixed_points_of_amp(retrieval):
    _, couplings, m = retrieval
    amp = AMP(couplings, BETA_RETRIEVAL)
    state = amp.init(m)
    for _ in range(3):
        state, info = amp.step(state)
        assert info.residual.max() < 1e-6


def opper_winther_residual(couplings, m, printed):
    """Residual at m with the memory that a fixed point at m would have: tanh(z + Am) = m."""
    rule = OpperWinther(couplings, BETA_RETRIEVAL, printed)
    u = BETA_RETRIEVAL * (1 - np.mean(m**2, axis=1, keepdims=True))
    alpha = couplings.alpha
    gain = 1 / (1 + alpha * u) if printed else 1 - alpha * u / (1 - u)
    A = BETA_RETRIEVAL * gain
    _, info = rule.step(OpperWintherState(np.arctanh(m) - A * m, m))
    return info.residual


def test_tap_solutions_are_fixed_points_of_corrected_opper_winther_only(retrieval):
    _, couplings, m = retrieval
    corrected = opper_winther_residual(couplings, m, printed=False)
    printed = opper_winther_residual(couplings, m, printed=True)
    assert corrected.max() < 1e-6
    assert printed.min() > 1e-4


def test_opper_winther_converges_to_tap_solutions_only_when_corrected(retrieval):
    teacher, couplings, m = retrieval
    tap = TAP(couplings, BETA_RETRIEVAL)
    residual = {}
    for printed in (False, True):
        solution = solve(
            OpperWinther(couplings, BETA_RETRIEVAL, printed),
            teacher.patterns.astype(np.float64),
            tol=1e-12,
            max_iter=5000,
        )
        assert solution.converged.all()
        _, info = tap.step(tap.init(solution.magnetizations))
        residual[printed] = info.residual
        if not printed:
            np.testing.assert_allclose(solution.magnetizations, m, atol=1e-8)
    assert residual[False].max() < 1e-6
    # The printed pair is right to first order in αu only: off by about 1e-3 here.
    assert residual[True].min() > 10 * residual[False].max()
    assert residual[True].min() > 5e-4
    assert residual[True].max() < 4e-3


@pytest.mark.parametrize("name", SEQUENTIAL)
def test_tap_solutions_are_fixed_points_of_the_sequential_rules(retrieval, name):
    _, couplings, m = retrieval
    scheme = SEQUENTIAL[name](couplings, BETA_RETRIEVAL)
    _, info = scheme.step(scheme.init(m))
    assert info.residual.max() < 1e-6


def test_sequential_amp_converges_to_tap_solutions(retrieval):
    teacher, couplings, m = retrieval
    rule = SequentialAMP(couplings, BETA_RETRIEVAL)
    solution = solve(rule, teacher.patterns[:3].astype(np.float64), tol=1e-10, max_iter=3000)
    assert solution.converged.all()
    np.testing.assert_allclose(solution.magnetizations, m[:3], atol=1e-6)


# --- Linear stability of the paramagnet ---------------------------------------------------------


def modes(n_spins=60, n_vectors=12, seed=3):
    """Hebbian couplings with eigenpairs: the top mode, one inside, and one of the null space."""
    rng = np.random.default_rng(seed)
    V = rng.choice([-1.0, 1.0], size=(n_vectors, n_spins))
    values, vectors = np.linalg.eigh(V.T @ V / n_spins)
    picked = [-1, -n_vectors // 2, 0]
    assert abs(values[0]) < 1e-12
    return HebbianCouplings(V, np.float64), values[picked], vectors[:, picked].T


AMPLITUDE = 1e-7  # cubic terms are 14 digits below


@pytest.mark.parametrize("beta", [0.3, 0.7, 1.6])
def test_growth_rate_under_tap(beta):
    couplings, eigenvalues, vectors = modes()
    alpha = couplings.alpha
    found = run(TAP(couplings, beta), AMPLITUDE * vectors, 1)[0]
    expected = beta * eigenvalues - alpha * beta / (1 - beta)
    np.testing.assert_allclose(
        found, AMPLITUDE * expected[:, None] * vectors, rtol=0, atol=1e-9 * AMPLITUDE
    )


@pytest.mark.parametrize("beta", [0.3, 0.45, 0.7, 1.6])
def test_growth_rate_under_amp(beta):
    couplings, eigenvalues, vectors = modes()
    alpha = couplings.alpha
    found = run(AMP(couplings, beta), AMPLITUDE * vectors, 4)
    x_prev = x = np.ones(3)
    for step in range(4):
        x_next = (
            beta / (1 - beta) * ((eigenvalues - alpha - 1) * x - alpha * beta / (1 - beta) * x_prev)
        )
        x_prev, x = x, x_next
        along = np.sum(found[step] * vectors, axis=1) / AMPLITUDE
        np.testing.assert_allclose(along, x, rtol=1e-6)


@pytest.mark.parametrize(("beta", "grows"), [(0.45, False), (0.55, True)])
def test_amp_leaves_the_paramagnet_at_one_half(beta, grows):
    """With few patterns the null space of J has multiplier -β/(1-β) under parallel AMP."""
    V = np.random.default_rng(0).choice([-1.0, 1.0], size=(1, 400))
    noise = np.random.default_rng(1).normal(size=(1, 400))
    noise -= (noise @ V[0]) * V[0] / 400
    found = run(AMP(HebbianCouplings(V, np.float64), beta), 1e-9 * noise, 30)
    growth = np.linalg.norm(found[-1]) / np.linalg.norm(1e-9 * noise)
    assert growth > 10 if grows else growth < 0.1


# --- The guard on 1 - u -------------------------------------------------------------------------


def singular_start(beta):
    """Two students: q = 1 - 1/β to the last bit, and a harmless one."""
    n = 64
    ones = round(n * (1 - 1 / beta))
    m = np.full((2, n), 0.95)
    m[0] = 0
    m[0, :ones] = np.random.default_rng(0).choice([-1.0, 1.0], size=ones)
    assert beta * (1 - np.mean(m[0] ** 2)) == 1.0
    return m


def guard_couplings():
    return HebbianCouplings(np.random.default_rng(5).choice([-1.0, 1.0], size=(3, 64)), np.float64)


@pytest.mark.parametrize("beta", [2.0, 4.0])
@pytest.mark.parametrize("name", ["TAP", "AMP", "OW"])
def test_singularity_is_guarded_and_reported(name, beta):
    scheme = PARALLEL[name](guard_couplings(), beta)
    state, info = scheme.step(scheme.init(singular_start(beta)))
    assert all(np.isfinite(x).all() for x in state)
    assert np.isfinite(info.residual).all()
    assert np.isfinite(info.stiffness).all()
    np.testing.assert_array_equal(info.guarded, [True, False])


def test_guarded_tap_uses_the_floor():
    couplings, beta = guard_couplings(), 2.0
    m = singular_start(beta)
    state, _ = (tap := TAP(couplings, beta)).step(tap.init(m))
    J = couplings.vectors.T @ couplings.vectors / 64
    expected = np.tanh(beta * J @ m[0] - couplings.alpha * beta / SINGULARITY * m[0])
    np.testing.assert_allclose(state.m[0], expected, atol=1e-12)


@pytest.mark.parametrize("side", [-1, 1])
def test_guard_keeps_the_side_and_touches_nothing_farther_out(side):
    """Just inside the floor the sign of 1 - u survives; just outside, the formula is exact."""
    couplings, beta = guard_couplings(), 2.0
    tap = TAP(couplings, beta)
    J = couplings.vectors.T @ couplings.vectors / 64
    for distance, guarded in [(0.5 * SINGULARITY, True), (1.5 * SINGULARITY, False)]:
        q = 1 - (1 - side * distance) / beta
        m = np.full((1, 64), np.sqrt(q))
        used = side * max(distance, SINGULARITY)
        expected = np.tanh(beta * J @ m[0] - couplings.alpha * beta / used * m[0])
        state, info = tap.step(tap.init(m))
        np.testing.assert_allclose(state.m[0], expected, rtol=1e-6)
        assert info.guarded.tolist() == [guarded]


def test_printed_opper_winther_has_no_singularity():
    rule = OpperWinther(guard_couplings(), 2.0, printed=True)
    state, info = rule.step(rule.init(singular_start(2.0)))
    assert np.isfinite(state.m).all()
    assert not info.guarded.any()


def test_corrected_opper_winther_guards_a_vanishing_gain():
    """A = β(1 - αu/(1-u)) = 0 at α = 1, u = 1/2, where c = 1/A - 1/β is infinite."""
    V = np.random.default_rng(0).choice([-1.0, 1.0], size=(64, 64))
    m = np.zeros((1, 64))
    m[0, :32] = 1
    rule = OpperWinther(HebbianCouplings(V, np.float64), 1.0)
    state, info = rule.step(rule.init(m))
    assert np.isfinite(state.m).all()
    assert np.isfinite(state.z).all()
    assert info.guarded.tolist() == [True]


@pytest.mark.parametrize("rule", [SequentialTAP, SequentialAMP])
def test_sequential_rules_guard_the_singularity(rule):
    """A sweep uses the u from before it, so that is the one to report."""
    scheme = rule(guard_couplings(), 2.0, damping=0.5)
    state, info = scheme.step(scheme.init(singular_start(2.0)))
    assert np.isfinite(state.m).all()
    assert np.isfinite(info.residual).all()
    assert info.guarded.tolist() == [True, False]


@pytest.mark.parametrize("name", ALL)
def test_damping_moves_the_magnetizations_of_a_state(name):
    scheme = ALL[name](make_problem("hebbian").couplings, 0.6)
    state, _ = scheme.step(scheme.init(random_starts()))
    m = 0.5 * state.m
    moved = scheme.damped(state, m)
    assert type(moved) is type(state)
    np.testing.assert_array_equal(moved.m, m)
    for field in set(state._fields) - {"m", "H"}:
        np.testing.assert_array_equal(getattr(moved, field), getattr(state, field))
    if "H" in state._fields:  # m = tanh βH holds for the new m
        np.testing.assert_allclose(np.tanh(0.6 * moved.H), m, atol=1e-12)


def test_amp_starts_at_saturated_magnetizations():
    """H is infinite at |m| = 1; the state must hold a finite one that gives m back."""
    amp = AMP(guard_couplings(), 2.0)
    m = np.random.default_rng(0).choice([-1.0, 1.0], size=(2, 64))
    state = amp.init(m)
    assert isinstance(state, AMPState)
    assert np.isfinite(state.H).all()
    np.testing.assert_allclose(np.tanh(2.0 * state.H), m, atol=1e-12)


# --- Stiffness: why automatic damping cannot oscillate ------------------------------------------


def frozen_q_jacobian(tap, m):
    """∂f_i/∂m_j of the parallel TAP step at fixed q.

    Finite differences of the step itself contain the change of q too. That part is the rank-one
    -D_i m_i (dr/dq) 2 m_j / N with r = αβ/(1-u); it is taken out, because the damping argument
    is about D (βJ - r), D = diag(1 - f²).
    """
    n, h = len(m), 1e-6
    points = m + h * np.concatenate([np.eye(n), -np.eye(n)])
    f = tap.step(tap.init(points))[0].m
    full = (f[:n] - f[n:]).T / (2 * h)
    f0 = tap.step(tap.init(m[None]))[0].m[0]
    one_minus_u = 1 - u_of(m, tap.beta)
    slope = -tap.couplings.alpha * tap.beta**2 / one_minus_u**2
    return full + np.outer((1 - f0**2) * m, 2 * m / n) * slope


@pytest.mark.parametrize(
    ("n_vectors", "beta", "size"),
    [
        (60, 0.5, 0.1),  # dual problem, α = 3: the reaction term overshoots without damping
        (60, 0.5, 0.8),
        (10, 0.8, 0.1),
        (4, 1.1, 0.95),
        (4, 2.0, 0.5),  # u > 1: the reaction term has the other sign, no damping is needed
    ],
)
def test_automatic_damping_leaves_no_negative_multiplier(n_vectors, beta, size):
    rng = np.random.default_rng(0)
    n = 20
    couplings = HebbianCouplings(rng.choice([-1.0, 1.0], size=(n_vectors, n)), np.float64)
    tap = TAP(couplings, beta)
    for _ in range(5):
        m = size * rng.uniform(-1, 1, size=n)
        _, info = tap.step(tap.init(m[None]))
        c = float(info.stiffness[0])
        multipliers = np.linalg.eigvals(frozen_q_jacobian(tap, m)).real
        assert multipliers.min() >= -c - 1e-8
        d = c / (1 + c)
        assert ((1 - d) * multipliers + d).min() >= -1e-9


def test_without_damping_the_dual_iteration_oscillates():
    """The case above is not empty: the same Jacobian has multipliers below -1."""
    rng = np.random.default_rng(0)
    tap = TAP(HebbianCouplings(rng.choice([-1.0, 1.0], size=(60, 20)), np.float64), 0.5)
    # λ_min of J is near (√α - 1)² = 0.5, and βλ_min far below the reaction αβ/(1-u) ≈ 3.
    multipliers = np.linalg.eigvals(frozen_q_jacobian(tap, 0.1 * rng.uniform(-1, 1, 20))).real
    assert multipliers.min() < -1


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_stiffness_of_tap_is_the_reaction_where_it_is_positive(beta):
    couplings, _, alpha = make_problem("hebbian")
    starts = random_starts()
    tap = TAP(couplings, beta)
    _, info = tap.step(tap.init(starts))
    expected = [max(alpha * beta / (1 - u_of(m, beta)), 0) for m in starts]
    np.testing.assert_allclose(info.stiffness, expected, rtol=1e-12)
