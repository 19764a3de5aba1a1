"""What the benchmarks of large problems compute besides times."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dualtap.metrics import match

sys.path.insert(0, str(Path(__file__).parent.parent))  # benchmarks are not installed
from benchmarks.scaling import Size, drawn, exponent, interleaved


def test_exponent_of_a_power_law():
    sizes = np.array([10.0, 20.0, 50.0, 100.0])
    assert exponent(sizes, 3e-4 * sizes**1.7) == pytest.approx(1.7)
    assert exponent(sizes, [5.0] * 4) == pytest.approx(0)
    assert 0.8 < exponent(sizes, 4 + sizes) < 0.9  # a fixed cost flattens it


def test_exponent_does_not_hang_on_one_point():
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    noisy = sizes * [1.1, 1.0, 1.0, 1.1]
    assert exponent(sizes, noisy) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(("beta", "m"), [(2.0, 0.957504), (1.2, 0.658569)])
def test_samples_are_patterns_with_bits_flipped(beta, m):
    """A sample has overlap m = tanh βm with pattern a mod P, and sees nothing of the others."""
    assert m == pytest.approx(np.tanh(beta * m), abs=1e-5)
    size = Size(n_spins=20_003, n_samples=70, n_patterns=3)
    patterns, spins = drawn(size, beta)
    assert (patterns.shape, spins.shape) == ((3, 20_003), (70, 20_003))
    assert set(np.unique(patterns)) == {-1, 1}
    overlaps = spins.values.astype(float) @ patterns.T / 20_003
    own = overlaps[np.arange(70), np.arange(70) % 3]
    noise = np.sqrt((1 - m**2) / (70 * 20_003))
    assert np.abs(own).mean() == pytest.approx(m, abs=5 * noise + 1e-5)
    assert 15 < np.count_nonzero(own > 0) < 55
    overlaps[np.arange(70), np.arange(70) % 3] = 0
    assert np.abs(overlaps).max() < 6 / np.sqrt(20_003)
    assert match(patterns, patterns[::-1]).n_recovered(0.99) == 3


def test_flips_fall_on_every_spin_and_sample():
    patterns, spins = drawn(Size(500, 400, 1))
    wrong = spins.values * patterns < 0
    wrong ^= wrong.mean(axis=1, keepdims=True) > 0.5
    assert wrong.mean(axis=0).min() > 0
    assert wrong.mean(axis=0).max() < 0.08  # 0.02 on average
    assert wrong.mean(axis=1).min() > 0
    assert wrong.mean(axis=1).max() < 0.08


def test_what_is_drawn_depends_on_the_seed_alone(monkeypatch):
    size = Size(100, 50, 2)
    one, same, other = (drawn(size, seed=seed)[1].values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    monkeypatch.setattr("benchmarks.scaling._STEP", 700)  # blocks of seven samples
    patterns, spins = drawn(size, seed=1)
    overlaps = np.abs(spins.values.astype(float) @ patterns.T / 100)
    np.testing.assert_array_equal(overlaps.argmax(axis=1), np.arange(50) % 2)


class _Clock:
    """Stands still unless a task moves it."""

    now = 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return 2 * self.now

    def sleep(self, seconds):
        self.now += seconds


def test_tasks_take_turns(monkeypatch):
    clock, order = _Clock(), []
    monkeypatch.setattr("benchmarks.scaling.time", clock)

    def task(name, seconds):
        order.append(name)
        clock.sleep(seconds * len(order))

    times = interleaved({"a": partial(task, "a", 1), "b": partial(task, "b", 10)}, 3)
    assert order == ["a", "b"] * 4
    assert times["a"].wall == pytest.approx([3, 5, 7])  # the first round is not timed
    assert times["b"].wall == pytest.approx([40, 60, 80])
    assert times["b"].cpu == pytest.approx([80, 120, 160])
    assert times["b"].median == pytest.approx(60)
