"""The version of a trial changes with the code that it runs, and with nothing else."""

import shutil
from pathlib import Path

import pytest

import dualtap
from dualtap.experiments import NAMES, load, versions
from dualtap.experiments.versions import code_version, reached

SOURCE = Path(dualtap.__file__).parent


def definitions(name):
    return [line.split(" = ")[0] for line in reached(load(name).trial)]


CACHES = (code_version, versions._module, versions._definition)


@pytest.fixture
def changed_by(tmp_path, monkeypatch):
    """Edit a copy of the package's source; return which experiments have another version."""
    shutil.copytree(SOURCE, tmp_path / "dualtap", ignore=shutil.ignore_patterns("__pycache__"))

    def changed(names, *edits):
        before = {name: code_version(load(name).trial) for name in names}
        monkeypatch.setattr(versions, "_SOURCE", tmp_path / "dualtap")
        for path, old, new in edits:
            text = (tmp_path / "dualtap" / path).read_text()
            assert old in text
            (tmp_path / "dualtap" / path).write_text(text.replace(old, new))
        for cached in CACHES:
            cached.cache_clear()
        return {name for name in names if code_version(load(name).trial) != before[name]}

    yield changed
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.parametrize(
    ("path", "old", "new", "changed", "unchanged"),
    [
        ("schemes/tap.py", "alpha * beta / one", "2 * alpha * beta / one", "fig2", "theory3"),
        ("schemes/_base.py", "SINGULARITY = 1e-3", "SINGULARITY = 1e-4", "fig7", "theory3"),
        ("experiments/fig2.py", "FOUND = 0.97", "FOUND = 0.96", "fig2", "theory3"),
        ("recovery/loop.py", "def recover(", "def recover(_unused=0, *, ", "phases", "fig2"),
        ("theory/replica.py", "_WARMEST = ", "_WARMEST = 0 * ", "theory3", "theory1"),
    ],
)
def test_versions_follow_the_code(changed_by, path, old, new, changed, unchanged):
    assert changed_by((changed, unchanged), (path, old, new)) == {changed}


def test_nothing_else_changes_a_version(changed_by):
    assert not changed_by(
        ("fig2", "fig6", "theory3"),
        ("__init__.py", '__version__ = "', '__version__ = "9.'),
        # what shows, judges and draws
        ("experiments/fig2.py", 'cmap="Greys"', 'cmap="Blues"'),
        ("experiments/rules/inverse.py", "0.9,", "0.8,"),
        ("experiments/judging.py", "CONFIDENCE = 0.95", "CONFIDENCE = 0.99"),
        ("report/page.py", "def ", "def renamed_"),
        ("cli/paper.py", "def ", "def renamed_"),
        ("_html.py", "def ", "def renamed_"),
        # what computes nothing
        ("schemes/tap.py", "xp = namespace(m)", "xp = namespace(m)  # a comment"),
        ("schemes/tap.py", '"""Update all spins', '"""Move all spins'),
        ("schemes/_base.py", '"""Closest that', '"""Nearest that'),
        ("schemes/tap.py", "-> TAPState:", '-> "TAPState":'),
    )


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_draws_or_judges_is_reached(name):
    found = definitions(name)
    assert f"dualtap.experiments.{name}.trial" in found
    modules = {definition.rpartition(".")[0] for definition in found}
    shown = ("report", "cli", "plots", "io", "experiments.rules")
    assert not [m for m in modules if m.startswith(tuple(f"dualtap.{name}" for name in shown))]
    drawn = {f"dualtap.experiments.{name}.{what}" for what in ("plot", "caption", "points")}
    assert not drawn & set(found)


def test_what_is_imported_as_a_module_is_followed():
    """Fig. 6 trains by a function of Fig. 5, through the module."""
    found = set(definitions("fig6"))
    assert {"dualtap.experiments.fig5.untrained", "dualtap.rbm.pcd.step"} < found
    assert "dualtap.experiments.fig5.stationary_slopes" not in found


def test_kernels_imported_inside_functions_are_followed():
    assert "dualtap._kernels.glauber.glauber_sweeps" in definitions("fig2")
    assert "dualtap._kernels.sweeps.amp_sweep" in definitions("fig8")


def test_a_function_inside_another_takes_all_of_its_module():
    def trial(parameters, seed):
        return {}

    lines = reached(trial)
    assert any(line.startswith(f"{__name__}.test_versions_follow_the_code") for line in lines)
