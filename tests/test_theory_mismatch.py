"""A student at another temperature: its equations, its thresholds, and a simulation."""

import numpy as np
import pytest

from dualtap.couplings import sample_couplings
from dualtap.hopfield import HopfieldModel
from dualtap.schemes import TAP
from dualtap.solve import solve
from dualtap.theory import paramagnetic_limit, student_limit, student_threshold


@pytest.mark.parametrize("beta", [0.5, 0.8])
@pytest.mark.parametrize("load", [2.0, 5.0])
def test_at_the_teachers_temperature_it_is_the_bayes_limit(beta, load):
    alpha = load * (1 / beta - 1) ** 2
    found, bayes = student_limit(beta, beta, alpha), paramagnetic_limit(beta, alpha)
    assert found.magnetization == pytest.approx(bayes.magnetization, abs=1e-5)
    assert found.size == pytest.approx(found.magnetization, abs=1e-5)
    assert found.sign == pytest.approx(bayes.sign, abs=1e-5)


@pytest.mark.parametrize("beta", [0.3, 0.6, 0.9])
def test_the_threshold_is_lowest_at_the_teachers_temperature(beta):
    best = (1 / beta - 1) ** 2
    assert student_threshold(beta, beta) == pytest.approx(best)
    hotter = [student_threshold(beta, beta * x) for x in (0.9, 0.7, 0.5)]
    colder = [student_threshold(beta, beta * x) for x in (1.1, 1.5, 3.0)]
    assert best < hotter[0] < hotter[1] < hotter[2]
    assert best < colder[0] < colder[1] < colder[2]
    assert student_threshold(beta, beta * 1.0001) == pytest.approx(best, rel=1e-3)


@pytest.mark.parametrize("student", [0.4, 0.6, 1.0])
def test_nothing_is_found_below_the_threshold_and_something_above(student):
    threshold = student_threshold(0.6, student)
    assert student_limit(0.6, student, 0.85 * threshold).magnetization < 0.01
    assert student_limit(0.6, student, 1.3 * threshold).magnetization > 0.05


@pytest.mark.parametrize("student", [0.3, 1.2])
def test_no_student_is_better_than_the_one_who_knows(student):
    for alpha in (1.0, 2.0, 4.0):
        assert student_limit(0.6, student, alpha).sign < student_limit(0.6, 0.6, alpha).sign


@pytest.mark.parametrize("student", [0.4, 0.6, 1.0])
def test_a_simulated_student_has_the_overlap_of_state_evolution(student):
    N, M = 800, 2400
    teacher = HopfieldModel.random(N, 1, 0.6, random_state=0)
    J = sample_couplings(teacher.sample(M, random_state=1))
    start = teacher.patterns.astype(np.float32)  # informed: which branch is not the question
    m = solve(TAP(J, student), start, damping="auto", tol=1e-5).magnetizations[0]
    expected = student_limit(0.6, student, M / N)
    assert float(m @ teacher.patterns[0]) / N == pytest.approx(expected.magnetization, abs=0.04)
    assert float(np.mean(m**2)) == pytest.approx(expected.size, abs=0.04)


@pytest.mark.parametrize("function", [student_threshold, lambda b, s: student_limit(b, s, 1.0)])
def test_bad_temperatures_are_named(function):
    with pytest.raises(ValueError, match="must be a paramagnet"):
        function(1.0, 0.5)
    with pytest.raises(ValueError, match="student_beta must be positive"):
        function(0.5, 0.0)
