"""The Bayes limit of one pattern in the paramagnet."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from dualtap.theory import BayesLimit, paramagnetic_limit


@pytest.mark.parametrize(("alpha", "sign"), [(0.5, 0.773), (1.0, 0.923), (2.0, 0.988)])
def test_known_values(alpha, sign):
    assert paramagnetic_limit(beta=0.8, alpha=alpha).sign == pytest.approx(sign, abs=6e-4)


@pytest.mark.parametrize(("beta", "alpha"), [(0.5, 1.5), (0.5, 8.0), (0.8, 0.25), (0.8, 1.0)])
def test_solves_its_own_equations(beta, alpha):
    """Inserted into the equations, with the Gaussian mean by adaptive quadrature."""
    q, sign = paramagnetic_limit(beta, alpha)
    v = 1 / (1 - beta)
    s = alpha * beta * v**2 * beta * q / (1 + v * beta * q)

    def integrand(z):
        return np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * np.tanh(s + np.sqrt(s) * z)

    mean, _ = quad(integrand, -10, 10, epsabs=1e-12)
    assert q == pytest.approx(mean, abs=1e-6)
    assert sign == pytest.approx(erf(np.sqrt(s / 2)), abs=1e-6)


@pytest.mark.parametrize("beta", [0.3, 0.5, 0.8, 0.95])
def test_zero_below_the_threshold_and_not_above(beta):
    threshold = (1 / beta - 1) ** 2
    below = paramagnetic_limit(beta, 0.9 * threshold)
    assert below.magnetization < 1e-6
    assert below.sign < 1e-3
    above = paramagnetic_limit(beta, 1.1 * threshold)
    assert above.magnetization > 1e-3
    assert above.sign > 0.03
    # The sign of a posterior mean has a larger overlap than the mean itself.
    assert above.sign > above.magnetization


def test_no_data_teach_nothing():
    assert paramagnetic_limit(0.8, 0.0) == BayesLimit(0.0, 0.0)


@pytest.mark.parametrize("beta", [0.5, 0.8])
def test_more_data_are_better(beta):
    threshold = (1 / beta - 1) ** 2
    limits = [paramagnetic_limit(beta, x * threshold) for x in np.linspace(1.05, 40, 25)]
    assert np.all(np.diff([limit.sign for limit in limits]) > 0)
    assert np.all(np.diff([limit.magnetization for limit in limits]) > 0)
    assert limits[-1].sign <= 1


def test_colder_data_are_better():
    limits = [paramagnetic_limit(beta, 1.0).sign for beta in (0.55, 0.65, 0.75, 0.85, 0.95)]
    assert np.all(np.diff(limits) > 0)


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1.0, 2.0, float("nan")])
def test_only_the_paramagnet_has_this_limit(beta):
    with pytest.raises(ValueError, match="0 < beta < 1"):
        paramagnetic_limit(beta, 1.0)


def test_negative_alpha_is_refused():
    with pytest.raises(ValueError, match="alpha must not be negative"):
        paramagnetic_limit(0.8, -0.1)
