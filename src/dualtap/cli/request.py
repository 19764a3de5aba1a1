"""What ``dualtap fit`` may be asked for, what it was, and the model that follows."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dualtap.hopfield import HopfieldModel
    from dualtap.rbm import HopfieldRBM
    from dualtap.recovery import DualTAP
    from dualtap.spins import Spins


class Method(StrEnum):
    """What ``fit`` runs."""

    tap = "tap"
    paper = "paper"
    rbm = "rbm"


_OWN = {
    Method.tap: ("patterns", "effort"),
    Method.paper: ("patterns", "students"),
    Method.rbm: ("hidden", "updates", "checkpoint", "resume"),
}

ChosenMethod = Annotated[
    Method | None,
    typer.Option(
        help="tap (default): nothing need be known. paper: the published algorithm. "
        "rbm: a Gaussian RBM trained by PCD-10."
    ),
]
Patterns = Annotated[
    int | None, typer.Option(help="tap, paper: number of patterns, if known.", min=1)
]
Beta = Annotated[float | None, typer.Option(help="Inverse temperature, if known.")]
Effort = Annotated[
    int | None,
    typer.Option(help="tap: multiplies the starts, for hard data; 1 if not given.", min=1),
]
Students = Annotated[
    int | None,
    typer.Option(help="paper: students of a round, and most rounds without --patterns.", min=1),
]
Hidden = Annotated[int | None, typer.Option(help="rbm: number of hidden units.", min=1)]
Updates = Annotated[int | None, typer.Option(help="rbm: most updates made.", min=1)]
Checkpoint = Annotated[
    Path | None, typer.Option(help="rbm: file (.npz) that keeps the run every few seconds.")
]
Resume = Annotated[
    Path | None, typer.Option(help="rbm: go on with the run in this file, and keep it there.")
]


@dataclass(frozen=True)
class Request:
    """A method and its options, None where nothing was said.

    Examples
    --------
    >>> from dualtap.cli.request import Method, Request
    >>> Request(Method.tap, students=3).check()
    Traceback (most recent call last):
    ...
    ValueError: --students is not an option of --method tap, which has --patterns, --effort
    """

    method: Method
    beta: float | None = None
    patterns: int | None = None
    effort: int | None = None
    students: int | None = None
    hidden: int | None = None
    updates: int | None = None
    checkpoint: Path | None = None
    resume: Path | None = None

    def check(self) -> None:
        """Raise if an option was given that the method does not have, or one it needs was not."""
        own = _OWN[self.method]
        for name in (name for names in _OWN.values() for name in names):
            if getattr(self, name) is not None and name not in own:
                raise ValueError(
                    f"--{name} is not an option of --method {self.method.value}, which has "
                    f"{', '.join(f'--{known}' for known in own)}"
                )
        if self.method is Method.paper and self.beta is None:
            raise ValueError("the published algorithm needs --beta; --method tap does not")

    def fit(
        self, spins: Spins, teacher: HopfieldModel | None, seed: int, *, verbose: bool
    ) -> DualTAP | HopfieldRBM:
        """Return the fitted model; only an RBM looks at the teacher, to follow its error."""
        if self.method is Method.rbm:
            return self._fit_rbm(spins, teacher, seed, verbose)
        return self._fit_tap(spins, seed, verbose)

    def _fit_tap(self, spins: Spins, seed: int, verbose: bool) -> DualTAP:
        from dualtap.recovery import DualTAP

        options: dict[str, Any] = {"random_state": seed, "verbose": verbose}
        if self.method is Method.tap:
            model = DualTAP(self.patterns, self.beta, effort=self.effort or 1, **options)
        else:
            assert self.beta is not None  # check() has seen to it
            model = DualTAP.paper(
                self.patterns, beta=self.beta, n_students=self.students, **options
            )
        model.fit(spins)
        return model

    def _fit_rbm(
        self, spins: Spins, teacher: HopfieldModel | None, seed: int, verbose: bool
    ) -> HopfieldRBM:
        from dualtap.rbm import HopfieldRBM

        given = {"n_hidden": self.hidden, "max_updates": self.updates, "beta": self.beta}
        changes = {name: value for name, value in given.items() if value is not None}
        parameters: dict[str, Any] = {"random_state": seed}
        if self.resume is not None:
            parameters = HopfieldRBM.read(self.resume).get_params()
        model = HopfieldRBM(**(parameters | changes | {"verbose": verbose}))
        kept = self.checkpoint or self.resume
        try:
            model.fit(spins, teacher=teacher, checkpoint=kept, resume_from=self.resume)
        except KeyboardInterrupt:
            done = model.n_updates_ if hasattr(model, "n_updates_") else 0
            hint = f"; go on with --resume {kept}" if kept is not None and kept.exists() else ""
            print(f"dualtap: interrupted after {done} updates{hint}", file=sys.stderr)
            raise typer.Exit(130) from None
        return model
