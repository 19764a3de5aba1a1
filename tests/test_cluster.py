"""Samples on a Dask cluster: the same numbers as in one process, and lost workers survived."""

import os
import re
import signal
import threading
import time
import warnings
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, wait
from hypothesis import given, settings
from hypothesis import strategies as st

import dualtap as dt
from dualtap.io import zarr_store
from dualtap.spins import PackedSpins, as_spins, cluster, dask_arrays
from dualtap.spins.blocks import Blocks
from dualtap.spins.cluster import ClusterSpins, gathered
from dualtap.spins.matrix import blocks_of
from dualtap.subspace.noise import balanced

pytestmark = pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning")


@pytest.fixture(scope="module")
def local_cluster():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a port that is taken is no concern of ours
        with LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as two:
            yield two


@pytest.fixture
def client(local_cluster, monkeypatch):
    monkeypatch.setattr(dask_arrays, "_LEAST_ENTRIES", 1)  # chunks as they come
    with Client(local_cluster) as one:
        yield one


def matrix(shape, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.choice([-1.0, 1.0], size=shape)
    X[rng.random(shape) < missing] = np.nan
    return X


def chunked(X, rows=37):
    return da.from_array(X, chunks=(rows, X.shape[1] // 2 + 1))


# --- the spins themselves -----------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_spins_are_those_of_one_process(client, missing):
    X = matrix((150, 43), missing)
    X[7] = X[120]
    X[:, 5] = 1
    here, there = as_spins(X), as_spins(chunked(X))
    assert isinstance(there, ClusterSpins)
    assert len(there.chunks) == 5
    assert there.shape == here.shape
    assert (there.encoding, there.n_missing, there.complete) == (
        here.encoding,
        here.n_missing,
        here.complete,
    )
    np.testing.assert_array_equal(there.values, here.values)
    np.testing.assert_array_equal(there.n_observed, here.n_observed)
    chosen = np.array([140, 3, 3, 77, 0])
    np.testing.assert_array_equal(there.take(chosen).values, here.values[chosen])
    np.testing.assert_array_equal(there.columns(np.array([9, 2])), here.values[:, [9, 2]])
    np.testing.assert_array_equal(there.floats(slice(35, 80)), here.values[35:80])
    assert there.summary == here.summary
    assert there.summary.n_duplicates == 1


def test_some_samples_come_here_if_they_are_few_and_stay_there_if_not(client, monkeypatch):
    X = matrix((150, 43), 0.1)
    there = as_spins(chunked(X))
    few = there.subsample(20 * 43)
    assert isinstance(few, PackedSpins)
    monkeypatch.setattr(cluster, "_FEW_ENTRIES", 0)
    many = there.subsample(20 * 43)
    assert isinstance(many, ClusterSpins)
    np.testing.assert_array_equal(few.values, as_spins(X).subsample(20 * 43).values)
    np.testing.assert_array_equal(many.values, few.values)
    assert many.n_missing == few.n_missing > 0
    assert there.subsample(150 * 43) is there


def test_small_chunks_are_put_together(client, monkeypatch):
    monkeypatch.setattr(dask_arrays, "_LEAST_ENTRIES", 80 * 43)
    X = matrix((150, 43), 0.1)
    there = as_spins(chunked(X))
    assert len(there.chunks) == 2
    np.testing.assert_array_equal(there.values, as_spins(X).values)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((60, 4), np.nan), "no observed entry"),
        (np.where(np.arange(240).reshape(60, 4) == 201, 7.0, 1.0), "7.0 at row 50, column 1"),
        (np.where(np.arange(240).reshape(60, 4) < 100, 0, -1), r"-1, 0 and \+1"),
        (np.ones((60, 1)), "at least two"),
    ],
)
def test_errors_are_those_of_one_process(client, X, message):
    for data in (X, da.from_array(X, chunks=(20, 4))):
        with pytest.raises(ValueError, match=message):
            as_spins(data)


def test_encoding_is_what_all_chunks_say(client):
    X = np.ones((60, 4))
    X[55:, 0] = 0
    assert as_spins(da.from_array(X, chunks=(20, 4))).encoding == "0/1"
    X[55:, 0] = -1
    assert as_spins(da.from_array(X, chunks=(20, 4))).encoding == "-1/+1"
    assert as_spins(da.from_array(X > 0, chunks=(20, 4))).encoding == "boolean"
    X[0, 0] = 0
    spins = as_spins(da.from_array(X, chunks=(20, 4)), zero_is_missing=True)
    assert spins.n_missing == 1


