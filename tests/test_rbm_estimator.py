"""`HopfieldRBM`: what it learns, when it stops, and that it can be repeated."""

from itertools import islice, product

import numba
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

import dualtap as dt
from dualtap import HopfieldRBM, metrics
from dualtap.rbm.samples import batches
from rbm_cases import assert_same, data, easy_case, short
from teachers import smallest_overlap

COIN = -np.log(2)
pytestmark = pytest.mark.usefixtures("one_kernel_thread")


@pytest.fixture(scope="module")
def small():
    return easy_case()


# --- What it learns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_spins", "n_patterns", "n_hidden"),
    # The first and the last say that the default rate fits small systems and large ones.
    [(100, 3, 8), (300, 3, 8), (1000, 10, 15), (3000, 3, 6)],
)
def test_patterns_of_a_teacher_are_found(n_spins, n_patterns, n_hidden):
    teacher, X = data(n_spins, n_patterns, 50 * n_patterns)
    model = HopfieldRBM.paper(n_hidden, random_state=0).fit(X)
    assert model.stop_reason_ == "flat"
    assert model.n_patterns_ == len(model.patterns_) == n_patterns
    assert smallest_overlap(model, teacher) > 0.97
    assert model.beta_ == pytest.approx(2.0, abs=0.5)
    values = model.singular_values_
    assert values[n_patterns - 1] > 0.7
    assert values[n_patterns] < 0.25


def test_fitted_attributes(small):
    _, X, model = small
    assert model.components_.shape == (8, 300)
    assert model.components_.dtype == model.fields_.dtype == np.float32
    assert not model.fields_.any()  # not asked for
    assert model.patterns_.dtype == np.int8
    assert set(np.unique(model.patterns_)) == {-1, 1}
    np.testing.assert_allclose(
        model.singular_values_, np.linalg.svd(model.components_)[1], rtol=1e-4
    )
    assert model.beta_ == pytest.approx(np.square(model.singular_values_[:3]).mean())
    assert model.n_features_in_ == 300
    assert not hasattr(model, "feature_names_in_")
    largest = np.linalg.svd(X / np.sqrt(200))[1][0] ** 2
    assert model.learning_rate_ == pytest.approx(0.05 / largest, rel=1e-3)


def test_training_raises_the_score_also_of_new_samples(small):
    teacher, X, model = small
    assert short().fit(X).score(X) == pytest.approx(COIN, abs=0.02)
    fresh = teacher.sample(50, random_state=99)
    assert model.score(X) > -0.25
    assert model.score(fresh) == pytest.approx(model.score(X), abs=0.05)
    shuffled = np.random.default_rng(0).permuted(fresh, axis=0)  # correlations gone
    assert model.score(shuffled) < model.score(fresh) - 0.1


def test_score_is_the_pseudo_likelihood_of_the_couplings(small):
    _, X, model = small
    W = model.components_.astype(np.float64)
    J = W.T @ W
    np.fill_diagonal(J, 0)
    expected = -np.logaddexp(0, -2 * X * (X @ J)).mean()
    assert model.score(X) == pytest.approx(expected, abs=1e-5)


def test_couplings_are_those_of_the_weights(small):
    teacher, X, model = small
    W, off = model.components_, ~np.eye(300, dtype=bool)
    np.testing.assert_allclose(model.couplings()[off], (W.T @ W)[off], atol=1e-6)
    assert not np.diag(model.couplings()).any()
    true = teacher.beta * teacher.couplings()[off]
    error = np.linalg.norm(model.couplings()[off] - true) / np.linalg.norm(true)
    assert error < 0.4
    given = HopfieldRBM.paper(8, beta=4.0, random_state=0).fit(X)
    np.testing.assert_array_equal(given.components_, W)  # β takes no part in training
    assert given.beta_ == 4.0
    np.testing.assert_array_equal(given.couplings(), model.couplings())


def test_transform_gives_hidden_means(small):
    _, X, model = small
    assert model.transform(X).shape == (200, 8)
    np.testing.assert_allclose(model.transform(X), X @ model.components_.T, atol=1e-3)
    holes = np.where(np.arange(300) % 3, X, np.nan)
    seen = np.nan_to_num(holes) @ model.components_.T
    np.testing.assert_allclose(model.transform(holes), seen, atol=1e-3)
    binary = short(hidden="binary").fit(X)
    np.testing.assert_allclose(
        binary.transform(X), np.tanh(X @ binary.components_.T), rtol=1e-3, atol=1e-5
    )


