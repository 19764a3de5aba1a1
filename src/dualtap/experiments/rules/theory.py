"""Rules of what theory predicts: two patterns, phase lines, a student at another temperature."""

from dualtap.experiments.experiment import OURS
from dualtap.experiments.rules.rule import Criterion, Rule

RULES = {
    "theory1.orthogonal": Rule(
        says="The normalisation of the likelihood, −M log Z, favours orthogonal patterns.",
        where="main text, Appendix B",
        criteria={
            "convex": Criterion("smallest second difference of φ(q), any β", ">", -1e-12),
            "minimum": Criterion("largest |q| of its minimum, β > 1", "<", 1e-9),
            "enumeration": Criterion("largest difference from enumeration at N = 12", "<", 1e-9),
        },
        slip="φ is printed as −N log Z; it is (1/N) log Z that is the convex function with its "
        "minimum at q = 0.",
    ),
    "theory3.capacity": Rule(
        says="Retrieval states exist up to α = 0.138 at T = 0, and are stable up to 0.051, as "
        "Amit, Gutfreund and Sompolinsky found.",
        where=OURS,
        criteria={
            "metastable": Criterion("distance of the first from 0.138", "<", 5e-4),
            "retrieval": Criterion("distance of the second from 0.0515", "<", 5e-4),
        },
        because="The paper draws no phase lines with numbers; figures here do",
    ),
    "extra3.curves": Rule(
        says="State evolution predicts the overlap of a student whose β' is not the teacher's.",
        where=OURS,
        criteria={
            "distance": Criterion(
                "largest distance of mean m·ζ/N from it, at M of at least twice the student's "
                "threshold",
                "<",
                0.05,
                limit=0.1,
            )
        },
    ),
    "extra3.hot": Rule(
        says="A student that is too hot, β' < β, finds the pattern only from "
        "M = N(1/β − 1)(1/β' − 1) on, more than the Bayes limit.",
        where=OURS,
        criteria={
            "below": Criterion("β' < β: largest mean m·ζ/N up to 3/4 of that M", "<", 0.05),
            "above": Criterion("smallest from 5/4 of it on", ">", 0.1),
        },
    ),
    "extra3.best": Rule(
        says="No student's signs are better than those of the student at the teacher's β.",
        where=OURS,
        criteria={
            "gain": Criterion(
                "largest mean sign overlap less that at β' = β on the same samples, from its "
                "threshold on",
                "<",
                0.02,
                limit=0.05,
            )
        },
    ),
}
