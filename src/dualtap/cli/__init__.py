"""The ``dualtap`` command: thin calls into the library.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 bad usage or input,
130 interrupted.
"""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from dualtap.cli import (  # noqa: F401 (each registers its commands)
    bench,
    data,
    models,
    paper,
    resampling,
    results,
)
from dualtap.cli.app import app

_BAD_INPUT = (
    ValueError,
    TypeError,
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    PermissionError,
)


def main() -> NoReturn:
    """Run the command; one line on stderr and a code for whatever goes wrong."""
    try:
        app(prog_name="dualtap")
    except _BAD_INPUT as error:
        _fail(error, 2)
    except (OSError, MemoryError, ImportError) as error:
        _fail(error, 1)
    sys.exit(0)


def _fail(error: BaseException, code: int) -> NoReturn:
    message = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, OSError) and error.filename is not None:
        if isinstance(error, FileNotFoundError):
            message = f"there is no file {str(error.filename)!r}"
        elif isinstance(error, PermissionError):
            message = f"{str(error.filename)!r} may not be opened: permission denied"
    print(f"dualtap: {message}", file=sys.stderr)
    sys.exit(code)


def _version(requested: bool) -> None:
    if requested:
        from dualtap import __version__

        print(f"dualtap {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