def test_samples_look_like_the_data(small):
    _, X, model = small
    drawn = model.sample(50, random_state=3)
    assert drawn.shape == (50, 300)
    assert drawn.dtype == np.int8
    assert set(np.unique(drawn)) == {-1, 1}
    assert model.score(drawn) == pytest.approx(model.score(X), abs=0.1)
    # Chains go on from where they were: one step is enough.
    one_step = model.sample(50, n_steps=1, random_state=0)
    assert model.score(one_step) == pytest.approx(model.score(X), abs=0.1)
    np.testing.assert_array_equal(drawn, model.sample(50, random_state=3))
    assert not np.array_equal(drawn, model.sample(50, random_state=4))
    assert model.sample().shape == (1, 300)
    assert model.sample(250, n_steps=1, random_state=0).shape == (250, 300)  # more than chains
    for bad in ({"n_samples": 0}, {"n_steps": 0}):
        with pytest.raises(ValueError, match="n_samples and n_steps must be at least 1"):
            model.sample(**bad)


def test_modes_of_the_data_enter_the_weights(small):
    _, X, model = small
    assert short(n_hidden=8, max_updates=1).fit(X).mode_errors(X, 3).min() > 0.85
    errors = model.mode_errors(X, 5)
    assert errors[:3].max() < 0.15
    assert errors[3:].min() > 0.9  # noise, which is not learned
    assert model.mode_errors(X).shape == (20,)
    with pytest.raises(ValueError, match="n_modes must be from 1 to 200"):
        model.mode_errors(X, 201)


@pytest.mark.parametrize("fields", [False, True])
def test_likelihood_is_that_of_enumeration(fields):
    _, X = data(10, 2, 50)
    model = HopfieldRBM.paper(3, fields=fields, learning_rate=0.02, max_updates=100, random_state=0)
    model.set_params(early_stopping=False).fit(X)
    W, b = model.components_.astype(np.float64), model.fields_.astype(np.float64)
    assert fields == bool(b.any())

    def log_weight(s):
        return s @ b + np.square(s @ W.T).sum(axis=1) / 2

    log_z = logsumexp(log_weight(np.array(list(product([-1, 1], repeat=10)))))
    partition = model.log_partition()
    assert partition == (pytest.approx(log_z, abs=1e-6), 0, "enumeration")
    expected = log_weight(X).mean() - log_z
    assert expected > 10 * COIN + 0.5  # something was learned
    assert model.log_likelihood(X) == pytest.approx(expected, abs=1e-4)
    doubled = partition._replace(value=2 * partition.value)
    assert model.log_likelihood(X, doubled) == pytest.approx(expected - log_z, abs=1e-4)
    holes = np.where(np.arange(10) < 2, np.nan, X)
    with pytest.raises(ValueError, match="without missing entries"):
        model.log_likelihood(holes)


def test_annealing_through_the_estimator():
    _, X = data(100)
    model = short(max_updates=60).fit(X)
    found = model.log_partition(random_state=0, n_temperatures=300, n_chains=50)
    assert found.method == "annealing"
    assert found == model.log_partition(random_state=0, n_temperatures=300, n_chains=50)
    more = model.log_partition(random_state=1, n_temperatures=1000, n_chains=50)
    assert found.value == pytest.approx(more.value, abs=6 * (found.error + more.error))
    assert found.value - 6 * found.error > 100 * np.log(2)  # couplings add to Z
    with pytest.raises(ValueError, match="n_chains >= 2"):
        model.log_partition(n_chains=1)


# --- Variants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{"estimate": "cd"}, {"momentum": 0.5}, {"weight_decay": 5.0}, {"hidden": "binary"}]
)
def test_variants_find_the_patterns_too(options):
    teacher, X = data()
    model = HopfieldRBM.paper(6, random_state=0, **options).fit(X)
    assert model.stop_reason_ == "flat"
    assert model.n_patterns_ == 3
    assert smallest_overlap(model, teacher) > 0.97


