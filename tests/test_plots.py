"""Pictures: the numbers in them are those of the model."""

import numpy as np
import pytest

import dualtap as dt
from dualtap.plots import learning_figure


@pytest.fixture(scope="module")
def trained():
    teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    return [dt.HopfieldRBM(6, random_state=0).fit(X, teacher=t) for t in (teacher, None)]


def test_learning_curve(trained):
    for rbm, n_axes in zip(trained, (3, 2), strict=True):
        axes = learning_figure(rbm).axes
        assert len(axes) == n_axes  # the error of J has an axis of its own, if there is one
        exact, one_step = axes[0].get_lines()
        np.testing.assert_array_equal(exact.get_xdata(), rbm.history_.update)
        np.testing.assert_array_equal(exact.get_ydata(), rbm.history_.pseudo_likelihood)
        np.testing.assert_array_equal(one_step.get_ydata(), rbm.history_.pseudo_likelihood_one_step)
    (error,) = next(
        ax for ax in learning_figure(trained[0]).axes if "error" in ax.get_ylabel()
    ).lines
    np.testing.assert_array_equal(error.get_ydata(), trained[0].history_.error)


def test_singular_values_of_patterns_stand_out(trained):
    axes = learning_figure(trained[1]).axes[1]
    assert axes.get_title() == "3 of 6 singular values emerge"
    lines = axes.get_lines()
    assert [line.get_color() for line in lines] == ["C0"] * 3 + ["0.6"] * 3
    np.testing.assert_array_equal(lines[0].get_ydata(), trained[1].history_.singular_values[:, 0])
