"""Comparisons with peers: the protocol, what fails, the tables. Nothing is installed here."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from dualtap import HopfieldModel
from dualtap.metrics import match

ROOT = Path(__file__).parent.parent
FAKE = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from protocol import serve

def prepare(setup, request):
    print("a library talks")
    def work():
        if request.get("wrong"):
            raise ValueError("cannot do that")
        if request.get("forever"):
            import time
            time.sleep(600)
        answer = np.full(request["n"], setup["value"])
        log = open(setup["log"], "a")
        log.write(f"{{setup['value']}} {{request['n']}}\\n")
        log.close()
        return (answer, 0.25) if request.get("own") else answer
    return work

serve(prepare, {{"version": "fake 1.0"}})
"""


@pytest.fixture(autouse=True)
def checkout(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def fake(tmp_path):
    """The path of a peer that fills arrays with the value of its setup."""
    path = tmp_path / "fake_peer.py"
    path.write_text(FAKE.format(folder=str(ROOT / "benchmarks" / "peers")))
    return path


def contender(name, script, tmp_path, value=1.0, **more):
    from benchmarks.against.contest import Contender

    return Contender(name, script, {"value": value, "log": str(tmp_path / "log")}, **more)


def test_a_peer_answers_with_time_memory_and_a_file(fake, tmp_path):
    from benchmarks.peers import Peer

    setup = {"threads": 1, "value": 3.0, "log": str(tmp_path / "log")}
    with Peer(Path(sys.executable), fake, setup) as peer:
        assert peer.about == {"version": "fake 1.0"}
        answer = peer.ask({"n": 4})
        with np.load(answer["answer"]) as file:
            np.testing.assert_array_equal(file["answer"], [3.0] * 4)
        assert answer["peak_mb"] >= answer["grown_mb"] >= 0
        assert answer["seconds"] > 0
        big = peer.ask({"n": 10_000_000})
        assert big["grown_mb"] > 60  # 80 MB were filled
        assert peer.ask({"n": 1, "own": True})["seconds"] == 0.25


def test_an_error_is_an_answer_and_the_peer_goes_on(fake, tmp_path):
    from benchmarks.peers import Peer, PeerError

    setup = {"threads": 1, "value": 3.0, "log": str(tmp_path / "log")}
    with Peer(Path(sys.executable), fake, setup) as peer:
        with pytest.raises(PeerError, match="ValueError: cannot do that"):
            peer.ask({"n": 1, "wrong": True})
        assert peer.ask({"n": 1})["seconds"] >= 0


def test_a_peer_that_takes_too_long_is_stopped(fake, tmp_path):
    from benchmarks.peers import Peer, PeerError

    setup = {"threads": 1, "value": 3.0, "log": str(tmp_path / "log")}
    with Peer(Path(sys.executable), fake, setup, limit=120) as peer:
        peer._limit = 0.5
        with pytest.raises(PeerError, match=r"more than 0\.5 s"):
            peer.ask({"n": 1, "forever": True})


def test_a_peer_that_cannot_be_imported_says_why(tmp_path):
    from benchmarks.peers import Peer, PeerError

    script = tmp_path / "broken_peer.py"
    script.write_text("import a_package_that_nobody_has\n")
    with pytest.raises(PeerError, match="ModuleNotFoundError: No module named 'a_package"):
        Peer(Path(sys.executable), script, {"threads": 1})


def test_runs_are_interleaved_and_failures_are_told(fake, tmp_path):
    from benchmarks.against.contest import contest

    missing = tmp_path / "broken_peer.py"
    missing.write_text("import a_package_that_nobody_has\n")
    everybody = [
        contender("one", fake, tmp_path, 1.0),
        contender("none", missing, tmp_path),
        contender("two", fake, tmp_path, 2.0),
    ]
    moves = []
    results = contest(
        everybody,
        {"n": 1},
        [{"n": 10}, {"n": 20}],
        lambda number, answer: {"sum": float(answer.sum()), "number": number},
        1,
        lambda n, note="": moves.append(note),
    )
    log = (tmp_path / "log").read_text().splitlines()
    assert log == ["1.0 1", "2.0 1", "1.0 10", "2.0 10", "1.0 20", "2.0 20"]
    assert moves == ["one", "none", "two"] * 2
    one, none, two = results
    assert [marks["sum"] for marks in two.marks] == [20, 40]
    assert one.mark("sum") == 15
    assert one.mark("number") == 0.5
    assert len(one.seconds) == 2
    assert "No module named" in none.failure
    assert np.isnan(none.median_s)
    assert none.row("case")["marks"] == {}


def test_what_is_not_timed_says_how_much_memory_it_takes(fake, tmp_path):
    from benchmarks.against.contest import contest

    (result,) = contest(
        [contender("one", fake, tmp_path)],
        {"n": 1},
        [{"n": 10}, {"n": 20}, {"n": 30}],
        lambda number, answer: {"sum": float(answer.sum()), "number": number},
        1,
        lambda n, note="": None,
        n_untimed=1,
    )
    assert [marks["sum"] for marks in result.marks] == [20, 30]
    assert [marks["number"] for marks in result.marks] == [1, 2]
    assert len(result.seconds) == 2
    assert result.peak_mb > 0


def test_a_peer_that_fails_later_keeps_what_it_did(fake, tmp_path):
    from benchmarks.against.contest import contest

    (result,) = contest(
        [contender("one", fake, tmp_path)],
        {"n": 1},
        [{"n": 10}, {"n": 1, "wrong": True}, {"n": 10}],
        lambda number, answer: {"sum": float(answer.sum())},
        1,
        lambda n, note="": None,
    )
    assert len(result.seconds) == 1
    assert result.failure == "ValueError: cannot do that"
    assert (tmp_path / "log").read_text().splitlines() == ["1.0 1", "1.0 10"]  # not asked again


def test_who_takes_too_long_is_not_asked_again(fake, tmp_path, monkeypatch):
    from benchmarks.against import contest as module

    class Impatient(module.Peer):
        def ask(self, request):  # a limit this short is for the work, not for the start
            self._limit = 0.5 if request.get("forever") else 60
            return super().ask(request)

    monkeypatch.setattr(module, "Peer", Impatient)
    slow, quick = module.contest(
        [contender("slow", fake, tmp_path, 1.0), contender("quick", fake, tmp_path, 2.0)],
        {"n": 1},
        [{"n": 10, "forever": True}, {"n": 20}],
        lambda number, answer: {"sum": float(answer.sum())},
        1,
        lambda n, note="": None,
    )
    assert slow.failure == quick.failure == "more than 0.5 s"
    assert slow.seconds == quick.seconds == []
    assert (tmp_path / "log").read_text().splitlines() == ["1.0 1", "2.0 1"]


def test_an_environment_that_cannot_be_built_is_reported(monkeypatch, tmp_path):
    from benchmarks import peers
    from benchmarks.against.contest import contest

    monkeypatch.setattr(peers, "ENVIRONMENTS", tmp_path)
    monkeypatch.setitem(peers.REQUIREMENTS, "ghost", (("ghost==1",),))
    commands = []

    def refuse(command, **options):
        commands.append(command)
        pip = "pip" in command
        error = "ERROR: No matching distribution found for ghost==1 at https://host/x\n" * pip
        return subprocess.CompletedProcess(command, int(pip), "", error)

    monkeypatch.setattr(peers.subprocess, "run", refuse)
    (result,) = contest(
        [contender("ghost", "no.py", tmp_path, environment="ghost")],
        {},
        [{}],
        lambda number, answer: {},
        1,
        lambda n, note="": None,
    )
    assert commands[1][-1] == "ghost==1"
    assert result.failure == ("not installed: No matching distribution found for ghost==1 at …")
    assert not (tmp_path / "ghost" / ".complete").exists()


def test_reasons_name_no_folders():
    from benchmarks.peers import reason

    assert reason("OSError: cannot open '/home/me/lib/x.so'") == "OSError: cannot open 'x.so'"
    assert reason("first\nlast line") == "last line"
    assert reason("") == "no reason given"
    assert len(reason("ValueError: " + "long " * 100)) == 120


def row(case, name, overlap, seconds, failure="", threads=1):
    marks = {} if failure else {"overlap": overlap, "recovered": 2.0, "found": 3.0}
    return {
        "case": case,
        "contender": name,
        "threads": threads,
        "runs": 1,
        "median_s": np.nan if failure else seconds,
        "marks": marks,
        "seconds": [] if failure else [seconds],
        "peak_mb": np.nan if failure else 120.0,
        "grown_mb": np.nan if failure else 20.4,
        "version": "" if failure else f"{name} 1.0",
        "failure": failure,
    }


SILHOUETTE = "linkage, P by silhouette"
BIC = "Bernoulli mixture, P by BIC"


@pytest.fixture
def measured():
    from benchmarks.against.recovery import BLIND, GIVEN

    failed = row("easy", "BernoulliRBM", 0, 0, failure="not installed: no such thing")
    return [
        row("easy", BLIND, 0.999, 0.1),
        row("easy", GIVEN, 1.0, 0.2),
        row("easy", "KMeans", 1.0, 0.5),
        row("easy", "NMF", 0.7, 0.01),
        failed,
        row("easy", SILHOUETTE, 1.0, 0.05),
        row("easy", BIC, 0.9, 0.01),
        row("hard", BLIND, 0.5, 4.0),
        row("hard", GIVEN, 0.9, 3.0),
        row("hard", "KMeans", 0.8, 2.0),
        row("hard", "NMF", 0.2, 1.0),
        failed | {"case": "hard"},
        row("hard", SILHOUETTE, 0.3, 0.1),
        row("hard", BIC, 0.6, 5.0),
    ]


def test_the_table_of_recovery(measured):
    from benchmarks.against import recovery

    accuracy, times, memory = recovery.tables(measured)
    easy, hard = accuracy.rows
    assert easy["KMeans"] == "1.000 (2)"
    assert easy[SILHOUETTE] == "1.000 (2 of 3)"
    assert hard["dualtap, nothing given"] == "0.500 (2 of 3)"
    assert easy["BernoulliRBM"] == "not installed: no such thing"
    assert times.rows[1]["NMF"] == "1"
    assert memory.rows[0]["KMeans"] == "120 (+20)"


def test_verdicts_are_between_those_who_know_as_much(measured):
    from benchmarks.against import recovery

    accuracy, *_ = recovery.tables(measured)
    easy, hard = accuracy.rows
    gain, first = "ours against the best peer", "fastest of those as accurate"
    assert (easy[f"P given: {gain}"], hard[f"P given: {gain}"]) == ("+0.000", "+0.100")
    assert (easy[f"nothing given: {gain}"], hard[f"nothing given: {gain}"]) == ("-0.001", "-0.100")
    # NMF is quicker and the blind linkage too, but the one is worse and the other knows less.
    assert easy[f"P given: {first}"] == hard[f"P given: {first}"] == "dualtap, P given"
    assert easy[f"nothing given: {first}"] == SILHOUETTE
    assert hard[f"nothing given: {first}"] == BIC
    title = " ".join(accuracy.title.split())
    assert "With P given, ours against 7 peers: behind none (by more than 0.005) in 2 of 2" in title
    assert (
        "With nothing given, ours against 4 peers: behind none (by more than 0.005) in 1" in title
    )
    assert "of the most accurate in 2. With" in title
    assert "of the most accurate in 0. dualtap" in title


def test_the_table_without_any_peer(measured):
    from benchmarks.against import recovery

    alone = [one for one in measured if "dualtap" in one["contender"] or one["failure"]]
    accuracy, *_ = recovery.tables(alone)
    assert accuracy.rows[0]["P given: ours against the best peer"] == "–"
    assert accuracy.title.count("in 0 of 2 cases") == 2
    assert accuracy.title.count("most accurate in 0.") == 2  # first of one is not a victory


def test_every_peer_has_a_method_and_every_run_is_counted():
    from benchmarks.against import recovery
    from benchmarks.peers.methods import METHODS

    assert tuple(METHODS) == recovery.PEERS
    names = [one.name for one in recovery.contenders()]
    assert names == [recovery.BLIND, recovery.GIVEN, *recovery.PEERS]
    assert len({recovery.case_name(case) for case in recovery.CASES}) == 17
    small, large = recovery.CASES[0], recovery.CASES[-1]
    assert [recovery.n_seeds(small, runs) for runs in (1, 3)] == [1, 3]
    assert [recovery.n_seeds(large, runs) for runs in (1, 3)] == [1, 2]
    assert recovery.n_answers(3, False) == 13 * (7 * (1 + 3) + 10 * (1 + 2))


def test_tables_and_pictures_are_written(measured, tmp_path, capsys):
    from benchmarks import against

    files = against.publish("recovery", measured, tmp_path, tmp_path, verbose=True)
    assert all(path.stat().st_size > 0 for path in files)
    assert [path.suffix for path in files] == [".json", ".md", ".md", ".md", ".png"]
    assert json.loads(files[0].read_text())[1]["median_s"] == 0.2
    assert "| hard | 0.500 (2 of 3) | 0.900 (2) |" in capsys.readouterr().out


def test_the_other_tables():
    from benchmarks.against import couplings, rbm, sampling

    def marked(name, case="case", seconds=1.0, threads=1, **marks):
        return row(case, name, 0, seconds, threads=threads) | {"marks": marks}

    failed = row("case", "coniii, Pseudo", 0, 0, failure="more than 120 s")
    (table,) = couplings.tables(
        [marked(couplings.PATTERNS, error=0.1), marked("x", seconds=3.0, error=0.2), failed]
    )
    assert [line["error of J"] for line in table.rows] == ["0.1", "0.2", "more than 120 s"]
    assert [line["times ours"] for line in table.rows] == ["1", "3", "–"]
    (table,) = rbm.tables([marked(rbm.OWN, S=-0.1)])
    assert table.rows[0]["S"] == "-0.1000"
    speeds = [
        marked(sampling.OURS, **{"own overlap": 0.945}) | {"updates_per_s": 2e8},
        marked("x", **{"own overlap": 0.944}) | {"updates_per_s": 2e7},
        marked(sampling.OURS, threads=2, **{"own overlap": 0.945}) | {"updates_per_s": 4e8},
        marked("x", threads=2, **{"own overlap": 0.945}) | {"updates_per_s": 2e7},
    ]
    (table,) = sampling.tables(speeds)
    assert [line["ours / its"] for line in table.rows] == ["1", "10", "1", "20"]


def test_methods_of_peers_find_patterns():
    """Every peer's method finds two patterns in easy data; else the comparison is unfair."""
    from benchmarks.peers.methods import METHODS

    teacher = HopfieldModel.random(300, 2, 2.0, random_state=0)
    X = teacher.sample(60, random_state=1)
    least = {"BernoulliRBM": 0.3, "NMF": 0.9, "FastICA over sites, P by PCA(mle)": 0.9}
    for name, find in METHODS.items():
        found = find(X, 2, 0)
        # Minka's estimate counts the tail of the noise too.
        assert len(found) == 2 or "mle" in name, name
        assert set(np.unique(found)) == {-1, 1}
        assert match(found, teacher.patterns).mean_overlap > least.get(name, 0.98), name


def test_blind_methods_are_told_nothing():
    from benchmarks.against.recovery import BLIND_PEERS
    from benchmarks.peers.methods import METHODS

    teacher = HopfieldModel.random(300, 5, 2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    for name in BLIND_PEERS:
        one, other = METHODS[name](X, 1, 0), METHODS[name](X, 50, 0)
        np.testing.assert_array_equal(one, other, err_msg=name)


def test_the_numbers_of_patterns_that_blind_methods_choose():
    """Silhouette and BIC tell five clusters; without structure there is nothing above noise."""
    from benchmarks.peers import methods

    teacher = HopfieldModel.random(400, 5, 2.0, random_state=0)
    X = teacher.sample(100, random_state=1)
    assert len(methods.blind_linkage(X, 0)) == 5
    assert len(methods.blind_mixture(X, 0)) == 5
    rng = np.random.default_rng(2)
    fair_spins = rng.choice([-1.0, 1.0], size=(200, 800))
    assert methods.n_above_noise(fair_spins) == 1  # never fewer
    planted = np.where(rng.random((3, 200, 1)) < 0.5, -1, 1) * rng.normal(size=(3, 1, 800))
    seen = fair_spins + planted.sum(axis=0)
    assert methods.n_above_noise(seen) == methods.n_above_noise(seen.T) == 3


def test_bic_is_that_of_its_definition():
    from benchmarks.peers.methods import bic

    theta = np.zeros((3, 10), dtype=np.float32)
    assert bic(-7.0, theta, 50) == pytest.approx(32 * np.log(50) + 2 * 50 * 7)


def test_the_mixture_sees_neither_signs_nor_holes():
    from benchmarks.peers.methods import mixture

    rng = np.random.default_rng(2)
    teacher = HopfieldModel.random(300, 3, 2.0, random_state=3)
    X = teacher.sample(90, random_state=4) * rng.choice([-1, 1], size=(90, 1)).astype(np.int8)
    X[rng.random(X.shape) < 0.2] = 0
    assert match(mixture(X, 3, 0), teacher.patterns).mean_overlap > 0.98


def test_the_score_of_zero_one_units_is_that_of_enumeration():
    from benchmarks.peers.scores import pseudo_likelihood

    rng = np.random.default_rng(0)
    W, b, c = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3)
    v = rng.integers(0, 2, size=(5, 4)).astype(float)
    hidden = np.array([[k >> j & 1 for j in range(3)] for k in range(8)], dtype=float)

    def log_p(x):
        return np.log(np.exp(x @ b + hidden @ c + hidden @ (x @ W)).sum())

    total = 0.0
    for one in v:
        for i in range(4):
            other = one.copy()
            other[i] = 1 - other[i]
            total += log_p(one) - np.logaddexp(log_p(one), log_p(other))
    assert pseudo_likelihood(W, b, c, v) == pytest.approx(total / v.size)


def test_bench_outside_a_checkout(run):
    code, out, err = run("bench", "--quick")
    assert (code, out) == (2, "")
    assert err == (
        "dualtap: the benchmarks are not installed with dualtap: "
        "run this command in a source checkout\n"
    )


@pytest.fixture
def small_checkout(tmp_path, monkeypatch):
    """A folder with benchmarks that only write down how they were called."""
    package = tmp_path / "benchmarks" / "against"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text(
        textwrap.dedent(
            """
            from pathlib import Path
            def run(names, **options):
                Path("called").write_text(repr((list(names), options["quick"], options["runs"])))
                return [options["out"] / "peers-sampling.md"]
            """
        )
    )
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_bench_in_a_checkout(small_checkout, run):
    path = list(sys.path)
    code, out, err = run("bench", "sampling", "--quick", "--runs", 2, "--out", "there")
    assert (code, out, err) == (0, "there/peers-sampling.md\n", "")
    assert Path("called").read_text() == "(['sampling'], True, 2)"
    assert run("bench", "-q") == (0, "", "")
    assert Path("called").read_text() == "([], False, None)"
    assert sys.path == path


def test_a_comparison_from_runs_to_files(measured, monkeypatch, tmp_path, capsys):
    from benchmarks import against

    asked = []

    def measure(runs, quick, folder, advance):
        asked.append((runs, quick, folder.is_dir()))
        advance(1, "one")
        return measured

    part = against.PARTS["recovery"]._replace(measure=measure)
    monkeypatch.setitem(against.PARTS, "recovery", part)
    files = against.run(["recovery"], quick=True, out=tmp_path / "new", verbose=False)
    against.run(["recovery"], out=tmp_path / "new", verbose=False)
    assert asked == [(1, True, True), (part.runs, False, True)]
    assert {path.parent for path in files} == {tmp_path / "new"}
    assert capsys.readouterr().out == ""


def test_an_unknown_comparison_is_refused(tmp_path):
    from benchmarks import against

    with pytest.raises(ValueError, match="unknown comparison 'speed': choose from recovery"):
        against.run(["speed"], out=tmp_path)
