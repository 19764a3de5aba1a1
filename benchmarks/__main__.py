"""Run the benchmarks: ``python -m benchmarks [speed] [claims]``; both when nothing is named."""

from __future__ import annotations

import sys

from benchmarks import claims, speed
from benchmarks.harness import as_rows, markdown, write


def main(names: list[str]) -> None:
    unknown = set(names) - {"speed", "claims"}
    if unknown:
        sys.exit(f"unknown benchmark: {', '.join(sorted(unknown))}; known are speed and claims")
    if not names or "speed" in names:
        rows = [
            row
            for case, runs in ((speed.sampler, 5), (speed.paper_algorithm, 11))
            for n_threads in (1, 2)
            for row in case(n_threads, runs)
        ]
        table = as_rows([*rows, speed.large()])
        write("speed", "Speed against plain NumPy", table)
        print(markdown(table))
    if not names or "claims" in names:
        measured = claims.all_claims()
        write("claims", "Claims, measured", measured)
        print(markdown(measured))


main(sys.argv[1:])
