"""A progress bar on stderr, only where a person is watching."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """What :func:`progress` yields."""

    def __call__(self, n: int, note: str = "") -> None:
        """Move the bar on by ``n`` and show a note beside it."""
        ...


def _unseen(n: int, note: str = "") -> None:
    pass


@contextmanager
def progress(description: str, total: int | None, enabled: bool) -> Iterator[Advance]:
    """Yield ``advance(n, note)``; a Rich bar when ``enabled`` and stderr is a terminal."""
    if not enabled:
        yield _unseen
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        Task,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class RateColumn(TextColumn):
        """Steps a second, once it is known."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.3g}/s")

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RateColumn(""),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, note="")

        def advance(n: int, note: str = "") -> None:
            bar.update(task, advance=n, note=note)

        yield advance
