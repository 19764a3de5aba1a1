"""Rules of the iterations: Fig. 8, their stability, and their other forms in both problems."""

from dualtap.experiments.rules.rule import Criterion, Rule

_FIG_8 = "Appendix A, Fig. 8"
_BEHIND_TAP = "P_c less that of TAP below T_R, the worst of loads and sizes"

RULES = {
    "fig8.tap": Rule(
        says="Parallel TAP from a random start converges to a pattern in the retrieval phase.",
        where=_FIG_8,
        criteria={
            "lowest": Criterion(
                "P_c of TAP over the temperatures below T_R, the lowest of loads and sizes",
                ">=",
                0.9,
                limit=None,
            ),
            "highest": Criterion("the highest of them", ">=", 0.5),
        },
    ),
    "fig8.amp": Rule(
        says="Sequential AMP with damping 0.95 reaches patterns as well as TAP, only much slower.",
        where=_FIG_8,
        criteria={
            "difference": Criterion(_BEHIND_TAP, ">=", -0.05, limit=-0.3),
            "slower": Criterion(
                "sweeps to a pattern, in steps of parallel TAP (T = 0.5, P/N = 0.01, N = 1000)",
                ">",
                3.0,
            ),
        },
        slip="The sentence prints the damping of m; the stopping rule, which compares tanh βH of "
        "two steps, has H as a variable of its own. It comes out with the field damped, "
        "H ← (1−d) H' + d H, which is not the printed reading and is the one judged here.",
    ),
    "fig8.amp_printed": Rule(
        says="The same with the magnetizations damped, to the letter of the printed sentence.",
        where=_FIG_8,
        criteria={"difference": Criterion(_BEHIND_TAP, ">=", -0.05, limit=-0.3)},
    ),
    "fig8.opper_winther": Rule(
        says="The Opper–Winther iteration reaches patterns as well as TAP does.",
        where=_FIG_8,
        criteria={
            "printed": Criterion(f"as printed: {_BEHIND_TAP}", ">=", -0.05, limit=-0.3),
            "corrected": Criterion("the same, corrected", ">=", -0.05, limit=-0.3),
        },
        slip="The printed A = β/(1 + αu) and memory coefficient α(1 − q) have TAP's fixed points "
        "only to first order in αu; A = β(1 − αu/(1 − u)) and 1/A − 1/β have them exactly.",
    ),
    "fig8.metastable": Rule(
        says="At small N convergence to patterns extends into the metastable retrieval phase.",
        where=_FIG_8,
        criteria={
            "small": Criterion(
                "P_c of TAP between T_R and T_M at P/N = 0.03, smallest N", ">", 0.2
            ),
            "ratio": Criterion("that at the largest N, relative to it", "<", 0.5),
        },
    ),
    "fig8.start": Rule(
        says="|m| of the start is irrelevant for TAP and AMP, but must be small for Opper–Winther "
        "at low temperature.",
        where=_FIG_8,
        criteria={
            "tap": Criterion(
                "TAP: change of P_c from |m| = 0.1 to 1, either way (P/N = 0.01, N = 1000, "
                "T ≤ 0.5)",
                "<=",
                0.1,
                limit=0.3,
            ),
            "amp": Criterion("the same for sequential AMP, field damped", "<=", 0.1, limit=0.3),
            "opper_winther": Criterion(
                "the change for Opper–Winther as printed", "<", -0.1, limit=None
            ),
        },
    ),
    "theory2.amp": Rule(
        says="Around m = 0, parallel AMP is unstable for β > 1/2 along directions orthogonal to "
        "the patterns.",
        where="Appendix A",
        criteria={
            "agreement": Criterion(
                "largest difference of simulated growth and multiplier, relative", "<", 0.02
            ),
            "grows": Criterion("smallest β at which a mode with λ = 0 grows", ">", 0.5),
            "shrinks": Criterion("largest β up to which none does", "<=", 0.5),
        },
        slip="the text writes T_c where it means β_c, in two places.",
    ),
    "theory2.tap": Rule(
        says="TAP leaves m = 0 towards the patterns, at β_c = 1/(1+√α).",
        where="Appendix A",
        criteria={
            "near": Criterion(
                "points with 1 − β > 2α, where the factor along λ = 0 is not below that of the "
                "largest eigenvalue",
                "<=",
                0.0,
            ),
            "everywhere": Criterion("the same at every β < 1", "<=", 0.0, limit=None),
        },
        because="The analysis is for |1 − β| much larger than α. Closer to β = 1 the reaction term "
        "makes what is orthogonal to the patterns oscillate, which is the limit",
    ),
    "theory2.opper_winther": Rule(
        says="The Opper–Winther iteration does not have AMP's instability as α → 0.",
        where="Appendix A",
        criteria={
            "agreement": Criterion(
                "largest difference of simulated growth and multiplier, relative", "<", 0.02
            ),
            "null": Criterion(
                "largest factor along λ = 0 at the smallest load and 1 − β > 2α, where AMP's grow",
                "<",
                1.0,
            ),
            "falls": Criterion(
                "that factor, relative to the one at the larger load and the same β", "<", 1.0
            ),
        },
    ),
    "extra1.above": Rule(
        says="Open question: the naive index, in sequence and strongly damped, converges where its "
        "parallel form fails. Above the spin-glass temperature.",
        where="Appendix A, last paragraph",
        criteria={
            "gained": Criterion(
                "share of starts that converge, more than in parallel, the best of both models",
                ">",
                0.1,
            ),
            "cured": Criterion(
                "share that converges, the worst of both models", ">=", 0.9, limit=None
            ),
        },
    ),
    "extra1.below": Rule(
        says="The same below the spin-glass temperature.",
        where="Appendix A, last paragraph",
        criteria={
            "frozen": Criterion(
                "share of starts that converge to m ≠ 0, the best of both models", ">=", 0.9, 0.1
            )
        },
        because="The paramagnet still solves the equations there, but is not the state",
    ),
    "extra2.largest": Rule(
        says="On the dual problem parallel AMP infers the pattern when the data carry enough "
        "signal and λ_max > 2.",
        where="Appendix A, last paragraphs",
        criteria={
            "above": Criterion(
                "share of starts that converge with overlap above 5/√N, on data sets with "
                "M ≥ 2 M_c and λ_max > 2",
                ">=",
                0.9,
            ),
            "below": Criterion("the same with λ_max ≤ 2", "<=", 0.1, limit=None),
        },
    ),
    "extra2.students": Rule(
        says="In the inverse problem sequential AMP is much slower than parallel TAP, without any "
        "improvement, and the Opper–Winther iteration does not improve it either.",
        where="main text and Appendix A",
        criteria={
            "amp": Criterion(
                "patterns that students by sequential AMP find (overlap above 0.9), less those "
                "by TAP, as a share of P",
                "<=",
                0.05,
            ),
            "opper_winther": Criterion(
                "the same for Opper–Winther, the better of its two forms", "<=", 0.05
            ),
            "slower": Criterion(
                "time of sequential AMP, in times of parallel TAP", ">", 3.0, limit=None
            ),
        },
    ),
}
