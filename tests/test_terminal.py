"""What a person sees."""

import os
import re
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


def test_a_reason_is_said_once_and_on_one_line(capsys):
    reason = "coins " * 40
    print_result({"n_patterns": 0, "reason": reason, "beta": None}, f"no pattern: {reason}")
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"no pattern: {reason}"
    assert rest == ["n patterns  0", "beta        unknown"]
    print_result({"n_patterns": 2, "reason": reason}, "Two")
    assert f"reason      {reason}" in capsys.readouterr().out.splitlines()
    print_result({"n_patterns": 2, "reason": ""}, "Two, from a file that does not say why")
    assert "reason" not in capsys.readouterr().out


def test_long_values_are_folded_beside_their_name_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "40")
    print_result({"phase": "word " * 20}, "Done")
    lines = [re.sub(r"\x1b\[\d*m", "", line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("phase  word")
    assert all(line.startswith(" " * 7 + "word") for line in lines[2:])


def test_spectrum_is_drawn_through_the_edge_of_noise(capsys):
    values = [2.0, 1.5, *([0.5] * 38)]
    print_result({"n_patterns": 2, "spectrum": values}, "Two")
    *_, header, first, second, third, fourth, fifth, sixth, seventh = (
        line.rstrip() for line in capsys.readouterr().out.splitlines()
    )
    edge = header.index("│")
    assert header == f"{'spectrum':<{edge}}│ edge of noise"
    assert first == f"{'2.000':<{edge - 20}}{'█' * 20}│{'█' * 20}"
    assert second == f"{'1.500':<{edge - 20}}{'█' * 20}│{'█' * 10}"
    for line in (third, fourth, fifth, sixth, seventh):  # five of noise, not all 38
        assert line == f"{'0.500':<{edge - 20}}{'█' * 10}{' ' * 10}│"


def test_a_giant_value_leaves_the_edge_visible(capsys):
    print_result({"n_patterns": 1, "spectrum": [500.0, 0.5]}, "One")
    out = capsys.readouterr().out
    assert "█████│" + "█" * 35 + "▶" in out


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
