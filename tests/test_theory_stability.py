"""Linear stability of the paramagnet: formulas against the package's own iterations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dualtap as dt
from dualtap.schemes import AMP, TAP, OpperWinther
from dualtap.theory import (
    amp_critical_beta,
    amp_modes,
    marchenko_pastur_edges,
    opper_winther_modes,
    spin_glass_temperature,
    tap_critical_beta,
    tap_multiplier,
    tap_oscillation_beta,
)

N_SPINS = 300
SMALL = 1e-7
betas = st.floats(0.01, 0.99)
alphas = st.floats(0, 5)


def _spectrum(n_patterns, seed=0):
    """Return couplings of random patterns, and all eigenvalues and eigenvectors (rows) of J."""
    model = dt.HopfieldModel.random(N_SPINS, n_patterns, beta=1.0, random_state=seed)
    eigenvalues, vectors = np.linalg.eigh(model.couplings())
    return model.coupling_operator(), eigenvalues, vectors.T


def _run(scheme, direction, n_steps, size=SMALL):
    """Return the component along ``direction`` at every step from a small start along it."""
    state = scheme.init(size * direction[None])
    xs = [size]
    for _ in range(n_steps):
        state, _ = scheme.step(state)
        xs.append(float(state.m[0] @ direction))
        assert np.abs(state.m).max() < 1e-3  # still linear
    return np.array(xs)


@pytest.mark.parametrize("beta", [0.3, 0.6, 0.9, 1.3])
@pytest.mark.parametrize("n_patterns", [1, 30, 450])
def test_tap_multiplies_eigenvectors_as_predicted(beta, n_patterns):
    couplings, eigenvalues, vectors = _spectrum(n_patterns)
    for k in (0, N_SPINS // 2, N_SPINS - 1):
        xs = _run(TAP(couplings, beta), vectors[k], 3)
        expected = tap_multiplier(eigenvalues[k], beta, couplings.alpha)
        assert xs[1:] / xs[:-1] == pytest.approx(np.full(3, expected), rel=0.02)


@pytest.mark.parametrize("beta", [0.3, 0.6, 0.9, 1.3])
@pytest.mark.parametrize("n_patterns", [1, 30, 450])
def test_amp_multiplies_eigenvectors_as_predicted(beta, n_patterns):
    """Both roots, from the two-term recursion that four values of a trajectory obey."""
    couplings, eigenvalues, vectors = _spectrum(n_patterns)
    for k in (0, N_SPINS // 2, N_SPINS - 1):
        modes = amp_modes(eigenvalues[k], beta, couplings.alpha)
        x = _run(AMP(couplings, beta), vectors[k], 3)
        trace, minus_determinant = np.linalg.solve([[x[1], x[0]], [x[2], x[1]]], [x[2], x[3]])
        assert trace == pytest.approx(modes.roots.sum().real, rel=0.02, abs=1e-4)
        assert -minus_determinant == pytest.approx(modes.roots.prod().real, rel=0.02)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("beta", [0.3, 0.6, 0.9, 1.3])
@pytest.mark.parametrize("n_patterns", [1, 30, 450])
def test_opper_winther_multiplies_eigenvectors_as_predicted(beta, n_patterns, printed):
    """Both roots, as for AMP; the first step has no memory, so the recursion starts after it."""
    couplings, eigenvalues, vectors = _spectrum(n_patterns)
    for k in (0, N_SPINS // 2, N_SPINS - 1):
        modes = opper_winther_modes(eigenvalues[k], beta, couplings.alpha, printed=printed)
        x = _run(OpperWinther(couplings, beta, printed), vectors[k], 4, size=1e-12)[1:]
        trace, minus_determinant = np.linalg.solve([[x[1], x[0]], [x[2], x[1]]], [x[2], x[3]])
        assert trace == pytest.approx(modes.roots.sum().real, rel=0.02, abs=1e-4)
        assert -minus_determinant == pytest.approx(modes.roots.prod().real, rel=0.02, abs=1e-7)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("beta", [0.55, 0.8, 0.95])
def test_opper_winther_has_no_instability_off_the_patterns_at_small_load(beta, printed):
    """At λ = 0 AMP has -β/(1-β), whatever α; here the multipliers vanish with α."""
    radii = [
        float(opper_winther_modes(0.0, beta, alpha, printed=printed).radius)
        for alpha in (1e-2, 1e-4, 1e-6)
    ]
    assert radii[0] > 5 * radii[1] > 25 * radii[2]
    assert radii[0] < 0.5
    assert amp_modes(0.0, beta, 1e-6).radius > 1
    pattern = opper_winther_modes(1.0, beta, 1e-6, printed=printed)
    assert pattern.radius == pytest.approx(beta, rel=1e-3)
    assert not pattern.oscillates


def test_both_forms_of_opper_winther_agree_to_first_order_in_the_load():
    for alpha, tolerance in ((1e-2, 2e-2), (1e-4, 2e-4)):
        forms = [opper_winther_modes(1.5, 0.6, alpha, printed=p).radius for p in (False, True)]
        assert forms[0] == pytest.approx(forms[1], rel=tolerance)


def test_a_vanishing_gain_of_opper_winther_is_named():
    with pytest.raises(ValueError, match="A = β"):
        opper_winther_modes(1.0, 0.5, 1.0)


@pytest.mark.parametrize(("beta", "grows"), [(0.45, False), (0.55, True), (0.8, True)])
def test_parallel_amp_oscillates_off_the_patterns_from_a_random_start(beta, grows):
    """The paper's Fig. on trajectories, P = 1: multiplier -β/(1-β) at λ = 0."""
    couplings, _, vectors = _spectrum(1)
    amp = AMP(couplings, beta)
    state = amp.init(SMALL * np.random.default_rng(1).standard_normal((1, N_SPINS)))
    for _ in range(6):
        previous, (state, _) = state.m, amp.step(state)
    factors = state.m / previous
    kappa = beta / (1 - beta)
    assert np.median(factors) == pytest.approx(-kappa, rel=0.02)
    modes = amp_modes(0.0, beta, couplings.alpha)
    assert modes.radius == pytest.approx(kappa, rel=1e-12)
    assert modes.oscillates
    assert (modes.radius > 1) == grows
    pattern = vectors[-1]
    assert abs(state.m[0] @ pattern) < 0.1 * np.linalg.norm(state.m)


