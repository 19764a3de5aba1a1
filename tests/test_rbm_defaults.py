"""Training that keeps its best and says what happened: held-out samples, stages, starts."""

import warnings
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import dualtap as dt
from dualtap.rbm import run as run_module
from dualtap.rbm.model import RBM
from dualtap.rbm.monitors import (
    error_of_difference,
    mean_score,
    pseudo_likelihood,
    scores_at_a_look,
)
from dualtap.rbm.patterns import patterns_from_weights, patterns_without_gap
from dualtap.rbm.priors import PRIORS
from dualtap.rbm.run import Best
from dualtap.rbm.samples import batches, have_means, mean_fields, training_set
from dualtap.rbm.start import modes_of_data, start_run
from dualtap.rbm.training import Candidate, Plan, better_of, has_fallen, judged

QUICK = {"n_chains": 30, "batch_size": 30, "look_every": 5, "random_state": 0}


@pytest.fixture
def short_stages(monkeypatch):
    """Stages of a few looks, so that a run of a hundred updates passes through all of them."""
    monkeypatch.setattr("dualtap.rbm.training._PATIENCE", 2)
    monkeypatch.setattr("dualtap.rbm.training._LONGEST_STAGE", 20)
    monkeypatch.setattr("dualtap.rbm.training._EPOCHS", 0)
    monkeypatch.setattr("dualtap.rbm.training._LEAST_GAIN", 1e-9)
    monkeypatch.setattr("dualtap.rbm.fitting._PILOT_UPDATES", 15)
    monkeypatch.setattr("dualtap.rbm.fitting._FIRST_HIDDEN", 3)
    monkeypatch.setattr("dualtap.rbm.fitting._MOST_HIDDEN", 24)


def clustered(n_spins=40, n_samples=120, seed=0):
    teacher = dt.HopfieldModel.random(n_spins, 2, beta=2.0, random_state=seed)
    signs = np.random.default_rng(seed).choice(np.array([-1, 1], np.int8), size=(n_samples, 1))
    return signs * teacher.sample(n_samples, random_state=seed + 1)


def biased(n_samples=100, n_spins=30, up=0.05, seed=0):
    return np.where(np.random.default_rng(seed).random((n_samples, n_spins)) < up, 1, -1)


def independent_score(X, held_out):
    fields = mean_fields(X.astype(np.int8)).astype(np.float32)
    model = RBM(np.zeros((1, X.shape[1]), np.float32), fields, PRIORS["gaussian"])
    return pseudo_likelihood(model, held_out)


def silent(model, X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **options)


# --- held-out samples ---------------------------------------------------------------------------


def test_a_share_is_held_out_and_never_learned_from():
    X = clustered()
    data = training_set(X, 0.25, seed=3)
    assert (len(data.rows), len(data.held_out)) == (90, 30)
    rest = np.delete(np.arange(120), data.rows)
    np.testing.assert_array_equal(np.sort(data.held_out, axis=0), np.sort(X[rest], axis=0))
    assert data.row_weights().sum() == 90
    other = training_set(X, 0.25, seed=4)
    assert not np.array_equal(other.rows, data.rows)
    assert len(training_set(X[:9], 0.25, seed=3).held_out) == 0


def test_the_best_state_is_kept():
    X = clustered()
    seen = {}
    model = dt.HopfieldRBM(6, hidden="binary", max_updates=60, early_stopping=False, **QUICK)
    model.fit(X, callbacks=[lambda m: seen.update({m.n_updates_: m.components_})])
    curve = model.history_
    best = int(np.argmax(curve.validation))
    assert model.best_update_ == curve.update[best]
    np.testing.assert_array_equal(model.components_, seen[model.best_update_])
    data = training_set(X, 0.2, model._run.seed)
    assert model.score(data.held_out) == pytest.approx(curve.validation[best], abs=1e-6)
    assert curve.validation_error[-1] > 0


def test_given_samples_are_chosen_by():
    X, held_out = clustered(), clustered(seed=0)[:40]
    model = dt.HopfieldRBM(6, hidden="gaussian", max_updates=30, early_stopping=False, **QUICK)
    model.fit(X, validation_samples=held_out)
    best = model.history_.validation.max()
    assert model.score(held_out) == pytest.approx(best, abs=1e-6)
    with pytest.raises(ValueError, match="features"):
        model.fit(X, validation_samples=held_out[:, :5])


# --- independent spins --------------------------------------------------------------------------