def test_without_a_client_chunks_are_packed_here():
    X = matrix((150, 43), 0.1)
    spins = as_spins(chunked(X))
    assert not isinstance(spins, ClusterSpins)
    np.testing.assert_array_equal(spins.values, as_spins(X).values)


def test_chunks_of_unknown_size_are_measured(client):
    X = matrix((150, 43))
    array = chunked(X)
    np.testing.assert_array_equal(as_spins(array[array[:, 0] > 0]).values, X[X[:, 0] > 0])
    X[37:74, 0] = -1  # a chunk without any sample
    array = chunked(X)
    spins = as_spins(array[array[:, 0] > 0])
    np.testing.assert_array_equal(spins.values, X[X[:, 0] > 0])
    assert len(spins.chunks) == 4
    with pytest.raises(ValueError, match="X is empty"):
        as_spins(array[array[:, 0] > 5])


# --- passes over them ---------------------------------------------------------------------------


@settings(max_examples=5, deadline=None)
@given(rows=st.integers(20, 150), missing=st.sampled_from([0.0, 0.3]))
def test_passes_give_what_one_process_gives(local_cluster, rows, missing):
    X = matrix((150, 43), missing)
    rng = np.random.default_rng(1)
    V = rng.normal(size=(3, 43)).astype(np.float32)
    A = rng.normal(size=(150, 2)).astype(np.float32)
    t = rng.uniform(-0.5, 0.5, 43).astype(np.float32)
    with Client(local_cluster):
        there = blocks_of(as_spins(chunked(X, rows)))
        here = Blocks(as_spins(X))
        scaled = [b.minus(t).changed(lambda S, a: S * a[:, :1], A) for b in (here, there)]
        for a, b in ((here, there), scaled):
            np.testing.assert_allclose(a.dot(V), b.dot(V), atol=1e-4)
            np.testing.assert_allclose(a.gram_dot(V), b.gram_dot(V), rtol=1e-4, atol=1e-2)
            np.testing.assert_allclose(a.transposed_dot(A), b.transposed_dot(A), atol=1e-3)
            assert a.sum_of_squares() == pytest.approx(b.sum_of_squares(), rel=1e-5)
            both = [x.map_sum(lambda S, a: (S[:, 0] + a[:, 0], S.sum(axis=0)), A) for x in (a, b)]
            for x, y in zip(*both, strict=True):
                np.testing.assert_allclose(x, y, atol=1e-3)
        weighed = [balanced(b, b.changed(np.square)).map(lambda S: S) for b in (here, there)]
        np.testing.assert_allclose(*weighed, rtol=1e-4)


def test_passes_are_counted(client, reads):
    X = matrix((150, 43))
    there = blocks_of(as_spins(chunked(X)))
    there.gram_dot(np.ones((1, 43), np.float32))
    there.map(lambda S: S)
    assert reads.entries == 2 * X.size


def test_terms_are_added_in_their_order(client, monkeypatch):
    monkeypatch.setattr(cluster, "_FAN_IN", 2)
    there = blocks_of(as_spins(chunked(matrix((150, 43)))))
    found = there.sum(lambda S, n: [int(n[0])], np.arange(150), add=lambda a, b: a + b)
    assert found == sorted(found)
    assert found[0] == 0


# --- estimators ---------------------------------------------------------------------------------


def retrieval():
    teacher = dt.HopfieldModel.random(400, 6, beta=2.0, random_state=0)
    return teacher, teacher.sample(180, random_state=1)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_fit_gives_the_same_patterns_as_one_process(client, missing):
    teacher, X = retrieval()
    X = np.where(np.random.default_rng(2).random(X.shape) < missing, np.nan, X)
    here = dt.HopfieldPatterns(random_state=0).fit(X)
    there = dt.HopfieldPatterns(random_state=0).fit(chunked(X))
    assert dt.metrics.match(there.patterns_, teacher.patterns).n_recovered() == 6
    np.testing.assert_array_equal(there.patterns_, here.patterns_)
    np.testing.assert_array_equal(there.labels_, here.labels_)
    assert there.beta_ == pytest.approx(here.beta_, rel=1e-6)
    assert there.n_passes_ < 30


