"""A progress bar where a person is watching: on a terminal's stderr, or in a notebook's cell."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

_SECONDS = 0.2  # between two drawings in a notebook
_NOTEBOOK_WIDTH = 100
_NOTEBOOK_HTML = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:normal;'
    "font-family:Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace\">{code}</pre>"
)


class Advance(Protocol):
    """What :func:`progress` yields."""

    def __call__(self, n: int, note: str = "") -> None:
        """Move the bar on by ``n`` and show a note beside it."""
        ...


def _unseen(n: int, note: str = "") -> None:
    pass


@contextmanager
def progress(description: str, total: int | None, enabled: bool) -> Iterator[Advance]:
    """Yield ``advance(n, note)``; a Rich bar when ``enabled`` on a terminal or in a notebook."""
    if not enabled:
        yield _unseen
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        with _notebook_bar(description, total) as advance:
            yield advance
        return
    with _bar(console, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=total, note="")

        def advance_bar(n: int, note: str = "") -> None:
            bar.update(task, advance=n, note=note)

        yield advance_bar


@contextmanager
def _notebook_bar(description: str, total: int | None) -> Iterator[Advance]:
    """Draw a bar into the cell and keep it up to date there.

    Rich itself needs ipywidgets for this, and a front end that knows them; an output that is
    displayed once and then updated needs neither.
    """
    from rich.console import Console

    display: Any = import_module("IPython.display").display
    console = Console(
        file=StringIO(),
        record=True,
        force_jupyter=False,
        force_terminal=True,
        width=_NOTEBOOK_WIDTH,
    )
    bar = _bar(console, disable=True)  # only drawn here, never started
    task = bar.add_task(description, total=total, note="")

    def drawn() -> dict[str, str]:
        console.print(bar.get_renderable())
        html = console.export_html(clear=False, inline_styles=True, code_format=_NOTEBOOK_HTML)
        return {"text/plain": console.export_text().rstrip(), "text/html": html}

    handle = display(drawn(), raw=True, display_id=True)
    last = time.monotonic()

    def advance(n: int, note: str = "") -> None:
        nonlocal last
        bar.update(task, advance=n, note=note)
        if time.monotonic() - last >= _SECONDS:
            handle.update(drawn(), raw=True)
            last = time.monotonic()

    try:
        yield advance
    finally:
        bar.stop_task(task)
        handle.update(drawn(), raw=True)


def _bar(console: Console, *, disable: bool) -> Progress:
    """Return a bar with counts, times, the speed and a note."""
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

    return Progress(
        TextColumn("{task.description:>9}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        RateColumn(""),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=disable,
    )