@pytest.mark.parametrize("fields", [False, "auto"])
@pytest.mark.parametrize("hidden", ["gaussian", "binary"])
def test_noise_ends_at_independent_spins_and_says_so(fields, hidden):
    X, held_out = biased(), biased(300, seed=1)
    model = dt.HopfieldRBM(8, hidden=hidden, fields=fields, learning_rate=0.5, **QUICK)
    said = r"independent spins do: weights are zero .*score -0\.\d+ \(held-out samples -|diverged"
    with pytest.warns(ConvergenceWarning, match=said):
        model.fit(X)
    assert model.score(held_out) > independent_score(X, held_out) - 0.01


@pytest.mark.parametrize(("gains", "kept"), [([0.3, 0.3, -0.5], 0), ([0.3, 0.3, 0.2], 5)])
def test_independent_spins_give_way_to_more_than_chance(monkeypatch, gains, kept):
    data = training_set(biased(15), 0.2, seed=0)
    run = replace(start_run(data, 2, 5, 5, (0.1, 0.0), seed=0), update=5)
    floor = np.column_stack([np.full(3, -9.0), np.full(3, 30)])
    scores = iter([floor + np.column_stack([gains, np.zeros(3)]), floor])
    monkeypatch.setattr(run_module, "scores_at_a_look", lambda *_: next(scores))
    after = run.after_look(PRIORS["gaussian"], data.watched(0), None, data)
    assert after.best.update == kept


def test_few_samples_and_many_units_do_not_overfit():
    X, held_out = clustered(60, 50), clustered(60, 200, seed=0)[100:]
    model = silent(dt.HopfieldRBM(100, hidden="binary", max_updates=600, **QUICK), X)
    assert model.score(held_out) > independent_score(X, held_out) - 0.01


# --- what is said -------------------------------------------------------------------------------


def test_divergence_is_said_and_the_best_is_kept():
    X = clustered()
    model = dt.HopfieldRBM(6, hidden="gaussian", learning_rate=1.0, **QUICK)
    with pytest.warns(ConvergenceWarning, match=r"diverged after update \d+, and the state after"):
        model.fit(X)
    assert model.stop_reason_ == "diverged"
    assert np.isfinite(model.score(X))
    assert model.score(X) >= independent_score(X, X) - 0.02


def test_slow_divergence_is_divergence(monkeypatch):
    """A score that falls far below its best, in small steps, is noticed at a look."""
    X = clustered()
    model = dt.HopfieldRBM(6, hidden="gaussian", learning_rate=0.002, max_updates=400, **QUICK)
    real = run_module.step

    def fading(*arguments):
        state = real(*arguments)
        return state._replace(weights=0.97 * state.weights)

    monkeypatch.setattr(run_module, "step", fading)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model.fit(X, init=np.sqrt(2 / 40) * clustered_patterns())
    assert model.stop_reason_ == "diverged"
    assert model.n_updates_ < 400
    assert model.best_update_ < model.n_updates_


def test_going_back_to_the_best_state_is_no_divergence():
    """The look at a cut was at the state before it, whose training samples scored better."""
    run = start_run(clustered(), 2, 5, 5, (0.1, 0.0), seed=0)
    curve = run.curve
    for update, score in ((0, -0.69), (50, -0.60), (100, -0.65)):
        curve = curve.after_look(update, run.model(PRIORS["gaussian"]), clustered(), rng(), None)
        curve = replace(curve, pseudo_likelihood=np.append(curve.pseudo_likelihood[:-1], score))
    assert has_fallen(replace(run, curve=curve, update=100))
    assert not has_fallen(replace(run, curve=curve, update=100, stage=50))


def rng():
    return np.random.default_rng(0)


def clustered_patterns():
    return dt.HopfieldModel.random(40, 2, beta=2.0, random_state=0).patterns


def test_too_few_updates_and_seconds_are_said():
    X = clustered()
    options = {"hidden": "gaussian", **QUICK}
    with pytest.warns(ConvergenceWarning, match=r"rises after 20 .*held-out.*raise max_updates"):
        dt.HopfieldRBM(6, max_updates=20, **options).fit(X, init="random")
    with pytest.warns(ConvergenceWarning, match="raise max_seconds"):
        model = dt.HopfieldRBM(6, max_seconds=1e-9, **options).fit(X, init="random")
    assert model.stop_reason_ == "max_seconds"


