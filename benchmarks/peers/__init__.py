"""Peers in environments of their own, timed in turns with ours.

A peer is a script in this folder. It runs in ``.peers/<name>``, built from the registries when it
is missing, reads one JSON request a line, does the work, and answers with one JSON line. The time
it reports is that of the work alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parent.parent / ".peers"


def python_of(name: str, *requirements: tuple[str, ...]) -> Path:
    """Return the interpreter of a peer's environment; each tuple is one call of pip."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    complete = folder / ".complete"
    if not complete.exists():
        # The project's constraints are for the project, not for its peers.
        environment = {key: value for key, value in os.environ.items() if key != "PIP_CONSTRAINT"}
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for packages in requirements:
            command = [str(python), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(command, check=True, env=environment)
        complete.touch()
    return python


class Peer:
    """A running peer that answers requests.

    Parameters
    ----------
    python : Path
        From :func:`python_of`.
    script : str
        File in this folder.
    setup : dict
        First request, which it answers when it is ready.
    """

    def __init__(self, python: Path, script: str, setup: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [str(python), str(HERE / script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(setup["threads"])},
        )
        self.about = self.ask(setup)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer stopped with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
