"""What a person sees."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dualtap.cli.terminal import print_pictures, print_result, printable
from dualtap.report.summary import carrying_spins


def test_long_tables_say_what_they_leave_out(capsys):
    n = 40
    shown = {"n_patterns": n, "weights": [1 / n] * n, "uncertain_bits": list(range(n))}
    print_result(shown, "Many")
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
    reason = "noise " * 40
    print_result({"n_patterns": 0, "reason": reason, "beta": None}, f"no pattern: {reason}")
    first, *rest = capsys.readouterr().out.splitlines()
    assert first == f"no pattern: {reason}"
    assert rest == ["patterns  0", "β         unknown"]
    print_result({"n_patterns": 2, "reason": reason}, "Two")
    assert f"reason    {reason}" in capsys.readouterr().out.splitlines()
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


def test_spectrum_is_drawn_through_the_noise_edge(capsys):
    values = [2.0, 1.5, *([0.5] * 38)]
    print_result({"n_patterns": 2, "spectrum": values}, "Two")
    *_, header, first, second, third, fourth, fifth, sixth, seventh = (
        line.rstrip() for line in capsys.readouterr().out.splitlines()
    )
    edge = header.index("│")
    assert header == f"{'spectrum':<{edge}}│ noise edge"
    assert first == f"{'2.000':<{edge - 20}}{'█' * 20}│{'█' * 20}"
    assert second == f"{'1.500':<{edge - 20}}{'█' * 20}│{'█' * 10}"
    for line in (third, fourth, fifth, sixth, seventh):  # five of noise, not all 38
        assert line == f"{'0.500':<{edge - 20}}{'█' * 10}{' ' * 10}│"


def test_a_giant_value_leaves_the_edge_visible(capsys):
    print_result({"n_patterns": 1, "spectrum": [500.0, 0.5]}, "One")
    out = capsys.readouterr().out
    assert "█████│" + "█" * 35 + "▶" in out


SAMPLE = ("sample", "--spins", "50", "--samples", "5", "-o", "x.npy")


def test_no_bars_off_a_terminal(run):
    code, out, err = run(*SAMPLE)
    assert code == 0
    assert "sampling" not in err
    assert "\x1b[" not in out


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
def test_bars_on_a_terminal(tmp_path):
    import pty

    command = [sys.executable, "-c", "from dualtap.cli import main; main()", *SAMPLE]
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm"}
    with subprocess.Popen(
        command, stderr=slave, stdout=subprocess.PIPE, env=environment, cwd=tmp_path
    ) as done:
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


TRACE = [
    {"step": k, "move": "add", "source": "residuals", "n_patterns": k + 1}
    | {"objective": 900.0 - k, "gain": 1.0 if k < 3 else -2.0, "accepted": k < 3}
    for k in range(40)
]


def test_what_was_tried_and_what_it_gained(capsys):
    print_result({"n_patterns": 3, "trace": TRACE[:4]}, "Three")
    *_, header, first, _, third, last = capsys.readouterr().out.splitlines()
    titles = ["step", "move", "source", "patterns", "description length", "gain (nats)"]
    assert re.split("  +", header.strip()) == titles
    assert first.split() == ["0", "add", "residuals", "1", "900.0", "1.0", "accepted"]
    assert third.endswith("accepted")
    assert last.split()[-2:] == ["-2.0", "rejected"]
    print_result({"n_patterns": 3, "trace": TRACE}, "Three")
    out = capsys.readouterr().out
    assert "12 of 40 steps" in out
    assert out.count("accepted") == 3
    assert out.count("rejected") == 9


def test_every_accepted_step_is_shown(capsys):
    trace = [step | {"accepted": step["step"] % 2 == 0} for step in TRACE]
    print_result({"n_patterns": 3, "trace": trace}, "Three")
    out = capsys.readouterr().out
    assert out.count("accepted") == 20
    assert "rejected" not in out


def test_the_score_over_the_number_of_patterns(capsys):
    path = {
        "n_patterns": [0, 1, 2],
        "objective": [99.5, 80.0, 81.0],
        "held_out": [-0.7, -0.5, None],
    }
    print_result({"n_patterns": 1, "path": path}, "One")
    *_, header, first, second, third = capsys.readouterr().out.splitlines()
    assert re.split("  +", header.strip()) == ["patterns", "description length", "held-out score"]
    assert first.split() == ["0", "99.5", "-0.7000"]
    assert second.split() == ["1", "80.0", "-0.5000", "←", "chosen"]
    assert third.split() == ["2", "81.0"]


def test_strengths_and_repulsive_patterns(capsys):
    result = {"n_patterns": 3, "beta": None, "beta_was_given": False, "weights": [0.6, 0.2, 0.2]}
    print_result(result | {"strengths": [2.0, 1.0, -3.5], "support": [9, 4, 2]}, "Three")
    out = capsys.readouterr().out
    assert re.search(r"β +not one value: strengths -3.5 to 2\n", out)
    assert re.search(r"share of.*\n *pattern +samples +strength +spins", out)
    assert re.search(r"2 +20.0% +-3.5 +2 +repulsive", out)
    assert out.count("repulsive") == 1
    print_result(result | {"beta": 1.5, "strengths": [1.5] * 3}, "Three")
    out = capsys.readouterr().out
    assert re.search(r"β +1.5 \(fitted\)\n", out)
    assert "strength" not in out


PICTURE = ["+++-", "+--+", "+-?+"]  # ? is uncertain
PICTURE_LINES = ["█▀▀▄", "▀ ░▀"]


def _magnetizations(*rows):
    values = {"+": 1.0, "-": -0.9, "?": 0.3}
    return np.array([[values[pixel] for row in rows for pixel in row]])


def _printed(m, shape, width=80, **options):
    console = Console(width=width, file=None, force_terminal=False)
    with console.capture() as capture:
        print_pictures(m, shape, console, **options)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_two_pixels_a_character():
    assert _printed(_magnetizations(*PICTURE), (3, 4)) == [*PICTURE_LINES, "0"]
    assert _printed(_magnetizations("?-", "--", "+?", "?+", "-?", "??"), (6, 2))[:-1] == [
        "░",
        "▒▒",
        "░▒",
    ]


def test_a_dot_is_a_spin_that_takes_no_part():
    m = np.array([[1, np.nan, np.nan, np.nan], [1, 1, -1, np.nan], [np.nan, 0.1, 1, -1]])
    assert _printed(m.reshape(1, -1), (3, 4))[:-1] == ["█▄··", "·░▀"]
    wide = np.full((2, 60), np.nan)
    wide[:, :20] = 1
    assert _printed(wide.reshape(1, -1), (2, 60), width=20)[:-1] == ["▀" * 7 + "·" * 13]


def test_pictures_stand_side_by_side_as_far_as_the_width_goes():
    m = np.repeat(_magnetizations(*PICTURE), 5, axis=0)
    lines = _printed(m, (3, 4), width=30, weights=[0.5, 0.2, 0.1, 0.1, 0.1])
    assert lines[2] == "0 · 50%  1 · 20%  2 · 10%"
    assert lines[5] == "3 · 10%  4 · 10%"
    assert lines[0] == "     ".join([PICTURE_LINES[0]] * 3)
    assert lines[3] == "     ".join([PICTURE_LINES[0]] * 2)
    assert max(map(len, lines)) <= 30


def test_wide_pictures_are_made_smaller():
    wide = np.where(np.arange(100) < 50, 1.0, -1.0) * np.ones((8, 1))
    lines = _printed(wide.reshape(1, -1), (8, 100), width=50)
    assert lines == ["█" * 25] * 2 + ["0"]
    odd = np.ones((1, 7 * 11))
    assert _printed(odd, (7, 11), width=10) == ["█" * 6] * 2 + ["0"]


def test_the_first_thirty_pictures_are_shown():
    lines = _printed(np.ones((32, 4)), (2, 2))
    assert lines[-1] == "first 30 of 32 patterns"
    assert "29" in lines[-2].split()


def test_a_wrong_shape_says_what_fits():
    with pytest.raises(ValueError, match=r"28, 28.*12 spins.*such as \(3, 4\)"):
        _printed(np.ones((1, 12)), (28, 28))
    with pytest.raises(ValueError, match="product is 12"):
        _printed(np.ones((1, 12)), (12,))


def test_results_come_with_pictures(capsys):
    result = {"n_patterns": 1, "weights": [1.0], "mean_confidence": [0.9]}
    print_result(result, "One", pictures=(_magnetizations(*PICTURE), (3, 4)))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[-3:] == [*PICTURE_LINES, "0 · 100%"]
    assert "share of" in lines[2]
    print_result({"n_patterns": 0, "weights": []}, "None", pictures=(np.empty((0, 12)), (3, 4)))


def test_spins_that_carry_a_pattern_are_named_by_effect(capsys):
    effect = np.array([[0.1, 0.9, -0.8, 0.5, -0.2], [0.6, -0.7, -0.4, -0.9, 0.3]])
    patterns = np.array([[1, 1, -1, 0, -1], [1, -1, -1, -1, 1]])
    names = ["a", "b", "c", "d", "e"]
    found = carrying_spins(effect, patterns, names)
    assert found[0] == {"plus": [("b", 0.9), ("a", 0.1)], "minus": [("c", -0.8), ("e", -0.2)]}
    assert [name for name, _ in found[1]["minus"]] == ["d", "b", "c"]
    print_result({"n_patterns": 2, "weights": [0.5, 0.5], "carried_by": found}, "Two")
    out = capsys.readouterr().out
    assert re.search(r"pattern +\+ side: more often \+1 +\+ side: more often −1", out)
    assert re.search(r"0 +b \+0\.90, a \+0\.10 +c −0\.80, e −0\.20", out)
    assert carrying_spins(np.empty((0, 5)), np.empty((0, 5)), names) == []


EVIL = [
    "[bold]x[/bold]",
    "\x1b[31mred\x1b[0m",
    "bell\x07",
    "\x1b]0;title\x07y",
    "two\nlines",
    "z" * 60,
]


def test_names_command_neither_rich_nor_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    evil = [(name, 0.5) for name in EVIL]
    spins = [{"plus": evil[:4], "minus": evil[4:]}]
    print_result({"n_patterns": 1, "weights": [1.0], "carried_by": spins}, "One\x1b[2J")
    out = capsys.readouterr().out
    assert re.search(
        r"\[bold\]x\[/bold\] \+0\.50, red \+0\.50, bell \+0\.50, y .* two lines .*, z{23}…", out
    )
    assert "\x1b" not in out
    assert "\x07" not in out


@given(st.text())
def test_plain_text_has_nothing_invisible(text):
    seen = printable(text)
    assert seen.isprintable() or any(c in "\xa0\u2028\u2029" or c.isspace() for c in seen)
    assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", seen)
    assert printable(seen) == seen


def test_words_of_any_alphabet_stay():
    assert printable("naïve 中文 β=2 😀 [x]") == "naïve 中文 β=2 😀 [x]"


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colours_only_where_they_are_wanted(monkeypatch, capsys, environment, coloured):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    result = {
        "n_patterns": 1,
        "weights": [1.0],
        "carried_by": [{"plus": [("a", 0.5)], "minus": [("b", -0.5)]}],
    }
    print_result(result, "One", pictures=(_magnetizations(*PICTURE), (3, 4)))
    out = capsys.readouterr().out
    assert bool(re.search(r"\x1b\[[\d;]*3[0-7]m", out)) == coloured  # NO_COLOR may leave bold type
    assert ("\x1b" in out) == bool(environment)


@pytest.fixture
def complete(run, monkeypatch):
    """Ask for completions as a shell does."""

    def _complete(shell, line):
        words = line.split()
        monkeypatch.setenv("_DUALTAP_COMPLETE", f"complete_{shell}")
        if shell == "bash":
            monkeypatch.setenv("COMP_WORDS", line)
            monkeypatch.setenv("COMP_CWORD", str(len(words) - (not line.endswith(" "))))
        else:
            monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
            monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        code, out, err = run()
        assert (code, err) == (0, "")
        return out

    return _complete


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_options_and_values(complete, shell):
    assert {"demo", "sample", "fit", "show"} <= set(re.findall(r"\w+", complete(shell, "dualtap ")))
    commands = complete(shell, "dualtap sh")
    assert "show" in commands
    assert "sample" not in commands
    options = complete(shell, "dualtap fit --me")
    assert "--method" in options
    assert "--output" not in options
    assert {"patterns", "dualtap", "rbm"} <= set(
        re.findall(r"\w+", complete(shell, "dualtap fit --method "))
    )
    starts = complete(shell, "dualtap sample --start p")
    assert "patterns" in starts
    assert "annealed" not in starts


@pytest.mark.parametrize(
    ("shell", "script"),
    [
        ("bash", ".bash_completions/dualtap.sh"),
        ("zsh", ".zfunc/_dualtap"),
        ("fish", ".config/fish/completions/dualtap.fish"),
    ],
)
def test_completion_is_shown_and_installed(run, monkeypatch, tmp_path, shell, script):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    code, shown, err = run("--show-completion")
    assert (code, err) == (0, "")
    assert f"_DUALTAP_COMPLETE=complete_{shell}" in shown
    code, out, _ = run("--install-completion")
    assert code == 0
    assert "completion installed" in out
    assert (tmp_path / script).read_text().strip() == shown.strip()


def test_titles_are_whole_in_80_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    keys = "weights", "share_plus", "share_minus", "mean_confidence"
    result = {"n_patterns": 12, "strengths": [50.9, -13.1] * 6, "support": [64] * 12}
    result |= {key: [0.199] * 12 for key in keys} | {"uncertain_bits": [38] * 12}
    print_result(result, "Twelve patterns found.")
    out = capsys.readouterr().out
    assert "…" not in out
    assert "uncertain" in out
    assert out.count("repulsive") == 6