def test_the_summary_has_the_held_out_score():
    model = silent(dt.HopfieldRBM(6, max_updates=50, **QUICK), clustered())
    assert "of held-out samples" in model.summary()


# --- stages -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_stages")
def test_units_are_added_and_the_rate_is_cut():
    model = silent(dt.HopfieldRBM(max_updates=400, **QUICK), clustered())
    run = model._run
    assert model.stop_reason_ in ("flat", "validation")
    assert model.hidden_ in ("gaussian", "binary")
    assert run.grown_from is not None
    assert run.cuts == 2
    assert model.history_.singular_values.shape[1] >= 12
    first = dt.HopfieldRBM(hidden=model.hidden_, max_updates=1, **QUICK)
    assert run.learning_rate == pytest.approx(silent(first, clustered()).learning_rate_ / 16)


def test_units_are_added_after_a_cut_that_a_divergence_asked_for():
    """Soybean and mushroom ended with 64 units where the score of training samples had fallen."""
    data = training_set(clustered().astype(np.int8), 0.2, 0)
    run = start_run(data, 3, 5, 20, (0.01, 0.01), seed=0).after_look(
        PRIORS["gaussian"], data.watched(0), None, data
    )
    exhausted = replace(run, update=5000, stage=0, cuts=1)
    plan = Plan(look_every=50, batch_size=20, cuts_rate=True, most_hidden=12)
    grown = judged(exhausted, data, plan)
    assert len(grown.state.weights) == 12
    assert (grown.cuts, grown.stage, grown.stop_reason) == (1, 5000, "")


@pytest.mark.usefixtures("short_stages")
@pytest.mark.parametrize("n_updates", [7, 33, 61, 90])
def test_stages_go_on_bit_for_bit(tmp_path, n_updates):
    X, path = clustered(), tmp_path / "run.npz"
    whole = silent(dt.HopfieldRBM(max_updates=120, **QUICK), X)
    silent(dt.HopfieldRBM(max_updates=n_updates, **QUICK), X, checkpoint=path)
    resumed = silent(dt.HopfieldRBM(max_updates=120, **QUICK), X, resume_from=path)
    np.testing.assert_array_equal(resumed.components_, whole.components_)
    np.testing.assert_array_equal(resumed._run.state.weights, whole._run.state.weights)
    np.testing.assert_array_equal(resumed.history_.validation, whole.history_.validation)
    assert (resumed.stop_reason_, resumed.hidden_) == (whole.stop_reason_, whole.hidden_)
    assert resumed.best_update_ == whole.best_update_


# --- fields and weights of samples --------------------------------------------------------------


