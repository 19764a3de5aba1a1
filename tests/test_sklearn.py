"""Scikit-learn's manners: its own checks, pipelines, searches, frames and sparse matrices."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import dualtap as dt
from dualtap import _validation
from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    NaiveMeanField,
    PseudoLikelihood,
)
from dualtap.fitted.learned import LearnedPatterns
from dualtap.preprocessing import BinarizeSpins

GIVEN = dt.HopfieldPatterns(2, random_state=0)
BLIND = dt.HopfieldPatterns(random_state=0)
PUBLISHED = dt.DualTAP(2, beta=2.0, random_state=0)
RBM = dt.HopfieldRBM.paper(3, max_updates=20, n_chains=10, early_stopping=False, random_state=0)
PAIRS = [
    NaiveMeanField(shrinkage=0.1),
    PseudoLikelihood(0.1),
    InteractionScreening(0.1),
    DecimatedPseudoLikelihood(0.1),
]
IMPUTER = dt.PatternImputer(dt.DualTAP(1, beta=2.0, random_state=0), random_state=0)
ESTIMATORS = [BLIND, GIVEN, PUBLISHED, RBM, *PAIRS]
CHECKED = [*ESTIMATORS, IMPUTER]
NOT_A_CLASSIFIER = (
    "there is a probability for each pattern, and the check expects one for each class it has in y"
)


def expected_failures(estimator):
    """Return which of scikit-learn's checks cannot pass, and why."""
    failures = {
        "check_dtype_object": (
            "an object that is no number is refused with its row and column, not in float()'s words"
        )
    }
    if isinstance(estimator, dt.HopfieldRBM):
        order = "batches follow the order of the samples, which repeated rows change"
        weighted = ("on_dense_data", "on_sparse_data")
        failures |= {f"check_sample_weight_equivalence_{kind}": order for kind in weighted}
    if not isinstance(estimator, LearnedPatterns):
        return failures
    return failures | {
        "check_clustering": "three clusters in the plane: two spins have two states up to a sign",
        "check_estimator_sparse_array": NOT_A_CLASSIFIER,
        "check_estimator_sparse_matrix": NOT_A_CLASSIFIER,
    }


def _to_spins(X):
    """Return a threshold; of numbers between 0 and 1 one that repeated rows do not move."""
    values = np.asarray(X)
    if np.iscomplexobj(values):
        raise ValueError("complex numbers have no order")
    values = values.astype(float)
    between = values.size and np.nanmin(values) >= 0 and np.nanmax(values) <= 1
    return BinarizeSpins(0.5 if between else "median").fit(X)


@pytest.fixture
def numbers_become_spins(monkeypatch):
    """Let estimators take numbers as a pipeline with BinarizeSpins does.

    The checks feed real numbers, which estimators of spins refuse, and no tag says so. What a
    threshold cannot take goes on to the estimator, whose own words are then checked.
    """
    genuine = _validation.validated_spins

    def validated_spins(estimator, X, *, reset=False):
        if scipy.sparse.issparse(X):
            if reset:
                estimator._to_spins = _to_spins(X.toarray())
            return genuine(estimator, (X > 0.5).astype(np.int8), reset=reset)
        try:
            to_spins = _to_spins(X) if reset else estimator._to_spins
            kind = "pandas" if isinstance(X, pd.DataFrame) else "default"
            spins = to_spins.set_output(transform=kind).transform(X)
        except (AttributeError, TypeError, ValueError):
            return genuine(estimator, X, reset=reset)
        if reset:
            estimator._to_spins = to_spins
        return genuine(estimator, spins, reset=reset)

    for name, module in list(sys.modules.items()):
        if name.startswith("dualtap.") and getattr(module, "validated_spins", None) is genuine:
            monkeypatch.setattr(module, "validated_spins", validated_spins)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.usefixtures("numbers_become_spins")
