"""From trials to verdicts: means and proportions with their errors, set against the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dualtap.experiments.experiment import Claim, MissingTrialsError, Results
from dualtap.experiments.rules import RULES
from dualtap.experiments.rules.rule import Estimate

CONFIDENCE = 0.95
"""Of the intervals of proportions."""


def mean_and_error(values: ArrayLike) -> tuple[Any, Any]:
    """Return the mean over trials (the first axis) and its standard error.

    Examples
    --------
    >>> from dualtap.experiments.judging import mean_and_error
    >>> mean, error = mean_and_error([1.0, 3.0])
    >>> float(mean), float(error)
    (2.0, 1.0)
    """
    trials = np.asarray(values, dtype=np.float64)
    # A single trial has no spread to estimate an error from: no bar is drawn.
    ddof = min(1, len(trials) - 1)
    return trials.mean(axis=0), trials.std(axis=0, ddof=ddof) / np.sqrt(len(trials))


def curve(results: Results, name: str, over: str = "M", **fixed: Any) -> NDArray[np.float64]:
    """Return the values of a parameter, the mean of a result at each, and its standard error.

    Parameters
    ----------
    results : Results
    name : str
        Of the result.
    over : str
        Of the parameter.
    **fixed
        Other parameters.

    Returns
    -------
    array of shape (3, values)

    Examples
    --------
    >>> from dualtap.experiments.experiment import Results, Row
    >>> from dualtap.experiments.judging import curve
    >>> rows = [Row({"M": 5}, k, 1, {"overlap": k}, None, 0.1, "0") for k in (1, 3)]
    >>> curve(Results(rows), "overlap").ravel()
    array([5., 2., 1.])
    """
    x = results.values(over, **fixed)
    points = [mean_and_error(results.column(name, **fixed, **{over: value})) for value in x]
    return np.array([(value, *point) for value, point in zip(x, points, strict=True)]).T


def wilson(successes: ArrayLike, n: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return Wilson's 95 % interval of a proportion k/n, which never leaves [0, 1].

    .. math:: \frac{k + z^2/2 \pm z\sqrt{k(n-k)/n + z^2/4}}{n + z^2}

    Parameters
    ----------
    successes, n : array-like
        k and n.

    Returns
    -------
    low, high : array

    Examples
    --------
    >>> from dualtap.experiments.judging import wilson
    >>> low, high = wilson(10, 10)
    >>> round(float(low), 3), float(high)
    (0.722, 1.0)
    """
    k, n_trials = np.asarray(successes, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z = ndtri((1 + CONFIDENCE) / 2)
    half = z * np.sqrt(k * (n_trials - k) / n_trials + z**2 / 4)
    # Rounding would otherwise leave the ends a hair outside of [0, 1], or beside k/n.
    low = np.where(k == 0, 0.0, (k + z**2 / 2 - half) / (n_trials + z**2))
    high = np.where(k == n_trials, 1.0, (k + z**2 / 2 + half) / (n_trials + z**2))
    return low, high


def wilson_bars(successes: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Return the lengths of error bars below and above k/n, a row each.

    Examples
    --------
    >>> from dualtap.experiments.judging import wilson_bars
    >>> wilson_bars([0, 10], [10, 10]).round(2)
    array([[0.  , 0.28],
           [0.28, 0.  ]])
    """
    share = np.asarray(successes, dtype=np.float64) / np.asarray(n, dtype=np.float64)
    low, high = wilson(successes, n)
    return np.array([share - low, high - share])


def proportion(successes: ArrayLike, n: int | None = None) -> Estimate:
    """Return the share of successes with its Wilson interval.

    Parameters
    ----------
    successes : array-like of bool, or int
        One entry per trial; or their number, of ``n``.
    n : int, optional

    Examples
    --------
    >>> from dualtap.experiments.judging import proportion
    >>> print(proportion([True] * 68 + [False] * 12))
    68 of 80 (76–91 %)
    """
    counted = np.asarray(successes)
    total = len(counted) if n is None else n
    if total == 0:
        raise MissingTrialsError("there is no trial of this kind")
    k = int(counted.sum())
    low, high = (float(end) for end in wilson(k, total))
    return Estimate(k / total, low, high, f"{k} of {total} ({100 * low:.0f}–{100 * high:.0f} %)")


def mean(values: ArrayLike, digits: int = 3) -> Estimate:
    """Return the mean over trials with its standard error.

    Examples
    --------
    >>> from dualtap.experiments.judging import mean
    >>> print(mean([0.1, 0.2, 0.3]))
    0.200 ± 0.058 (n = 3)
    """
    trials = np.asarray(values, dtype=np.float64)
    if not len(trials):
        raise MissingTrialsError("there is no trial of this kind")
    center, error = (float(x) for x in mean_and_error(trials))
    text = f"{center:.{digits}f} ± {error:.{digits}f} (n = {len(trials)})"
    if len(trials) == 1:
        text = f"{center:.{digits}f} (n = 1)"
    return Estimate(center, center - error, center + error, text)


def exact(value: float, form: str = ".3g") -> Estimate:
    """Return a number that has no error: an extreme, a count of points, a computed value.

    Examples
    --------
    >>> from dualtap.experiments.judging import exact
    >>> print(exact(0.51234))
    0.512
    """
    number = float(value)
    return Estimate(number, number, number, f"{number:{form}}")


def lowest(estimates: Mapping[Any, Estimate]) -> Estimate:
    """Return the smallest of several estimates; raise if there is none.

    Examples
    --------
    >>> from dualtap.experiments.judging import exact, lowest
    >>> lowest({"a": exact(2), "b": exact(1)}).value
    1.0
    """
    if not estimates:
        raise MissingTrialsError("there are no trials where this is judged")
    return min(estimates.values())


def highest(estimates: Mapping[Any, Estimate]) -> Estimate:
    """Return the largest of several estimates; raise if there is none.

    Examples
    --------
    >>> from dualtap.experiments.judging import exact, highest
    >>> highest({"a": exact(2), "b": exact(1)}).value
    2.0
    """
    if not estimates:
        raise MissingTrialsError("there are no trials where this is judged")
    return max(estimates.values())


def listed(estimates: Mapping[Any, object], form: str = "{}") -> str:
    """Return several measurements with what each belongs to.

    Examples
    --------
    >>> from dualtap.experiments.judging import exact, listed
    >>> listed({100: exact(0.5), 200: exact(1)}, "M = {}")
    '0.5 (M = 100), 1 (M = 200)'
    """
    return ", ".join(f"{value} ({form.format(key)})" for key, value in estimates.items())


class Evidence(NamedTuple):
    """What a figure has measured for a rule: one estimate for each criterion, and all in words."""

    estimates: Mapping[str, Estimate]
    text: str


ClaimJudge = Callable[[Results], Claim]


def judge(rule: str) -> Callable[[Callable[[Results], Evidence]], ClaimJudge]:
    """Turn what measures into what judges: the estimates are set against the rule of this name.

    Where trials are missing the claim is not judged, and says for want of which.

    Examples
    --------
    >>> from dualtap.experiments.experiment import Results, Row
    >>> from dualtap.experiments.judging import Evidence, judge, proportion
    >>> @judge("fig2.all")
    ... def found(results):
    ...     share = proportion(results.column("recovered") == 20)
    ...     return Evidence({"complete": share}, str(share))
    >>> found(Results([Row({}, 0, 1, {"recovered": 20}, None, 0.1, "0")])).verdict
    'holds'
    >>> found(Results([])).measured
    'there are no trials'
    """
    fixed = RULES[rule]

    def judging(measure: Callable[[Results], Evidence]) -> ClaimJudge:
        def judged_claim(results: Results) -> Claim:
            said = (fixed.says, fixed.where, fixed.decided_by)
            try:
                evidence = measure(_any(results))
            except MissingTrialsError as lacking:
                return Claim(*said, str(lacking), "not judged", fixed.slip, rule)
            verdict = fixed.verdict({k: e.value for k, e in evidence.estimates.items()})
            close = fixed.is_close(evidence.estimates)
            return Claim(*said, evidence.text, verdict, fixed.slip, rule, close)

        judged_claim.__doc__ = measure.__doc__
        return judged_claim

    return judging


def _any(results: Results) -> Results:
    """Return results that are not empty."""
    if not results:
        raise MissingTrialsError("there are no trials")
    return results


def claims_of(*judges: ClaimJudge) -> Callable[[Results], list[Claim]]:
    """Return the function that gives the verdicts of several judges.

    Examples
    --------
    >>> from dualtap.experiments.experiment import Results
    >>> from dualtap.experiments.fig2 import EXPERIMENT
    >>> [claim.verdict for claim in EXPERIMENT.claims(Results([]))]
    ['not judged']
    """

    def claims(results: Results) -> list[Claim]:
        return [each(results) for each in judges]

    return claims
