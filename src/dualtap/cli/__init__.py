"""The ``dualtap`` command: thin calls into the library.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed, 2 bad usage or input,
130 interrupted, 143 terminated and 129 hung up on (which write a checkpoint as Ctrl-C does).
"""

from __future__ import annotations

import signal
import sys
from threading import current_thread, main_thread
from types import FrameType
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


class _Ended(KeyboardInterrupt):
    """The system asks the command to end, which it does as after Ctrl-C."""

    by: int | None = None

    @classmethod
    def handle(cls, number: int, frame: FrameType | None) -> None:
        """End once in good order; a second signal ends at once."""
        cls.by = number
        signal.signal(number, signal.SIG_DFL)
        raise cls


def _listen() -> None:
    _Ended.by = None
    if current_thread() is not main_thread():  # only that one may
        return
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not on every system
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _Ended.handle)


def main() -> NoReturn:
    """Run the command; one line on stderr and a code for whatever goes wrong."""
    _listen()
    try:
        app(prog_name="dualtap")
    except SystemExit as ended:
        sys.exit(ended.code if _Ended.by is None else 128 + _Ended.by)
    except KeyboardInterrupt:
        sys.exit(130 if _Ended.by is None else 128 + _Ended.by)
    except _BAD_INPUT as error:
        _fail(error, 2)
    except (OSError, MemoryError, ImportError) as error:
        _fail(error, 1)
    sys.exit(0)


def _fail(error: BaseException, code: int) -> NoReturn:
    message = " ".join(str(error).split()) or type(error).__name__
    message = message.replace("pass force=True", "use --force")  # as the command spells it
    if isinstance(error, OSError) and error.filename is not None:
        if isinstance(error, FileNotFoundError):
            message = f"there is no file {str(error.filename)!r}"
        elif isinstance(error, PermissionError):
            message = f"{str(error.filename)!r} cannot be opened: permission denied"
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
