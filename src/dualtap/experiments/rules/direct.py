"""Rules of the direct problem: Figs. 7 and 8, the appendix on stability, its open questions."""

from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "fig7.tap": Rule(
        says="TAP leaves m = 0 only for β > 1, and towards the pattern.",
        where="Fig. 7, appendix on stability",
        criteria={
            "stays": Criterion(
                "share of trials at β < 1 with √q below 0.1 after step 5; starts exactly at right "
                "angles to the pattern set aside",
                ">=",
                0.99,
            ),
            "leaves": Criterion("share of those at β > 1 with √q above 0.1", ">=", 0.99),
            "cosine": Criterion("smallest cosine with the pattern then", ">", 0.7),
            "rest": Criterion(
                "smallest share at rest on the pattern at the end, over β > 1",
                ">=",
                0.99,
                limit=None,
            ),
        },
        slip='the critical point 1/(1+√α) is printed as "T_c"; it is β_c.',
        because="The limit is that next to β = 1 it does not come to rest: the reaction term is "
        "singular at q = 1−1/β",
    ),
    "fig7.amp": Rule(
        says="Parallel AMP leaves m = 0 already for β > 1/2, across the pattern, and does not "
        "find it.",
        where="Fig. 7, appendix on stability",
        criteria={
            "stays": Criterion(
                "share of trials at β < 1/2 with √q below 0.1 after step 5", ">=", 0.99
            ),
            "leaves": Criterion("share of those at β > 1/2 with √q above 0.1", ">=", 0.99),
            "cosine": Criterion("largest cosine with the pattern then", "<", 0.2),
            "last": Criterion("largest overlap with it at the end", "<", 0.2),
        },
        slip='the instability of AMP at 1/2 is printed as "T_c = 1/2"; it is β_c = 1/2.',
    ),
    "fig7.oscillates": Rule(
        says="For 1/2 < β < 1 AMP oscillates as it leaves m = 0.",
        where="Fig. 7, appendix on stability",
        criteria={
            "turns": Criterion(
                "share of the last three steps before √q exceeds 0.1 with m(t)·m(t+1) < 0",
                ">",
                0.95,
            )
        },
    ),
}