def test_each_variant_makes_its_own_updates():
    _, X = data(100)
    weights = [
        # Long enough for weights to act: before that every chain is a coin.
        short(max_updates=100, **options).fit(X).components_
        for options in (
            {},
            {"estimate": "cd"},
            {"momentum": 0.5},
            {"weight_decay": 5.0},
            {"hidden": "binary"},
            {"n_steps": 3},
            {"n_chains": 50},
            {"batch_size": 50},
            {"learning_rate": 1e-4},
            {"fields": True},
        )
    ]
    for i, j in product(range(len(weights)), repeat=2):
        assert np.array_equal(weights[i], weights[j]) == (i == j)


def test_decay_and_momentum_act_as_they_should():
    _, X = data()

    def size(**options):
        return short(max_updates=60, **options).fit(X).singular_values_[0]

    assert size(momentum=0.5) > 2 * size()  # twice the effective rate, while modes grow
    assert size(weight_decay=50.0) < 0.8 * size()


def test_binary_units_have_no_temperature():
    _, X = data()
    model = short(hidden="binary").fit(X)
    with pytest.raises(AttributeError, match="Gaussian hidden units only"):
        _ = model.beta_
    assert np.isnan(short(hidden="binary").fit(X, teacher=data()[0]).history_.error).all()


def test_fields_take_up_the_means():
    """A hundred spins of mean 0.8 that know nothing of each other, and as many samples as -1."""
    teacher, X = data()
    rng = np.random.default_rng(5)
    X = X * rng.choice(np.array([-1, 1], dtype=np.int8), size=(200, 1))
    X[:, :100] = np.where(rng.random((200, 100)) < 0.9, 1, -1)
    plain = HopfieldRBM.paper(8, random_state=0).fit(X)
    assert (plain.singular_values_ > 0.5).sum() == 4  # the mean poses as a pattern
    model = HopfieldRBM.paper(8, fields=True, random_state=0).fit(X)
    assert model.n_patterns_ == (model.singular_values_ > 0.5).sum() == 3
    assert model.fields_[:100].mean() == pytest.approx(np.arctanh(0.8), abs=0.2)
    assert np.abs(model.fields_[100:]).mean() < 0.2
    rest = metrics.match(model.patterns_[:, 100:], teacher.patterns[:, 100:])
    assert rest.overlaps.min() > 0.95


def test_centering_needs_fields():
    _, X = data()
    with pytest.raises(ValueError, match="centering=True needs fields=True"):
        short(centering=True).fit(X)
    with pytest.raises(ValueError, match="centering=True needs fields=True"):
        short(centering=True).partial_fit(X)


def test_centering_with_one_rate_for_weights_and_fields():
    _, X = data()
    rng = np.random.default_rng(5)
    X = X * rng.choice(np.array([-1, 1], dtype=np.int8), size=(200, 1))
    X[:, :100] = np.where(rng.random((200, 100)) < 0.9, 1, -1)
    options = {"fields": True, "learning_rate": 5e-4, "random_state": 0}
    model = HopfieldRBM.paper(8, centering=True, **options).fit(X)
    assert model.stop_reason_ == "flat"
    assert (model.singular_values_ > 0.5).sum() == 3
    assert not np.array_equal(model.components_, HopfieldRBM.paper(8, **options).fit(X).components_)


def test_centering_with_the_automatic_rate_does_not_diverge():
    _, X = data()
    model = HopfieldRBM.paper(8, fields=True, centering=True, random_state=0).fit(X)
    assert model.stop_reason_ == "flat"


def test_missing_entries():
    teacher, X = data(1000, 5, 200)
    holes = np.random.default_rng(7).random(X.shape) < 0.3
    model = HopfieldRBM.paper(8, random_state=0).fit(np.where(holes, np.nan, X))
    assert model.stop_reason_ == "flat"
    assert model.n_patterns_ == 5
    assert smallest_overlap(model, teacher) > 0.97
    # What is not observed is sampled, not taken for a third value that weakens couplings.
    assert model.beta_ == pytest.approx(2.0, abs=0.5)


def test_zeros_for_missing_entries_are_as_good():
    _, X = data()
    holes = np.where(np.random.default_rng(7).random(X.shape) < 0.3, np.nan, X)
    spins = dt.as_spins(np.nan_to_num(holes), zero_is_missing=True)
    assert_same(short().fit(holes), short().fit(spins))
    assert short().fit(holes).score(holes) == short().fit(holes).score(spins)


# --- When it stops ------------------------------------------------------------------------------


