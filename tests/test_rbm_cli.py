"""``dualtap fit --method rbm`` and what comes after it, as a user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dualtap as dt
from dualtap.io import read_samples
from dualtap.rbm import run as run_module

pytestmark = pytest.mark.usefixtures("one_kernel_thread")
RBM = ("--method", "rbm-paper", "--hidden", 6)


@pytest.fixture
def small(run):
    """A small data file."""
    size = ("--spins", 100, "--patterns", 3, "--samples", 150)
    assert run("sample", *size, "--seed", 5, "-o", "data.npz", "-q") == (0, "", "")
    return Path("data.npz")


@pytest.fixture
def interrupt(monkeypatch):
    """Let Ctrl-C come in the middle of an update."""

    def _interrupt(update):
        real, calls = run_module.step, []

        def step(*arguments):
            calls.append(None)
            if len(calls) > update:
                raise KeyboardInterrupt
            return real(*arguments)

        monkeypatch.setattr(run_module, "step", step)
        return lambda: monkeypatch.setattr(run_module, "step", real)

    return _interrupt


def assert_one_line(result, message, code=2):
    assert result[:2] == (code, "")
    assert result[2].startswith("dualtap: ")
    assert result[2].count("\n") == 1
    assert message in result[2]


def assert_same(one, two):
    np.testing.assert_array_equal(one.components_, two.components_)
    for name in ("update", "pseudo_likelihood", "pseudo_likelihood_one_step", "error"):
        np.testing.assert_array_equal(getattr(one.history_, name), getattr(two.history_, name))
    assert (one.n_updates_, one.stop_reason_) == (two.n_updates_, two.stop_reason_)


# --- From samples to a model --------------------------------------------------------------------


def test_sample_fit_show(run, small):
    code, out, err = run("fit", small, *RBM, "--checkpoint", "run.npz", "-o", "model.npz")
    assert code == 0
    assert "3 of 3 hidden patterns recovered" in out
    assert re.search(r"training stopped by +flat\n", out)
    assert "150 samples of 100 spins, read as -1/+1" in err
    assert_same(dt.load("run.npz"), dt.load("model.npz"))
    assert sorted(p.name for p in Path().iterdir()) == ["data.npz", "model.npz", "run.npz"]
    code, out, err = run("show", "model.npz", "--data", small)
    assert (code, err) == (0, "")
    assert re.search(r"log pseudo-likelihood.* -0\.\d+", out)
    assert re.search(r"recovered.* 3\n", out)


def test_defaults_hold_out_samples(run, small):
    options = ("--method", "rbm", "--hidden", 4, "--updates", 30, "-o", "model.npz", "--json")
    code, out, _ = run("fit", small, *options)
    assert code == 0
    assert json.loads(out)["n_hidden"] == 4
    assert np.isfinite(dt.load("model.npz").history_.validation).all()


def test_show_prints_the_learning_curve_and_singular_values(run, small):
    assert run("fit", small, *RBM, "-o", "model.npz", "-q") == (0, "", "")
    code, out, _ = run("show", "model.npz")
    assert code == 0
    assert re.search(r"update +.*pseudo.likelihood.*error of J\n", out)
    last = dt.load("model.npz").n_updates_
    assert re.search(r"^ +0 +-0\.\d+ +-0\.\d+ +(1|1\.0\d*|0\.9\d*)$", out, flags=re.MULTILINE)
    assert re.search(rf"^ +{last} +-0\.\d+ +-0\.\d+ +0\.\d+$", out, flags=re.MULTILINE)
    bars = re.findall(r"^\d\.\d{3} +(█*)", out, flags=re.MULTILINE)
    assert len(bars) == 6
    assert len(bars[0]) == 40  # the longest
    assert len(bars[2]) > 20
    assert len(bars[3]) < 10


def test_json_is_complete_and_alone_on_stdout(run, small):
    code, out, err = run("fit", small, *RBM, "-o", "model.npz", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["n_patterns"] == result["recovered"] == result["true_patterns"] == 3
    assert (result["n_hidden"], result["hidden"], result["n_spins"]) == (6, "gaussian", 100)
    assert not result["beta_was_given"]
    assert result["relative_coupling_error"] == pytest.approx(
        result["learning_curve"]["error_of_J"][-1]
    )
    code, out, _ = run("show", "model.npz", "--data", small, "--json")
    shown = json.loads(out)
    model = dt.load("model.npz")
    assert shown["singular_values"] == pytest.approx(model.singular_values_)
    assert shown["learning_curve"]["update"] == model.history_.update.tolist()
    assert shown["learning_curve"]["pseudo_likelihood"] == list(model.history_.pseudo_likelihood)
    assert shown["learning_rate"] == model.learning_rate_
    assert (shown["updates"], shown["stopped_because"]) == (model.n_updates_, "flat")
    assert shown["score"] == model.score(read_samples(small).spins.values)


def test_options_reach_the_estimator(run, small):
    options = ("--beta", 3, "--updates", 500, "--seed", 9)
    assert run("fit", small, *RBM, *options, "-o", "model.npz", "-q")[0] == 0
    model = dt.load("model.npz")
    assert (model.n_hidden, model.beta, model.max_updates, model.random_state) == (6, 3.0, 500, 9)
    expected = dt.HopfieldRBM.paper(6, random_state=9).fit(read_samples(small).spins.values)
    np.testing.assert_array_equal(model.components_, expected.components_)
    _, out, _ = run("show", "model.npz")
    assert re.search(r"β +3 \(given\)\n", out)


def test_without_a_teacher_there_is_no_error_of_couplings(run, small):
    np.save("plain.npy", read_samples(small).spins.values)
    code, out, _ = run("fit", "plain.npy", *RBM, "-o", "model.npz", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["n_patterns"] == 3
    assert "error_of_J" not in result["learning_curve"]
    assert "recovered" not in result


def write_csv(X, names):
    lines = [",".join(names), *(",".join(map(str, row)) for row in X)]
    Path("data.csv").write_text("\n".join(lines) + "\n")


def test_csv_with_header_and_missing_entries(run, small):
    X = read_samples(small).spins.values.astype(object)
    X[0, :7] = ""
    names = [f"gene{i}" for i in range(X.shape[1])]
    write_csv(X, names)
    code, out, err = run("fit", "data.csv", *RBM, "-o", "model.npz")
    assert code == 0
    assert "3 patterns found" in out
    assert "7 missing entries" in err
    assert list(dt.load("model.npz").feature_names_in_) == names


def test_show_with_named_data_is_quiet(run, small):
    X = read_samples(small).spins.values
    write_csv(X, [f"gene{i}" for i in range(X.shape[1])])
    assert run("fit", "data.csv", *RBM, "-o", "model.npz", "-q")[0] == 0
    code, out, err = run("show", "model.npz", "--data", "data.csv", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["score"] > -0.3


def test_zero_is_missing(run, small):
    X = read_samples(small).spins.values.copy()
    X[::2, ::10] = 0
    np.save("zeros.npy", X)
    result = run("fit", "zeros.npy", *RBM, "-o", "model.npz")
    assert_one_line(result, "--zero-is-missing")
    assert not Path("model.npz").exists()
    code, _, err = run("fit", "zeros.npy", *RBM, "-o", "model.npz", "--zero-is-missing")
    assert code == 0
    assert "750 missing entries" in err
    code, out, _ = run("show", "model.npz", "--data", "zeros.npy", "--zero-is-missing", "--json")
    assert "750 missing" in json.loads(out)["data"]
    assert json.loads(out)["n_patterns"] == 3


# --- Interrupted and resumed --------------------------------------------------------------------


def test_more_updates_later_are_as_good_as_at_once(run, small):
    assert run("fit", small, *RBM, "-o", "whole.npz", "-q") == (0, "", "")
    first = ("--updates", 25, "--checkpoint", "run.npz", "--seed", 0)
    code, _, err = run("fit", small, *RBM, *first, "-o", "first.npz", "-q")
    assert code == 0
    assert re.fullmatch(r"dualtap: warning: .* after 25 updates \(.*\): raise max_updates\n", err)
    assert dt.load("first.npz").stop_reason_ == "max_updates"
    again = ("--resume", "run.npz", "--updates", 2000)  # the method follows from --resume
    assert run("fit", small, *again, "-o", "model.npz", "-q") == (0, "", "")
    assert_same(dt.load("model.npz"), dt.load("whole.npz"))
    assert_same(dt.load("run.npz"), dt.load("whole.npz"))  # kept where it was
    assert dt.load("first.npz").n_updates_ == 25


def test_resume_into_another_checkpoint(run, small):
    first = ("--updates", 25, "-o", "first.npz", "-q")
    assert run("fit", small, *RBM, *first)[0] == 0
    before = Path("first.npz").read_bytes()
    again = ("--resume", "first.npz", "--updates", 40, "--checkpoint", "second.npz")
    assert run("fit", small, "--method", "rbm-paper", *again, "-o", "model.npz", "-q")[0] == 0
    assert Path("first.npz").read_bytes() == before
    assert_same(dt.load("second.npz"), dt.load("model.npz"))
    assert dt.load("model.npz").n_updates_ == 40


def test_ctrl_c_says_how_to_go_on(run, small, interrupt):
    assert run("fit", small, *RBM, "-o", "whole.npz", "-q")[0] == 0
    release = interrupt(33)
    result = run("fit", small, *RBM, "--checkpoint", "run.npz", "-o", "model.npz", "-q")
    assert_one_line(
        result, "interrupted after 33 updates; continue with --resume run.npz", code=130
    )
    assert not Path("model.npz").exists()
    _, out, _ = run("show", "run.npz")
    assert re.search(r"training stopped by +still training\n", out)
    assert re.search(r"updates +33\n", out)
    release()
    assert run("fit", small, "--resume", "run.npz", "-o", "model.npz", "-q") == (0, "", "")
    assert_same(dt.load("model.npz"), dt.load("whole.npz"))


def test_ctrl_c_without_a_checkpoint(run, small, interrupt):
    interrupt(3)
    result = run("fit", small, *RBM, "-o", "model.npz", "-q")
    assert result == (130, "", "dualtap: interrupted after 3 updates\n")
    assert [p.name for p in Path().iterdir()] == ["data.npz"]


def test_ctrl_c_before_the_first_update(run, small, monkeypatch):
    def start(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dualtap.rbm.fitting.start_run", start)
    code, _, err = run("fit", small, *RBM, "--checkpoint", "run.npz", "-o", "model.npz", "-q")
    assert code == 130
    assert "--resume" not in err  # there is no file to go on with


COMMAND = """
import time

