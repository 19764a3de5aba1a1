"""What type checkers know of estimators: ``make lint`` has mypy check this file as well."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import dualtap as dt
from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    NaiveMeanField,
    PseudoLikelihood,
)

X = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]])


def test_a_fit_is_of_the_type_of_its_estimator() -> None:
    assert_type(dt.DualTAP(1, 1.0).fit(X), dt.DualTAP)
    assert_type(dt.HopfieldPatterns().fit(X, sample_weight=[1, 2, 0.5]), dt.HopfieldPatterns)
    assert_type(dt.PatternImputer().fit(X), dt.PatternImputer)
    assert_type(NaiveMeanField().fit(X), NaiveMeanField)
    assert_type(PseudoLikelihood(0.1).fit(X), PseudoLikelihood)
    assert_type(InteractionScreening(0.1).fit(X), InteractionScreening)
    assert_type(DecimatedPseudoLikelihood(0.1).fit(X), DecimatedPseudoLikelihood)


def test_what_a_model_returns_is_known() -> None:
    model = dt.DualTAP(1, 1.0, random_state=0).fit(X)
    label: NDArray[np.int32] = assert_type(model.predict(X), NDArray[np.int32])
    overlap = assert_type(model.transform(X), NDArray[np.float64])
    assert_type(model.score_samples(X), NDArray[np.float64])
    assert_type(model.score(X, sample_weight=[1, 1, 2]), float)
    assert label.shape == overlap.shape[:1] == (3,)