@pytest.mark.parametrize(("beta", "n_patterns", "n_samples"), [(0.8, 2, 900), (1.2, 4, 400)])
def test_fit_finds_the_same_in_other_phases(client, beta, n_patterns, n_samples):
    teacher = dt.HopfieldModel.random(300, n_patterns, beta=beta, random_state=0)
    X = teacher.sample(n_samples, random_state=1)
    here = dt.HopfieldPatterns(random_state=0).fit(X)
    there = dt.HopfieldPatterns(random_state=0).fit(da.from_array(X, chunks=(211, 300)))
    assert there.n_patterns_ == here.n_patterns_ == n_patterns
    # Sums are rounded in another order, and the order of near ties is free.
    assert dt.metrics.match(there.patterns_, here.patterns_).mean_overlap > 0.995


@pytest.mark.parametrize(("beta", "n_patterns"), [(0.8, 2), (2.0, 4)])
def test_fits_of_more_samples_than_spins_are_the_fits(client, beta, n_patterns, monkeypatch):
    """The Gram matrix of the sites: bits counted here, or sums of products made there."""
    monkeypatch.setattr("dualtap.spins.words._WORTH_GRAM", 0)
    teacher = dt.HopfieldModel.random(200, n_patterns, beta=beta, random_state=0)
    X = teacher.sample(1500, random_state=1)
    here = dt.HopfieldPatterns(random_state=0).fit(X)
    there = dt.HopfieldPatterns(random_state=0).fit(da.from_array(X, chunks=(211, 200)))
    assert there.n_patterns_ == here.n_patterns_ == n_patterns
    assert dt.metrics.match(there.patterns_, here.patterns_).overlaps.min() > 0.99
    assert there.beta_ == pytest.approx(here.beta_, rel=1e-3)
    if beta < 1:
        assert there.n_passes_ == here.n_passes_ <= 12  # iterations are on that matrix
    # The same integers, whoever adds them up.
    np.testing.assert_array_equal(there.spectrum_, here.spectrum_)


def test_the_published_algorithm_finds_the_same(client):
    _, X = retrieval()
    options = {"n_patterns": 6, "beta": 2.0, "random_state": 0}
    here = dt.DualTAP(**options).fit(X)
    there = dt.DualTAP(**options).fit(chunked(X))
    np.testing.assert_array_equal(there.patterns_, here.patterns_)
    np.testing.assert_allclose(there.magnetizations_, here.magnetizations_, atol=1e-4)


def test_prediction_and_scores_are_those_of_one_process(client):
    teacher, X = retrieval()
    model = dt.HopfieldPatterns(random_state=0).fit(X)
    Y = chunked(teacher.sample(90, random_state=5))
    for method in ("predict", "predict_proba", "transform", "score_samples"):
        there, here = getattr(model, method)(Y), getattr(model, method)(Y.compute())
        np.testing.assert_allclose(there, here, atol=1e-6)
    assert model.score(Y) == pytest.approx(model.score(Y.compute()), rel=1e-6)


def test_fit_survives_the_loss_of_a_worker(client, monkeypatch):
    """SIGKILL while a pass is going on: the same patterns all the same."""
    _, X = retrieval()
    here = dt.HopfieldPatterns(random_state=0).fit(X)
    spins = as_spins(chunked(X, 20))
    wait(spins.chunks)
    pids = client.run(os.getpid)
    victim = next(iter(client.who_has(spins.chunks[:1]).values()))[0]
    killed = threading.Event()
    one_pass = cluster.ClusterBlocks.gram_dot

    def kill():
        os.kill(pids[victim], signal.SIGKILL)
        killed.set()

    def deadly(self, V):
        if killed.is_set():
            return one_pass(self, V)
        threading.Timer(0.02, kill).start()
        product = one_pass(self, V)
        assert killed.wait(timeout=60)  # before the fit goes on, however late the timer is
        return product

    monkeypatch.setattr(cluster.ClusterBlocks, "gram_dot", deadly)
    there = dt.HopfieldPatterns(random_state=0).fit(spins)
    assert killed.is_set()
    deadline = time.monotonic() + 120
    while victim in client.scheduler_info(n_workers=-1)["workers"]:
        assert time.monotonic() < deadline, "the worker was not lost"
        time.sleep(0.1)
    np.testing.assert_array_equal(there.patterns_, here.patterns_)
    client.wait_for_workers(2, timeout=120)  # another one is in its place


# --- sampling -----------------------------------------------------------------------------------


