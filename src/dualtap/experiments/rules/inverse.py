"""Rules of the inverse problem: Figs. 1 to 4."""

from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "fig1.threshold": Rule(
        says="At β < 1 there is a critical number of samples, a fraction of N, below which the "
        "pattern cannot be inferred; it is where the paramagnet of the direct problem ends.",
        where="Fig. 1 and its discussion",
        criteria={
            "below": Criterion("safe iteration, largest m·ζ/N up to M_c/2", "<", 0.1),
            "above": Criterion(
                "its largest distance of the sign overlap from the Bayes limit from 4 M_c on, "
                "M_c = N(1/β−1)²",
                "<",
                0.1,
                limit=None,
            ),
        },
        slip="α is printed as P/N beside a J built from M samples; in the dual model it is M/N. "
        "The sum in J is over s_i s_j, not s_i s_i.",
    ),
    "fig1.printed": Rule(
        says="The naive parallel iteration finds the pattern at β < 1 above the threshold.",
        where="Eq. (TAP, naive index) and Fig. 1",
        criteria={
            "found": Criterion(
                "α = M/N: share of the points from 2 M_c on with m·ζ/N at least half of the safe "
                "iteration's on the same samples",
                ">=",
                1.0,
                limit=0.5,
            )
        },
    ),
    "fig1.literal": Rule(
        says="The same with α = P/N, to the letter of the printed equation.",
        where="Eq. (TAP, naive index) and Fig. 1",
        criteria={
            "found": Criterion(
                "α = P/N: share of the points from 2 M_c on with m·ζ/N at least half of the safe "
                "iteration's on the same samples",
                ">=",
                1.0,
                limit=0.5,
            )
        },
    ),
    "fig1.one": Rule(
        says="In the ferromagnet one sample is enough to find a pattern correlated with the "
        "teacher's.",
        where="Fig. 1 and its discussion",
        criteria={
            "soft": Criterion("M = 1, every β > 1: smallest m·ζ/N, in units of 1/√N", ">", 5.0),
            "sign": Criterion("smallest overlap of signs, in units of 1/√N", ">", 5.0),
        },
    ),
    "fig1.few": Rule(
        says="In the ferromagnet a small number of samples gives a perfect reconstruction.",
        where="Fig. 1 and its discussion",
        criteria={
            "samples": Criterion(
                "smallest M of the grid with a mean sign overlap above 0.99, at the β > 1 that "
                "needs most",
                "<=",
                100,
                limit=500,
            )
        },
    ),
    "fig2.all": Rule(
        says="The students find all 20 patterns from 200 samples, ten per state.",
        where="Fig. 2",
        criteria={
            "complete": Criterion(
                "share of trials with all patterns above overlap 0.97 in the first P rounds",
                ">=",
                0.9,
                limit=0.5,
            )
        },
    ),
    "fig3.turn": Rule(
        says="The error falls while patterns are learnt and rises when noise is learnt after them.",
        where="Fig. 3 and its discussion",
        criteria={
            "lowest": Criterion(
                "share of trials in which the error is smallest after round P, at the M that has "
                "fewest",
                ">=",
                0.9,
                limit=0.5,
            )
        },
    ),
    "fig3.zero": Rule(
        says="The error falls with M and is zero at M = 1000.",
        where="Fig. 3",
        criteria={
            "rise": Criterion(
                "largest rise of the relative error of J after P rounds from one M to the next, "
                "less the standard errors of both",
                "<",
                0.0,
            ),
            "last": Criterion("relative error at the largest M", "<", 0.005, limit=0.1),
        },
        slip="ε is printed with a factor 1/[N(N−1)/2] before a ratio that is already relative: at "
        "N = 1000 it is 2e-6 even when nothing is learnt. We report the ratio.",
    ),
    "fig3.collapse": Rule(
        says="Rescaled, the simplified likelihood hardly depends on M.",
        where="Fig. 3",
        criteria={
            "before": Criterion(
                "largest spread of L̂/M between the M, relative to its mean, up to round P",
                "<",
                0.05,
            ),
            "after": Criterion("the same after round P", "<", 0.05, limit=None),
        },
    ),
    "fig3.kink": Rule(
        says="The simplified likelihood has a kink where all patterns are learnt, which can stop "
        "the algorithm.",
        where="Fig. 3 and its discussion",
        criteria={
            "likelihood": Criterion(
                "share of trials with the kink of L̂ itself after round P, at the M that has fewest",
                ">=",
                0.9,
                limit=None,
            ),
            "gains": Criterion(
                "the same for the gains ½ m·J^τ m on the deflated J", ">=", 0.9, limit=0.5
            ),
        },
        because="Kink: the first round that adds at most half of the median of the rounds before "
        "it; the limit is that L̂ needs deflated gains in the place of its increments",
    ),
    "fig4.inside": Rule(
        says="In the retrieval phase the error goes to zero with M.",
        where="Fig. 4",
        criteria={
            "all": Criterion(
                "T < T_R: mean relative error of J at the largest M/P, at the P and T where it is "
                "largest",
                "<",
                0.02,
                limit=None,
            ),
            "any": Criterion("the same where it is smallest", "<", 0.02),
        },
    ),
    "fig4.outside": Rule(
        says="Outside the retrieval phase there is no perfect reconstruction.",
        where="Fig. 4 and its discussion",
        criteria={
            "unstable": Criterion(
                "T > T_M: smallest mean relative error of J at any M/P", ">", 0.5, limit=0.1
            ),
            "metastable": Criterion("the same for T_R < T < T_M", ">", 0.02, limit=None),
        },
    ),
    "fig4.stop": Rule(
        says="The kink tells when to stop, the number of patterns unknown.",
        where="Fig. 4 and its discussion",
        criteria={
            "all": Criterion(
                "share of fits that stop at P, all M/P together, at the P and T < T_R with fewest",
                ">=",
                0.9,
                limit=None,
            ),
            "any": Criterion("the same at the P and T < T_R with most", ">=", 0.9),
        },
    ),
    "students.warm": Rule(
        says="The same for one pattern at β < 1: neither sequential AMP nor Opper–Winther improves "
        "the inverse problem over the naive parallel TAP iteration.",
        where="main text and Appendix A",
        criteria={
            "amp": Criterion(
                "largest gain of sequential AMP in mean overlap over TAP on the same samples, over "
                "all β and M",
                "<",
                0.05,
            ),
            "opper_winther": Criterion(
                "the same for Opper–Winther, the better of its two forms", "<", 0.05, limit=None
            ),
        },
    ),
}
