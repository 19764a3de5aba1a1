"""Time contenders against a reference, interleaved in one process, accuracy beside time.

Machines are noisy: a ratio of medians of interleaved runs survives what a pair of wall times does
not.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
_REST = 0.2  # seconds: the threads of BLAS spin for a while after their work, in the way of others


@dataclass(frozen=True)
class Contender:
    """Something to time: a name, what to run, and how good its answer is."""

    name: str
    run: Callable[[], Any]
    accuracy: Callable[[Any], str]


@dataclass(frozen=True)
class Row:
    """One contender at one thread count."""

    case: str
    contender: str
    threads: int
    median_s: float
    spread_s: float
    ratio: float
    accuracy: str
    peak_mb: float
    runs: int


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Give BLAS and Numba ``n`` threads each; they never run at the same time here."""
    import numba
    from threadpoolctl import threadpool_limits

    before = numba.get_num_threads()
    numba.set_num_threads(min(n, numba.config.NUMBA_NUM_THREADS))
    try:
        with threadpool_limits(n):
            yield
    finally:
        numba.set_num_threads(before)


def compare(
    case: str, reference: Contender, contender: Contender, n_threads: int, runs: int
) -> list[Row]:
    """Time both in turns; ratio is the reference's median over the contender's."""
    pair = (reference, contender)
    accuracy: dict[str, str] = {}
    peak: dict[str, float] = {}
    times: dict[str, list[float]] = {one.name: [] for one in pair}
    with threads(n_threads):
        for one in pair:  # warm-up: compilation, caches; memory is traced here, not when timed
            one.run()
            tracemalloc.start()
            answer = one.run()
            peak[one.name] = tracemalloc.get_traced_memory()[1] / 1e6
            tracemalloc.stop()
            accuracy[one.name] = one.accuracy(answer)
        for _ in range(runs):
            for one in pair:
                time.sleep(_REST)
                start = time.perf_counter()
                one.run()
                times[one.name].append(time.perf_counter() - start)
    base = statistics.median(times[reference.name])
    return [
        Row(
            case=case,
            contender=one.name,
            threads=n_threads,
            median_s=statistics.median(times[one.name]),
            spread_s=float(np.subtract(*np.percentile(times[one.name], [75, 25]))),
            ratio=base / statistics.median(times[one.name]),
            accuracy=accuracy[one.name],
            peak_mb=peak[one.name],
            runs=runs,
        )
        for one in pair
    ]


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    import numba
    import scipy
    import sklearn

    return {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "threads": numba.config.NUMBA_NUM_THREADS,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": numba.__version__,
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return rows of equal keys as a Markdown table."""
    titles = list(rows[0])
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for row in rows:
        lines.append("| " + " | ".join(_cell(row[title]) for title in titles) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def write(name: str, title: str, rows: list[dict[str, Any]], folder: Path = RESULTS) -> None:
    """Write ``<name>.json`` and ``.md``, into ``results`` when no folder is given."""
    folder.mkdir(exist_ok=True)
    setup = machine()
    record = {"title": title, "machine": setup, "rows": rows}
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    versions = ", ".join(f"{key} {value}" for key, value in setup.items())
    (folder / f"{name}.md").write_text(f"# {title}\n\n{versions}\n\n{markdown(rows)}")


def as_rows(rows: list[Row]) -> list[dict[str, Any]]:
    """Return plain dictionaries for :func:`write`."""
    return [asdict(row) for row in rows]
