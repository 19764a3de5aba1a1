"""The model of what a pass on a cluster costs, counted by hand and by a client that watches."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dualtap.spins import SpinsBuilder, cluster
from dualtap.spins.cluster import ClusterBlocks, ClusterSpins

sys.path.insert(0, str(Path(__file__).parent.parent))  # benchmarks are not installed
from benchmarks.cluster import Machine, _spread, cost, machines, seconds


class Future:
    """A task that is done."""

    def __init__(self, value):
        self.value = value

    def result(self):
        return self.value


@pytest.fixture(autouse=True)
def nothing_to_wait_for(monkeypatch):
    """Futures of the client below are done when they are made."""
    monkeypatch.setattr("distributed.wait", lambda futures, timeout: None)


class Client:
    """Does every task at once, and writes down which there were."""

    def __init__(self, n_workers=1):
        self.n_workers, self.tasks = n_workers, []

    def submit(self, function, *arguments, pure):
        assert not pure  # tasks with equal arguments are tasks of their own
        self.tasks.append((function, arguments))
        return Future(function(*map(_value, arguments)))

    def map(self, function, *arguments, pure):
        return [self.submit(function, *each, pure=pure) for each in zip(*arguments, strict=True)]

    def gather(self, futures):
        return [future.value for future in futures]

    def scatter(self, data, workers, hash):
        assert len(workers) == 1
        assert not hash
        return Future(data)

    def scheduler_info(self, n_workers):
        return {"workers": {f"worker {k}": {} for k in range(self.n_workers)}}


def _value(x):
    if isinstance(x, list):
        return [_value(one) for one in x]
    return x.value if isinstance(x, Future) else x


def packed(S):
    build = SpinsBuilder()
    build.add(S)
    return build.part()


def spread_over(n_workers, n_spins=17):
    """Return samples with a chunk on each worker, and the same as an array."""
    S = np.random.default_rng(0).choice([-1, 1], size=(3 * n_workers + 1, n_spins))
    return _spread(Client(n_workers), packed(S), n_workers), S


def hops(n_workers):
    """Count hands that V goes through: two to the first worker, and every holder passes it on."""
    count, holders = 2, 1
    while holders < n_workers:
        count, holders = count + 1, 2 * holders
    return count


# Blocks of 4 k N bytes. Sent: to the scheduler, to a worker, then holders double. Returned: a
# worker that adds fetches three of four terms at every level, and the client fetches the sum.
BY_HAND = {
    1: (2, 1, 1 + 1),
    2: (2 + 1, 1 + 1, 1 + 2 + 1),
    4: (2 + 2, 3 + 1, 1 + 4 + 1),
    16: (2 + 4, 3 + 3 + 1, 1 + 16 + (4 + 1)),
    64: (2 + 6, 3 + 3 + 3 + 1, 1 + 64 + (16 + 4 + 1)),
    100: (2 + 7, 3 + 3 + 3 + 3 + 1, 1 + 100 + (25 + 7 + 2 + 1)),
}


@pytest.mark.parametrize("n_workers", BY_HAND)
def test_what_a_pass_is_made_of(n_workers):
    n_spins, n_samples, k = 1000, 300, 7
    sent, returned, messages = BY_HAND[n_workers]
    what = cost(n_spins, n_samples, k, n_workers)
    assert what.flops == 2 * (2 * k * n_samples * n_spins)  # a product and a sum, twice
    assert what.sent == sent * 4 * k * n_spins
    assert what.returned == returned * 4 * k * n_spins
    assert what.messages == messages
    assert sent == hops(n_workers)


@pytest.mark.parametrize("n_workers", BY_HAND)
def test_tasks_of_a_pass_are_those_of_the_model(n_workers):
    spins, S = spread_over(n_workers)
    assert len(spins.chunks) == n_workers
    V = np.random.default_rng(1).integers(-3, 4, size=(5, 17)).astype(np.float32)
    spins.client.tasks.clear()
    found = ClusterBlocks(spins).gram_dot(V)
    np.testing.assert_array_equal(found, V @ S.T @ S)
    tasks = spins.client.tasks
    what = cost(17, len(S), 5, n_workers)
    assert len(tasks) == what.messages
    assert [f for f, _ in tasks[: n_workers + 1]] == [cluster._same] + [cluster._call] * n_workers
    assert {f for f, _ in tasks[n_workers + 1 :]} <= {cluster._added}


@pytest.mark.parametrize("n_workers", BY_HAND)
def test_bytes_of_a_pass_are_those_of_the_model(n_workers):
    """Follow the sum from the client back, along the terms that come over the network."""
    spins, _ = spread_over(n_workers)
    V = np.ones((5, 17), np.float32)
    spins.client.tasks.clear()
    result = ClusterBlocks(spins).gram_dot(V)
    most, left = result.nbytes, n_workers
    added = [terms for function, (_, terms) in spins.client.tasks[n_workers + 1 :]]
    while left > 1:
        left = -(-left // 4)
        level, added = added[:left], added[left:]
        most += max(sum(term.value.nbytes for term in terms[1:]) for terms in level)
    predicted = cost(17, 3 * n_workers + 1, 5, n_workers).returned
    # A tree whose last levels are not full moves less.
    full = n_workers in (1, 2, 4, 16, 64)
    assert most == predicted if full else most < predicted
    assert added == []


def test_the_parts_of_a_pass_add_up():
    what = cost(1000, 300, 7, 4)
    flops, moved = 4 * 7 * 300 * 1000, (4 + 4) * 4 * 7 * 1000
    slow = {"rate": 1e6, "bandwidth": 1e5, "latency": 0.5, "n_workers": 4, "n_cores": 2}
    assert seconds(what, Machine(**slow)) == pytest.approx(flops / 2e6 + moved / 1e5 + 0.5 * 6)
    fast = slow | {"rate": np.inf, "latency": 0.0}
    assert seconds(what, Machine(**fast)) == pytest.approx(moved / 1e5)
    fast = slow | {"bandwidth": np.inf, "latency": 0.0}
    assert seconds(what, Machine(**fast)) == pytest.approx(flops / 2e6)
    assert seconds(what, Machine(**fast | {"n_cores": 4})) == pytest.approx(flops / 4e6)


@pytest.mark.parametrize("n_workers", [1, 3])
@pytest.mark.parametrize("n_chunks", [1, 3, 4])
def test_samples_are_spread_evenly(n_workers, n_chunks):
    S = np.random.default_rng(0).choice([-1, 1], size=(22, 17))
    client = Client(n_workers)
    used, scatter = [], client.scatter

    def watched(data, workers, hash):
        used.extend(workers)
        return scatter(data, workers, hash)

    client.scatter = watched
    spins = _spread(client, packed(S), n_chunks)
    assert isinstance(spins, ClusterSpins)
    assert len(set(used)) == min(n_workers, n_chunks)
    sizes = np.diff(spins.bounds)
    assert (sizes.sum(), len(sizes)) == (22, n_chunks)
    assert np.ptp(sizes) <= 1
    np.testing.assert_array_equal(spins.values, S)


def test_a_million_samples_of_a_million_spins():
    few, every = machines()
    for row in (few, every):
        assert row["packed on a machine (GB)"] == pytest.approx(1e12 / 8 / 100 / 1e9)
        assert row["messages a pass"] == 136
        assert row["GB moved a pass"] == pytest.approx((9 + 13) * 4 * 74 * 1e6 / 1e9)
        parts = row["computing (s)"] + row["moving (s)"] + 136 * 5e-3
        assert row["a pass (s)"] == pytest.approx(parts)
        said = int(re.search(r"(\d+) passes", row["fit"])[1])
        assert row["all passes (min)"] == pytest.approx(said * row["a pass (s)"] / 60)
    assert every["TFLOP a pass"] == pytest.approx(4 * 74 * 1e12 / 1e12)
    assert few["TFLOP a pass"] == pytest.approx(4 * 74 * 2**16 * 1e6 / 1e12)
