"""Estimates with their errors, rules and the verdicts that follow."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dualtap.experiments import NAMES, load
from dualtap.experiments.experiment import MissingTrialsError, Results, Row
from dualtap.experiments.judging import (
    Evidence,
    exact,
    highest,
    judge,
    lowest,
    mean,
    proportion,
    wilson,
    wilson_bars,
)
from dualtap.experiments.rules import CHANGES, RULES, Change, Criterion, Rule, fingerprints
from dualtap.experiments.transitions import transitions


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (68, 80), (1, 1)])
def test_wilson_solves_its_equation(k, n):
    """Its ends are the p at which k/n is 1.96 standard deviations away."""
    z = 1.959964
    for end in wilson(k, n):
        p = float(end)
        if 0 < p < 1:
            assert abs(k / n - p) == pytest.approx(z * np.sqrt(p * (1 - p) / n), rel=1e-5)
    low, high = wilson(k, n)
    assert 0 <= low <= k / n <= high <= 1


def test_wilson_covers_as_it_says():
    """Over all outcomes of twenty trials, exactly, the interval covers p in about 95 %."""
    n, k = 20, np.arange(21)
    low, high = wilson(k, n)
    for p in (0.1, 0.3, 0.5, 0.9):
        covered = binom.pmf(k, n, p)[(low <= p) & (p <= high)].sum()
        assert 0.9 < covered < 0.99


@given(n=st.integers(1, 500), data=st.data())
def test_bars_stay_within_zero_and_one(n, data):
    k = data.draw(st.integers(0, n))
    below, above = wilson_bars(k, n)
    assert below >= -1e-15
    assert above >= -1e-15
    assert k / n - below >= 0
    assert k / n + above <= 1


def test_estimates_say_what_they_rest_on():
    assert str(proportion([True] * 68 + [False] * 12)) == "68 of 80 (76–91 %)"
    assert proportion(68, 80) == proportion([True] * 68 + [False] * 12)
    values = np.random.default_rng(0).normal(0.26, 0.1, size=40)
    estimate = mean(values)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.high - estimate.value == pytest.approx(values.std(ddof=1) / np.sqrt(40))
    assert str(estimate).endswith("(n = 40)")
    assert str(mean([0.5])) == "0.500 (n = 1)"
    for empty in (
        lambda: mean([]),
        lambda: proportion([]),
        lambda: lowest({}),
        lambda: highest({}),
    ):
        with pytest.raises(MissingTrialsError):
            empty()


def test_verdicts_of_a_rule():
    rule = Rule(
        "It works.",
        "Sec. 1",
        {
            "full": Criterion("share", ">=", 0.9, limit=0.5),
            "must": Criterion("error", "<", 0.1),
            "nice": Criterion("rest", ">", 1.0, limit=None),
        },
    )
    cases = {
        (0.9, 0.05, 2.0): "holds",
        (0.6, 0.05, 2.0): "holds with a limit",
        (0.95, 0.05, 0.0): "holds with a limit",
        (0.4, 0.05, 2.0): "does not hold",
        (0.95, 0.1, 2.0): "does not hold",
        (float("nan"), 0.05, 2.0): "does not hold",
    }
    for values, verdict in cases.items():
        assert rule.verdict(dict(zip(rule.criteria, values, strict=True))) == verdict
    with pytest.raises(ValueError, match="the rule is about full, must, nice, not full"):
        rule.verdict({"full": 1.0})
    assert rule.decided_by == (
        "share: at least 0.9 (limit: at least 0.5); error: below 0.1; rest: above 1 (else a limit)"
    )


def test_what_is_close_is_said():
    rule = Rule("It works.", "Sec. 1", {"share": Criterion("share", ">=", 0.9, limit=0.5)})
    assert rule.is_close({"share": proportion(9, 10)})
    assert not rule.is_close({"share": proportion(700, 1000)})
    assert not rule.is_close({"share": exact(0.9)})


def test_a_claim_without_trials_is_not_judged():
    @judge("fig2.all")
    def share(results):
        return Evidence({"complete": proportion(results.column("recovered", M=200) == 20)}, "")

    rows = [Row({"M": 100}, 0, 0, {"recovered": 20}, None, 0.0, "")]
    claim = share(Results(rows))
    assert (claim.verdict, claim.measured) == ("not judged", "there is no trial with M = 200")
    assert claim.says == RULES["fig2.all"].says


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_a_rule_of_its_own(name):
    """Without any trial every claim is still named, and none is judged."""
    claims = load(name).claims(Results([]))
    assert {claim.verdict for claim in claims} == {"not judged"}
    assert {claim.rule for claim in claims} == {r for r in RULES if r.split(".")[0] == name}


def test_rules_are_complete_and_different():
    assert {rule.split(".")[0] for rule in RULES} <= set(NAMES)
    assert len(set(fingerprints().values())) == len(RULES)
    for rule in RULES.values():
        assert rule.criteria
        assert rule.says.endswith(".")
        for criterion in rule.criteria.values():
            if isinstance(criterion.limit, float):
                # A limit is easier to meet than the threshold.
                assert criterion.holds_partly(criterion.threshold) or criterion.relation in "<>"
                assert (criterion.limit > criterion.threshold) == criterion.relation.startswith("<")


def test_changes_name_rules_and_reasons():
    for change in CHANGES:
        assert isinstance(change, Change)
        assert change.rule in RULES
        assert change.before
        assert change.reason
    assert len({change.rule for change in CHANGES}) == len(CHANGES)


def test_a_fingerprint_changes_with_a_threshold_and_not_with_a_slip():
    rules = [
        Rule("It works.", "Sec. 1", {"x": Criterion("x", ">", threshold)}, slip=slip)
        for threshold, slip in product((1.0, 2.0), ("", "a slip"))
    ]
    marks = [rule.fingerprint for rule in rules]
    assert marks[0] == marks[1] != marks[2] == marks[3]


def test_phases_are_those_of_replica_theory():
    lines = transitions(0.03)
    assert [lines.phase(T) for T in (0.3, 0.5, 0.7)] == ["retrieval", "metastable", "none"]
    assert transitions(0.01).phase(0.7) == "retrieval"
    beyond = transitions(0.2)  # no retrieval at any temperature
    assert (beyond.T_R, beyond.T_M) == (0, 0)
    assert beyond.phase(0.1) == "none"
