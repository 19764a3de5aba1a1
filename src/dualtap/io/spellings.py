"""What the fields of a block of text stand for, each spelling being looked at once.

Fields of one character are looked up in a table. Of other spellings there are mostly one or two,
found by comparing; if there are more, the rest is sorted, so that time stays linear in the bytes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dualtap.io.codes import MISSING
from dualtap.io.collecting import Request

UNKNOWN = 3
"""Stands for a field that is no spin."""
_FEW = 8
_LONGEST_COMPARED = 32  # bytes of a field
_OF_ONE_CHARACTER = np.full(256, UNKNOWN, dtype=np.int8)
_OF_ONE_CHARACTER[list(b"01?")] = 0, 1, MISSING

Places = NDArray[np.int64]


def spelled_codes(request: Request, data: bytes, starts: Places, ends: Places) -> NDArray[np.int8]:
    r"""Return what fields stand for: -1, 0, 1, MISSING or UNKNOWN.

    Parameters
    ----------
    request : Request
        Says which words are spins, if not the usual ones.
    data : bytes
    starts, ends : array of shape (n_fields,), int
        Where each field begins, and where it has ended.

    Examples
    --------
    >>> import pathlib, numpy as np
    >>> from dualtap.io.collecting import Request
    >>> from dualtap.io.spellings import spelled_codes
    >>> places = np.array([0, 2, 5, 11]), np.array([1, 4, 10, 11])
    >>> spelled_codes(Request(pathlib.Path("a.csv")), b"1,-1,maybe,\n", *places)
    array([ 1, -1,  3,  2], dtype=int8)
    """
    array, lengths = np.frombuffer(data, dtype=np.uint8), ends - starts
    codes = _OF_ONE_CHARACTER.take(array.take(starts, mode="clip"))
    codes[lengths != 1] = UNKNOWN
    codes[lengths == 0] = MISSING
    if request.codes is not None:
        codes[:] = UNKNOWN
    pending = np.flatnonzero(codes == UNKNOWN)
    for _ in range(_FEW):
        if not pending.size or lengths[pending[0]] > _LONGEST_COMPARED:
            break
        at, length = starts[pending], int(lengths[pending[0]])
        word = data[at[0] : at[0] + length]
        same = lengths[pending] == length
        for k, byte in enumerate(word):
            same &= array.take(at + k, mode="clip") == byte
        codes[pending[same]] = _code(request, word)
        pending = pending[~same]
    if pending.size:
        codes[pending] = _sorted_codes(request, data, starts[pending], lengths[pending])
    return codes


def _sorted_codes(
    request: Request, data: bytes, starts: Places, lengths: Places
) -> NDArray[np.int8]:
    """Return what fields stand for, those of one length after the other."""
    array = np.frombuffer(data, dtype=np.uint8)
    codes = np.empty(len(starts), dtype=np.int8)
    order = np.argsort(lengths, kind="stable")
    bounds = np.flatnonzero(np.diff(lengths[order], prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        same = order[first:last]
        length = int(lengths[same[0]])
        if length > _LONGEST_COMPARED:  # so few of them that each may be looked at
            codes[same] = [_code(request, data[at : at + length]) for at in starts[same].tolist()]
            continue
        rows = array.take(starts[same][:, None] + np.arange(length))
        words, which = np.unique(rows.view(f"V{length}").ravel(), return_inverse=True)
        meant = [_code(request, word.tobytes()) for word in words]
        codes[same] = np.array(meant, dtype=np.int8)[which]
    return codes


def _code(request: Request, word: bytes) -> int:
    try:
        code = request.code(word.decode())
    except ValueError:  # another number, or no text
        return UNKNOWN
    return UNKNOWN if code is None else code
