"""What a rule is: what is measured, against which thresholds, and the verdict that follows."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Literal, NamedTuple

from dualtap.experiments.experiment import Verdict

Relation = Literal[">", ">=", "<", "<="]
_COMPARE: dict[Relation, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_WORDS: dict[Relation, str] = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}
_LENGTH = 12


class Estimate(NamedTuple):
    """A measured number with its error, and the text that reports both."""

    value: float
    low: float
    high: float
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Criterion:
    """One thing that is measured, and how far it must go.

    Attributes
    ----------
    of : str
        What is measured, in words.
    relation : {">", ">=", "<", "<="}
    threshold : float
        Where the claim holds.
    limit : float or None
        Where it holds with a limit; None where it does so whatever is measured. By default there
        is no such middle: a value that misses the threshold refutes the claim.
    """

    of: str
    relation: Relation
    threshold: float
    limit: float | Literal["threshold"] | None = "threshold"

    def holds(self, value: float) -> bool:
        """Tell whether a value meets the threshold."""
        return _COMPARE[self.relation](value, self.threshold)

    def holds_partly(self, value: float) -> bool:
        """Tell whether a value meets the limit."""
        if self.limit is None or self.holds(value):
            return True
        return self.limit != "threshold" and _COMPARE[self.relation](value, float(self.limit))

    def __str__(self) -> str:
        said = f"{self.of}: {_WORDS[self.relation]} {self.threshold:g}"
        if self.limit is None:
            return said + " (else a limit)"
        if self.limit == "threshold":
            return said
        return f"{said} (limit: {_WORDS[self.relation]} {self.limit:g})"


@dataclass(frozen=True)
class Rule:
    """How a claim is judged.

    It holds if every criterion meets its threshold, with a limit if every one meets its limit,
    and not otherwise. The estimate itself decides; its error is reported beside it.

    Attributes
    ----------
    says : str
        The claim, in our own words.
    where : str
        Section or figure of the paper, or ``OURS``.
    criteria : mapping
        By the name under which the figure reports the estimate.
    slip : str
        What is wrong in the printed text, mended.
    because : str
        Which limit it is, or why this is how to judge.

    Examples
    --------
    >>> from dualtap.experiments.rules.rule import Criterion, Rule
    >>> share = Criterion("share of heads", ">=", 0.9, 0.5)
    >>> rule = Rule("The coin shows heads.", "Sec. 1", {"heads": share})
    >>> rule.decided_by
    'share of heads: at least 0.9 (limit: at least 0.5)'
    >>> [rule.verdict({"heads": value}) for value in (1.0, 0.7, 0.1)]
    ['holds', 'holds with a limit', 'does not hold']
    """

    says: str
    where: str
    criteria: Mapping[str, Criterion]
    slip: str = ""
    because: str = ""

    @property
    def decided_by(self) -> str:
        """The rule in words."""
        said = "; ".join(map(str, self.criteria.values()))
        return f"{said}. {self.because}" if self.because else said

    def verdict(self, values: Mapping[str, float]) -> Verdict:
        """Return what follows from the measured values, one for each criterion."""
        if values.keys() != self.criteria.keys():
            raise ValueError(
                f"the rule is about {', '.join(self.criteria)}, not {', '.join(values)}"
            )
        pairs = [(criterion, values[name]) for name, criterion in self.criteria.items()]
        if all(criterion.holds(value) for criterion, value in pairs):
            return "holds"
        partly = all(criterion.holds_partly(value) for criterion, value in pairs)
        return "holds with a limit" if partly else "does not hold"

    def is_close(self, estimates: Mapping[str, Estimate]) -> bool:
        """Tell whether another verdict is within the errors."""
        found = self.verdict({name: e.value for name, e in estimates.items()})
        return any(
            self.verdict({name: getattr(e, end) for name, e in estimates.items()}) != found
            for end in ("low", "high")
        )

    @property
    def fingerprint(self) -> str:
        """A text that changes when what is judged, or a threshold, does."""
        parts = [self.says, *(astuple(c) for c in self.criteria.values())]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:_LENGTH]


class Change(NamedTuple):
    """A rule that is not what it was when quick runs were judged by it."""

    rule: str
    before: str
    reason: str