from dualtap import cli
from dualtap.rbm import estimator

estimator._CHECKPOINT_SECONDS = -1  # a sign of life at every look,
write = estimator.HopfieldRBM.write


def slowly(self, *args, **kwargs):
    write(self, *args, **kwargs)
    time.sleep(1)  # and time to interrupt it, however busy the machine is


estimator.HopfieldRBM.write = slowly
cli.main()
"""


@pytest.mark.usefixtures("in_foreground")
def test_sigint_to_a_running_process(run):
    size = ("--spins", 300, "--patterns", 3, "--samples", 100, "--sweeps", 20)
    assert run("sample", *size, "-o", "data.npz", "-q")[0] == 0
    rbm = ("fit", "data.npz", "--method", "rbm-paper", "--hidden", 10, "--updates", 150)
    arguments = map(str, (*rbm, "--checkpoint", "run.npz", "-o", "model.npz"))
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not Path("run.npz").exists() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    made = int(re.search(r"^dualtap: interrupted after (\d+) updates; continue with", err, re.M)[1])
    assert "--resume run.npz\n" in err
    assert "Traceback" not in err
    assert dt.load("run.npz").n_updates_ == made < 150
    assert sorted(p.name for p in Path().iterdir()) == ["data.npz", "run.npz"]
    assert run("fit", "data.npz", "--resume", "run.npz", "-o", "model.npz", "-q")[0] == 0
    assert run(*rbm, "-o", "whole.npz", "-q")[0] == 0
    assert_same(dt.load("model.npz"), dt.load("whole.npz"))


# --- Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "rbm-paper", "--patterns", 3), "--patterns does not apply to --method rbm"),
        (("--method", "rbm-paper", "--students", 3), "--students does not apply to --method rbm"),
        (("--hidden", 3), "--hidden does not apply to --method patterns"),
        (("--updates", 3), "--updates does not apply to --method patterns"),
        (("--checkpoint", "run.npz"), "--checkpoint does not apply to --method patterns"),
        (
            ("--method", "dualtap", "--beta", 2, "--hidden", 3),
            "--hidden does not apply to --method dualtap, whose options are --patterns, --beta, "
            "--students",
        ),
        (
            ("--method", "patterns", "--resume", "x.npz"),
            "--resume does not apply to --method patterns",
        ),
        (("--resume", "x.npz", "--patterns", 3), "--patterns does not apply to --method rbm"),
        (("--resume", "x.npz"), "there is no file 'x.npz'"),
        (("--resume", "data.npz"), "data.npz is not a training run of an RBM"),
        (("--resume", "run.txt"), "'run.txt' must end in .npz"),
        ((*RBM, "--checkpoint", "run.txt"), "'run.txt' must end in .npz"),
        ((*RBM, "--checkpoint", "no/run.npz"), "there is no folder 'no'"),
        ((*RBM, "--checkpoint", "data.npz"), "'data.npz' exists"),
        ((*RBM, "--beta", -1), "The 'beta' parameter of HopfieldRBM must be"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_usage_is_one_line_and_code_2(run, small, options, message):
    Path("model.npz").write_text("precious")
    before = small.read_bytes()
    assert_one_line(run("fit", small, *options, "-o", "model.npz", "--force", "-q"), message)
    assert Path("model.npz").read_text() == "precious"
    assert small.read_bytes() == before
    assert sorted(p.name for p in Path().iterdir()) == ["data.npz", "model.npz"]


@pytest.mark.parametrize("option", ["--hidden", "--updates"])
def test_numbers_out_of_range(run, small, option):
    code, out, err = run("fit", small, "--method", "rbm-paper", option, 0, "-o", "model.npz")
    assert (code, out) == (2, "")
    assert option in err
    assert "Traceback" not in err
    assert not Path("model.npz").exists()


def test_a_run_of_other_data_or_units_is_refused(run, small):
    assert run("sample", "--spins", 100, "--samples", 150, "-o", "other.npz", "-q")[0] == 0
    first = ("--updates", 15, "--checkpoint", "run.npz", "-o", "first.npz", "-q")
    assert run("fit", small, *RBM, *first)[0] == 0
    before = Path("run.npz").read_bytes()
    again = ("--resume", "run.npz", "-o", "model.npz", "-q")
    assert_one_line(run("fit", "other.npz", *again), "run.npz was trained on other data")
    result = run("fit", small, "--hidden", 7, *again)
    assert_one_line(result, "run.npz was trained with n_hidden=6, not 7")
    assert Path("run.npz").read_bytes() == before
    assert not Path("model.npz").exists()


def test_a_damaged_run_is_refused(run, small):
    first = ("--updates", 15, "--checkpoint", "run.npz", "-o", "first.npz", "-q")
    assert run("fit", small, *RBM, *first)[0] == 0
    half = Path("run.npz").read_bytes()[:-200]
    Path("run.npz").write_bytes(half)
    again = ("--resume", "run.npz", "-o", "model.npz", "-q")
    assert_one_line(run("fit", small, *again), "run.npz is not a readable .npz file")
    assert_one_line(run("show", "run.npz"), "run.npz is not a readable .npz file")
    assert Path("run.npz").read_bytes() == half


def test_a_model_of_patterns_is_not_a_run(run, small):
    assert run("fit", small, "-o", "tap.npz", "-q")[0] == 0
    before = Path("tap.npz").read_bytes()
    result = run("fit", small, "--resume", "tap.npz", "-o", "model.npz", "-q")
    assert_one_line(result, "tap.npz is not a training run of an RBM")
    assert Path("tap.npz").read_bytes() == before


def test_existing_output_is_refused_before_the_work(run, small, interrupt):
    interrupt(0)  # an update would end in Ctrl-C
    Path("model.npz").write_text("precious")
    result = run("fit", small, *RBM, "--checkpoint", "run.npz", "-o", "model.npz", "-q")
    assert_one_line(result, "'model.npz' exists; use --force")
    assert Path("model.npz").read_text() == "precious"
    assert not Path("run.npz").exists()


def test_force_and_an_existing_checkpoint(run, small):
    Path("run.npz").write_text("old")
    code, _, err = run(
        *("fit", small, *RBM, "--checkpoint", "run.npz", "-o", "model.npz", "-q", "--force")
    )
    assert code == 0 or "use --force" not in err


def test_checkpoint_and_output_in_the_same_file(run, small):
    code, _, _ = run("fit", small, *RBM, "--checkpoint", "model.npz", "-o", "model.npz", "-q")
    assert code == 0 or not Path("model.npz").exists()


def test_divergence_is_a_warning_on_stderr(run, small):
    X = read_samples(small).spins.values
    wild = dt.HopfieldRBM.paper(6, learning_rate=1.0, max_updates=100, random_state=0)
    with pytest.warns(UserWarning, match="diverged"):
        wild.fit(X, checkpoint="run.npz")
    code, _, err = run("fit", small, "--resume", "run.npz", "-o", "model.npz", "-q")
    assert code == 0
    assert re.fullmatch(r"dualtap: warning: training diverged after update \d, .*\n", err)
    code, out, _ = run("show", "model.npz")
    assert re.search(r"training stopped by +diverged\n", out)
