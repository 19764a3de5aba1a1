"""A run that is killed and resumed ends as if nothing had happened, bit for bit."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import dualtap as dt
from dualtap import HopfieldModel, HopfieldRBM
from dualtap.rbm import run as run_module
from rbm_runs import (
    CONFIGURATIONS,
    MAX_UPDATES,
    assert_same,
    data_for,
    rbm,
    samples,
    uninterrupted,
    updates_in,
)

pytestmark = [
    pytest.mark.usefixtures("one_kernel_thread"),
    pytest.mark.filterwarnings("ignore:no state of"),  # after so few updates
]
every_configuration = pytest.mark.parametrize("name", CONFIGURATIONS)


def goes_on(name, path, **changes):
    """Resume the run in a file, and keep it there."""
    teacher, _ = samples()
    return rbm(name, **changes).fit(
        data_for(name), teacher=teacher, checkpoint=path, resume_from=path
    )


def interrupted_at(update, name, path, first):
    """Train until Ctrl-C comes in the middle of an update."""
    teacher, _ = samples()
    real, calls = run_module.step, []

    def step(*arguments):
        calls.append(None)
        if len(calls) > update:
            raise KeyboardInterrupt
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "step", step)
        rbm(name).fit(
            data_for(name),
            teacher=teacher,
            checkpoint=path,
            resume_from=None if first else path,
        )


# --- Interrupted in the same process ------------------------------------------------------------


@every_configuration
@pytest.mark.parametrize("looks", [0, 1, 4, 8])
def test_stopped_by_a_callback(tmp_path, name, looks):
    path = tmp_path / "run.npz"
    teacher, _ = samples()
    stopped = rbm(name).fit(
        data_for(name),
        teacher=teacher,
        checkpoint=path,
        callbacks=[lambda m: m.n_updates_ == 5 * looks],
    )
    assert (stopped.n_updates_, stopped.stop_reason_) == (5 * looks, "callback")
    assert_same(dt.load(path), stopped, tmp_path)
    resumed = goes_on(name, path)
    assert_same(resumed, uninterrupted(name), tmp_path)
    assert_same(dt.load(path), resumed, tmp_path)  # the end is in the file too
    assert list(tmp_path.iterdir()) == [path]


@settings(max_examples=25)
@given(
    name=st.sampled_from(sorted(CONFIGURATIONS)),
    cuts=st.lists(st.integers(0, 15), min_size=1, max_size=4),
)
def test_ctrl_c_in_any_updates(tmp_path_factory, name, cuts):
    folder = tmp_path_factory.mktemp("cut")
    path = folder / "run.npz"
    made = 0
    for k, cut in enumerate(cuts):
        made += cut
        if made >= MAX_UPDATES:
            break
        with pytest.raises(KeyboardInterrupt):
            interrupted_at(cut, name, path, first=k == 0)
        assert dt.load(path).n_updates_ == made  # nothing that was learned is lost
        assert dt.load(path).stop_reason_ == ""
    assert_same(goes_on(name, path), uninterrupted(name), folder)
    assert list(folder.iterdir()) == [path]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_callback_that_raises(tmp_path, error):
    path = tmp_path / "run.npz"

    def fail(model):
        if model.n_updates_ == 10:
            raise error("enough")

    with pytest.raises(error, match="enough"):
        rbm().fit(data_for("pcd"), teacher=samples()[0], checkpoint=path, callbacks=[fail])
    assert dt.load(path).n_updates_ == 10
    assert_same(goes_on("pcd", path), uninterrupted("pcd"), tmp_path)


def test_ctrl_c_while_a_checkpoint_is_written(tmp_path, monkeypatch):
    """The half of it vanishes, and the end of the fit writes a whole one."""
    path = tmp_path / "run.npz"
    real, calls = os.fsync, []

    def fsync(descriptor):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        real(descriptor)

    monkeypatch.setattr("dualtap.rbm.fitting._CHECKPOINT_SECONDS", -1)
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KeyboardInterrupt):
        rbm().fit(data_for("pcd"), teacher=samples()[0], checkpoint=path)
    assert dt.load(path).n_updates_ == 15  # looks at 0, 5, 10 had been written
    assert list(tmp_path.iterdir()) == [path]
    assert_same(goes_on("pcd", path), uninterrupted("pcd"), tmp_path)


def test_early_stopping_comes_at_the_same_update(tmp_path):
    path = tmp_path / "run.npz"
    options = {"early_stopping": True, "max_updates": 2000, "learning_rate": "paper"}
    whole = rbm(**options).fit(data_for("pcd"))
    assert whole.stop_reason_ == "flat"
    for update in (whole.n_updates_ // 3, whole.n_updates_ - 1):
        path.unlink(missing_ok=True)
        with pytest.warns(ConvergenceWarning, match="raise max_updates"):
            rbm(**options | {"max_updates": update}).fit(data_for("pcd"), checkpoint=path)
        resumed = rbm(**options).fit(data_for("pcd"), checkpoint=path, resume_from=path)
        assert_same(resumed, whole, tmp_path)
    again = rbm(**options).fit(data_for("pcd"), resume_from=path)  # already at its end
    assert_same(again, whole, tmp_path)


def test_divergence_ends_at_the_same_update(tmp_path):
    path = tmp_path / "run.npz"
    options = {"learning_rate": 0.08, "max_updates": 500}
    with pytest.warns(ConvergenceWarning, match="diverged"):
        last = rbm(**options, look_every=1).fit(data_for("pcd")).n_updates_
    options["look_every"] = last + 1
    with pytest.warns(ConvergenceWarning, match="diverged"):
        whole = rbm(**options).fit(data_for("pcd"))
    rbm(**options | {"max_updates": last}).fit(data_for("pcd"), checkpoint=path)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        resumed = rbm(**options).fit(data_for("pcd"), resume_from=path)
    assert_same(resumed, whole, tmp_path)


@pytest.mark.parametrize("name", ["pcd", "cd", "missing"])
def test_every_update_draws_new_numbers(tmp_path, name):
    saved = []
    for n in (1, 2):
        rbm(name, max_updates=n).fit(data_for(name), checkpoint=tmp_path / f"{n}.npz")
        saved.append(np.load(tmp_path / f"{n}.npz"))
    # The first mini-batches have 17 samples.
    assert (saved[0]["generators"][:16] != saved[1]["generators"][:16]).any(axis=(1, 2)).all()
    moved = (saved[0]["imputing"][:16] != saved[1]["imputing"][:16]).any(axis=(1, 2))
    assert moved.all() == moved.any() == (name == "missing")


# --- Longer runs in pieces ----------------------------------------------------------------------


@every_configuration
def test_more_updates_later_are_as_good_as_at_once(tmp_path, name):
    path = tmp_path / "run.npz"
    teacher, _ = samples()
    rbm(name, max_updates=7).fit(data_for(name), teacher=teacher, checkpoint=path)
    for max_updates in (8, 20, MAX_UPDATES):
        resumed = goes_on(name, path, max_updates=max_updates)
        assert resumed.n_updates_ == max_updates
    assert_same(resumed, uninterrupted(name), tmp_path)


def test_what_may_differ(tmp_path):
    path, other = tmp_path / "run.npz", tmp_path / "other.npz"
    teacher, X = samples()
    rbm(max_updates=7).fit(X, teacher=teacher, checkpoint=path)
    before = path.read_bytes()
    changed = rbm(random_state=99, verbose=True, beta=3.0)
    changed.fit(X, teacher=teacher, checkpoint=other, resume_from=str(path))
    assert_same(changed, uninterrupted("pcd"), tmp_path)
    assert changed.beta_ == dt.load(other).beta_ == 3.0
    assert path.read_bytes() == before  # read from, not written to


def test_a_saved_model_goes_on_like_a_checkpoint(tmp_path):
    path = tmp_path / "model.npz"
    teacher, X = samples()
    dt.save(rbm(max_updates=12).fit(X, teacher=teacher), path)
    resumed = rbm().fit(X, teacher=teacher, resume_from=path)
    assert_same(resumed, uninterrupted("pcd"), tmp_path)


def test_partial_fit_goes_on_after_a_load(tmp_path):
    path = tmp_path / "model.npz"
    _, X = samples()
    model = rbm(momentum=0.5, max_updates=12).fit(X)
    dt.save(model, path)
    assert_same(dt.load(path).partial_fit(X), model.partial_fit(X), tmp_path)


# --- Killed ------------------------------------------------------------------------------------

ALL = {"n_hidden": 6, "look_every": 2, "early_stopping": False, "random_state": 0}
KILLED = {
    "paper": ALL | {"learning_rate": 4e-4},
    "tempering": ALL
    | {"hidden": "binary", "fields": True, "estimate": "tempering", "n_chains": 5, "n_steps": 1},
}
"""The second one holds samples out and keeps the best state, too."""
SCRIPT = """
import json, pathlib, sys
import dualtap as dt
from dualtap.rbm import fitting

