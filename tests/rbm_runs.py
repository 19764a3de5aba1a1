"""Short training runs of `HopfieldRBM`, and what is in their files."""

import json
from functools import cache

import numpy as np

import dualtap as dt
from dualtap import HopfieldModel, HopfieldRBM

MAX_UPDATES = 43  # no multiple of look_every
BASE = {
    "n_hidden": 4,
    "n_chains": 20,
    "batch_size": 20,  # does not divide 50 samples
    "n_steps": 3,
    "look_every": 5,
    "max_updates": MAX_UPDATES,
    "early_stopping": False,
    "learning_rate": 0.01,
    "random_state": 0,
}
CONFIGURATIONS = {
    "pcd": {},
    "cd": {"estimate": "cd"},
    "tempering": {"estimate": "tempering", "n_chains": 4},
    "momentum": {"momentum": 0.5},
    "centering": {"fields": True, "centering": True},
    "binary": {"hidden": "binary", "learning_rate": 0.05},
    "missing": {},
    "batch of one": {"batch_size": 1},
    "whole batch": {"batch_size": 50},
    "automatic rate": {"learning_rate": "paper", "fields": True},
    "held out": {"validation": 0.3, "fields": True},
    "relu": {"hidden": "relu", "validation": 0.3},
    "everything, missing": {
        "estimate": "cd",
        "momentum": 0.3,
        "weight_decay": 1.0,
        "fields": True,
        "centering": True,
        "batch_size": 17,
    },
}


@cache
def samples():
    """A teacher and fifty samples of forty spins; shared, hence read-only."""
    teacher = HopfieldModel.random(40, 2, beta=2.0, random_state=0)
    X = teacher.sample(50, random_state=1)
    X.flags.writeable = False
    return teacher, X


def data_for(name):
    _, X = samples()
    if "missing" not in name:
        return X
    return np.where(np.random.default_rng(2).random(X.shape) < 0.2, np.nan, X)


def rbm(name="pcd", **changes):
    return HopfieldRBM.paper(**(BASE | CONFIGURATIONS[name] | changes))


@cache
def uninterrupted(name):
    teacher, _ = samples()
    model = rbm(name).fit(data_for(name), teacher=teacher)
    assert model.stop_reason_ == "max_updates"
    first = rbm(name, max_updates=1).fit(data_for(name))
    moved = np.abs(model._run.state.weights - first._run.state.weights)
    assert moved.max() > 0.01  # a run that stands still would prove nothing
    return model


def contents(path):
    """All the bits of a run: arrays, and scalars beside them."""
    with np.load(path) as file:
        arrays = {name: (a.dtype, a.shape, a.tobytes()) for name, a in file.items()}
        provenance = json.loads(str(file["provenance"]))
    del arrays["provenance"]
    return arrays | provenance["run"]


def assert_same(one, two, folder):
    """Everything a run's future depends on, and its past."""
    saved = []
    for k, model in enumerate((one, two)):
        path = folder / f"same{k}.npz"
        dt.save(model, path, force=True)
        saved.append(contents(path))
        path.unlink()
    assert saved[0].keys() == saved[1].keys()
    assert [name for name in saved[0] if saved[0][name] != saved[1][name]] == []
    np.testing.assert_array_equal(one.patterns_, two.patterns_)


def updates_in(path):
    """Updates in a checkpoint, which is whole whenever one looks."""
    return dt.load(path).n_updates_ if path.exists() else 0
