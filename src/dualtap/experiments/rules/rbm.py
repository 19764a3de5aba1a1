"""Rules of the RBM: Figs. 5 and 6 and the RBM appendix."""

from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "fig5.tap": Rule(
        says="The RBM's error of J falls during learning but never to the value of TAP.",
        where="RBM section, Fig. 5",
        criteria={
            "above": Criterion(
                "share of trials with the smallest error over all updates above TAP's on the same "
                "samples",
                ">=",
                0.95,
                limit=0.5,
            )
        },
    ),
    "fig5.flat": Rule(
        says="The error of J is smallest when the pseudo-likelihood flattens.",
        where="RBM section, Fig. 5",
        criteria={
            "few": Criterion(
                "largest |t/t' − 1| for M ≤ 200, t and t' the updates where S flattens and where "
                "the error is smallest",
                "<=",
                0.15,
            ),
            "all": Criterion("the same for all M", "<=", 0.15, limit=None),
        },
    ),
    "fig5.stationary": Rule(
        says="With endless data likelihood and pseudo-likelihood have their zero of the gradient "
        "at the same weights, so that S can watch over learning.",
        where="RBM appendix",
        criteria={
            "teacher": Criterion(
                "largest slope of either at the weights of a teacher of 8 spins, by enumeration",
                "<",
                1e-6,
            ),
            "elsewhere": Criterion(
                "smallest slope at weights a fifth larger, over the former", ">", 1e3
            ),
        },
        slip="the mean of λ tanh(·) in the derivative of the pseudo-likelihood is printed as one "
        "over λ given the whole sample; it is one over λ given all spins but r. The derivative is "
        "that of S_r, not of the sum S.",
    ),
    "fig6.modes": Rule(
        says="As many modes emerge in the weights as there are patterns.",
        where="Fig. 6",
        criteria={
            "exact": Criterion(
                "share of trials in which the widest gap between successive singular values lies "
                "below the P-th",
                ">=",
                0.95,
                limit=0.5,
            )
        },
    ),
    "fig6.span": Rule(
        says="The weights come to span the first P singular vectors of the data.",
        where="Fig. 6, RBM appendix",
        criteria={
            "inside": Criterion("largest t of the first P data modes at the end", "<", 0.25),
            "outside": Criterion("smallest t of the next modes at the end", ">", 0.9),
        },
    ),
    "fig6.when": Rule(
        says="When a singular value σ_α of the weights emerges, the error t_α of data mode α "
        "falls.",
        where="RBM section, Fig. 6",
        criteria={
            "ratio": Criterion(
                "|log₂| of the update where t_α has fallen half of its way over that where σ_α has "
                "doubled, median over the first P modes, mean over trials",
                "<",
                0.5,
            ),
            "correlation": Criterion(
                "correlation of the two updates over the modes", ">", 0.5, limit=None
            ),
        },
    ),
    "fig6.patterns": Rule(
        says="The weights do not reproduce the patterns: the RBM learns at most the subspace that "
        "they span.",
        where="RBM section and appendix",
        criteria={
            "shown": Criterion(
                "largest share of patterns with overlap above 0.95 among the signs of the hidden "
                "units' weights",
                "<=",
                0.0,
                limit=0.5,
            ),
            "rotated": Criterion(
                "mean share of patterns read off after a rotation that makes sites independent",
                "<=",
                0.0,
                limit=None,
            ),
        },
        because="The limit is that independence over sites undoes the rotation",
    ),
    "weights.keeps": Rule(
        says="An RBM whose learning starts near the patterns reproduces them.",
        where="RBM section and appendix",
        criteria={
            "kept": Criterion(
                "share of trials, started with a tenth of the bits turned, in which the signs of "
                "hidden units have an overlap above 0.95 with every pattern at the end",
                ">=",
                0.9,
                limit=0.5,
            )
        },
    ),
    "weights.early": Rule(
        says="The singular vectors of the weights follow those of the data only early in learning, "
        "while couplings are small.",
        where="RBM appendix",
        criteria={
            "early": Criterion(
                "mean |cosine| of the first P pairs of singular vectors when the largest singular "
                "value of W reaches 0.5, from weights of 1e-9",
                ">",
                0.7,
            ),
            "fall": Criterion("its fall from there to the last fifth of learning", ">", 0.1),
        },
    ),
    "weights.cd": Rule(
        says="Chains that start at the data (CD) soon overfit, those that are kept (PCD) do not.",
        where="RBM appendix",
        criteria={
            "excess": Criterion(
                "log pseudo-likelihood per spin of training over held-out samples at the end, CD "
                "less PCD",
                ">",
                0.005,
            )
        },
    ),
}