@pytest.mark.parametrize(("beta", "grows"), [(0.9, False), (1.2, True)])
def test_parallel_tap_moves_to_the_pattern_from_a_random_start(beta, grows):
    couplings, _, vectors = _spectrum(1)
    tap = TAP(couplings, beta)
    state = tap.init(SMALL * np.random.default_rng(1).standard_normal((1, N_SPINS)))
    for _ in range(12):
        previous, (state, _) = state.m, tap.step(state)
    factor = np.linalg.norm(state.m) / np.linalg.norm(previous)
    assert factor == pytest.approx(tap_multiplier(1.0, beta, couplings.alpha), rel=0.02)
    assert (factor > 1) == grows
    assert abs(state.m[0] @ vectors[-1]) > 0.99 * np.linalg.norm(state.m)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 2.0])
def test_edges_of_the_spectrum(alpha):
    n_patterns = round(alpha * N_SPINS)
    _, eigenvalues, _ = _spectrum(n_patterns, seed=3)
    bulk = eigenvalues[max(N_SPINS - n_patterns, 0) :]
    lower, upper = marchenko_pastur_edges(alpha)
    # Edges of finite matrices fluctuate as N^(-2/3).
    assert bulk[0] == pytest.approx(lower, abs=0.1)
    assert bulk[-1] == pytest.approx(upper, abs=0.2)
    assert np.abs(eigenvalues[: max(N_SPINS - n_patterns, 0)]).max(initial=0) < 1e-12


@given(alphas, betas)
def test_largest_tap_multiplier_touches_one_at_the_spin_glass_transition(alpha, beta):
    upper = marchenko_pastur_edges(alpha).upper
    critical = tap_critical_beta(alpha)
    assert critical == pytest.approx(1 / spin_glass_temperature(alpha), rel=1e-14)
    assert tap_multiplier(upper, beta, alpha) <= 1 + 1e-12
    if alpha > 1e-3:
        assert tap_multiplier(upper, critical, alpha) == pytest.approx(1, abs=1e-9)


def test_a_pattern_alone_goes_unstable_at_one():
    assert tap_critical_beta(0.0) == 1
    assert tap_multiplier(1.0, 0.999, 0.0) < 1 < tap_multiplier(1.0, 1.001, 0.0)


def test_an_eigenvalue_beyond_the_bulk_grows_before_the_bulk_is_marginal():
    alpha = 0.25
    signal = 1.2 * marchenko_pastur_edges(alpha).upper
    assert tap_multiplier(signal, tap_critical_beta(alpha), alpha) > 1.1


