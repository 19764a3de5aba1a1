"""Options for reading samples that commands share, and errors in terms of these options."""

from __future__ import annotations

import csv
import functools
import inspect
import re
import shlex
import sys
from ast import literal_eval
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from dualtap.io import SampleFile

_NAMES = "NAME,NAME"
_OPTIONS: dict[str, Any] = {
    "labels": Annotated[
        str | None,
        typer.Option(help="Columns (or arrays) of labels, for evaluation only.", metavar=_NAMES),
    ],
    "id": Annotated[
        str | None,
        typer.Option(help="Column of a table with the names of the samples.", metavar="NAME"),
    ],
    "drop": Annotated[str | None, typer.Option(help="Columns of a table to drop.", metavar=_NAMES)],
    "columns": Annotated[
        str | None,
        typer.Option(help="Columns of a table to fit; all others are dropped.", metavar=_NAMES),
    ],
    "true": Annotated[
        str | None,
        typer.Option(help="Value in a table that means +1, such as yes.", metavar="VALUE"),
    ],
    "false": Annotated[
        str | None,
        typer.Option(help="Value in a table that means -1, such as no.", metavar="VALUE"),
    ],
    "weights": Annotated[
        str | None,
        typer.Option(
            help="Column (or array) of sample weights.",
            metavar="NAME",
        ),
    ],
    "transpose": Annotated[
        bool,
        typer.Option("--transpose", help="Rows of the file are spins and columns are samples."),
    ],
    "zero_is_missing": Annotated[
        bool, typer.Option("--zero-is-missing", help="In -1/+1 data, 0 marks a missing entry.")
    ],
    "allow_expansion": Annotated[
        bool,
        typer.Option(
            "--allow-expansion", help="Accept a file that unpacks to more than 200 times its size."
        ),
    ],
}


@dataclass(frozen=True)
class ReadingOptions:
    """How a file of samples is read."""

    labels: str | None
    id: str | None
    drop: str | None
    columns: str | None
    true: str | None
    false: str | None
    weights: str | None
    transpose: bool
    zero_is_missing: bool
    allow_expansion: bool

    @property
    def spellings(self) -> tuple[str, str] | None:
        """What stands for -1 and for +1 by ``--false`` and ``--true``: the first word of each."""
        false, true = _listed(self.false), _listed(self.true)
        return (false[0], true[0]) if false and true else None

    def read(self, path: Path, *, on_workers: bool = False) -> SampleFile:
        """Return what a file holds; an error of an option is worded in terms of options."""
        from dualtap.io import read_samples

        try:
            file = read_samples(
                path,
                labels=_listed(self.labels),
                transpose=self.transpose,
                zero_is_missing=self.zero_is_missing,
                on_workers=on_workers,
                allow_expansion=self.allow_expansion,
                id=self.id,
                drop=_listed(self.drop),
                columns=_listed(self.columns),
                true=_listed(self.true),
                false=_listed(self.false),
                weights=self.weights,
            )
        except ValueError as error:
            raise ValueError(as_options(str(error))) from None
        for note in file.notes:
            print(f"dualtap: {path}: {note}", file=sys.stderr)
        return file


def _listed(text: str | None) -> list[str] | None:
    """Return names separated by commas; one that has a comma of its own stands in quotes."""
    return None if text is None else next(csv.reader([text], skipinitialspace=True), [])


def as_options(message: str) -> str:
    """Return a message in which arguments of Python are spelled as options of the command.

    Examples
    --------
    >>> from dualtap.cli.reading import as_options
    >>> as_options("column 'q 1' holds 'no' and 'yes'; true='yes', false='no' makes them spins, "
    ...     "drop='q 1' leaves it out; or pass zero_is_missing=True")
    "column 'q 1' holds 'no' and 'yes'; --true yes --false no makes them spins, --drop 'q 1' leaves
    it out; or pass --zero-is-missing"
    """
    names = "|".join(field.name for field in fields(ReadingOptions))
    string = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
    message = re.sub(rf"(true=(?:{string})), (false=)", r"\1 \2", message)

    def option(found: re.Match[str]) -> str:
        value = "" if found[2] == "True" else " " + shlex.quote(literal_eval(found[2]))
        return f"--{found[1].replace('_', '-')}{value}"

    return re.sub(rf"\b({names})=({string}|True)", option, message)


def reads_samples(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading, which it receives together as ``reading``.

    Examples
    --------
    >>> import inspect
    >>> from dualtap.cli.reading import ReadingOptions, reads_samples
    >>> @reads_samples
    ... def count(reading: ReadingOptions, top: int = 3) -> None:
    ...     print(reading.labels, top)
    >>> list(inspect.signature(count).parameters)[-3:]
    ['zero_is_missing', 'allow_expansion', 'top']
    >>> count(labels="party")
    party 3
    """
    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == "reading":
            parameters += [_parameter(name, kind) for name, kind in _OPTIONS.items()]
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
    defaults = {p.name: p.default for p in parameters if p.name in _OPTIONS}

    @functools.wraps(command)
    def wrapped(**arguments: Any) -> None:
        given = {name: arguments.pop(name, default) for name, default in defaults.items()}
        command(reading=ReadingOptions(**given), **arguments)

    wrapped.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapped.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapped


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    default = False if annotation.__args__[0] is bool else None
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
