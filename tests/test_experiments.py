"""The runner and its store: every trial once, whole, and the same whoever makes it."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toy_experiment
from dualtap import experiments
from dualtap.experiments import reproduce
from dualtap.experiments.archive import Archive, write_archive
from dualtap.experiments.experiment import Results, Row, Task
from dualtap.experiments.runner import run as run_tasks
from dualtap.experiments.store import Store

HERE = Path(__file__).parent
PYTHONPATH = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])


def run(experiment, store, full=False, **options):
    """Make the trials of an experiment that the store does not have."""
    return run_tasks(experiment, store, experiment.tasks(full), **options)


def rows(results):
    """What must not depend on who made the trials."""
    return [
        (dict(row.parameters), row.index, row.seed, dict(row.results), row.array("path").tolist())
        for row in results
    ]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def expected(tmp_path):
    with Store(tmp_path / "expected") as opened:
        return rows(run(toy_experiment.make(), opened, n_jobs=1))


# --- tasks --------------------------------------------------------------------------------------


@given(
    parameters=st.dictionaries(st.text(max_size=5), st.integers() | st.floats(allow_nan=False)),
    index=st.integers(0, 10**6),
)
def test_a_task_has_one_seed(parameters, index):
    task = Task("a", "c1", parameters, index)
    shuffled = Task("a", "c1", dict(reversed(parameters.items())), index)
    assert (task.key, task.seed, task.point) == (shuffled.key, shuffled.seed, shuffled.point)
    assert 0 <= task.seed < 2**31
    others = [Task("b", "c1", parameters, index), Task("a", "c2", parameters, index)]
    others += [
        Task("a", "c1", parameters, index + 1),
        Task("a", "c1", {**parameters, "new": 1}, index),
    ]
    assert len({task.key, *(other.key for other in others)}) == 5
    assert task.seed == others[1].seed  # other code, same teachers


# --- store --------------------------------------------------------------------------------------


def test_rows_come_back_whole(store):
    task = Task("toy", "c1", {"center": 0.5}, 3)
    store.add(task, {"x": np.float64(1.5), "name": "a", "v": np.arange(3)}, seconds=0.25)
    (row,) = store.results([task])
    assert row.results == {"x": 1.5, "name": "a"}
    assert (row.index, row.seed, row.seconds) == (3, task.seed, 0.25)
    np.testing.assert_array_equal(row.array("v"), [0, 1, 2])
    store.add(task, {"x": 2.5}, seconds=0.5)  # made again: replaced
    (row,) = store.results([task])
    assert row.results == {"x": 2.5}
    with pytest.raises(KeyError):
        row.array("v")


def test_versions_and_parameters_never_mix(store):
    task = Task("toy", "c1", {"center": 0.5}, 0)
    store.add(task, {"x": 1}, seconds=0)
    for other in (
        Task("toy", "c2", {"center": 0.5}, 0),
        Task("toy", "c1", {"center": 0.6}, 0),
        Task("toy", "c1", {"center": 0.5, "more": 1}, 0),
        Task("toy", "c1", {"center": 0.5}, 1),
        Task("another", "c1", {"center": 0.5}, 0),
    ):
        assert other not in store
        assert len(store.results([other])) == 0
    assert task in store


def test_a_file_that_is_no_store(tmp_path):
    (tmp_path / "trials.sqlite").write_bytes(b"something else entirely" * 100)
    with pytest.raises(ValueError, match=r"trials\.sqlite is not a store of trials"):
        Store(tmp_path)


def test_export(store, tmp_path, expected):
    experiment = toy_experiment.make()
    run(experiment, store, n_jobs=1)
    path = tmp_path / "trials.csv"
    store.export(experiment.tasks(full=False), path)
    with path.open() as file:
        lines = list(csv.DictReader(file))
    assert [float(line["mean"]) for line in lines] == [row[3]["mean"] for row in expected]
    assert [int(line["seed"]) for line in lines] == [row[2] for row in expected]
    assert {"center", "trial", "count", "seconds", "dualtap"} < set(lines[0])
    with pytest.raises(FileExistsError):
        store.export(experiment.tasks(full=False), path)
    with pytest.raises(ValueError, match="must end in"):
        store.export(experiment.tasks(full=False), tmp_path / "trials.xls")


def test_export_to_parquet(store, tmp_path, expected):
    import pandas as pd

    experiment = toy_experiment.make()
    run(experiment, store, n_jobs=1)
    store.export(experiment.tasks(full=False), tmp_path / "trials.parquet")
    table = pd.read_parquet(tmp_path / "trials.parquet")
    assert table["mean"].tolist() == [row[3]["mean"] for row in expected]


def test_an_archive_gives_back_what_was_put_in(store, tmp_path):
    rows = [
        Row({"T": 1.0, "rule": "tap"}, 0, 5, {"x": 1.25, "n": 3}, None, 0.5, "0.1.0"),
        Row({"T": 1.0, "P": 2}, 1, 6, {"x": float("nan")}, lambda: {"v": np.arange(3.0)}, 1.5, ""),
        Row({"T": 2}, 2, 7, {}, lambda: {"v": np.ones(3), "w": np.eye(2)}, 2.5, ""),
    ]
    written = write_archive(tmp_path / "a", {"toy": ("c1", Results(rows))}, {"rule": "mark"})
    assert [path.name for path in written] == ["toy.csv", "toy.npz", "archive.json"]
    archive = Archive(tmp_path / "a")
    assert archive.rules == {"rule": "mark"}
    for row in rows:
        task = Task("toy", "c1", row.parameters, row.index)
        found = archive.find(task)
        assert (found.parameters, found.seed, found.seconds) == (
            row.parameters,
            row.seed,
            row.seconds,
        )
        assert str(found.results) == str(row.results)  # NaN is not equal to itself
        assert archive.find(replace(task, version="c2")) is None
        assert archive.find(replace(task, version="c2"), of_any_code=True) is found
        assert archive.find(replace(task, index=9)) is None
    np.testing.assert_array_equal(found.array("v"), [1, 1, 1])
    np.testing.assert_array_equal(found.array("w"), np.eye(2))
    # Another experiment is added to it, this one stays.
    write_archive(tmp_path / "a", {"other": ("c3", Results(rows[:1]))}, {})
    assert set(Archive(tmp_path / "a").made) == {"toy", "other"}


def test_times_are_those_of_trials_like_these(store):
    tasks = [Task("toy", "c1", {"M": M}, i) for M in (1, 2) for i in range(2)]
    assert store.seconds(tasks) is None
    assert store.seconds([]) == 0
    store.add(tasks[0], {}, seconds=2.0)
    assert store.seconds(tasks) == 8  # nothing better is known
    store.add(tasks[2], {}, seconds=4.0)
    assert store.seconds([replace(task, version="c2") for task in tasks]) == 12
    large = Task("toy", "c1", {"M": 3, "N": 1000}, 0)
    assert store.seconds([large]) is None  # small systems say nothing of large ones
    store.add(replace(large, index=1), {}, seconds=9.0)
    assert store.seconds([large, replace(large, parameters={"M": 4, "N": 1000})]) == 18


# --- runner -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_do_not_depend_on_the_workers(store, expected, n_jobs):
    assert rows(run(toy_experiment.make(), store, n_jobs=n_jobs)) == expected


def counted(tmp_path, centers=(0.0, 1.0)):
    """An experiment that notes every trial made."""
    log = tmp_path / "log"

    def points(full):
        return [({"center": center, "log": str(log)}, 2) for center in centers]

    return toy_experiment.make(points), log


def test_nothing_is_made_twice_unless_forced(store, tmp_path):
    experiment, log = counted(tmp_path)
    first = rows(run(experiment, store, n_jobs=1))
    assert rows(run(experiment, store, n_jobs=1)) == first
    assert log.read_text() == "...."
    assert rows(run(experiment, store, n_jobs=1, repeat=True)) == first
    assert log.read_text() == "........"


def test_waiting_is_not_part_of_a_trials_time(store, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "0.5")
    one = toy_experiment.make(lambda full: [({"center": 1.5}, 1)])
    (row,) = run(one, store, n_jobs=1)
    assert 0 < row.seconds < 0.4


def test_full_keeps_the_rows_of_quick(store):
    experiment = toy_experiment.make()
    quick = rows(run(experiment, store, n_jobs=1))
    full = rows(run(experiment, store, n_jobs=1, full=True))
    assert len(full) == 15
    assert all(row in full for row in quick)


def test_a_trial_that_fails_keeps_the_others(store, monkeypatch):
    real = toy_experiment.trial

    def failing(parameters, seed):
        if parameters["center"] == -2.0:
            raise RuntimeError("no luck")
        return real(parameters, seed)

    monkeypatch.setattr(toy_experiment, "trial", failing)
    experiment = toy_experiment.make()
    with pytest.raises(RuntimeError, match="no luck"):
        run(experiment, store, n_jobs=1)
    assert len(store.results(experiment.tasks(full=False))) == 6


SWEEP = """
import sys
import toy_experiment
from dualtap.experiments.runner import run
from dualtap.experiments.store import Store