def test_fields_are_learned_if_spins_have_means():
    assert not have_means(clustered().astype(np.int8))
    assert have_means(biased().astype(np.int8))
    options = {"max_updates": 10, "early_stopping": False, "hidden": "gaussian", **QUICK}
    assert not dt.HopfieldRBM(4, **options).fit(clustered())._run.state.fields.any()
    assert dt.HopfieldRBM(4, fields=True, **options).fit(clustered())._run.state.fields.all()
    # Patterns of one sign have means, too, but held-out samples do not gain from fields.
    teacher = dt.HopfieldModel.random(100, 2, beta=2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    assert have_means(X)
    options["max_updates"] = 100
    assert not dt.HopfieldRBM(4, **options).fit(X)._run.state.fields.any()


def test_a_sample_of_weight_w_comes_w_times():
    weights = np.array([0.0, 1.0, 3.0, 2.0])
    data = training_set(clustered(20, 4).astype(np.int8), None, 0, weights)
    for epoch in islice(batches(len(data.rows), 100, seed=0, first=0, weights=data.weights), 3):
        np.testing.assert_array_equal(np.bincount(data.rows[epoch], minlength=4), weights)
    np.testing.assert_array_equal(data.row_weights(), weights)
    weights = np.array([0.0, 0.5, 2.25, 1.0])
    seen = np.concatenate(list(islice(batches(4, 100, 0, 0, weights), 4000)))
    share = np.bincount(seen, minlength=4) / len(seen)
    np.testing.assert_allclose(share, weights / weights.sum(), atol=0.01)


@pytest.mark.parametrize(
    "options",
    [{}, {"validation": None, "learning_rate": "paper"}, {"hidden": "binary", "fields": True}],
    ids=["default", "paper's rate", "binary"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_whole_weights_are_repeated_rows_bit_for_bit(options):
    """Rows that stand for several samples are divided as these are: some may be held out."""
    X = clustered(20, 60).astype(np.int8)
    weights = np.random.default_rng(0).integers(0, 4, size=60)
    repeated = np.repeat(X, weights, axis=0)
    np.testing.assert_array_equal(mean_fields(X, weights.astype(float)), mean_fields(repeated))
    options = {**QUICK, "max_updates": 40, **options}
    one = dt.HopfieldRBM(3, **options).fit(X, sample_weight=weights)
    two = dt.HopfieldRBM(3, **options).fit(repeated)
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.patterns_, two.patterns_)
    assert one.hidden_ == two.hidden_
    assert one.score(X, sample_weight=weights) == pytest.approx(two.score(repeated), abs=1e-12)
    spins = dt.as_spins(X).weighted(weights.astype(float))
    np.testing.assert_array_equal(
        dt.HopfieldRBM(3, **options).fit(spins).components_, one.components_
    )


def test_wrong_weights_are_named():
    X = clustered(20, 30).astype(np.int8)
    with pytest.raises(ValueError, match="one weight for each of the 30 samples is needed"):
        dt.HopfieldRBM(3).fit(X, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="sample_weight is zero for all samples"):
        dt.HopfieldRBM(3).fit(X, sample_weight=np.zeros(30))


# --- starts -------------------------------------------------------------------------------------


def test_modes_of_the_data_are_those_of_the_teacher():
    teacher = dt.HopfieldModel.random(200, 2, beta=2.0, random_state=0)
    W = modes_of_data(teacher.sample(300, random_state=1), 10)
    assert len(W) == 2
    inside = np.linalg.lstsq(W.T.astype(float), teacher.patterns.T, rcond=None)[0]
    rest = teacher.patterns.T - W.T @ inside
    assert np.square(rest).mean() < 0.05
    noise = np.random.default_rng(0).choice([-1, 1], size=(300, 100))
    assert len(modes_of_data(noise.astype(np.int8), 10)) <= 1


def test_a_start_from_the_data_saves_updates():
    X = clustered(60, 300)
    scores = {}
    for init in ("data", "random"):
        model = dt.HopfieldRBM(6, hidden="gaussian", max_updates=25, early_stopping=False, **QUICK)
        scores[init] = model.fit(X, init=init).history_.validation
    assert scores["data"][0] > scores["random"][1] + 0.1  # that is five updates later


def test_a_fitted_model_is_a_start():
    X = clustered()
    found = dt.HopfieldPatterns(2, random_state=0).fit(X)
    options = {"hidden": "gaussian", "early_stopping": False, **QUICK}
    model = dt.HopfieldRBM(4, max_updates=1, validation=None, **options).fit(X, init=found)
    expected = np.sqrt(found.strengths_ / 40)[:, None] * found.patterns_
    np.testing.assert_allclose(model.components_[:2], expected, atol=0.05)
    with pytest.raises(ValueError, match='init is "data", "random", weights or a fitted model'):
        model.fit(X, init="pca")


def test_the_paper_has_its_own_run():
    X = clustered()
    model = silent(dt.HopfieldRBM.paper(5, max_updates=20, random_state=0), X)
    assert (model.validation, model.hidden_, model.n_steps) == (None, "gaussian", 10)
    assert not model.fields_.any()
    assert np.isnan(model.history_.validation).all()
    assert model.best_update_ == model.n_updates_ == 20


def test_without_a_gap_patterns_are_as_many_as_signals_of_the_data(tmp_path, monkeypatch):
    monkeypatch.setattr("dualtap.rbm.fitting.is_divided", lambda values, floor: False)
    teacher = dt.HopfieldModel.random(300, 6, beta=0.8, random_state=0)
    X = teacher.sample(1500, random_state=1)
    options = {"max_updates": 60, "look_every": 20, "early_stopping": False, "random_state": 0}
    model = dt.HopfieldRBM(20, hidden="gaussian", **options).fit(X)
    assert model.n_patterns_ == len(model.patterns_) == 6
    assert "6 patterns" in model.summary()
    assert "as many directions of the data are above the noise edge" in model.summary()
    model.write(tmp_path / "model.npz")
    loaded = dt.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.patterns_, model.patterns_)
    assert dt.metrics.n_recovered(model.patterns_, teacher.patterns, threshold=0.9) == 6
    assert model.partial_fit(X)._run.patterns is None  # they were those of other weights
    paper = dt.HopfieldRBM.paper(20, **options).fit(X)
    assert paper._run.patterns is None  # read by its weights alone


def test_a_gap_between_singular_values_is_what_counts():
    zeta = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0).patterns
    rng = np.random.default_rng(0)
    W = np.vstack([0.1 * zeta, rng.normal(scale=0.004, size=(4, 200))])
    found = patterns_from_weights(W, 0.1, rng)
    assert len(found.patterns) == 3
    known = patterns_from_weights(W, 0.1, rng, zeta[:2])
    np.testing.assert_array_equal(known.patterns, zeta[:2])
    assert known.beta == pytest.approx(np.mean(np.square(found.singular_values[:2])))


