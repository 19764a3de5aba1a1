"""Run the benchmarks: ``python -m benchmarks [speed] [claims] [rbm] [recovery] [real] [memory]``.

Also ``peers``, ``scaling``, ``cluster``, and ``scaling-paper``, which takes half an hour. All of
them but the last when none is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from benchmarks import against, claims, cluster, memory, rbm, real, recovery, scaling, speed
from benchmarks.harness import Row, as_rows, markdown, write


def _speed() -> None:
    rows = _each_thread_count((speed.sampler, 5), (speed.paper_algorithm, 11))
    _publish("speed", "Speed against plain NumPy", as_rows([*rows, speed.large()]))


def _claims() -> None:
    _publish("claims", "Claims, measured", claims.all_claims())


def _rbm() -> None:
    rows = _each_thread_count((rbm.speed, 11), (rbm.watching, 11))
    _publish("rbm-speed", "Training of the RBM against peers", as_rows(rows))
    growth = rbm.growth()
    rbm.plot_growth(growth)
    rbm.plot_learning()
    _publish("rbm-growth", "Time of an update against the size", growth)
    _publish("rbm-rates", "The default learning rate, and one far too large", rbm.rates())
    _publish("rbm-learning", "N=1000 P=10 β=2 N_h=15, five seeds", rbm.paper_case())


def _recovery() -> None:
    trials = recovery.measure()
    _publish("recovery", recovery.ACCURACY, recovery.accuracy(trials))
    _publish("recovery-likelihood", recovery.LIKELIHOOD, recovery.likelihood(trials))
    _publish("recovery-noise", recovery.NOISE, recovery.noise())
    rows = [*_each_thread_count((recovery.speed, 11)), *recovery.large(2, 3)]
    _publish("recovery-speed", "Speed of recovery, nothing given, against peers", as_rows(rows))


def _real() -> None:
    _publish("real", real.TITLE, real.table())


def _memory() -> None:
    _publish("memory", memory.TITLE, memory.table())


def _scaling() -> None:
    _publish("scaling-large", scaling.LARGE, scaling.large())
    growth = scaling.growth()
    scaling.plot_growth(growth)
    _publish("scaling-growth", scaling.GROWTH, growth)
    _publish("scaling-share", scaling.SHARE, scaling.share())


def _scaling_paper() -> None:
    _publish("scaling-paper", scaling.PAPER, scaling.paper())


def _cluster() -> None:
    _publish("cluster-passes", cluster.PASSES, cluster.passes())
    _publish("cluster-fits", cluster.FITS, cluster.fits())
    _publish("cluster-machines", cluster.MACHINES, cluster.machines())


def _peers() -> None:
    against.run()


def _each_thread_count(*cases: tuple[Callable[[int, int], list[Row]], int]) -> list[Row]:
    return [row for case, runs in cases for n in (1, 2) for row in case(n, runs)]


def _publish(name: str, title: str, rows: list[dict[str, object]]) -> None:
    write(name, title, rows)
    print(markdown(rows))


BENCHMARKS = {
    "speed": _speed,
    "claims": _claims,
    "rbm": _rbm,
    "recovery": _recovery,
    "real": _real,
    "memory": _memory,
    "peers": _peers,
    "scaling": _scaling,
    "cluster": _cluster,
    "scaling-paper": _scaling_paper,
}


def main(names: list[str]) -> None:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"unknown benchmark: {', '.join(sorted(unknown))}; known: {', '.join(BENCHMARKS)}")
    for name in names or [name for name in BENCHMARKS if name != "scaling-paper"]:
        BENCHMARKS[name]()


main(sys.argv[1:])
