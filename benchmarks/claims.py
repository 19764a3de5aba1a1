"""What the README and the paper claim, measured again: ``python -m benchmarks claims``."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

from dualtap import DualTAP, HopfieldModel
from dualtap.couplings import HebbianCouplings
from dualtap.metrics import coupling_error, match, overlaps
from dualtap.schemes import AMP, TAP, OpperWinther, Scheme, SequentialAMP, SequentialTAP
from dualtap.solve import solve
from dualtap.theory import paramagnetic_limit

SEEDS = range(10)
Claim = dict[str, Any]


def _claim(what: str, expected: str, measured: str) -> Claim:
    return {"claim": what, "expected": expected, "measured": measured}


def retrieval() -> list[Claim]:
    """All patterns found by the published algorithm, P given or not."""
    rows = []
    for n_patterns, n_samples in ((20, 200), (10, 100)):
        given = stopped = 0
        for seed in SEEDS:
            teacher = HopfieldModel.random(1000, n_patterns, 2.0, random_state=seed)
            X = teacher.sample(n_samples, random_state=1000 + seed)
            known = DualTAP(n_patterns, beta=2.0, n_students=25, random_state=seed).fit(X)
            blind = DualTAP(beta=2.0, n_students=25, random_state=seed).fit(X)
            given += match(known.patterns_, teacher.patterns).n_recovered(0.97) == n_patterns
            stopped += blind.n_patterns_ == n_patterns
        case = f"N=1000 P={n_patterns} β=2 M={n_samples} P'=25"
        rows += [
            _claim(f"{case}: all patterns above 0.97, P given", "≥ 9 of 10 seeds", f"{given}/10"),
            _claim(f"{case}: kink stops at P", "≥ 9 of 10 seeds", f"{stopped}/10"),
        ]
    return rows


def coupling_errors() -> list[Claim]:
    """Relative error of J at M=1000, and L̂/M against M."""
    soft, hard, printed = [], [], []
    for seed in SEEDS:
        teacher = HopfieldModel.random(1000, 20, 2.0, random_state=seed)
        X = teacher.sample(1000, random_state=1000 + seed)
        model = DualTAP(20, beta=2.0, random_state=seed).fit(X)
        error = coupling_error(model.magnetizations_, teacher.patterns)
        soft.append(error.relative)
        printed.append(error.printed)
        hard.append(coupling_error(model.patterns_, teacher.patterns).relative)
    teacher = HopfieldModel.random(1000, 20, 2.0, random_state=0)
    curves = []
    for n_samples in (100, 200, 500, 1000):
        X = teacher.sample(n_samples, random_state=7)
        model = DualTAP(20, beta=2.0, random_state=0).fit(X)
        curves.append(model.history_.likelihood / n_samples)
    spread = np.max(np.ptp(curves, axis=0) / np.mean(curves, axis=0))

    def quantiles(x: list[float]) -> str:
        return f"mean {np.mean(x):.3f}, largest {np.max(x):.3f} of 10 seeds"

    case = "N=1000 P=20 β=2 M=1000"
    return [
        _claim(f"{case}: relative error of J, soft m", "< 0.04", quantiles(soft)),
        _claim(f"{case}: relative error of J, sign(m)", "< 0.06", quantiles(hard)),
        _claim(f"{case}: ε as printed, soft m", "-", f"median {np.median(printed):.2e}"),
        _claim("L̂/M for M = 100 … 1000, largest relative spread", "small", f"{spread:.3f}"),
    ]


def one_pattern() -> list[Claim]:
    """Overlap against M on both sides of β = 1 (Fig. 1), with the safe iteration."""
    rows = []
    for beta in (0.5, 0.7, 0.8, 0.9):
        critical = 1000 * (1 / beta - 1) ** 2
        for multiple in (0.5, 2, 3, 4, 8):
            n_samples = round(multiple * critical)
            soft, sign, error, ideal = _overlaps_of_one(beta, n_samples)
            limit = paramagnetic_limit(beta, n_samples / 1000).sign
            rows.append(
                _claim(
                    f"P=1 N=1000 β={beta} M={n_samples} ({multiple:g} M_c)",
                    "m·ζ/N near 0" if multiple < 1 else f"sign overlap {limit:.3f} ± 0.05",
                    f"m·ζ/N {soft:.3f}, sign overlap {sign:.3f} ± {error:.3f}, "
                    f"off the limit by {sign - limit:+.3f}; TAP from the truth {ideal:.3f}",
                )
            )
    for beta, counts in ((1.1, (1, 5, 20, 100)), (1.5, (1, 5, 20)), (2.0, (1, 2, 5))):
        for n_samples in counts:
            soft, sign, error, _ = _overlaps_of_one(beta, n_samples)
            rows.append(
                _claim(
                    f"P=1 N=1000 β={beta} M={n_samples}",
                    "> 0.9" if (beta, n_samples) == (2.0, 1) else "grows with M",
                    f"m·ζ/N {soft:.3f}, sign overlap {sign:.3f} ± {error:.3f}",
                )
            )
    return rows


def _overlaps_of_one(beta: float, n_samples: int) -> tuple[float, float, float, float]:
    """Return m·ζ/N, sign overlap, its standard error, and that of TAP started at the truth.

    All are means over the seeds; the last says what the data allow.
    """
    results = []
    for seed in SEEDS:
        teacher = HopfieldModel.random(1000, 1, beta, random_state=seed)
        X = teacher.sample(n_samples, n_sweeps=200, random_state=1000 + seed)
        model = DualTAP(1, beta, start="spectral", damping="auto", random_state=seed).fit(X)
        truth = teacher.patterns.astype(np.float32)
        ideal = solve(TAP(HebbianCouplings(X), beta), truth, damping="auto", tol=1e-5)
        results.append(
            [
                abs(overlaps(found, teacher.patterns)[0, 0])
                for found in (model.magnetizations_, model.patterns_, np.sign(ideal.magnetizations))
            ]
        )
    soft, sign, from_truth = np.mean(results, axis=0)
    error = np.std(results, axis=0, ddof=1)[1] / np.sqrt(len(SEEDS))
    return float(soft), float(sign), float(error), float(from_truth)


def direct_problem() -> list[Claim]:
    """Share of random starts that reach a pattern at N=1000, P=10, T=0.5."""
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        teacher = HopfieldModel.random(1000, 10, 2.0, random_state=seed)
        J = teacher.coupling_operator()
        rng = np.random.default_rng(seed)
        start = rng.choice([-1.0, 1.0], size=(20, 1000))
        rules: list[tuple[str, Scheme[Any], float]] = [
            ("TAP", TAP(J, 2.0), 1.0),
            ("AMP, parallel", AMP(J, 2.0), 1.0),
            ("Opper-Winther", OpperWinther(J, 2.0), 0.1),
            ("Opper-Winther, printed", OpperWinther(J, 2.0, printed=True), 0.1),
            ("TAP, sequential, d = 0.95", SequentialTAP(J, 2.0, damping=0.95), 1.0),
            ("AMP, sequential, d = 0.95", SequentialAMP(J, 2.0, damping=0.95), 1.0),
        ]
        for name, scheme, scale in rules:
            solution = solve(scheme, scale * start)
            best = np.abs(overlaps(solution.magnetizations, teacher.patterns)).max(axis=1)
            reached[name] += int(np.sum(solution.converged & (best > 0.7)))
    expected = {"TAP": "> 95 %", "AMP, parallel": "< 2 %"}
    return [
        _claim(
            f"direct problem N=1000 P=10 T=0.5, 200 random starts: {name} reaches a pattern",
            expected.get(name, "-"),
            f"{count / 2:.1f} %",
        )
        for name, count in reached.items()
    ]


def import_time() -> list[Claim]:
    """CPU seconds of ``import dualtap`` beyond NumPy and scikit-learn; median of five."""
    code = (
        "import time, numpy, sklearn; t = time.process_time(); import dualtap;"
        "print(time.process_time() - t)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    return [
        _claim(
            "import dualtap beyond NumPy and scikit-learn",
            "< 0.5 s CPU",
            f"{np.median(runs):.3f} s",
        )
    ]


def all_claims() -> list[Claim]:
    """Measure everything, in the order of the list."""
    warnings.simplefilter("ignore")
    rows: list[Claim] = []
    for measure in (retrieval, coupling_errors, one_pattern, direct_problem, import_time):
        rows += measure()
    return rows
