"""The files that pictures go to."""

from __future__ import annotations

from pathlib import Path


def check_format(path: Path) -> str:
    """Return the picture format that a file name asks for; call it before long work.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dualtap.plots import check_format
    >>> check_format(Path("demo.svg"))
    'svg'
    """
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.filetypes
    suffix = path.suffix.lower().lstrip(".")
    if suffix not in known:
        raise ValueError(
            f"cannot draw a picture to {path.name!r}; known are {', '.join('.' + k for k in known)}"
        )
    return suffix