def test_history(small):
    teacher, X, model = small
    curve = model.history_
    np.testing.assert_array_equal(curve.update, np.arange(0, model.n_updates_ + 1, 10))
    assert curve.singular_values.shape == (len(curve.update), 8)
    assert curve.pseudo_likelihood[0] == pytest.approx(COIN, abs=0.01)
    assert curve.pseudo_likelihood[-1] == pytest.approx(model.score(X), abs=0.05)
    # The paper's estimate is biased but tells the same story.
    np.testing.assert_allclose(curve.pseudo_likelihood_one_step, curve.pseudo_likelihood, atol=0.15)
    np.testing.assert_allclose(curve.singular_values[-1], model.singular_values_, rtol=1e-5)
    assert curve.error[0] == pytest.approx(1, abs=0.05)
    factors = np.sqrt(300 / 2.0) * model.components_
    expected = metrics.coupling_error(factors, teacher.patterns).relative
    assert curve.error[-1] == pytest.approx(expected, rel=1e-5)
    assert expected < 0.5


def test_the_teacher_is_looked_at_only(small):
    _, X, model = small
    without = HopfieldRBM.paper(8, random_state=0).fit(X)
    assert_same(without, model)
    assert np.isnan(without.history_.error).all()


def test_a_teacher_of_another_size_is_refused():
    _, X = data()
    with pytest.raises(ValueError, match="the teacher has 100 spins, X has 300"):
        short().fit(X, teacher=data(100)[0])


def test_look_every():
    _, X = data()
    model = short(max_updates=20, look_every=7).fit(X)
    np.testing.assert_array_equal(model.history_.update, [0, 7, 14])
    usual = short(max_updates=20).fit(X)
    np.testing.assert_array_equal(model.components_, usual.components_)


def test_callbacks_see_every_look():
    _, X = data()
    seen = []

    def watch(model):
        seen.append((model.n_updates_, model.score(X), model.components_.copy()))

    model = short(max_updates=25).fit(X, callbacks=[watch, lambda _: False])
    assert [update for update, *_ in seen] == [0, 10, 20]
    assert model.stop_reason_ == "max_updates"
    np.testing.assert_array_equal(seen[2][2], short(max_updates=20).fit(X).components_)
    assert seen[2][1] == short(max_updates=20).fit(X).score(X)


def test_patterns_are_those_of_the_present_weights():
    _, X = data()
    seen = []
    model = HopfieldRBM.paper(8, random_state=0)
    model.fit(X, callbacks=[lambda m: seen.append(m.n_patterns_)])
    assert (seen[0], seen[-1], model.n_patterns_) == (0, 3, 3)
    before = model.singular_values_
    assert not np.array_equal(model.partial_fit(X).singular_values_, before)


@pytest.mark.parametrize("enough", [True, np.True_], ids=["bool", "numpy"])
def test_a_callback_that_returns_true_stops(enough):
    _, X = data()
    others = []
    model = short(max_updates=100).fit(
        X, callbacks=[lambda m: enough if m.n_updates_ == 30 else None, others.append]
    )
    assert model.stop_reason_ == "callback"
    assert model.n_updates_ == 30
    assert len(others) == 4  # every callback is called at every look
    np.testing.assert_array_equal(model.components_, short(max_updates=30).fit(X).components_)


def test_a_callback_may_return_an_array():
    _, X = data()
    assert short().fit(X, callbacks=[lambda m: m.components_]).stop_reason_ == "max_updates"


def test_too_few_updates_are_said():
    _, X = data()
    with pytest.warns(
        ConvergenceWarning, match=r"rises after 30 updates \(.*: raise max_up"
    ) as caught:
        model = HopfieldRBM.paper(8, max_updates=30, random_state=0).fit(X)
    assert caught[0].filename == __file__  # points at the caller's line
    assert (model.stop_reason_, model.n_updates_) == ("max_updates", 30)


def test_without_early_stopping_every_update_is_made(small):
    _, X, stopped = small
    n = stopped.n_updates_ + 30
    model = short(n_hidden=8, max_updates=n).fit(X)  # and no warning: it was asked for
    assert (model.stop_reason_, model.n_updates_) == ("max_updates", n)
    np.testing.assert_array_equal(
        model.history_.pseudo_likelihood[:-3], stopped.history_.pseudo_likelihood
    )