experiment = toy_experiment.make(toy_experiment.many_points)
with Store(sys.argv[1]) as store:
    run(experiment, store, experiment.tasks(), n_jobs=int(sys.argv[2]))
"""


def sweep(folder, n_jobs, seconds):
    """Start a process that makes sixty trials of so many seconds each."""
    return subprocess.Popen(
        [sys.executable, "-c", SWEEP, str(folder), str(n_jobs)],
        env=os.environ | {"PYTHONPATH": PYTHONPATH, "TOY_SECONDS": str(seconds)},
        stderr=subprocess.DEVNULL,
    )


def finish(folder, **options):
    """Make those of the sixty trials that are missing."""
    with Store(folder) as opened:
        run(toy_experiment.make(toy_experiment.many_points), opened, **options)


def all_rows(folder):
    with closing(sqlite3.connect(folder / "trials.sqlite")) as database:
        return database.execute(
            "SELECT experiment, version, point, trial, seed, results FROM trials ORDER BY 3, 4"
        ).fetchall()


def n_rows(folder):
    try:
        return len(all_rows(folder))
    except sqlite3.OperationalError:  # not there yet
        return 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The rows of sixty trials that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    finish(folder, n_jobs=1)
    assert n_rows(folder) == 60
    return all_rows(folder)


def test_killed_again_and_again_ends_with_the_same_rows(tmp_path, whole):
    rng = np.random.default_rng(0)
    for _ in range(2):
        before = n_rows(tmp_path)
        process = sweep(tmp_path, n_jobs=1, seconds=0.05)
        while n_rows(tmp_path) < before + 2 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.05 * rng.random())  # anywhere in a trial or a write
        process.kill()
        process.wait()
    assert n_rows(tmp_path) >= 4
    finish(tmp_path, n_jobs=1)
    assert all_rows(tmp_path) == whole


@pytest.mark.usefixtures("in_foreground")
def test_ctrl_c_keeps_what_is_done(tmp_path, whole):
    process = sweep(tmp_path, n_jobs=2, seconds=1)  # half a minute in all, time enough for Ctrl-C
    while n_rows(tmp_path) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) != 0
    assert 3 <= n_rows(tmp_path) < 60
    finish(tmp_path, n_jobs=1)
    assert all_rows(tmp_path) == whole


# --- the command --------------------------------------------------------------------------------


@pytest.fixture
def toy_only(monkeypatch):
    """Let the toy be the only experiment."""
    monkeypatch.setattr(experiments, "NAMES", ("toy",))
    monkeypatch.setattr(reproduce, "NAMES", ("toy",))
    monkeypatch.setattr(reproduce, "load", lambda name: toy_experiment.make())


def test_reproduce_draws_and_judges(run, toy_only):
    code, out, err = run("reproduce", "all", "--jobs", 1)
    assert (code, err) == (0, "")
    names = ["figures/toy.png", "figures/toy.svg", "figures/toy.txt", "claims.md", "figures.md"]
    verdict, measured, *files = out.splitlines()
    assert verdict == "toy: holds (quick): The mean | is the centre."
    assert measured.strip().startswith("1.5")
    assert files == [f"results/{name}" for name in names]
    assert Path("results/figures/toy.txt").read_text() == "9 trials.\n"
    assert Path("results/figures/toy.png").read_bytes().startswith(b"\x89PNG")
    page = Path("results/claims.md").read_text()
    assert "| The mean \\| is the centre. | Sec. 1 | its mean (`toy`) | 1.5" in page
    assert "| **holds** (quick) |" in page
    assert "- Sec. 1: a slip" in page
    page = Path("results/figures.md").read_text()
    assert "![A toy](figures/toy.png)" in page
    assert "[SVG](figures/toy.svg)" in page
    before = Path("results/figures/toy.svg").read_bytes()
    assert run("reproduce", "all", "--jobs", 1)[0] == 0
    assert Path("results/figures/toy.svg").read_bytes() == before  # no date, no random names


def test_claims_never_compute_unasked(run, toy_only):
    code, out, err = run("reproduce", "claims", "--jobs", 1)
    assert code == 0
    assert "toy: 9 of 9 trials are missing, time unknown" in err
    assert "judging the finished trials" in err
    assert "toy: there are no trials" in out
    assert run("reproduce", "toy", "--jobs", 1)[0] == 0
    _, out, err = run("reproduce", "claims", "--full", "--jobs", 1)
    assert "toy: 6 of 15 trials are missing, about 0 s on" in err
    assert "toy: holds (9 of 15 trials): The mean" in out
    _, out, err = run("reproduce", "claims", "--full", "--yes", "--jobs", 1)
    assert err == ""
    assert "toy: holds: The mean" in out


def test_other_parameters_make_their_own_figure(run, toy_only):
    arguments = ("reproduce", "toy", "--jobs", 1, "--set", "center=1.5,4", "trials=2")
    code, out, _ = run(*arguments)
    assert code == 0
    assert "toy: holds (own parameters)" in out
    assert Path("results/figures/toy-center=1.5+4-trials=2.txt").read_text() == "4 trials.\n"
    _, out, _ = run("reproduce", "toy", "--set", "center=4", "--jobs", 1)
    assert out == "toy: not drawn: there is no trial with center = 1.5\n"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["colour=red"], "toy has no parameter 'colour'; it has center, trials"),
        (["center"], "'center' sets nothing: write NAME=VALUE or NAME=VALUE,VALUE"),
        (["trials=0"], "trials must be a whole number from 1 on, not 0"),
        (["trials=1,2"], "trials is one number, not 2"),
        (["center=1", "center=2"], "center is set twice"),
    ],
)
def test_settings_that_mean_nothing(run, toy_only, settings, message):
    code, out, err = run("reproduce", "toy", *(part for s in settings for part in ("--set", s)))
    assert (code, out, err) == (2, "", f"dualtap: {message}\n")
    assert not Path("results").exists()


def test_reproduce_exports(run, toy_only):
    arguments = ("reproduce", "toy", "--jobs", 1, "--out", "r", "--export", "t.csv", "--json")
    code, out, _ = run(*arguments)
    assert code == 0
    assert json.loads(out)["files"][-1] == "t.csv"
    assert json.loads(out)["verdicts"][0]["verdict"] == "holds"
    assert not Path("r/claims.md").exists()
    code, _, err = run(*arguments)
    assert code == 2
    assert "'t.csv' exists" in err


def test_an_export_is_overwritten_without_repeating_trials(run, toy_only, tmp_path, monkeypatch):
    experiment, log = counted(tmp_path, centers=(1.5, 4.0))
    monkeypatch.setattr(reproduce, "load", lambda name: experiment)
    arguments = ("reproduce", "toy", "--jobs", 1, "--export", "t.csv", "-q")
    for options, n_made in (((), 4), (("--force",), 4), (("--force", "--repeat"), 8)):
        assert run(*arguments, *options) == (0, "", "")
        assert len(log.read_text()) == n_made


def test_archived_trials_are_drawn_without_being_made(run, toy_only):
    full = ("--full", "--jobs", 1)
    assert run("reproduce", "all", *full, "--export", "archive")[0] == 0
    page = Path("results/claims.md").read_text()
    code, out, err = run("reproduce", "claims", *full, "--from", "archive", "--out", "again")
    assert (code, err) == (0, "")
    assert "toy: holds: The mean" in out
    assert Path("again/figures/toy.txt").read_text() == "15 trials.\n"
    again = Path("again/claims.md").read_text()
    assert again == page.replace("reproduce all", "reproduce claims")
    assert "None has been touched since." in page
    assert n_rows(Path("again")) == 0
    code, _, err = run("reproduce", "claims", "--from", "results")
    assert code == 2
    assert "results is no archive of trials" in err


def test_unknown_experiments_are_named(run):
    code, out, err = run("reproduce", "fig99")
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: there is no experiment 'fig99'; there are fig")
    assert not Path("results").exists()


def test_reproduce_is_interrupted_in_one_line(run, toy_only, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "run", interrupted)
    code, _, err = run("reproduce", "toy", "--jobs", 1)
    assert code == 130
    assert err == "dualtap: interrupted; run the same command again to resume\n"


# --- Dask ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")  # a port that is taken is no concern of ours
def test_dask_makes_the_same_rows(tmp_path, whole):
    finish(tmp_path, dask="local", n_jobs=1)
    assert all_rows(tmp_path) == whole


@pytest.mark.filterwarnings("ignore")
def test_dask_makes_the_same_rows_even_if_a_worker_dies(tmp_path, whole, monkeypatch):
    from distributed import LocalCluster

    def kill_one(workers):
        while n_rows(tmp_path) < 3:
            time.sleep(0.01)
        os.kill(workers[0].pid, signal.SIGKILL)

    monkeypatch.setenv("TOY_SECONDS", "0.2")  # six seconds in all, time enough to kill
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        killer = threading.Thread(target=kill_one, args=(list(cluster.workers.values()),))
        killer.start()
        finish(tmp_path, dask=cluster.scheduler_address)
        assert not killer.is_alive()  # it was killed before the end
    assert all_rows(tmp_path) == whole
