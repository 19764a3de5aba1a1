"""Every claim's rule, in one place, fixed before the full run.

A rule has no code of its own: what is measured, a threshold, and from where on it is a limit. What
figures measure, :mod:`dualtap.experiments.judging` sets against these.
"""

from dualtap.experiments.rules import (
    baselines,
    direct,
    inverse,
    iterations,
    others,
    rbm,
    theory,
)
from dualtap.experiments.rules.changes import CHANGES
from dualtap.experiments.rules.rule import Change, Criterion, Estimate, Rule

RULES: dict[str, Rule] = {
    **inverse.RULES,
    **rbm.RULES,
    **direct.RULES,
    **iterations.RULES,
    **theory.RULES,
    **baselines.RULES,
    **others.RULES,
}
"""By name: the experiment, a dot, and what is judged."""

__all__ = ["CHANGES", "RULES", "Change", "Criterion", "Estimate", "Rule", "fingerprints"]


def fingerprints() -> dict[str, str]:
    """Return the fingerprint of every rule.

    Examples
    --------
    >>> from dualtap.experiments.rules import RULES, fingerprints
    >>> fingerprints().keys() == RULES.keys()
    True
    """
    return {name: rule.fingerprint for name, rule in RULES.items()}