@parametrize_with_checks(CHECKED, expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def _complaint(check, estimator):
    try:
        check(estimator)
    except (AssertionError, ValueError) as error:
        return f"{error} {error.__cause__} {error.__context__}"
    return ""


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([BLIND, RBM, PAIRS[0], BinarizeSpins()])  # one of each way to read X
def test_checks_pass_unless_they_feed_numbers(estimator, check):
    complaint = _complaint(check, estimator)
    assert not complaint or "X holds a third value" in complaint


MORE_CHECKS = [
    estimator_checks.check_dataframe_column_names_consistency,
    estimator_checks.check_param_validation,
]
TRANSFORMER_CHECKS = [
    estimator_checks.check_get_feature_names_out_error,
    estimator_checks.check_transformer_get_feature_names_out,
    estimator_checks.check_transformer_get_feature_names_out_pandas,
    estimator_checks.check_set_output_transform,
    estimator_checks.check_set_output_transform_pandas,
    estimator_checks.check_global_output_transform_pandas,
    estimator_checks.check_set_output_transform_polars,
    estimator_checks.check_global_set_output_transform_polars,
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.usefixtures("numbers_become_spins")
@pytest.mark.parametrize(
    "estimator", [e for e in CHECKED if e is not GIVEN] + [BinarizeSpins()], ids=str
)
def test_checks_that_scikit_learn_keeps_for_its_own(estimator):
    checks = MORE_CHECKS + (TRANSFORMER_CHECKS if hasattr(estimator, "transform") else [])
    for check in checks:
        check(type(estimator).__name__, clone(estimator))


NAMES = [f"gene {k}" for k in range(60)]


@pytest.fixture(scope="module")
def samples():
    """0/1 samples of two patterns."""
    teacher = dt.HopfieldModel.random(60, 2, beta=2.0, random_state=0)
    return (teacher.sample(40, random_state=1) + 1) // 2


def _memory_mapped(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


CONTAINERS = {
    "list": lambda X, _: X.tolist(),
    "boolean": lambda X, _: X.astype(bool),
    "float": lambda X, _: X.astype(np.float32),
    "fortran": lambda X, _: np.asfortranarray(X),
    "memmap": _memory_mapped,
    "pandas": lambda X, _: pd.DataFrame(X, columns=NAMES),
    "pandas nullable": lambda X, _: pd.DataFrame(X, columns=NAMES).astype("boolean"),
    "polars": lambda X, _: pl.DataFrame(X, schema=NAMES),
    "polars boolean": lambda X, _: pl.DataFrame(X.astype(bool), schema=NAMES),
    "pyarrow": lambda X, _: pa.table(list(X.T), names=NAMES),
    "pyarrow boolean": lambda X, _: pa.table(list(X.T.astype(bool)), names=NAMES),
}
SPARSE = ["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "csc_array", "coo_array"]
CONTAINERS |= {kind: lambda X, _, kind=kind: getattr(scipy.sparse, kind)(X) for kind in SPARSE}
FRAMES = ["pandas", "polars", "pyarrow"]


@pytest.fixture(scope="module")
def fitted(samples):
    return [clone(estimator).fit(samples) for estimator in (BLIND, PUBLISHED, RBM, *PAIRS)]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_of_the_same_samples_are_the_same(samples, fitted, tmp_path, kind):
    X = CONTAINERS[kind](samples, tmp_path)
    for model in fitted if kind in (*FRAMES, "csr_matrix") else fitted[:1]:  # all by as_spins
        same = clone(model).fit(X)
        for name in ("patterns_", "magnetizations_", "components_", "couplings_"):
            if hasattr(model, name):
                np.testing.assert_array_equal(getattr(same, name), getattr(model, name))
        for method in ("transform", "predict", "score"):
            if hasattr(model, method):
                expected = getattr(model, method)(samples)
                np.testing.assert_array_equal(getattr(same, method)(X), expected)


@pytest.mark.parametrize("missing", FRAMES)
def test_missing_entries_in_tables(samples, missing):
    holes = np.random.default_rng(2).random(samples.shape) < 0.05
    X = np.where(holes, np.nan, samples)
    table = {
        "pandas": pd.DataFrame(X, columns=NAMES).astype("Int8"),
        "polars": pl.DataFrame(X, schema=NAMES, nan_to_null=True).cast(pl.Int8),
        "pyarrow": pa.table(
            [pa.array(x, mask=h) for x, h in zip(samples.T, holes.T, strict=True)], NAMES
        ),
    }[missing]
    model = clone(BLIND).fit(X)
    np.testing.assert_array_equal(clone(BLIND).fit(table).patterns_, model.patterns_)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("estimator", [BLIND, RBM, *PAIRS], ids=lambda e: type(e).__name__)
def test_names_of_columns_are_learned_and_checked(samples, kind, estimator):
    table = CONTAINERS[kind](samples, None)
    model = clone(estimator).fit(table)
    assert model.feature_names_in_.tolist() == NAMES
    for other in FRAMES:
        model.score(CONTAINERS[other](samples, None))
    exchanged = [NAMES[1], NAMES[0], *NAMES[2:]]
    wrong_order = table[exchanged] if kind == "pandas" else table.select(exchanged)
    with pytest.raises(ValueError, match="Feature names must be in the same order") as raised:
        model.score(wrong_order)
    assert "X[list(model.feature_names_in_)]" in str(raised.value)
    if kind != "pyarrow":
        model.score(wrong_order[list(model.feature_names_in_)])
    with pytest.raises(ValueError, match=r"expecting 60 features|should match those"):
        model.score(table[NAMES[:59]] if kind == "pandas" else table.select(NAMES[:59]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.score(samples)
    model.score(dt.spins.as_spins(samples))  # which never had names
    model.fit(samples)
    assert not hasattr(model, "feature_names_in_")


def test_spins_forget_the_names_of_an_earlier_fit(samples):
    model = clone(BLIND).fit(pd.DataFrame(samples, columns=NAMES))
    model.fit(dt.spins.as_spins(samples))
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(ValueError, match="expecting 60 features"):
        model.predict(dt.spins.as_spins(samples[:, :10]))


def test_sparse_matrices_are_zero_one():
    with pytest.raises(ValueError, match="third value: 2"):
        clone(GIVEN).fit(scipy.sparse.csr_array(np.array([[0, 2, 1], [1, 0, 1]])))


@pytest.mark.parametrize("estimator", CHECKED, ids=lambda e: type(e).__name__)
def test_tags(estimator):
    tags = estimator.__sklearn_tags__().input_tags
    assert tags.sparse
    assert tags.allow_nan
    assert not tags.positive_only


@pytest.mark.parametrize(("library", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
@pytest.mark.parametrize(
    ("estimator", "prefix"),
    [(BLIND, "hopfieldpatterns"), (PUBLISHED, "dualtap"), (RBM, "hopfieldrbm")],
)
def test_transform_gives_frames(samples, library, frame, estimator, prefix):
    model = clone(estimator).fit(samples)
    overlaps = model.transform(samples)
    framed = model.set_output(transform=library).transform(samples)
    assert isinstance(framed, frame)
    names = [f"{prefix}{k}" for k in range(overlaps.shape[1])]
    assert list(framed.columns) == names == model.get_feature_names_out().tolist()
    np.testing.assert_array_equal(framed.to_numpy(), overlaps)


@pytest.fixture(scope="module")
def numbers():
    """Real numbers, each column with a threshold of its own, and the spins behind them."""
    rng = np.random.default_rng(5)
    teacher = dt.HopfieldModel.random(120, 3, beta=2.0, random_state=3)
    spins = teacher.sample(90, random_state=4) * rng.choice([-1, 1], size=(90, 1))
    location, scale = rng.normal(size=(2, 1, 120))
    return location + np.abs(scale) * (spins + 0.3 * rng.standard_normal(spins.shape)), teacher


def test_numbers_to_patterns_in_a_pipeline(numbers):
    X, teacher = numbers
    model = make_pipeline(BinarizeSpins(), dt.HopfieldPatterns(random_state=0)).fit(X)
    assert dt.metrics.match(model[-1].patterns_, teacher.patterns).n_recovered() == 3
    assert model.transform(X).shape == (90, 3)
    assert model.predict(X).shape == (90,)
    assert -np.log(2) < model.score(X) < 0
    assert model.get_feature_names_out().tolist() == [f"hopfieldpatterns{k}" for k in range(3)]
    assert "dualtap-summary" not in model._repr_html_()  # scikit-learn's own diagram
    names = [f"gene {k}" for k in range(120)]
    framed = clone(model).set_output(transform="pandas").fit(pd.DataFrame(X, columns=names))
    assert framed[-1].feature_names_in_.tolist() == names
    np.testing.assert_array_equal(framed[-1].patterns_, model[-1].patterns_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_gaps_are_filled_in_a_pipeline(samples):
    holes = np.random.default_rng(3).random(samples.shape) < 0.1
    X = pd.DataFrame(np.where(holes, np.nan, samples), columns=NAMES)
    imputer = clone(IMPUTER).set_params(estimator=GIVEN)
    groups = KMeans(2, n_init=1, random_state=0)
    pipeline = make_pipeline(imputer, groups).fit(X)
    assert set(pipeline.predict(X)) == {0, 1}
    filled = imputer.fit(X).transform(X)
    assert (filled.dtype, set(np.unique(filled))) == (np.int8, {0, 1})
    assert (filled == samples)[holes].mean() > 0.8
    assert imputer.transform(X.to_numpy()[:1]).dtype == np.float64
    np.testing.assert_array_equal(imputer.transform(X.iloc[5:9]), filled[5:9])  # nor any luck
    ones = X.iloc[:1].where(X.iloc[:1] == 1)
    assert set(np.unique(imputer.transform(ones))) <= {0, 1}  # as in training
    framed = imputer.set_output(transform="pandas").transform(X)
    assert framed.columns.tolist() == NAMES
    np.testing.assert_array_equal(framed, filled)
    machine = dt.PatternImputer(RBM, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(machine[~holes], samples[~holes])
    blind = dt.PatternImputer(random_state=0).fit(X)
    assert blind.estimator_.n_patterns_ >= 1


def test_an_imputer_takes_models_that_can_fill(samples):
    with pytest.raises(ValueError, match="'estimator' parameter of PatternImputer must be"):
        dt.PatternImputer(KMeans(2)).fit(samples)


def test_searching_the_number_of_patterns_by_pseudo_likelihood(numbers):
    X, _ = numbers
    pipeline = make_pipeline(BinarizeSpins(), dt.HopfieldPatterns(random_state=0))
    search = GridSearchCV(pipeline, {"hopfieldpatterns__n_patterns": [1, 2, 3]}, cv=2).fit(X)
    assert search.best_params_ == {"hopfieldpatterns__n_patterns": 3}
    scores = search.cv_results_["mean_test_score"]
    assert (np.diff(scores) > 0).all()
    assert search.best_estimator_[-1].n_patterns_ == 3


def test_searching_the_start(samples):
    starts = {"start": ["random", "spectral"]}
    search = GridSearchCV(dt.DualTAP(3, 2.0, random_state=0), starts, cv=2).fit(samples)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(samples) == search.best_estimator_.score(samples)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_cross_validation_scores_are_pseudo_likelihoods(samples, estimator):
    scores = cross_val_score(estimator, samples, cv=3)
    assert scores.shape == (3,)
    assert (scores < 0).all()
    if not isinstance(estimator, NaiveMeanField):  # which is no good where samples cluster
        assert scores.mean() > -np.log(2)  # of fair_spins