@pytest.mark.parametrize("factor", [10, 20])
@pytest.mark.parametrize("seed", [0, 1])
def test_too_large_a_rate_is_noticed_at_once(factor, seed):
    _, X = data(1000, 5, 200, seed)
    auto = short(max_updates=1).fit(X).learning_rate_
    model = HopfieldRBM.paper(8, learning_rate=factor * auto, random_state=seed)
    with pytest.warns(ConvergenceWarning, match=rf"the learning rate \({factor * auto:.3g}\) is"):
        model.fit(X)
    assert model.stop_reason_ == "diverged"
    assert model.n_updates_ <= 100  # of 2000
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.score(X))
    assert np.isfinite(model.history_.pseudo_likelihood).all()


def test_an_absurd_rate_leaves_the_start():
    _, X = data()
    model = short(learning_rate=1e9)
    with pytest.warns(
        ConvergenceWarning, match="diverged after update 0, and the state after update 0 is kept"
    ):
        model.fit(X)
    assert model.n_updates_ == 0
    assert model.score(X) == pytest.approx(COIN, abs=0.01)
    with pytest.warns(ConvergenceWarning, match="diverged after update 0"):
        streamed = short(learning_rate=1e9).partial_fit(X)
    np.testing.assert_array_equal(streamed.components_, model.components_)


# --- partial_fit --------------------------------------------------------------------------------


def in_order(X, model, epoch, batch_size):
    """The samples in the order in which ``fit`` takes them in an epoch."""
    n_batches = -(-len(X) // batch_size)
    order = batches(len(X), batch_size, model._run.seed, epoch * n_batches)
    return X[np.concatenate(list(islice(order, n_batches)))]


@pytest.mark.parametrize("fields", [False, True])
def test_partial_fit_makes_the_updates_of_fit(fields):
    _, X = data()
    options = {"batch_size": 60, "learning_rate": 5e-4, "fields": fields}  # 60 does not divide 200
    whole = short(max_updates=8, **options).fit(X)
    streamed = short(**options)
    for epoch in range(2):
        streamed.partial_fit(in_order(X, whole, epoch, 60))
        assert streamed.n_updates_ == 4 * (epoch + 1)
    np.testing.assert_array_equal(streamed.components_, whole.components_)
    np.testing.assert_array_equal(streamed.fields_, whole.fields_)
    np.testing.assert_array_equal(
        streamed.sample(9, random_state=0), whole.sample(9, random_state=0)
    )
    assert streamed.stop_reason_ == ""
    assert len(streamed.history_.update) == 0


def test_partial_fit_goes_on_after_fit():
    _, X = data()
    whole = short(max_updates=8, batch_size=60, momentum=0.5).fit(X)
    begun = short(max_updates=4, batch_size=60, momentum=0.5).fit(X)
    begun.partial_fit(in_order(X, begun, 1, 60))
    np.testing.assert_array_equal(begun.components_, whole.components_)
    np.testing.assert_array_equal(begun.history_.update, [0])  # kept, not added to
    assert (begun.n_updates_, begun.stop_reason_) == (8, "")


def test_partial_fit_learns_a_stream():
    teacher, X = data(300, 3, 2000)
    model = HopfieldRBM.paper(8, random_state=0).partial_fit(X[:80])
    rate = model.learning_rate_
    for epoch in range(10):
        for part in np.array_split(X, 25):
            model.partial_fit(part)
        if epoch == 0:
            before = model.score(X)
    assert model.n_updates_ == 251
    assert model.learning_rate_ == rate  # set by the first part
    assert model.score(X) > before + 0.2
    assert model.n_patterns_ == 3
    assert smallest_overlap(model, teacher) > 0.97


def test_partial_fit_keeps_to_the_first_number_of_spins():
    _, X = data()
    model = short().partial_fit(X)
    with pytest.raises(ValueError, match="X has 299 features, but HopfieldRBM is expecting 300"):
        model.partial_fit(X[:, :299])
    model.fit(X[:, :299])  # fit starts afresh
    assert model.components_.shape == (4, 299)


@pytest.mark.parametrize("case", ["missing", "cd"])
def test_partial_fit_with_a_larger_batch_than_before(case):
    """Every chain the kernel is given must have a generator, or it writes past the end."""
    _, X = data()
    if case == "missing":
        X = np.where(np.random.default_rng(7).random(X.shape) < 0.3, np.nan, X)
    model = short(batch_size=10, estimate="cd" if case == "cd" else "pcd").fit(X)
    with pytest.raises(ValueError, match="began with n_hidden=4 and batch_size=10"):
        model.set_params(batch_size=100).partial_fit(X)


# --- Reproducibility ----------------------------------------------------------------------------


def test_same_random_state_same_bits(small):
    _, X, expected = small
    model = HopfieldRBM.paper(8, random_state=0)
    for _ in range(2):  # a second fit starts afresh
        assert_same(model.fit(X), expected)
    other = HopfieldRBM.paper(8, random_state=1).fit(X)
    assert not np.array_equal(other.components_, expected.components_)


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState, np.int64])
def test_generators_are_accepted(make):
    _, X = data()
    assert_same(short(random_state=make(4)).fit(X), short(random_state=make(4)).fit(X))
    generator = make(4)
    first, second = (short(random_state=generator).fit(X).components_ for _ in range(2))
    # A generator moves on; a number does not.
    assert np.array_equal(first, second) == (make is np.int64)