fitting._CHECKPOINT_SECONDS = -1
teacher = dt.HopfieldModel.random(300, 3, beta=2.0, random_state=0)
X = teacher.sample(120, random_state=1)
path, make = pathlib.Path(sys.argv[1]), dt.HopfieldRBM
if sys.argv[2] == "paper":
    make = make.paper
model = make(**json.loads(sys.argv[3]), max_updates=10**7)
model.fit(X, checkpoint=path, resume_from=path if path.exists() else None)
"""


@pytest.mark.parametrize("kind", KILLED)
@pytest.mark.filterwarnings("ignore:the pseudo-likelihood still rises")
def test_killed_again_and_again(tmp_path, kind):
    path = tmp_path / "run.npz"
    command = [sys.executable, "-c", SCRIPT, path, kind, json.dumps(KILLED[kind])]
    one_thread = os.environ | {"NUMBA_NUM_THREADS": "1"}
    pause = np.random.default_rng(0)
    reached = 0
    for _ in range(2):  # a run from its start, and one that was resumed
        target = reached + 30
        process = subprocess.Popen(command, env=one_thread)
        try:
            while reached < target and process.poll() is None:
                time.sleep(0.02)
                reached = updates_in(path)
            time.sleep(pause.uniform(0, 0.01))  # anywhere in an update or a write
        finally:
            process.kill()
        assert process.wait() == -signal.SIGKILL
        assert updates_in(path) >= reached >= target
        reached = updates_in(path)
    teacher = HopfieldModel.random(300, 3, beta=2.0, random_state=0)
    X = teacher.sample(120, random_state=1)
    make = HopfieldRBM.paper if kind == "paper" else HopfieldRBM
    model = make(**KILLED[kind], max_updates=reached + 7)
    resumed, whole = clone(model).fit(X, checkpoint=path, resume_from=path), clone(model).fit(X)
    assert resumed.n_updates_ == reached + 7
    assert (whole._run.best is not None) == (kind != "paper")
    assert_same(dt.load(path), whole, tmp_path)
    # A process that is killed can leave the half of a file behind, under another name.
    assert {p.name[:9] for p in tmp_path.iterdir()} <= {"run.npz", ".run.npz."}


# --- Checkpoints --------------------------------------------------------------------------------


def test_checkpoints_are_written_on_the_way(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    seen = []

    def look(model):
        seen.append((updates_in(path), dt.load(path).stop_reason_) if path.exists() else None)

    monkeypatch.setattr("dualtap.rbm.fitting._CHECKPOINT_SECONDS", -1)
    rbm(max_updates=17).fit(data_for("pcd"), checkpoint=path, callbacks=[look])
    assert seen == [None, (0, ""), (5, ""), (10, "")]
    assert (updates_in(path), dt.load(path).stop_reason_) == (17, "max_updates")
    assert list(tmp_path.iterdir()) == [path]


def test_checkpoints_are_seldom(tmp_path, monkeypatch):
    monkeypatch.setattr("dualtap.rbm.fitting._CHECKPOINT_SECONDS", 1e9)
    path = tmp_path / "run.npz"
    there = []
    rbm().fit(data_for("pcd"), checkpoint=path, callbacks=[lambda _: there.append(path.exists())])
    assert there == [False] * 9
    assert path.exists()


def test_without_a_checkpoint_no_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rbm().fit(data_for("pcd"))
    assert list(tmp_path.iterdir()) == []


def test_a_diverged_run_is_kept_too(tmp_path):
    path = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning, match="diverged"):
        model = rbm(learning_rate=1e9).fit(data_for("pcd"), checkpoint=path)
    assert dt.load(path).stop_reason_ == "diverged"
    assert_same(dt.load(path), model, tmp_path)


def test_a_run_in_the_middle_can_be_looked_at(tmp_path):
    path = tmp_path / "run.npz"
    _, X = samples()
    with pytest.raises(KeyboardInterrupt):
        interrupted_at(23, "pcd", path, first=True)
    model = dt.load(path)
    assert (model.n_updates_, model.stop_reason_) == (23, "")
    np.testing.assert_array_equal(model.history_.update, [0, 5, 10, 15, 20])
    reference = rbm(max_updates=23).fit(X)
    assert model.score(X) == reference.score(X)
    np.testing.assert_array_equal(
        model.sample(3, random_state=0), reference.sample(3, random_state=0)
    )


# --- save and load ------------------------------------------------------------------------------


@every_configuration
def test_save_and_load(tmp_path, name):
    path = tmp_path / "model.npz"
    _, X = samples()
    model = uninterrupted(name)
    dt.save(model, path)
    back = dt.load(path)
    assert isinstance(back, HopfieldRBM)
    assert back.get_params() == model.get_params()
    assert_same(back, model, tmp_path)
    assert back.score(X) == model.score(X)
    np.testing.assert_array_equal(back.transform(X), model.transform(X))
    np.testing.assert_array_equal(back.singular_values_, model.singular_values_)
    np.testing.assert_array_equal(back.sample(5, random_state=0), model.sample(5, random_state=0))
    assert back.learning_rate_ == model.learning_rate_
    assert back.n_features_in_ == 40
    assert not hasattr(back, "feature_names_in_")
    with pytest.raises(ValueError, match="X has 39 features, but HopfieldRBM is expecting 40"):
        back.transform(X[:, :39])


def test_existing_files_are_kept_without_force(tmp_path):
    path = tmp_path / "model.npz"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match=r"model\.npz' exists; pass force=True"):
        dt.save(uninterrupted("pcd"), path)
    assert path.read_text() == "precious"
    dt.save(uninterrupted("pcd"), path, force=True)
    assert updates_in(path) == MAX_UPDATES


def test_save_refuses_other_suffixes_and_unfitted_models(tmp_path):
    with pytest.raises(ValueError, match=r"'model\.pkl' must end in \.npz"):
        dt.save(uninterrupted("pcd"), tmp_path / "model.pkl")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        dt.save(HopfieldRBM(), tmp_path / "model.npz")
    assert list(tmp_path.iterdir()) == []


def test_feature_names_and_generators(tmp_path):
    _, X = samples()
    frame = pd.DataFrame(X, columns=[f"gene{i}" for i in range(40)])
    path = tmp_path / "run.npz"
    rng = np.random.default_rng(0)  # a generator cannot be stored, and is not
    model = rbm(max_updates=7, random_state=rng).fit(frame, checkpoint=path)
    back = dt.load(path)
    assert list(back.feature_names_in_) == list(frame.columns)
    assert back.random_state is None
    np.testing.assert_array_equal(back.transform(frame), model.transform(frame))
    resumed = rbm().fit(frame, checkpoint=path, resume_from=path)
    assert list(dt.load(path).feature_names_in_) == list(resumed.feature_names_in_)


@pytest.mark.parametrize(
    "change", [{"n_hidden": np.int64(4)}, {"momentum": np.float32(0.5)}, {"fields": np.True_}]
)
def test_parameters_may_be_numpy_scalars(tmp_path, change):
    path = tmp_path / "run.npz"
    rbm(max_updates=7, **change).fit(samples()[1], checkpoint=path)
    resumed = rbm(max_updates=9, **change).fit(samples()[1], resume_from=path)
    assert resumed.n_updates_ == 9


def test_nothing_is_pickled(tmp_path):
    path = tmp_path / "run.npz"
    dt.save(uninterrupted("pcd"), path)
    with np.load(path, allow_pickle=False) as file:
        assert all(file[name].dtype.kind in "iufU" for name in file)
    assert Path(path).read_bytes().startswith(b"PK")


def test_files_of_the_first_schema_go_on(tmp_path):
    """They held out no samples: what they lack is what the paper's run has."""
    path = tmp_path / "old.npz"
    _, X = samples()
    options = {"learning_rate": "paper"}
    rbm(max_updates=12, **options).fit(X, checkpoint=path)
    arrays = dict(np.load(path))
    provenance = json.loads(str(arrays["provenance"]))
    for name in ("validation", "max_seconds"):
        del provenance["parameters"][name]
    for name in ("stage", "cuts", "prior", "grown_from"):
        del provenance["run"][name]
    provenance["parameters"]["learning_rate"] = "auto"
    for name in ("curve_validation", "curve_validation_error"):
        del arrays[name]
    old = arrays | {"schema": np.array(1), "provenance": np.array(json.dumps(provenance))}
    np.savez(path, **old)
    assert dt.load(path).get_params() == rbm(max_updates=12, **options).get_params()
    resumed = rbm(**options).fit(X, resume_from=path)
    assert_same(resumed, rbm(**options).fit(X), tmp_path)
