"""What tests share: reproducible examples, and the command as a user types it."""

import sys

import pytest
from hypothesis import HealthCheck, settings

from dualtap import cli

# The same examples on every machine and every run: a red test is a fact, not luck.
settings.register_profile(
    "reproducible",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # machines differ in speed
)
settings.load_profile("reproducible")


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run ``dualtap`` with arguments in an empty folder; return code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def _run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dualtap", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capfd.readouterr()
        return exit_.value.code or 0, out, err

    return _run