def test_no_random_state_is_a_new_one_each_time():
    _, X = data()
    first, second = (short(random_state=None).fit(X).components_ for _ in range(2))
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("options", [{}, {"hidden": "binary"}], ids=["gaussian", "binary"])
def test_the_number_of_threads_does_not_matter(options):
    _, X = data()
    holes = np.where(np.random.default_rng(7).random(X.shape) < 0.1, np.nan, X)
    models = []
    try:
        for n_threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(n_threads)
            models.append(short(max_updates=30, **options).fit(holes))
    finally:
        numba.set_num_threads(1)
    assert_same(*models)


def test_the_encoding_does_not_matter():
    _, X = data()
    expected = short().fit(X)
    for encoded in ((X + 1) // 2, X > 0, X.tolist(), pd.DataFrame((X + 1) // 2)):
        assert_same(short().fit(encoded), expected)


def test_progress_is_silent_off_a_terminal(capfd):
    _, X = data()
    short(verbose=True).fit(X)
    assert capfd.readouterr() == ("", "")


# --- initial weights ----------------------------------------------------------------------------


def test_learning_starts_at_the_weights_that_are_given():
    teacher, X = data()
    init = np.sqrt(2.0 / 300) * teacher.patterns
    seen = []
    short(look_every=7).fit(X, init=init, callbacks=[lambda rbm: seen.append(rbm.components_)])
    np.testing.assert_array_equal(seen[0][:3], init.astype(np.float32))
    usual = []
    short(look_every=7).fit(X, callbacks=[lambda rbm: usual.append(rbm.components_)])
    np.testing.assert_array_equal(seen[0][3:], usual[0][3:])  # the other units start as ever
    assert not np.allclose(seen[0][:3], usual[0][:3])


def test_patterns_that_learning_starts_near_are_kept():
    """From random weights units end as mixtures; started near the patterns, they stay there."""
    teacher, X = data(n_patterns=8, n_samples=400)
    flips = np.where(np.random.default_rng(0).random((8, 300)) < 0.1, -1, 1)
    init = np.sqrt(2.0 / 300) * teacher.patterns * flips
    options = {"n_hidden": 10, "max_updates": 200}
    near, random = (short(**options).fit(X, init=start) for start in (init, None))
    overlap = {
        name: metrics.match(np.sign(rbm.components_), teacher.patterns).overlaps.min()
        for name, rbm in (("near", near), ("random", random))
    }
    assert overlap["near"] > 0.95
    assert overlap["random"] < 0.85


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (
            np.zeros((5, 300)),
            "init has shape \\(5, 300\\); it needs at most n_hidden=4 rows",
        ),
        (np.zeros((4, 299)), "init has shape \\(4, 299\\)"),
        (np.zeros(300), r"init has shape \(300,\)"),
        (np.full((1, 300), np.nan), "init contains NaN"),
    ],
)
def test_initial_weights_must_fit(init, message):
    with pytest.raises(ValueError, match=message):
        short().fit(data()[1], init=init)


def test_a_resumed_run_has_weights_of_its_own(tmp_path):
    _, X = data()
    short().fit(X, checkpoint=tmp_path / "run.npz")
    with pytest.raises(ValueError, match="give either init or resume_from"):
        short().fit(X, init=np.zeros((1, 300)), resume_from=tmp_path / "run.npz")
