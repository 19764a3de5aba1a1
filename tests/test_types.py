"""What type checkers know of estimators: ``make lint`` has mypy check this file as well."""

from typing import Any, assert_type

import numpy as np
import pytest
from numpy.typing import NDArray

import dualtap as dt
from dualtap.baselines import (
    DecimatedPseudoLikelihood,
    InteractionScreening,
    NaiveMeanField,
    PseudoLikelihood,
)
from dualtap.edges import Edges

X = np.array([[1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]])


def test_a_fit_is_of_the_type_of_its_estimator() -> None:
    assert_type(dt.DualTAP(1, 1.0).fit(X), dt.DualTAP)
    assert_type(dt.HopfieldPatterns().fit(X, sample_weight=[1, 2, 0.5]), dt.HopfieldPatterns)
    assert_type(dt.PatternImputer().fit(X), dt.PatternImputer)
    assert_type(NaiveMeanField().fit(X), NaiveMeanField)
    assert_type(PseudoLikelihood(0.1).fit(X), PseudoLikelihood)
    assert_type(InteractionScreening(0.1).fit(X), InteractionScreening)
    assert_type(DecimatedPseudoLikelihood(0.1).fit(X), DecimatedPseudoLikelihood)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_trained_machine_is_of_its_type() -> None:
    machine = dt.HopfieldRBM.paper(1, max_updates=2, n_chains=4, random_state=0)
    assert_type(machine.fit(X, sample_weight=[1, 2, 1]), dt.HopfieldRBM)
    assert_type(machine.transform(X), NDArray[np.floating[Any]])
    assert_type(machine.score(X, sample_weight=[1, 2, 1]), float)


def test_what_a_model_returns_is_known() -> None:
    model = dt.DualTAP(1, 1.0, random_state=0).fit(X)
    label: NDArray[np.int32] = assert_type(model.predict(X), NDArray[np.int32])
    overlap = assert_type(model.transform(X), NDArray[np.float64])
    assert_type(model.score_samples(X), NDArray[np.float64])
    assert_type(model.score(X, sample_weight=[1, 1, 2]), float)
    assert_type(model.couplings(), NDArray[np.float64])
    assert_type(model.edges(top=2), Edges)
    assert_type(model.predict_entries(X), NDArray[np.float64])
    assert label.shape == overlap.shape[:1] == (3,)
