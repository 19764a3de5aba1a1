"""Models of every kind, and their reports."""

import numpy as np
import pytest
from examples import HOSTILE, TRACE
from sklearn.datasets import load_digits

import dualtap as dt
from dualtap.report import write_report

# Material: a model of images with labels, one of named votes, one that knows its truth.


@pytest.fixture(scope="session")
def digits():
    data = load_digits()
    X = (data.data[:600] >= 8).astype(int)
    return dt.HopfieldPatterns(n_patterns=8, random_state=0).fit(X), X, data.target[:600]


@pytest.fixture(scope="session")
def taught():
    teacher = dt.HopfieldModel.random(n_spins=200, n_patterns=3, beta=0.8, random_state=0)
    X = teacher.sample(300, random_state=1)
    return dt.HopfieldPatterns(n_patterns=3, random_state=0).fit(X), X, teacher


@pytest.fixture(scope="session")
def votes():
    teacher = dt.HopfieldModel.random(n_spins=16, n_patterns=2, beta=1.6, random_state=3)
    X = teacher.sample(80, random_state=4).astype(float)
    X[::7, 3] = np.nan
    return dt.HopfieldPatterns(n_patterns=2, random_state=0).fit(X), X


@pytest.fixture(scope="session")
def rbm():
    teacher = dt.HopfieldModel.random(n_spins=120, n_patterns=2, beta=2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    return dt.HopfieldRBM.paper(n_hidden=4, random_state=0).fit(X), X, teacher


@pytest.fixture(scope="session")
def fair_spins():
    X = np.random.default_rng(0).integers(0, 2, (60, 90))
    return dt.HopfieldPatterns(random_state=0).fit(X), X


@pytest.fixture(scope="session")
def large():
    """A model as large as one gets, put together by hand: fitting it is not what is tested."""
    rng = np.random.default_rng(0)
    model = dt.HopfieldPatterns()
    model.n_features_in_ = 100_000
    model.magnetizations_ = rng.uniform(-1, 1, (50, 100_000)).astype(np.float32)
    model.patterns_ = np.where(model.magnetizations_ < 0, -1, 1).astype(np.int8)
    model.labels_ = np.arange(100) % 50
    model.weights_ = np.full(50, 0.02)
    model.fields_ = np.zeros(100_000)
    model.strengths_, model.reason_ = np.full(50, 2.0), "made by hand"
    model.trace_, model.path_, model.means_ = [], None, np.zeros(100_000)
    model._median_overlap = 0.5
    X = model.patterns_[model.labels_] * rng.choice([-1, 1, 1, 1], (100, 100_000)).astype(np.int8)
    return model, X


@pytest.fixture(scope="session")
def general():
    """Zeros, strengths of both signs, a trace and a path, put together by hand."""
    rng = np.random.default_rng(0)
    model = dt.HopfieldPatterns()
    model.n_features_in_ = 64
    model.patterns_ = rng.choice(np.array([-1, 0, 0, 1], dtype=np.int8), size=(3, 64))
    model.patterns_[1] = 0
    model.patterns_[1, :3] = 1, -1, 1
    model.magnetizations_ = (rng.uniform(0.5, 1, (3, 64)) * model.patterns_).astype(np.float32)
    X = rng.choice(np.array([-1, 1], dtype=np.int8), size=(40, 64))
    model.labels_ = np.arange(40) % 3
    model.weights_ = np.array([14, 13, 13]) / 40
    model.fields_ = rng.normal(size=64)
    model.means_ = np.tanh(model.fields_)
    model.strengths_, model.reason_ = np.array([2.0, 20.0, -4.0]), "made by hand"
    model._median_overlap, model._typical_overlaps = 0.5, np.full(3, 0.5)
    model.trace_ = TRACE
    model.path_ = {
        "n_patterns": np.arange(4),
        "objective": np.array([1100.0, 999.5, 900.0, 850.0]),
        "held_out": np.array([-0.68, -0.6, np.nan, -0.5]),
    }
    return model, X


@pytest.fixture(scope="session")
def pages(tmp_path_factory, digits, taught, votes, rbm, fair_spins, large, general):
    """Write every kind of page once."""
    folder = tmp_path_factory.mktemp("pages")
    names = [HOSTILE, "<b>bold</b>", "a & b", *(f"vote {i}" for i in range(13))]
    sample_names = [f"<b>{HOSTILE}</b> {i}" for i in range(80)]  # Plotly knows <b>
    parties = [HOSTILE if i % 2 else "'\"><svg onload=alert(2)>" for i in range(80)]
    deflated = dt.DualTAP(n_patterns=2, beta=2.0, random_state=0).fit(rbm[1])
    reports = {
        "digits": (digits[0], {"spins": digits[1], "labels": digits[2], "shape": (8, 8)}),
        "taught": (taught[0], {"spins": taught[1], "teacher": taught[2]}),
        "votes": (
            votes[0],
            {
                "spins": votes[1],
                "names": names,
                "sample_names": sample_names,
                "labels": parties,
                "command": f"dualtap show {HOSTILE} \udcff",
            },
        ),
        "rbm": (rbm[0], {"spins": rbm[1], "teacher": rbm[2]}),
        "deflation": (deflated, {"spins": rbm[1]}),
        "nothing": (fair_spins[0], {"spins": fair_spins[1]}),
        "bare": (taught[0], {}),
        "general": (general[0], {"spins": general[1]}),
        "images": (general[0], {"spins": general[1], "shape": (8, 8)}),
        "large": (
            large[0],
            {"spins": large[1], "shape": (250, 400), "names": [f"x{i}" for i in range(100_000)]},
        ),
    }
    for name, (model, options) in reports.items():
        write_report(model, folder / f"{name}.html", **options)
    return folder