@given(st.floats(0.01, 5))
def test_tap_oscillates_where_the_lowest_multiplier_is_minus_one(alpha):
    lowest = marchenko_pastur_edges(alpha).lower if alpha > 1 else 0.0
    beta = tap_oscillation_beta(alpha)
    assert tap_multiplier(lowest, beta, alpha) == pytest.approx(-1, abs=1e-9)
    # Fewer patterns than spins: after β_c; more: before it.
    assert (beta - tap_critical_beta(alpha)) * (1 - alpha) >= -1e-12


@pytest.mark.parametrize(("n_patterns", "factor"), [(30, 0.9), (30, 1.05), (900, 0.9), (900, 1.1)])
def test_tap_oscillation_threshold_by_simulation(n_patterns, factor):
    couplings, _, vectors = _spectrum(n_patterns)
    beta = factor * tap_oscillation_beta(couplings.alpha)
    xs = _run(TAP(couplings, beta), vectors[0], 8)
    assert np.all(xs[1:] * xs[:-1] < 0)
    assert (abs(xs[-1]) > abs(xs[0])) == (factor > 1)


@given(st.floats(-1, 10), betas, alphas)
def test_amp_roots_solve_their_equation(eigenvalue, beta, alpha):
    modes = amp_modes(eigenvalue, beta, alpha)
    kappa = beta / (1 - beta)
    trace, determinant = kappa * (eigenvalue - alpha - 1), alpha * kappa**2
    residual = modes.roots**2 - trace * modes.roots + determinant
    assert np.abs(residual).max() <= 1e-12 * (1 + trace**2 + determinant)
    assert modes.radius == pytest.approx(np.abs(modes.roots).max(), rel=1e-12)


@given(st.floats(0.01, 5), betas, st.floats(0.001, 0.999))
def test_amp_turns_every_mode_of_the_bulk_at_one_speed(alpha, beta, where):
    lower, upper = marchenko_pastur_edges(alpha)
    modes = amp_modes(lower + where * (upper - lower), beta, alpha)
    assert modes.radius == pytest.approx(beta / (1 - beta) * np.sqrt(alpha), rel=1e-6)
    assert modes.oscillates


@given(st.floats(0.01, 5))
def test_amp_is_marginal_at_its_threshold(alpha):
    lower, upper = marchenko_pastur_edges(alpha)
    spectrum = np.linspace(lower, upper, 21)
    if alpha < 1:
        spectrum = np.append(spectrum, 0.0)
    radius = amp_modes(spectrum, amp_critical_beta(alpha), alpha).radius.max()
    assert radius == pytest.approx(1, abs=1e-6)


def test_amp_without_patterns_and_beyond_the_bulk():
    none = amp_modes([0.0, 1.0, 1.5], 0.6, 0.0)
    assert none.roots[:, 0] == pytest.approx([-1.5, 0.0, 0.75])
    assert none.oscillates.tolist() == [True, False, False]
    assert amp_critical_beta(0.0) == 0.5
    # λ > 2 makes the signal the leading mode also under AMP.
    assert amp_modes(2.1, 0.6, 0.0).radius > amp_modes(0.0, 0.6, 0.0).radius


def test_shapes_follow_the_eigenvalues():
    eigenvalues = np.ones((2, 3))
    assert tap_multiplier(eigenvalues, 0.5, 0.1).shape == (2, 3)
    modes = amp_modes(eigenvalues, 0.5, 0.1)
    assert modes.roots.shape == (2, 3, 2)
    assert modes.radius.shape == modes.oscillates.shape == (2, 3)


@pytest.mark.parametrize("beta", [0.0, -1.0, 1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("function", [tap_multiplier, amp_modes, opper_winther_modes])
def test_bad_beta_is_refused(function, beta):
    with pytest.raises(ValueError, match=f"beta must be positive and not 1, got {beta}"):
        function(1.0, beta, 0.1)


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "function",
    [
        marchenko_pastur_edges,
        tap_critical_beta,
        tap_oscillation_beta,
        amp_critical_beta,
        lambda alpha: tap_multiplier(1.0, 0.5, alpha),
        lambda alpha: amp_modes(1.0, 0.5, alpha),
        lambda alpha: opper_winther_modes(1.0, 0.5, alpha),
    ],
)
def test_bad_alpha_is_refused(function, alpha):
    with pytest.raises(ValueError, match=f"alpha must be finite and not negative, got {alpha}"):
        function(alpha)
