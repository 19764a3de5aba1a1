"""Every experiment from its points to its page, on small systems in the place of the large ones."""

import json
from contextlib import suppress
from importlib import import_module
from typing import get_args

import numpy as np
import pytest

from dualtap.experiments import NAMES, load
from dualtap.experiments.drawing import save_figure
from dualtap.experiments.experiment import MissingTrialsError, Task, Verdict
from dualtap.experiments.pages import Report, claims_page
from dualtap.experiments.store import Store

SMALL = {"N": 60, "updates": 60, "sweeps": 10, "iterations": 40}
MOST_SAMPLES = 12
# Of modules: experiments, starts or students that a trial makes, and the iterations of each.
CONSTANTS = {
    "EXPERIMENTS": 2,
    "N_STARTS": 3,
    "N_STUDENTS": 3,
    "MAX_ITER": 60,
    "STUDENTS_MAX_ITER": 60,
}


def shrunk(parameters):
    """Return parameters that cost little: what is drawn does not matter here, that it is does."""
    small = dict(parameters)
    for name, value in SMALL.items():
        if name in small and small[name] > value:
            small[name] = value
    if "M" in small:
        small["M"] = min(max(2, small["M"] * small["N"] // parameters["N"]), MOST_SAMPLES)
    if "T" in small and small.get("P", 0) > 10:  # the kink of many small patterns takes long
        small["P"] //= 10
        if "students" in small:
            small["students"] = small["P"] + 2
    if "beta" in small and "P" in small and "N" in small:  # a whole map of phases
        small["N"], small["P"] = 40, min(small["P"], 2)
        small["M"] = min(small.get("M", 10), 10)
        small["beta"] = 0.5 if small["beta"] < 1 else 2.0
    if "modes" in small:
        small["M"] = max(small["M"], 2 * small["modes"])
    return small


def small_results(experiment, folder):
    """One trial a point, of the small system, filed under the large one's parameters."""
    tasks = [Task(experiment.name, experiment.version, p, 0) for p, _ in experiment.points(False)]
    with Store(folder) as store:
        outcomes = {}
        for task in tasks:
            small = shrunk(task.parameters)
            key = json.dumps(small)  # large systems of different sizes share a small one
            if key not in outcomes:
                outcomes[key] = experiment.trial(small, task.seed)
            store.add(task, outcomes[key], seconds=0.0)
        return store.results(tasks)


@pytest.fixture
def small_experiment(name, monkeypatch):
    module = import_module(f"dualtap.experiments.{name}")
    for constant, value in CONSTANTS.items():
        if hasattr(module, constant):
            monkeypatch.setattr(module, constant, value)
    return load(name)


@pytest.mark.parametrize("name", NAMES)
def test_from_points_to_page(name, small_experiment, tmp_path):
    experiment = small_experiment
    results = small_results(experiment, tmp_path / "store")
    figure, caption = experiment.plot(results), experiment.caption(results)
    assert all(ax.get_xlabel() or ax.get_ylabel() or ax.get_title() for ax in figure.axes[:1])
    png, svg, text = save_figure(figure, caption, tmp_path, name)
    assert png.stat().st_size > 5000
    assert svg.read_text().startswith("<?xml")
    assert len(text.read_text()) > 100
    claims = experiment.claims(results)
    assert claims
    for claim in claims:
        assert claim.verdict in get_args(Verdict)
        assert all((claim.says, claim.where, claim.decided_by, claim.measured))
    # One point alone may be too little to judge by, or to draw, and that is said.
    alone = results.where(**results.rows[0].parameters)
    assert {claim.verdict for claim in experiment.claims(alone)} <= set(get_args(Verdict))
    with suppress(MissingTrialsError):
        experiment.plot(alone)
    report = Report(experiment, results, len(results), "quick", caption, claims=claims)
    page = claims_page([report], "dualtap reproduce all")
    assert f"(`{name}`)" in page
    assert page.count("** (quick") == len(claims)


@pytest.mark.parametrize("name", NAMES)
def test_trials_are_pure(small_experiment):
    experiment = small_experiment
    parameters, _ = experiment.points(False)[0]
    first, second = (experiment.trial(shrunk(parameters), 5) for _ in range(2))
    assert first.keys() == second.keys()
    for key in first:
        if not key.endswith("seconds"):
            np.testing.assert_array_equal(first[key], second[key])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("full", [False, True])
def test_points_are_plain_and_different(name, full):
    experiment = load(name)
    tasks = experiment.tasks(full)
    assert len({task.key for task in tasks}) == len(tasks) > 0
    for parameters, n_trials in experiment.points(full):
        assert json.loads(json.dumps(parameters)) == parameters
        assert n_trials >= 1
    assert len(experiment.tasks(True)) >= len(experiment.tasks(False))
