"""The command, as a user types it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dualtap as dt
from dualtap.io import read_samples, write_samples

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


@pytest.fixture
def small(run):
    """A small data file."""
    size = ("--spins", 200, "--patterns", 3, "--samples", 30)
    assert run("sample", *size, "--seed", 5, "-o", "data.npz", "-q") == (0, "", "")
    return Path("data.npz")


def test_sample_fit_show(run, small):
    code, out, err = run("fit", small, "-o", "model.npz")
    assert code == 0
    assert re.search(r"\npatterns +3\n", out)
    assert re.search(r"recovered +3\n", out)
    assert "30 samples of 200 spins, read as -1/+1" in err
    code, out, _ = run("show", "model.npz", "--data", small)
    assert code == 0
    assert "share of" in out
    assert re.search(r"log pseudo-likelihood per spin +-0\.\d+", out)


def test_json_is_complete_and_alone_on_stdout(run, small):
    code, out, err = run("fit", small, "-o", "model.npz", "--json")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["n_patterns"] == result["recovered"] == 3
    assert result["beta"] == pytest.approx(2.0, abs=0.15)
    assert not result["beta_was_given"]
    assert sum(result["weights"]) == pytest.approx(1)
    assert (result["method"], result["has_fields"]) == ("HopfieldPatterns", False)
    assert result["strengths"] == [result["beta"]] * 3
    assert result["median_overlap_with_the_nearest_pattern"] > 0.9
    assert result["samples_per_pattern"] == "10"
    assert not {"regime", "phase"} & set(result)
    assert result["spectrum"][2] > 1 > result["spectrum"][3]
    assert "rounds" not in result
    assert result["epsilon"] == pytest.approx(result["relative_coupling_error"] / (200 * 199 / 2))
    code, out, _ = run("show", "model.npz", "--json")
    assert json.loads(out)["n_patterns"] == 3
    code, out, _ = run("sample", "-o", "more.npz", "--spins", 50, "--json")
    assert json.loads(out) == {
        "spins": 50,
        "patterns": 20,
        "beta": 2.0,
        "samples": 200,
        "sweeps": 100,
        "start": "auto",
        "seed": 0,
        "file": "more.npz",
    }


def test_quiet_is_silent(run, small):
    assert run("fit", small, "-o", "model.npz", "-q") == (0, "", "")
    assert dt.load("model.npz").n_patterns_ == 3


def test_sampling_is_reproducible_and_depends_on_the_seed(run):
    for name, seed in (("a.npy", 1), ("b.npy", 1), ("c.npy", 2)):
        assert run("sample", "--spins", 40, "--seed", seed, "-o", name, "-q")[0] == 0
    a, b, c = (read_samples(f"{name}.npy").spins.values for name in "abc")
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_the_published_algorithm(run, small):
    known = ("--patterns", 3, "--beta", 2)
    code, out, _ = run("fit", small, "-o", "m.npz", "--method", "dualtap", *known, "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["recovered"], result["rounds"]) == (3, 3)
    assert "spectrum" not in result
    model = dt.load("m.npz")
    assert (model.start, model.damping, model.beta) == ("random", None, 2.0)
    assert result["method"] == "DualTAP"
    assert run("fit", small, "-o", "m2.npz", "--method", "dualtap", "-q") == (0, "", "")
    assert dt.load("m2.npz").beta_ == pytest.approx(2.0, abs=0.15)  # fitted


def test_options_of_another_method_are_refused(run, small):
    for options, message in (
        (("--beta", 2), "--beta does not apply to --method patterns, whose options are --patterns"),
        (("--students", 2), "--students does not apply to --method patterns"),
        (("--method", "dualtap", "--hidden", 2), "--hidden does not apply to --method dualtap"),
    ):
        code, out, err = run("fit", small, "-o", "n.npz", *options)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1


def test_pure_noise_has_no_pattern_and_is_no_error(run):
    rng = np.random.default_rng(3)
    np.save("noise.npy", rng.choice(np.array([-1, 1], dtype=np.int8), size=(50, 100)))
    code, out, _ = run("fit", "noise.npy", "-o", "model.npz")
    assert code == 0
    assert out.startswith("no pattern found: the largest singular value is 0.91 of the noise edge")
    assert re.search(r"\npatterns +0\n", out)
    assert "nan" not in out
    model = dt.load("model.npz")
    assert model.n_patterns_ == 0
    code, out, _ = run("show", "model.npz", "--data", "noise.npy", "--json")
    assert code == 0
    assert "NaN" not in out
    result = json.loads(out)
    assert (result["n_patterns"], result["beta"], result["weights"]) == (0, None, [])
    assert result["reason"] == model.reason_
    assert result["score"] == pytest.approx(-np.log(2), abs=0.02)
    code, out, _ = run("show", "model.npz", "--data", "noise.npy")
    assert code == 0
    assert out.startswith("no pattern found: ")


def test_too_few_samples_of_a_teacher_have_no_pattern(run):
    size = ("--spins", 200, "--patterns", 2, "--beta", 0.3, "--samples", 40)
    assert run("sample", *size, "-o", "data.npz", "-q")[0] == 0
    code, out, _ = run("fit", "data.npz", "-o", "model.npz", "--json")
    assert code == 0
    result = json.loads(out)
    assert (result["n_patterns"], result["recovered"], result["mean_overlap"]) == (0, 0, 0)
    assert result["relative_coupling_error"] == 1
    code, out, _ = run("show", "model.npz", "--data", "data.npz")
    assert code == 0
    assert out.startswith("no pattern found: ")


def test_fields_are_told(run):
    fields = np.random.default_rng(0).normal(scale=0.7, size=400)
    teacher = dt.HopfieldModel.random(400, 3, beta=1.5, random_state=0, fields=fields)
    write_samples("data.npz", teacher.sample(300, random_state=1), teacher=teacher)
    code, out, _ = run("fit", "data.npz", "-o", "model.npz", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["has_fields"]
    for told, there in (("rms_field", dt.load("model.npz").fields_), ("true_rms_field", fields)):
        assert result[told] == pytest.approx(np.sqrt(np.mean(there**2)))
    assert re.search(r"fields +root mean square \d\.\d+\n", run("show", "model.npz")[1])


def test_csv_with_header_and_missing_entries(run, small):
    X = read_samples(small).spins.values.astype(object)
    X[0, 0] = ""
    names = [f"gene{i}" for i in range(X.shape[1])]
    lines = [",".join(names), *(",".join(map(str, row)) for row in X)]
    Path("data.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("fit", "data.csv", "-o", "model.npz")
    assert code == 0
    assert "1 missing entries" in err
    assert list(dt.load("model.npz").feature_names_in_) == names


def test_zero_is_missing(run, small):
    X = read_samples(small).spins.values.copy()
    X[:, ::10] = 0
    X[::2, ::10] = 1
    np.save("zeros.npy", X)
    code, _, err = run("fit", "zeros.npy", "-o", "model.npz")
    assert code == 2
    assert "--zero-is-missing" in err
    assert run("fit", "zeros.npy", "-o", "model.npz", "--zero-is-missing", "-q")[0] == 0
    code, out, _ = run("show", "model.npz", "--data", "zeros.npy", "--zero-is-missing", "--json")
    assert code == 0
    assert "300 missing" in json.loads(out)["data"]


def test_warnings_go_to_stderr_as_one_line(run, small):
    published = ("--method", "dualtap", "--students", 2, "--beta", 2)
    code, _, err = run("fit", small, "-o", "model.npz", *published, "--json")
    assert code == 0
    assert re.fullmatch(r"dualtap: warning: the likelihood shows no kink .*\n", err)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,0\n2,1\n", "line 2, column 1 holds a third value, '2'"),
        ("1,0\n1,maybe\n", "'maybe'"),
        ("1\n0\n", "at least two"),
        ("1,inf\n0,1\n", "line 1, column 2 holds infinity"),
    ],
)
def test_bad_data_is_one_line_and_code_2(run, content, message):
    Path("bad.csv").write_text(content)
    code, out, err = run("fit", "bad.csv", "-o", "model.npz")
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: ")
    assert err.count("\n") == 1
    assert message in err
    assert not Path("model.npz").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "nowhere.npz", "-o", "m.npz"),
        ("show", "nowhere.npz"),
        ("show", "data.npz"),
        ("fit", "data.npz", "-o", "no/such/folder/m.npz"),
        ("fit", "data.npz", "-o", "model.txt"),
        ("fit", "data.npz", "-o", "m.npz", "--method", "dualtap", "--beta", "-1"),
        ("fit", "data.npz", "-o", "m.npz", "--patterns", "0"),
        ("fit", "data.npz", "-o", "m.npz", "--effort", "2"),
        ("fit", "data.npz", "-o", "m.npz", "--method", "paper"),
        ("fit", "data.npz"),
        ("sample", "--beta", "0", "-o", "x.npz"),
        ("sample", "-o", "x.xlsx"),
        ("sample", "-o", "x.npz", "--spins", "1"),
        ("dance",),
    ],
)
def test_bad_usage_is_code_2_without_a_traceback(run, small, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("command", "work"),
    [
        (("sample", "-o", "x.xlsx"), "dualtap.hopfield.HopfieldModel.sample"),
        (("fit", "data.npz", "-o", "model.txt"), "dualtap.recovery.HopfieldPatterns.fit"),
    ],
)
def test_a_bad_output_name_is_refused_before_the_work(run, small, monkeypatch, command, work):
    def too_late(*_, **__):
        pytest.fail("the work was done, and then lost")

    monkeypatch.setattr(work, too_late)
    code, _, err = run(*command)
    assert code == 2
    assert "must end in .npz" in err


def test_existing_output_is_kept_without_force(run, small):
    Path("model.npz").write_text("precious")
    code, _, err = run("fit", small, "-o", "model.npz")
    assert code == 2
    assert "--force" in err
    assert Path("model.npz").read_text() == "precious"
    assert run("fit", small, "-o", "model.npz", "--force", "-q")[0] == 0
    before = small.read_bytes()
    assert run("sample", "-o", small)[0] == 2
    assert small.read_bytes() == before


@pytest.mark.parametrize("error", [OSError("disk full"), MemoryError()])
def test_failures_are_code_1(run, small, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("dualtap.io.save", fail)
    code, _, err = run("fit", small, "-o", "model.npz", "-q")
    assert code == 1
    assert err.startswith("dualtap: ")


def test_demo_recovers_everything_and_draws(run):
    code, out, _ = run("demo", "--json")
    assert code == 0
    result = json.loads(out)
    assert result["n_patterns"] == result["recovered"] == 20
    assert Path("demo.png").read_bytes().startswith(b"\x89PNG")
    assert run("demo")[0] == 2  # demo.png is there now
    code, out, _ = run("demo", "-o", "demo.svg")
    assert code == 0
    assert Path("demo.svg").read_text().startswith("<?xml")
    assert re.search(r"recovered +20\n", out)


def test_version_and_help(run):
    assert run("--version")[:2] == (0, f"dualtap {dt.__version__}\n")
    for command in ("demo", "sample", "fit", "show"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert "Example" in out


def test_unknown_picture_format_is_bad_input(run):
    code, _, err = run("demo", "-o", "demo.xyz", "-q")
    assert code == 2
    assert "xyz" in err
    assert not list(Path().iterdir())


def _blocks(language, page=README):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def test_readme_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = _blocks("python")
    scope = {}
    exec(block, scope)  # the README is ours
    assert scope["model"].n_patterns_ == 20
    assert f"20, {scope['model'].beta_:.2f}" in block
    printed = re.search(r"^# (20 of 20 .*)$", block, flags=re.MULTILINE)[1]
    assert printed in capsys.readouterr().out


def test_readme_shell(run):
    lines = [
        line
        for block in _blocks("sh")
        if block.startswith("dualtap")
        for line in block.splitlines()
    ]
    # The first line as a reader runs it; the others without starting Python for each.
    here = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": here + os.pathsep + os.environ["PATH"]}
    subprocess.run(["sh", "-ec", lines[0]], env=environment, check=True)
    printed = ""
    for line in lines[1:]:
        code, out, err = run(*shlex.split(line, comments=True)[1:])
        assert code == 0, f"{line}\n{err}"
        printed += out
    written = ["digits.html", "digits.npz", "model.npz", "rows.csv"]
    assert sorted(path.name for path in Path().iterdir()) == written
    assert "1797 rows written to rows.csv" in printed


def test_import_stays_light():
    code = (
        "import sys, sklearn; before = set(sys.modules);"  # which imports pandas if it is there
        "import dualtap, dualtap.cli;"
        "print(sorted({'numba', 'matplotlib', 'pandas'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
