"""Run the benchmarks: ``python -m benchmarks NAME ...`` or ``python -m benchmarks NAME OPTIONS``.

Names: speed, claims, rbm, recovery, general, nulls, fits, intervals, memory, peers, scaling,
cluster; all of these when none is given. Only by name: ``real``, ``structure`` and ``rbm-real``,
which need ``--data DIR``, ``rbm-looks`` (a part of ``rbm``), ``rbm-robust``, ``rbm-mixing``,
``sensitivity``, ``archive``, which runs archived trials of the paper again, and ``scaling-paper``,
which takes half an hour.
``python -m benchmarks recovery --help`` lists the options of one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    against,
    archive,
    claims,
    cluster,
    fits,
    general,
    intervals,
    memory,
    nulls,
    rbm,
    rbm_mixing,
    rbm_real,
    rbm_robust,
    real,
    recovery,
    recovery_speed,
    recovery_tables,
    scaling,
    sensitivity,
    speed,
    structure,
)
from benchmarks.harness import Row, as_rows, markdown, write
from benchmarks.recovery_cases import FIRST_SEED


def _speed() -> None:
    rows = _each_thread_count((speed.sampler, 5), (speed.paper_algorithm, 11))
    _publish("speed", "Speed against plain NumPy", as_rows([*rows, speed.large()]))


def _claims() -> None:
    _publish("claims", "Claims, measured", claims.all_claims())


def _rbm() -> None:
    rows = _each_thread_count((rbm.speed, 11), (rbm.watching, 11))
    _publish("rbm-speed", "Training of the RBM against peers", as_rows(rows))
    _rbm_looks()
    growth = rbm.growth()
    rbm.plot_growth(growth)
    rbm.plot_learning()
    _publish("rbm-growth", "Time of an update against the size", growth)
    _publish("rbm-rates", "The default learning rate, and one far too large", rbm.rates())
    _publish("rbm-learning", "N=1000 P=10 β=2 N_h=15, five seeds", rbm.paper_case())


def _rbm_looks() -> None:
    title = "Share of the CPU time of training in looks, default parameters, 300 updates"
    _publish("rbm-looks", title, rbm.looks())


def _recovery(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks recovery", description=recovery.__doc__)
    parser.add_argument(
        "--cases", nargs="+", metavar="TEXT", help="names of cases or parts of them"
    )
    parser.add_argument("--seeds", type=int, help="number of seeds per case")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--only", choices=("ours",), help="leave out peers")
    parser.add_argument("--old", type=Path, metavar="SRC", help="source of an earlier version")
    options = parser.parse_args(arguments)
    cases = None if options.cases is None else recovery.named(options.cases)
    first, n_seeds = options.first_seed, options.seeds
    seeds = None if n_seeds is None else range(first, first + n_seeds)
    contenders = (recovery.GIVEN,) if options.only else tuple(recovery.CONTENDERS)
    trials = recovery.measure(cases, seeds, contenders, old=options.old)
    rows = recovery_tables.accuracy(trials)
    lines = recovery_tables.losses(trials)
    if cases is None and options.only and options.old:
        write("recovery-before", recovery_tables.BEFORE_TITLE, rows)
    if cases is not None or n_seeds is not None or options.only:
        print(markdown(rows), markdown(recovery_tables.likelihood(trials)), *lines, sep="\n")
        return
    _publish("recovery", recovery_tables.ACCURACY, rows)
    print(*lines, sep="\n")
    _publish("recovery-likelihood", recovery_tables.LIKELIHOOD, recovery_tables.likelihood(trials))
    _publish("recovery-noise", recovery_tables.NOISE, recovery_tables.noise())
    timed = [*_each_thread_count((recovery_speed.speed, 11)), *recovery_speed.large(2, 3)]
    _publish("recovery-speed", "Speed of recovery, blind, against peers", as_rows(timed))


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


PLAIN: dict[str, Callable[[], None]] = {
    "speed": _speed,
    "claims": _claims,
    "rbm": _rbm,
    "rbm-looks": _rbm_looks,
    "memory": _memory,
    "peers": _peers,
    "scaling": _scaling,
    "cluster": _cluster,
    "scaling-paper": _scaling_paper,
}
WITH_OPTIONS: dict[str, Callable[[list[str]], None]] = {
    "recovery": _recovery,
    "general": general.run,
    "nulls": nulls.run,
    "fits": fits.run,
    "intervals": intervals.run,
    "rbm-robust": rbm_robust.run,
    "rbm-real": rbm_real.run,
    "rbm-mixing": rbm_mixing.run,
    "real": real.run,
    "structure": structure.run,
    "sensitivity": sensitivity.run,
    "archive": archive.run,
}
NOT_BY_DEFAULT = (
    *("scaling-paper", "rbm-looks", "rbm-robust", "rbm-real", "rbm-mixing"),
    *("real", "structure", "sensitivity", "archive"),
)


def main(arguments: list[str]) -> None:
    known = (*PLAIN, *WITH_OPTIONS)
    first_option = next((k for k, a in enumerate(arguments) if a.startswith("-")), len(arguments))
    if arguments and arguments[0] in WITH_OPTIONS and first_option <= 1:
        names, options = arguments[:1], arguments[1:]
    else:
        names, options = arguments, []
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"unknown benchmark: {', '.join(unknown)}; known: {', '.join(known)}")
    for name in names or [name for name in known if name not in NOT_BY_DEFAULT]:
        if name in PLAIN:
            PLAIN[name]()
        else:
            WITH_OPTIONS[name](options)


if __name__ == "__main__":  # processes that are started afresh import this file as well
    main(sys.argv[1:])
