"""Rules of the comparison with estimators of a pairwise Ising model."""

from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "pairs.pseudo_likelihood": Rule(
        says="On clustered data the pseudo-likelihood of a pairwise Ising model needs more samples "
        "and more time.",
        where="introduction and conclusion",
        criteria={
            "error": Criterion(
                "its relative error of J, λ held out or by the truth, less that of the published "
                "algorithm on the same samples, the smallest of all trials",
                ">",
                0.0,
            ),
            "time": Criterion(
                "its time, λ held out, in times of the published algorithm, likewise",
                ">",
                1.0,
                limit=None,
            ),
        },
    ),
    "pairs.others": Rule(
        says="So do the other estimators that the paper names: decimation and interaction "
        "screening.",
        where="introduction",
        criteria={
            "error": Criterion(
                "relative error of J by the best of decimated pseudo-likelihood, RISE and logRISE, "
                "less that of the published algorithm, the smallest of all trials",
                ">",
                0.0,
                limit=-0.1,
            )
        },
    ),
}
