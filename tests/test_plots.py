"""Pictures: the numbers in them are those of the model."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

import dualtap as dt
from dualtap.plots import (
    learning_figure,
    plot_learning,
    plot_overlaps,
    plot_path,
    plot_patterns,
    plot_progress,
    plot_singular_values,
    plot_spectrum,
    recovery_figure,
)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def trained():
    teacher = dt.HopfieldModel.random(200, 3, beta=2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    return [dt.HopfieldRBM.paper(6, random_state=0).fit(X, teacher=t) for t in (teacher, None)]


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


@pytest.fixture(scope="module")
def teacher():
    return dt.HopfieldModel.random(300, 4, beta=2.0, random_state=0)


@pytest.fixture(scope="module")
def found(teacher):
    return dt.HopfieldPatterns(random_state=0).fit(teacher.sample(60, random_state=1))


@pytest.fixture(scope="module")
def nothing():
    fair = np.random.default_rng(3).choice(np.array([-1, 1], dtype=np.int8), size=(50, 300))
    return dt.HopfieldPatterns(random_state=0).fit(fair)


def _axes():
    return Figure().subplots()


def _bars(ax, label):
    (bars,) = (bars for bars in ax.containers if bars.get_label() == label)
    return np.array([bar.get_y() + bar.get_height() for bar in bars])


def test_a_complete_recovery_is_a_diagonal(found, teacher):
    ax = plot_overlaps(found, teacher, _axes())
    o = ax.images[0].get_array()
    np.testing.assert_allclose(np.diag(o), 1, atol=0.05)
    assert (o - np.diag(np.diag(o))).max() < 0.3
    assert ax.get_xlabel() == "found pattern"


def test_missed_patterns_are_drawn_last(found, teacher):
    more = dt.HopfieldModel.random(300, 1, beta=2.0, random_state=9).patterns
    bigger = dt.HopfieldModel(np.vstack([more, teacher.patterns]), beta=2.0)
    o = plot_overlaps(found, bigger, _axes()).images[0].get_array()
    assert o.shape == (5, 4)
    np.testing.assert_allclose(np.diag(o), 1, atol=0.05)
    assert o[4].max() < 0.3


def test_rounds_of_deflation_are_drawn_beside_their_progress(teacher):
    model = dt.DualTAP(beta=2.0, n_steps=6, random_state=0)
    model.fit(teacher.sample(60, random_state=1))
    left, right = recovery_figure(model, teacher, 60).axes[:2]
    assert left.images[0].get_array().shape == (4, 6)
    assert (left.get_xlabel(), right.get_xlabel()) == ("round τ", "round τ")


def test_spectrum_tells_patterns_from_noise(found):
    ax = plot_spectrum(found, _axes())
    assert ax.get_yscale() == "log"
    np.testing.assert_allclose(_bars(ax, "patterns"), found.spectrum_[:4])
    np.testing.assert_allclose(_bars(ax, "other directions"), found.spectrum_[4:40])
    edge, last = ax.get_lines()
    assert set(edge.get_ydata()) == {1}
    assert edge.get_label() == "noise edge"
    assert set(last.get_xdata()) == {4.5}


def test_spectrum_of_few_samples_may_end_at_zero(teacher):
    X = np.repeat(teacher.sample(3, random_state=1), 2, axis=0)  # rank 3
    model = dt.HopfieldPatterns(1, random_state=0).fit(X)
    ax = plot_spectrum(model, _axes())
    assert ax.get_ylim()[0] > 1e-3
    ax.figure.savefig(io.BytesIO())


def test_picture_of_a_recovery(found, teacher, tmp_path):
    figure = recovery_figure(found, teacher, 60)
    assert figure.get_suptitle().startswith("4 patterns recovered from 60 samples of 300 spins")
    assert f"found: β = {found.beta_:.2f}" in figure.get_suptitle()
    assert figure.axes[1].get_title() == "Spectrum of the samples: 4 patterns"
    figure.savefig(tmp_path / "picture.png")


def test_picture_of_nothing_says_so(nothing, teacher, tmp_path):
    figure = recovery_figure(nothing, teacher, 50)
    assert figure.get_suptitle().startswith("no pattern recovered from 50 samples")
    assert "nan" not in figure.get_suptitle()
    left, right = figure.axes
    assert left.get_title() == "No pattern found"
    assert " ".join(left.texts[0].get_text().split()) == nothing.reason_
    assert [bars.get_label() for bars in right.containers] == ["other directions"]
    figure.savefig(tmp_path / "picture.png")


def test_every_plot_makes_a_figure_of_its_own_that_a_notebook_shows(
    found, teacher, trained, general
):
    rounds = dt.DualTAP(beta=2.0, n_steps=6, random_state=0)
    rounds.fit(teacher.sample(60, random_state=1))
    draw = [
        lambda **ax: plot_overlaps(found, teacher, **ax),
        lambda **ax: plot_progress(rounds, teacher, **ax),
        lambda **ax: plot_spectrum(found, **ax),
        lambda **ax: plot_patterns(found, **ax),
        lambda **ax: plot_patterns(found, shape=(15, 20), **ax),
        lambda **ax: plot_path(general, **ax),
        lambda **ax: plot_learning(trained[0], **ax),
        lambda **ax: plot_singular_values(trained[0], **ax),
    ]
    for number, plot in enumerate(draw, start=1):
        ax = plot()
        assert len(plt.get_fignums()) == number
        assert ax.figure is plt.figure(plt.get_fignums()[-1])
        given = _axes()
        assert plot(ax=given) is given
        assert len(plt.get_fignums()) == number


def test_patterns_are_rows(found):
    ax = plot_patterns(found, ax=_axes())
    np.testing.assert_array_equal(ax.images[0].get_array(), found.magnetizations_)
    assert ax.get_xlabel() == "spin"
    assert ax.get_ylabel().startswith("pattern")


def test_named_spins_are_named(teacher):
    names = [f"${k}[" for k in range(30)]  # not mathematics
    X = pd.DataFrame(teacher.sample(60, random_state=1)[:, :30], columns=names)
    ax = plot_patterns(dt.HopfieldPatterns(2, random_state=0).fit(X), ax=_axes())
    ax.figure.savefig(io.BytesIO())
    assert [label.get_text().replace("\\$", "$") for label in ax.get_xticklabels()] == names


@pytest.mark.parametrize("shape", [(15, 20), (300, 1), (1, 300)])
def test_patterns_are_pictures(found, shape):
    ax = plot_patterns(found, shape=shape, ax=_axes())
    canvas = ax.images[0].get_array()
    pixels = np.sort(canvas.compressed())  # what lies between pictures is masked
    np.testing.assert_array_equal(pixels, np.sort(found.magnetizations_.ravel()))
    first = canvas[: shape[0], : shape[1]]
    np.testing.assert_array_equal(first.ravel(), found.magnetizations_[0])
    captions = [text.get_text() for text in ax.texts]
    assert captions == [f"{k} · {share:.0%}" for k, share in enumerate(found.weights_)]
    assert ax.get_title() == "4 patterns"
    ax.figure.savefig(io.BytesIO())


def test_patterns_of_an_rbm_have_no_shares(trained):
    ax = plot_patterns(trained[0], shape=(10, 20), ax=_axes())
    assert [text.get_text() for text in ax.texts] == ["0", "1", "2"]


@pytest.fixture(scope="module")
def general():
    """A model with zeros, strengths of both signs and a path, put together by hand."""
    rng = np.random.default_rng(0)
    model = dt.HopfieldPatterns()
    model.patterns_ = rng.choice(np.array([-1, 0, 1], dtype=np.int8), size=(3, 24))
    model.magnetizations_ = (0.9 * model.patterns_).astype(np.float32)
    model.strengths_ = np.array([2.0, 1.25, -3.0])
    model.weights_ = np.array([0.5, 0.3, 0.2])
    model.labels_ = np.zeros(10, dtype=np.int64)
    model.n_features_in_ = 24
    model.path_ = {
        "n_patterns": np.arange(5),
        "objective": np.array([900.0, 800.0, 750.0, 740.0, 745.0]),
        "held_out": np.array([-0.69, -0.6, -0.55, -0.54, -0.54]),
    }
    return model


def test_spins_that_take_no_part_are_grey(general):
    zeros = general.patterns_ == 0
    ax = plot_patterns(general, ax=_axes())
    values, cover = ax.images
    np.testing.assert_array_equal(values.get_array(), general.magnetizations_)
    np.testing.assert_array_equal(~cover.get_array().mask, zeros)
    assert len({tuple(rgb) for rgb in cover.to_rgba(cover.get_array())[zeros]}) == 1
    assert [text.get_text() for text in ax.get_legend().texts] == ["not in the pattern"]
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["0 (g = 2)", "1 (g = 1.2)", "2 (g = -3, repulsive)"]
    ax.figure.savefig(io.BytesIO())


def test_repulsive_patterns_are_marked_below_their_pictures(general):
    ax = plot_patterns(general, shape=(4, 6), ax=_axes())
    assert [text.get_text() for text in ax.texts] == ["0 · 50%", "1 · 30%", "2 · 20%, repulsive"]
    canvas, cover = (image.get_array() for image in ax.images)
    first = ~cover.mask[:4, :6]
    np.testing.assert_array_equal(first.ravel(), general.patterns_[0] == 0)
    assert (~cover.mask).sum() == (general.patterns_ == 0).sum()
    assert canvas.mask[~cover.mask].sum() == 0  # gaps between pictures stay white
    ax.figure.savefig(io.BytesIO())


def test_a_path_has_the_score_over_the_number_of_patterns(general):
    ax = plot_path(general, _axes())
    length, chosen = ax.get_lines()
    np.testing.assert_array_equal(length.get_ydata(), general.path_["objective"])
    assert set(chosen.get_xdata()) == {3}
    (twin,) = (other for other in ax.figure.axes if other is not ax)
    (score,) = twin.get_lines()
    np.testing.assert_array_equal(score.get_ydata(), general.path_["held_out"])
    names = [text.get_text() for text in ax.get_legend().texts]
    assert names == ["description length", "held-out score"]
    ax.figure.savefig(io.BytesIO())


def test_a_path_without_held_out_scores_or_without_anything(general):
    model = dt.HopfieldPatterns()
    model.patterns_ = general.patterns_
    model.path_ = general.path_ | {"held_out": np.full(5, np.nan)}
    assert len(plot_path(model, _axes()).figure.axes) == 1
    model.path_ = None
    with pytest.raises(ValueError, match="path_ of the model is None"):
        plot_path(model, _axes())
    assert not plt.get_fignums()


def test_pictures_of_the_wrong_shape(found):
    with pytest.raises(ValueError, match="product is 300, such as"):
        plot_patterns(found, shape=(28, 28))


def test_no_patterns_to_draw(nothing):
    assert plot_patterns(nothing, shape=(15, 20), ax=_axes()).get_title() == "No pattern found"
