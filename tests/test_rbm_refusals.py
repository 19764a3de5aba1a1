"""A run that does not suit the fit, or a damaged file of one, is refused and left as it was."""

import numpy as np
import pytest

import dualtap as dt
from dualtap import HopfieldPatterns
from dualtap.io import write_samples
from dualtap.rbm import run as run_module
from rbm_runs import MAX_UPDATES, rbm, samples, updates_in

pytestmark = [
    pytest.mark.usefixtures("one_kernel_thread"),
    pytest.mark.filterwarnings("ignore:no state of"),  # after so few updates
]


@pytest.fixture
def checkpoint(tmp_path):
    """A run of seven updates."""
    path = tmp_path / "run.npz"
    rbm(max_updates=7).fit(samples()[1], checkpoint=path)
    return path


def assert_refused(path, message, error=ValueError, X=None, **changes):
    """Resuming fails with this message, and every file is as it was."""
    files = {p: p.read_bytes() for p in path.parent.iterdir()}
    model = rbm(**changes)
    with pytest.raises(error, match=message):
        model.fit(samples()[1] if X is None else X, checkpoint=path, resume_from=path)
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == files
    assert not hasattr(model, "components_")


@pytest.mark.parametrize(
    "change",
    [
        {"n_hidden": 5},
        {"hidden": "binary"},
        {"fields": True},
        {"learning_rate": 0.02},
        {"learning_rate": "auto"},
        {"batch_size": 21},
        {"n_chains": 21},
        {"n_steps": 4},
        {"estimate": "cd"},
        {"momentum": 0.1},
        {"weight_decay": 0.1},
        {"fields": True, "centering": True},
        {"look_every": 6},
    ],
    ids=str,
)
def test_other_parameters(checkpoint, change):
    name = sorted(change)[0]
    was = rbm().get_params()[name]
    message = f"run.npz was trained with {name}={was!r}, not {change[name]!r}; a run goes on"
    assert_refused(checkpoint, message, **change)


def test_other_data(checkpoint):
    _, X = samples()
    other = X.copy()
    other[3, 4] *= -1  # one bit is enough
    message = r"run\.npz was trained on other data \(50 samples of 40 spins, checksum "
    assert_refused(checkpoint, message, X=other)
    assert_refused(checkpoint, message, X=X[::-1])
    assert_refused(checkpoint, message, X=X[:49])
    assert_refused(checkpoint, message + r".* of 39 spins", X=X[:, :39])


def test_another_schema(checkpoint):
    arrays = dict(np.load(checkpoint))
    np.savez(checkpoint, **(arrays | {"schema": np.array(99)}))
    message = r"run\.npz has schema 99, this version of dualtap reads up to 2; upgrade"
    assert_refused(checkpoint, message)
    with pytest.raises(ValueError, match=message):
        dt.load(checkpoint)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_truncated_files(checkpoint, kept):
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: int(kept * len(whole))])
    assert_refused(checkpoint, r"run\.npz is not a readable \.npz file")
    with pytest.raises(ValueError, match=r"run\.npz is not a readable"):
        dt.load(checkpoint)


