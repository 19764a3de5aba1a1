"""Rules of comparisons: other methods, and this software's own estimator."""

from dualtap.experiments.experiment import OURS
from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "phases.limit": Rule(
        says="A blind fit recovers the patterns as well as the data allow, from twice the critical "
        "number of samples on.",
        where=OURS,
        criteria={
            "near": Criterion(
                "share of points with a mean overlap at most 0.1 below the limit, wherever there "
                "is one and M ≥ 2 M_c (all M for β > 1)",
                ">=",
                1.0,
                limit=0.9,
            )
        },
    ),
    "phases.rivals": Rule(
        says="A blind fit is at least as accurate as the published algorithm given β and P, and "
        "as k-means given P.",
        where=OURS,
        criteria={
            "not_behind": Criterion(
                "share of points with a mean overlap at most 0.05 below theirs; what random signs "
                "would score counts as nothing",
                ">=",
                1.0,
                limit=0.9,
            )
        },
    ),
}
