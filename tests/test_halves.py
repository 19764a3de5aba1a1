"""Patterns found in one half of the samples and confirmed by the other."""

import numpy as np
import pytest

from dualtap import HopfieldModel, HopfieldPatterns, as_spins
from dualtap.recovery.halves import Pools, averaged, found_in_halves, halves_of, with_found
from dualtap.recovery.independent import null
from dualtap.recovery.judge import Judge
from dualtap.recovery.moves import freed
from dualtap.recovery.objective import sizes_of


def drawn(n_samples=2000, n_patterns=4, n_spins=40, seed=0):
    """Samples of many weak patterns with zeros, and the patterns."""
    rng = np.random.default_rng(seed)
    Z = rng.choice([-1, 0, 1], size=(n_patterns, n_spins))
    model = HopfieldModel(
        Z, strengths=np.full(n_patterns, 1.0), fields=rng.normal(size=n_spins) / 2
    )
    return Judge(as_spins(model.sample(n_samples, random_state=seed))), Z


def confirmed(judge, start, seed=0):
    rng = np.random.default_rng(seed)
    return found_in_halves(halves_of(judge, rng), start, Pools(), rng)


def test_halves_have_every_row_once():
    judge, _ = drawn(n_samples=101)
    halves = halves_of(judge, np.random.default_rng(0))
    assert [len(half.rows) for half in halves[:2]] == [50, 51]
    rows = np.concatenate([half.rows for half in halves[:2]])
    order = [np.lexsort(X.T) for X in (rows, judge.rows)]
    np.testing.assert_array_equal(rows[order[0]], judge.rows[order[1]])
    assert halves.turned().turned() == halves


def test_patterns_are_found_and_described_shorter():
    judge, Z = drawn()
    start = freed(judge, null(judge))
    found = confirmed(judge, start)
    cosine = np.abs(found.Z @ Z.T) / np.sqrt(np.outer(sizes_of(found.Z), sizes_of(Z)))
    assert (cosine.max(axis=0) > 0.7).all()
    assert len(found.costs) == len(found.Z)
    assert (found.costs > np.log(2)).all()
    state = with_found(judge, start, found)
    assert state.objective < start.objective
    assert np.isfinite(state.found).all()
    assert state.found.sum() < state.fit.L - start.fit.L


@pytest.mark.parametrize("p", [0.5, 0.1, "uneven"])
def test_independent_spins_confirm_nothing(p):
    rng = np.random.default_rng(0)
    n_found = 0
    for _ in range(10):
        up = rng.uniform(0.02, 0.98, 30) if p == "uneven" else p
        judge = Judge(as_spins(rng.random((300, 30)) < up))
        start = freed(judge, null(judge))
        n_found += len(confirmed(judge, start, rng).Z) > 0
    assert n_found <= 2


@pytest.mark.parametrize("n_models", [2, 3])
def test_the_mean_of_models_is_described_no_longer_than_they_are(n_models):
    judge, _ = drawn(n_samples=500)
    start = freed(judge, null(judge))
    models = [with_found(judge, start, confirmed(judge, start, s)) for s in range(n_models)]
    mean = averaged(judge, 0, models)
    assert len(mean.fit.Z) > len(models[0].fit.Z)
    assert np.mean([model.fit.L for model in models]) <= mean.fit.L
    assert mean.objective <= np.mean([model.objective for model in models]) + 1
    same = averaged(judge, len(models[0].fit.Z), models[:1] * n_models)
    np.testing.assert_allclose(same.fit.g, models[0].fit.g, rtol=0.01)
    assert same.objective == pytest.approx(models[0].objective, abs=0.1)


def test_patterns_and_entries_are_as_sure_as_halves_agree_on_them():
    Z = np.array([[1, 1, 1, 1, -1, -1, 0, 0]], dtype=np.float32)
    pools = Pools()
    assert len(pools) == 0
    pools.one.append(np.concatenate([Z, np.roll(Z, 3, axis=1)]))
    pools.other.append(-Z)
    assert len(pools) == 1
    assert pools.reliability(Z)[0, 0] == pytest.approx(1)
    np.testing.assert_allclose(pools.agreement(Z), np.abs(Z))
    pools.other[0][0, 0] *= -1
    c = 4 / 6
    assert pools.reliability(Z)[0, 0] == pytest.approx(np.sqrt(2 * c / (1 + c)))
    np.testing.assert_allclose(pools.agreement(Z), np.abs(Z) * (np.arange(8) > 0))
    pools.other[0][0, 0] = 0
    c = 5 / np.sqrt(30)
    assert pools.reliability(Z)[0, 0] == pytest.approx(np.sqrt(2 * c / (1 + c)))
    assert pools.agreement(Z)[0, 0] == 0.5


def test_what_halves_do_not_find_again_is_not_sure():
    """Weak patterns beside strong ones and fields: some that are found are mixtures of several."""
    n_sure = n_right = n_strange = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        Z = rng.choice([-1, 1], size=(6, 120))
        fields = rng.choice([-0.4, 0.4], size=120)
        teacher = HopfieldModel(Z, strengths=np.linspace(0.5, 1.3, 6), fields=fields)
        model = HopfieldPatterns(random_state=seed).fit(teacher.sample(600, random_state=seed))
        for m in model.magnetizations_:
            overlap = Z @ np.sign(m) / 120
            k = np.argmax(np.abs(overlap))
            sure = np.abs(m) >= 0.9
            n_sure += int(sure.sum())
            n_right += int((sure & (m * Z[k] * np.sign(overlap[k]) > 0)).sum())
            n_strange += bool(abs(overlap[k]) < 0.5)
    assert n_strange  # or nothing is shown
    assert n_sure > 1000
    assert n_right > 0.95 * n_sure  # what |m| ≥ 0.9 says