def test_sampling_does_not_depend_on_the_workers(client):
    teacher = dt.HopfieldModel.random(300, 3, beta=2.0, random_state=0)
    X = teacher.dask_sample(50, chunk_size=20, n_sweeps=5, random_state=1)
    here = X.compute(scheduler="synchronous")
    np.testing.assert_array_equal(X.compute(), here)
    # Chain a starts at pattern a mod P, also across chunks.
    nearest = np.abs(here @ teacher.patterns.T.astype(int)).argmax(axis=1)
    np.testing.assert_array_equal(nearest, np.arange(50) % 3)


@pytest.mark.parametrize("start", ["random", "annealed"])
def test_chunks_have_generators_of_their_own(start):
    teacher = dt.HopfieldModel.random(60, 3, beta=0.5, random_state=0)
    X = teacher.dask_sample(60, chunk_size=20, start=start, n_sweeps=2, random_state=1).compute()
    assert len(np.unique(X, axis=0)) == 60
    with pytest.raises(ValueError, match="chunk_size >= 1"):
        teacher.dask_sample(10, chunk_size=0)


def test_samples_drawn_on_a_cluster_are_fitted_there(client):
    teacher = dt.HopfieldModel.random(300, 3, beta=2.0, random_state=0)
    model = dt.HopfieldPatterns(random_state=0).fit(
        teacher.dask_sample(90, chunk_size=30, random_state=1)
    )
    assert dt.metrics.match(model.patterns_, teacher.patterns).n_recovered() == 3


# --- the command --------------------------------------------------------------------------------


def test_command_fits_a_store_on_a_cluster(local_cluster, run):
    size = ("--spins", 200, "--patterns", 3, "--samples", 60)
    assert run("sample", *size, "-o", "data.zarr", "-q")[0] == 0
    assert run("fit", "data.zarr", "-o", "here.npz", "-q")[0] == 0
    address = local_cluster.scheduler_address
    code, out, err = run("fit", "data.zarr", "-o", "there.npz", "--dask", address)
    assert code == 0
    assert "60 samples of 200 spins" in err
    assert re.search(r"passes +\d+", out)
    np.testing.assert_array_equal(dt.load("there.npz").patterns_, dt.load("here.npz").patterns_)


def test_a_cluster_without_workers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr("dualtap.spins.cluster._PATIENCE", 0.2)
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as nobody,
        Client(nobody),
        pytest.raises(ConnectionError, match=r"no worker for 0\.2 s: start some"),
    ):
        dask_arrays.dask_spins(da.ones((8, 4), chunks=(4, 4)))


def test_workers_that_start_again_are_waited_for(monkeypatch):
    """At the moment of asking there may be none, as the last one has just run out of memory."""
    workers, clock = ["one", "", "one", "", "one", ""], [0]

    def wait(futures, timeout):
        clock[0] += 200  # more than half of the patience
        if workers:
            there.scheduler_info = lambda: {"workers": workers.pop(0)}
            raise TimeoutError

    monkeypatch.setattr("dualtap.spins.cluster.monotonic", lambda: clock[0])
    monkeypatch.setattr("distributed.wait", wait)
    there = SimpleNamespace(gather=lambda futures: futures)
    assert gathered(there, [1, 2]) == [1, 2]


def test_command_says_that_no_scheduler_answers(run):
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        code, out, err = run("fit", "data.zarr", "-o", "m.npz", "--dask", "tcp://127.0.0.1:9")
    assert (code, out) == (2, "")
    assert err.startswith("dualtap: no Dask scheduler answers at 'tcp://127.0.0.1:9'")
    assert err.count("\n") == 1


def test_a_store_that_workers_do_not_see_is_no_data(client, tmp_path, monkeypatch):
    """Zarr fills in what it does not find; a fit of nothing but fillings would go unnoticed."""
    path = tmp_path / "data.zarr"
    dt.io.write_samples(path, matrix((60, 20)))
    spins = dt.io.read_samples(path, on_workers=True).spins
    np.testing.assert_array_equal(spins.values, matrix((60, 20)))
    with pytest.raises(ValueError, match="this worker sees no folder"):
        client.submit(zarr_store._rows, str(tmp_path / "elsewhere.zarr"), "X", 3, 0, 9).result()


def test_workers_read_stores_only(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"workers read Zarr stores"):
        dt.io.read_samples(path, on_workers=True)
