"""Genotypes in PLINK's binary files, read through bed-reader.

A genotype is a number of copies, 0, 1 or 2, of one allele. It becomes a spin by "carries the allele
or not": +1 for one copy or two. The allele is A1 of the ``.bim`` file, not the rarer one of these
samples, so that two files of the same variants mean the same by the same name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dualtap._files import open_regular, reading
from dualtap.io.arrays import rows_a_chunk
from dualtap.io.collecting import (
    Collector,
    Request,
    SampleFile,
    check_memory,
    nearest,
    needed,
    result,
)

_MISSING = -127
_LABELS = ("fid", "father", "mother", "sex", "pheno")


def read_bed(request: Request) -> SampleFile:
    """Read the genotypes of a ``.bed`` file, with the ``.bim`` and the ``.fam`` file beside it.

    Parameters
    ----------
    request : Request

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from bed_reader import to_bed
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.genotypes import read_bed
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.bed")
    >>> known = {"iid": ["Ann", "Bob"], "sid": ["rs1", "rs2", "rs3"], "allele_1": ["A", "C", "G"]}
    >>> to_bed(path, np.array([[0, 1, 2], [np.nan, 0, 0]]), properties=known)
    >>> file = read_bed(Request(path))
    >>> file.spins.values.tolist(), file.names
    ([[-1, 1, 1], [0, -1, -1]], ('rs1_A', 'rs2_C', 'rs3_G'))
    """
    open_bed = needed("bed_reader", "genotypes", "reading PLINK files").open_bed
    for suffix in (".bed", ".bim", ".fam"):
        open_regular(request.path.with_suffix(suffix)).close()
    # The library has errors of its own for every kind of damage.
    with reading(request.path, Exception), open_bed(request.path, num_threads=1) as file:
        n_people, n_variants = file.shape
        check_memory(request, file.shape)
        names = [f"{sid}_{allele}" for sid, allele in zip(file.sid, file.allele_1, strict=True)]
        people, labels = file.iid.tolist(), _labels(request, file)
        collector = Collector(request, n_variants, exchanged=True)
        step = rows_a_chunk(n_people, np.dtype(np.float32))
        for first in range(0, n_variants, step):
            part = np.s_[:, first : first + step]
            copies = file.read(part, dtype="int8", order="F", num_threads=1).T
            carried = (copies > 0).astype(np.float32)
            collector.add(np.where(copies == _MISSING, np.float32(np.nan), carried))
        spins = collector.finish()
    upright = request._replace(transpose=False)  # people and variants are named either way
    if request.transpose:
        people, names = names, people
    return result(upright, spins, columns=names, rows=people, labels=labels)


def _labels(request: Request, file: Any) -> dict[str, list[str]]:
    for name in request.labels:
        if name not in _LABELS:
            raise request.error(f"no column of .fam is named {name!r}; {nearest(name, _LABELS)}")
        if request.transpose:
            raise request.error(f"{name!r} is known of people, and samples are variants here")
    return {name: [str(value) for value in getattr(file, name)] for name in request.labels}
