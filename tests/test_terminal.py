"""What a person sees."""

import os
import subprocess
import sys

import pytest

from dualtap._terminal import print_result


def test_long_tables_say_what_they_leave_out(capsys):
    n = 40
    print_result({"n_patterns": n, "weights": [1 / n] * n, "unsure_bits": list(range(n))}, "Many")
    out = capsys.readouterr().out
    assert "first 30 of 40 patterns" in out
    assert "2.5%" in out
    assert "29" in out.split()
    assert "39" not in out.split()


def test_file_names_are_not_markup(capsys):
    print_result({"file": "[red]x[/red].npz"}, "[bold]written[/bold]")
    out = capsys.readouterr().out
    assert "[red]x[/red].npz" in out
    assert "[bold]written[/bold]" in out


def test_nothing_found_prints_no_table(capsys):
    print_result({"n_patterns": 0, "weights": []}, "Nothing")
    assert "pattern " not in capsys.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("terminal", [True, False])
def test_bars_only_on_a_terminal(tmp_path, terminal):
    import pty

    command = [sys.executable, "-c", "from dualtap.cli import main; main()"]
    command += ["sample", "--spins", "50", "--samples", "5", "-o", str(tmp_path / "x.npy")]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "sampling" not in done.stderr
        assert "\x1b[" not in done.stdout
        return
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    with subprocess.Popen(command, stderr=slave, stdout=subprocess.PIPE, env=environment) as done:
        os.close(slave)
        seen = b""
        while True:
            try:
                chunk = os.read(master, 4096)
            except OSError:  # the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        assert done.wait() == 0
    os.close(master)
    assert b"sampling" in seen
    assert b"100/100" in seen