def test_many_patterns_of_few_spins_are_right_without_a_gap():
    """Answers of several rotations differ here, and the last one has one pattern of twenty."""
    teacher = dt.HopfieldModel.random(300, 20, beta=0.8, random_state=0)
    X = teacher.sample(2000, random_state=1)
    W = np.linalg.svd(X, full_matrices=False)[2][:20]
    for seed in range(3):
        found = patterns_without_gap(W, dt.as_spins(X), np.random.default_rng(seed))
        assert dt.metrics.n_recovered(found, teacher.patterns, threshold=0.9) == 20


def test_without_a_gap_there_are_no_more_patterns_than_units():
    teacher = dt.HopfieldModel.random(200, 4, beta=0.8, random_state=0)
    X = dt.as_spins(teacher.sample(1000, random_state=1))
    W = 0.05 * teacher.patterns[:2]
    assert len(patterns_without_gap(W, X, rng())) == 2
    fair = rng().choice(np.array([-1, 1], np.int8), size=(1000, 200))
    assert len(patterns_without_gap(W, dt.as_spins(fair), rng())) == 0


def test_scores_of_some_entries_are_compared_with_scores_of_all():
    """Priors other than Gaussian score a part of the entries at a look."""
    per_entry = rng().normal(-0.3, 0.01, size=50)
    all_64 = np.column_stack([64 * per_entry, np.full(50, 64)])
    some_8 = np.column_stack([8 * (per_entry + 0.02), np.full(50, 8)])
    assert error_of_difference(some_8, all_64, np.ones(50)) < 1e-9


def independent(data, prior, share):
    """A run that knows nothing but a share of +1, the same for all spins."""
    run = start_run(data, 1, 2, 5, (0.1, 0.1), seed=0)
    n_spins = data.spins.n_spins
    fields = np.full(n_spins, np.arctanh(2 * share - 1), np.float32)
    state = run.state._replace(weights=np.zeros((1, n_spins), np.float32), fields=fields)
    scores = scores_at_a_look(data.held_out, RBM(state.weights, fields, PRIORS[prior]))
    return Candidate(replace(run, best=Best(state, 0, scores)), PRIORS[prior])


def gain_and_error(data, first, second):
    scores = [one.run.best.scores for one in (second, first)]
    weights = data.held_out_weights
    gain = mean_score(scores[0], weights) - mean_score(scores[1], weights)
    return gain, error_of_difference(*scores, weights)


def test_priors_are_compared_on_all_held_out_entries():
    """The few entries of a look cannot tell a law that is better by 0.006 per entry."""
    X = np.where(rng().random((1000, 60)) < 0.3, 1, -1).astype(np.int8)
    data = training_set(X, 0.2, 0)
    found = [independent(data, "gaussian", 0.35), independent(data, "binary", 0.3)]
    gain, error = gain_and_error(data, *found)
    assert gain < error
    assert better_of(data, *found) is found[1]
    assert better_of(data, *found[::-1]) is found[1]


def test_fields_need_not_gain_more_than_the_error_of_few_samples():
    """Small real data were predicted worse without fields, by less than that error."""
    held_out = np.where(np.arange(60) < np.arange(9, 28, 2)[:, None], 1, -1).astype(np.int8)
    data = training_set(held_out, held_out, 0)  # a share of 0.3 in ten samples, 9 to 27 of 60
    without, little, some = (independent(data, "gaussian", x) for x in (0.325, 0.32, 0.3))
    gain, error = gain_and_error(data, without, some)
    assert 0.001 < gain < error
    assert better_of(data, without, some) is some
    assert better_of(data, without, little) is without
    assert better_of(data, without, independent(data, "binary", 0.3)) is without
