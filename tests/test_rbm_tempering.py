"""Parallel tempering: exact laws at small N, log Z with its error, clusters that chains cross."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chisquare
from sklearn.exceptions import ConvergenceWarning

import dualtap as dt
from dualtap.rbm.gibbs import Chains, Ladder, advance, random_chains
from dualtap.rbm.likelihood import _resampled, log_partition
from dualtap.rbm.model import RBM
from dualtap.rbm.priors import PRIORS
from dualtap.rbm.tempering import (
    Tempering,
    at_scale,
    barrier,
    is_symmetric,
    run_tempered,
    tempered_sweep,
    tuned,
    tuned_chains,
    with_ladder,
)

LEAST_P = 1e-4
every_prior = pytest.mark.parametrize("prior", ["gaussian", "binary", "relu", "spike_slab"])


def make(prior, n_hidden=3, n_spins=6, *, scale=0.4, seed=0):
    rng = np.random.default_rng(seed)
    W = scale * rng.standard_normal((n_hidden, n_spins))
    return RBM(W, 0.4 * rng.standard_normal(n_spins), PRIORS[prior])


def two_clusters(n_spins=12, weight=0.7):
    """All spins up or all down: plain chains practically never change sides."""
    return RBM(np.full((1, n_spins), weight), np.full(n_spins, 0.02), PRIORS["gaussian"])


def without_fields(model):
    return replace(model, fields=np.zeros(model.n_spins))


def exact_law(model):
    S = np.array(list(itertools.product([1.0, -1.0], repeat=model.n_spins)))
    F = model.free_energy(S)
    return S, np.exp(-F - logsumexp(-F))


def p_value(X, model):
    """Chi-square test of samples; states expected fewer than ten times are pooled."""
    _, p = exact_law(model)
    place = 2 ** np.arange(model.n_spins)[::-1]
    counts = np.bincount(((X < 0) @ place).astype(int), minlength=len(p))
    expected = p * len(X)
    rare = expected < 10
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return chisquare(counts, expected).pvalue


def settled(model, n_ladders, base, n_sweeps=25, n_rungs=5, seed=0):
    rng = np.random.default_rng(seed)
    start = random_chains(n_ladders, model.n_spins, rng)
    chains = with_ladder(start, base, rng, n_rungs)
    for _ in range(n_sweeps):
        chains, _ = tempered_sweep(model, chains)
    return chains


@every_prior
def test_every_rung_has_its_exact_law(prior):
    model, base = make(prior), np.linspace(-0.5, 0.5, 6)
    chains = settled(model, 4000, base)
    rungs = chains.spins.reshape(5, 4000, 6)
    for spins, scale in zip(rungs, chains.ladder.scales, strict=True):
        assert p_value(spins, at_scale(model, base, scale)) > LEAST_P


def test_samples_of_one_ladder_over_time_have_the_exact_law():
    model = two_clusters()
    chains = tuned_chains(model, np.ones((20, 12)), np.zeros(12), np.random.default_rng(0))
    found = run_tempered(model, chains, 1500, keep_every=20)
    X = found.states.reshape(-1, 12)
    assert p_value(X, model) > LEAST_P
    assert found.arrivals.min() > 10


def test_plain_chains_stay_where_tempered_ones_do_not():
    model = two_clusters()
    up = model.weights.sum() > 0
    _, p = exact_law(model)
    share = p[exact_law(model)[0].sum(axis=1) > 0].sum()
    start = Chains(np.ones((200, 12), np.float32), settled(model, 200, np.zeros(12)).generators)
    plain = advance(model, start, 100).spins.sum(axis=1) > 0
    chains = tuned_chains(model, np.ones((200, 12)), np.zeros(12), np.random.default_rng(1))
    tempered = run_tempered(model, chains, 50, 50).states[0].sum(axis=1) > 0
    assert up
    assert plain.mean() > 0.97  # the exact share is near 0.6
    assert abs(tempered.mean() - share) < 4 * np.sqrt(share * (1 - share) / 200)


def test_without_fields_a_state_gives_way_to_its_negative():
    """Without fields both have the same probability, and plain chains never cross."""
    none = np.zeros(6)
    model = without_fields(make("binary"))
    chains = settled(model, 4000, none, n_sweeps=40)
    assert p_value(chains.target, model) > LEAST_P
    up = without_fields(two_clusters())
    chains = with_ladder(
        Chains(np.ones((400, 12), np.float32), settled(up, 400, np.zeros(12)).generators),
        np.zeros(12), np.random.default_rng(1), n_rungs=2,
    )  # fmt: skip
    above = tempered_sweep(up, chains)[0].target.sum(axis=1) > 0
    assert abs(above.mean() - 0.5) < 0.1


@pytest.mark.parametrize("prior", ["zero_one", "relu"])
def test_a_prior_that_is_not_symmetric_keeps_its_signs(prior):
    none = np.zeros(6)
    model = without_fields(make(prior))
    assert not is_symmetric(model, none)
    assert p_value(settled(model, 4000, none).target, model) > LEAST_P


def test_exchanges_take_turns_and_keep_every_state():
    model = RBM(np.zeros((1, 4)), np.zeros(4), PRIORS["gaussian"])
    chains = with_ladder(random_chains(2, 4, np.random.default_rng(0)), np.zeros(4),
                         np.random.default_rng(1), 5)  # fmt: skip
    chains, first = tempered_sweep(model, chains)
    _, second = tempered_sweep(model, chains)
    assert first.order[:, 0].tolist() == [1, 0, 3, 2, 4]
    assert second.order[:, 1].tolist() == [0, 2, 1, 4, 3]


@every_prior
def test_ratios_are_those_of_free_energies(prior):
    model, base = make(prior), np.linspace(-0.5, 0.5, 6)
    chains = settled(model, 7, base, n_sweeps=1)
    after, info = tempered_sweep(model, chains)
    before = np.empty_like(after.spins.reshape(5, 7, 6))
    np.put_along_axis(before, info.order[..., None], after.spins.reshape(5, 7, 6), axis=0)
    F = [at_scale(model, base, c).free_energy for c in chains.ladder.scales]
    for k in range(4):
        hotter = F[k](before[k]) - F[k + 1](before[k])
        colder = F[k + 1](before[k + 1]) - F[k](before[k + 1])
        np.testing.assert_allclose(info.hotter[k], hotter, atol=1e-5)
        np.testing.assert_allclose(info.colder[k], colder, atol=1e-5)


def test_tuning_makes_rejections_equal():
    model = RBM(np.full((1, 400), np.sqrt(2 / 400)), np.zeros(400), PRIORS["gaussian"])
    chains = tuned_chains(model, np.ones((10, 400)), np.zeros(400), np.random.default_rng(0))
    found = run_tempered(model, chains, 300, 300)
    scales, rejections = found.ladder.scales, found.ladder.rejections
    assert scales[0] == 1
    assert scales[-1] == 0
    assert np.all(np.diff(scales) < 0)
    assert len(scales) > 4
    assert rejections.max() < 0.65
    assert rejections.min() > 0.3


def test_a_ladder_grows_and_shrinks_with_its_barrier():
    chains = settled(make("gaussian"), 3, np.zeros(6), n_rungs=3)
    wide = chains._replace(ladder=chains.ladder._replace(rejections=np.array([0.9, 0.5])))
    more = tuned(wide)
    assert len(more.ladder.scales) == 1 + int(np.ceil(2 * barrier(wide.ladder).sum()))
    assert len(more.generators) == len(more.spins) == 3 * len(more.ladder.scales)
    assert len(np.unique(more.generators.reshape(len(more.generators), -1), axis=0)) == len(
        more.generators
    )
    flat = chains._replace(ladder=chains.ladder._replace(rejections=np.zeros(2)))
    assert tuned(flat).ladder.scales.tolist() == [1, 0]


def test_plain_chains_have_no_ladder_to_sweep():
    with pytest.raises(ValueError, match="with_ladder"):
        tempered_sweep(make("gaussian"), random_chains(2, 6, np.random.default_rng(0)))


# --- log Z -------------------------------------------------------------------------------------


@every_prior
@pytest.mark.parametrize("base", [None, np.linspace(-1, 1, 10)])
def test_both_estimates_of_log_z_are_within_their_errors(prior, base):
    model = make(prior, n_spins=10, scale=0.5, seed=1)
    exact = log_partition(model).value
    annealed = log_partition(
        model, method="annealing", n_temperatures=200, n_chains=200, base=base, random_state=0
    )
    tempered = log_partition(model, method="tempering", n_sweeps=200, base=base, random_state=0)
    for found in (annealed, tempered):
        assert abs(found.value - exact) < 4 * found.error < 0.4
    assert tempered.method == "tempering"


def test_errors_of_log_z_cover_as_often_as_they_should():
    model = two_clusters()
    exact = log_partition(model).value
    found = [
        log_partition(model, method="tempering", n_sweeps=200, random_state=seed)
        for seed in range(12)
    ]
    z = np.array([(one.value - exact) / one.error for one in found])
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.7
    assert abs(z.mean()) < 1


@pytest.mark.parametrize("n_temperatures", [10, 30])
def test_errors_of_annealing_cover_where_few_chains_carry_the_weight(n_temperatures):
    W = 0.8 * np.random.default_rng(3).normal(size=(6, 18))
    model = RBM(W, np.zeros(18), PRIORS["gaussian"])
    exact = log_partition(model).value
    options = {"n_temperatures": n_temperatures, "n_chains": 200}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [
            log_partition(model, method="annealing", random_state=seed, **options)
            for seed in range(20)
        ]
    z = np.array([(one.value - exact) / one.error for one in found])
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.7  # 7 and 2.5 with the spread of the weights
    assert abs(z.mean()) < 1


def test_resampling_leaves_the_weight_of_a_population():
    rng = np.random.default_rng(0)
    spins = np.arange(12, dtype=np.float32)[:, None]
    log_weights = np.array([[0.0, 0, 0, 0, 0, 9], [0, 0.1, 0, 0.1, 0, 0.1]])
    chains = Chains(spins, np.arange(12, dtype=np.uint32)[:, None])
    moved, weights = _resampled(chains, log_weights, rng)
    np.testing.assert_allclose(logsumexp(weights, axis=1), logsumexp(log_weights, axis=1))
    assert np.count_nonzero(moved.spins[:6] == 5) >= 5  # the heavy one goes on in their place
    np.testing.assert_array_equal(moved.spins[6:], spins[6:])
    np.testing.assert_array_equal(weights[1], log_weights[1])
    np.testing.assert_array_equal(moved.generators, chains.generators)


def test_a_drift_that_all_ladders_share_is_part_of_the_error(monkeypatch):
    """Ladders on their way from the same start agree with each other, and are wrong together."""
    up = np.repeat([0.0, 2.0], 50)[:, None, None] * np.ones((1, 1, 4))
    ladder = Ladder(np.array([1.0, 0.0]), np.zeros(3, np.float32), np.zeros(1), 0)
    drifting = Tempering(np.empty((0, 4, 3), np.int8), -up, up, np.full(4, 99), ladder)
    monkeypatch.setattr("dualtap.rbm.likelihood.run_tempered", lambda *_, **__: drifting)
    model = RBM(np.zeros((1, 3)), np.zeros(3), PRIORS["gaussian"])
    found = log_partition(model, method="tempering", n_sweeps=100, n_ladders=4, random_state=0)
    assert found.value == pytest.approx(3 * np.log(2) + 2)  # of the second half
    assert found.error == pytest.approx(2)


def test_log_z_without_weights_is_exact():
    b = np.array([0.5, -2.0, 0.0])
    found = log_partition(
        RBM(np.zeros((2, 3)), b, PRIORS["gaussian"]), method="tempering", random_state=0
    )
    assert found.value == pytest.approx(np.log(2 * np.cosh(b)).sum(), abs=1e-9)
    assert found.error == pytest.approx(0, abs=1e-9)


def test_the_method_can_be_chosen():
    model = make("gaussian", n_spins=8)
    methods = ["enumeration", "annealing", "tempering"]
    found = [log_partition(model, method=method, random_state=0) for method in methods]
    assert [one.method for one in found] == methods
    with pytest.raises(ValueError, match="\"tempering\", got 'guess'"):
        log_partition(model, method="guess")
    with pytest.raises(ValueError, match="at most 20 spins"):
        log_partition(make("gaussian", n_spins=30), method="enumeration")
    with pytest.raises(ValueError, match="n_sweeps >= 1 and n_ladders >= 2, got 0 and 20"):
        log_partition(model, method="tempering", n_sweeps=0)


def test_too_few_round_trips_are_said():
    patterns = dt.HopfieldModel.random(400, 4, 2.0, random_state=0).patterns
    W = np.sqrt(2.0 / 400) * patterns
    model = RBM(W, np.zeros(400), PRIORS["gaussian"])
    with pytest.warns(ConvergenceWarning, match="raise n_sweeps above 3"):
        log_partition(model, method="tempering", n_sweeps=3, n_ladders=3, random_state=0)


# --- the estimator -----------------------------------------------------------------------------

TEMPERED = {
    "n_hidden": 3,
    "hidden": "gaussian",
    "estimate": "tempering",
    "n_chains": 8,
    "batch_size": 20,
    "learning_rate": 0.01,
    "fields": True,
    "look_every": 10,
    "max_updates": 230,  # the ladder is tuned twice on the way
    "early_stopping": False,
    "random_state": 0,
}


def clustered(n_spins=40, n_samples=60):
    teacher = dt.HopfieldModel.random(n_spins, 2, beta=2.0, random_state=0)
    return teacher, teacher.sample(n_samples, random_state=1)


def fitted(X, *, stop_at=None, **options):
    def stop(rbm):
        return rbm.n_updates_ == stop_at

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return dt.HopfieldRBM(**TEMPERED).fit(X, callbacks=[stop], **options)


@pytest.mark.parametrize("stop_at", [100, 110])
def test_a_tempered_run_goes_on_bit_for_bit(tmp_path, stop_at):
    _, X = clustered()
    whole, path = fitted(X), tmp_path / "run.npz"
    fitted(X, stop_at=stop_at, checkpoint=path)
    resumed = fitted(X, checkpoint=path, resume_from=path)
    one, two = whole._run.state, resumed._run.state
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.chains.spins, two.chains.spins)
    np.testing.assert_array_equal(one.chains.generators, two.chains.generators)
    for a, b in zip(one.chains.ladder, two.chains.ladder, strict=True):
        np.testing.assert_array_equal(a, b)
    assert resumed.n_updates_ == 230
    assert len(one.chains.ladder.scales) != 10  # tuned on the way
    np.testing.assert_array_equal(
        whole.sample(3, random_state=0), dt.load(path).sample(3, random_state=0)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ladder_scales", np.array([1.0])),
        ("ladder_scales", np.array([1.0, 0.5])),
        ("ladder_rejections", np.array([0.5])),
        ("ladder_exchanges", np.array(-1)),
        ("ladder_base", np.zeros(3, np.float32)),
    ],
)
def test_a_damaged_ladder_is_noticed(tmp_path, name, value):
    path = tmp_path / "run.npz"
    fitted(clustered()[1], stop_at=20, checkpoint=path)
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **arrays | {name: value})
    with pytest.raises(ValueError, match="incomplete or damaged"):
        dt.load(path)


def test_tempered_chains_train_as_well_as_plain_ones():
    teacher, X = clustered(n_samples=200)
    held_out = teacher.sample(200, random_state=2)
    tempered = fitted(X)
    assert tempered.score(held_out) > -0.35  # independent spins have -0.69
    assert tempered._kept().chains.n_target == 8


def test_samples_visit_all_clusters_equally_often():
    teacher, X = clustered(n_spins=100)
    W = np.sqrt(2.0 / 100) * teacher.patterns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rbm = dt.HopfieldRBM.paper(2, max_updates=1, learning_rate=1e-9, random_state=0)
        rbm.fit(X, init=W)
    # All chains of training in one state: what plain chains would never leave.
    state = rbm._run.state
    spins = np.repeat(teacher.patterns[:1], 100, axis=0).astype(np.float32)
    rbm._run = rbm._run.__class__(
        **rbm._run.__dict__ | {"state": state._replace(chains=state.chains._replace(spins=spins))}
    )

    def shares(X):
        overlap = X @ teacher.patterns.T / 100
        nearest = np.abs(overlap).argmax(axis=1)
        up = np.take_along_axis(overlap, nearest[:, None], axis=1)[:, 0] > 0
        return np.bincount(2 * nearest + up, minlength=4) / len(X)

    assert shares(rbm.sample(100, tempering=False, random_state=0)).max() == 1
    drawn = rbm.sample(400, random_state=0)
    assert drawn.dtype == np.int8
    np.testing.assert_allclose(shares(drawn), 0.25, atol=0.12)


def test_a_ladder_is_a_named_tuple_of_plain_arrays():
    ladder = Ladder(np.array([1.0, 0.0]), np.zeros(3, np.float32), np.zeros(1), 0)
    chains = Chains(np.ones((4, 3), np.float32), np.zeros((4, 4, 32), np.uint32), ladder)
    assert chains.n_target == 2
    assert chains.target.shape == (2, 3)