def test_a_flipped_bit_is_noticed(checkpoint):
    whole = bytearray(checkpoint.read_bytes())
    for at in (len(whole) // 4, len(whole) // 2, 3 * len(whole) // 4):  # inside arrays
        damaged = whole.copy()
        damaged[at] ^= 1
        checkpoint.write_bytes(damaged)
        assert_refused(checkpoint, r"run\.npz is not a readable \.npz file: Bad CRC")


def test_foreign_files(tmp_path):
    path = tmp_path / "run.npz"
    path.write_text("not a zip")
    assert_refused(path, r"run\.npz is not a readable \.npz file")
    message = r"run\.npz is not a training run of an RBM; HopfieldRBM writes them"
    write_samples(path, samples()[1], force=True)
    assert_refused(path, message)
    np.savez(path, kind=np.array("svm"), schema=np.array(1))
    assert_refused(path, message)
    with path.open("wb") as file:
        np.save(file, samples()[1])
    assert_refused(path, message)
    dt.save(HopfieldPatterns(2, random_state=0).fit(samples()[1]), path, force=True)
    assert_refused(path, message)


def test_file_names(tmp_path):
    assert_refused(tmp_path / "run.pkl", r"'run\.pkl' must end in \.npz")
    assert_refused(tmp_path / "run", r"'run' must end in \.npz")
    assert_refused(tmp_path / "run.npz", "run.npz", error=FileNotFoundError)
    with pytest.raises(ValueError, match=r"'run\.csv' must end in \.npz"):
        rbm().fit(samples()[1], resume_from=tmp_path / "run.csv")


def test_a_checkpoint_that_cannot_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(run_module, "step", lambda *_: pytest.fail("an update was made"))
    existing = tmp_path / "run.npz"
    existing.write_text("precious")
    for path, error, message in (
        (existing, FileExistsError, r"run\.npz' exists"),
        (tmp_path / "no" / "run.npz", FileNotFoundError, "there is no folder"),
        (tmp_path / "run.txt", ValueError, r"'run\.txt' must end in \.npz"),
    ):
        with pytest.raises(error, match=message):
            rbm().fit(samples()[1], checkpoint=path)
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        rbm().fit(samples()[1], checkpoint=tmp_path / "folder.npz")
    assert existing.read_text() == "precious"


def test_another_existing_checkpoint_is_kept(checkpoint, tmp_path):
    other = tmp_path / "other.npz"
    other.write_text("precious")
    with pytest.raises(FileExistsError, match=r"other\.npz' exists"):
        rbm().fit(samples()[1], checkpoint=other, resume_from=checkpoint)
    assert other.read_text() == "precious"


def test_the_same_file_by_another_name_is_the_same(checkpoint, monkeypatch):
    monkeypatch.chdir(checkpoint.parent)
    model = rbm().fit(samples()[1], checkpoint="run.npz", resume_from=checkpoint)
    assert updates_in(checkpoint) == model.n_updates_ == MAX_UPDATES


ARRAYS = [
    "weights",
    "fields",
    "velocity_weights",
    "velocity_fields",
    "chains",
    "generators",
    "imputing",
    "curve_update",
    "curve_pseudo_likelihood",
    "curve_pseudo_likelihood_one_step",
    "curve_error",
    "curve_singular_values",
    "curve_validation",
    "curve_validation_error",
]


def test_every_array_is_tried(checkpoint):
    assert {*ARRAYS, "schema", "kind", "provenance"} == set(np.load(checkpoint))


def assert_damage_is_noticed(path, message):
    # Reading comes first: arrays that do not fit must never come near the compiled kernel.
    with pytest.raises(ValueError, match=message):
        dt.load(path)
    assert_refused(path, message)


@pytest.mark.parametrize("name", [*ARRAYS, "provenance"])
def test_missing_arrays(checkpoint, name):
    arrays = dict(np.load(checkpoint))
    del arrays[name]
    np.savez(checkpoint, **arrays)
    assert_damage_is_noticed(checkpoint, rf"run\.npz is incomplete or damaged: '{name}'")


@pytest.mark.parametrize(
    "name",
    [n for n in ARRAYS if n not in ("chains", "generators", "imputing")],
)
def test_arrays_that_are_too_short(checkpoint, name):
    arrays = dict(np.load(checkpoint))
    np.savez(checkpoint, **(arrays | {name: arrays[name][:-1]}))
    assert_damage_is_noticed(checkpoint, r"run\.npz is incomplete or damaged: \w+ has shape")


@pytest.mark.parametrize(
    "name",
    [
        *("weights", "velocity_weights", "chains", "curve_singular_values"),
        *("generators", "imputing"),
    ],
)
def test_arrays_that_are_too_narrow(checkpoint, name):
    arrays = dict(np.load(checkpoint))
    np.savez(checkpoint, **(arrays | {name: arrays[name][..., :-1]}))
    assert_damage_is_noticed(checkpoint, r"run\.npz is incomplete or damaged: \w+ has shape")


def test_fewer_generators_than_chains(checkpoint):
    arrays = dict(np.load(checkpoint))
    np.savez(checkpoint, **(arrays | {"chains": np.tile(arrays["chains"], (2, 1))}))
    assert_damage_is_noticed(checkpoint, r"run\.npz is incomplete or damaged")


@pytest.mark.parametrize(
    "provenance", ["", "[]", "{}", '{"run": {}, "parameters": {}}', '{"run": {"x": 1}}']
)
def test_damaged_provenance(checkpoint, provenance):
    arrays = dict(np.load(checkpoint))
    np.savez(checkpoint, **(arrays | {"provenance": np.array(provenance)}))
    assert_damage_is_noticed(checkpoint, r"run\.npz is incomplete or damaged")


def test_a_run_without_a_schema(checkpoint):
    arrays = dict(np.load(checkpoint))
    del arrays["schema"]
    np.savez(checkpoint, **arrays)
    assert_refused(checkpoint, r"run\.npz")
