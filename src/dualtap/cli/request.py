"""The methods of ``dualtap fit``, their options, and the fit itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from dualtap.io import SampleFile
    from dualtap.published import DualTAP
    from dualtap.rbm import HopfieldRBM
    from dualtap.recovery import HopfieldPatterns


class Method(StrEnum):
    """Methods of ``fit``."""

    patterns = "patterns"
    dualtap = "dualtap"
    rbm = "rbm"
    rbm_paper = "rbm-paper"


_OWN = {
    Method.patterns: ("patterns",),
    Method.dualtap: ("patterns", "beta", "students"),
    Method.rbm: ("hidden", "beta", "updates", "checkpoint", "resume"),
    Method.rbm_paper: ("hidden", "beta", "updates", "checkpoint", "resume"),
}

ChosenMethod = Annotated[
    Method | None,
    typer.Option(
        help="patterns (default): HopfieldPatterns. dualtap: the published algorithm, DualTAP. "
        "rbm: HopfieldRBM. rbm-paper: the RBM of the paper, HopfieldRBM.paper."
    ),
]
PatternsOption = Annotated[
    int | None,
    typer.Option(help="patterns, dualtap: number of patterns, if known.", metavar="P", min=1),
]
Beta = Annotated[
    float | None,
    typer.Option(help="dualtap, rbm: inverse temperature; fitted if omitted.", metavar="BETA"),
]
StudentsOption = Annotated[
    int | None,
    typer.Option(
        help="dualtap: students per round (and maximum number of rounds if --patterns is omitted).",
        metavar="N",
        min=1,
    ),
]
Hidden = Annotated[
    int | None,
    typer.Option(
        help="rbm: number of hidden units; chosen by the data if omitted.", metavar="N", min=1
    ),
]
Updates = Annotated[
    int | None, typer.Option(help="rbm: maximum number of updates.", metavar="N", min=1)
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(help="rbm: checkpoint file (.npz), written every few seconds.", metavar="FILE"),
]
Resume = Annotated[
    Path | None,
    typer.Option(help="rbm: continue from this checkpoint, and update it.", metavar="FILE"),
]


@dataclass(frozen=True)
class FitRequest:
    """A method and its options, None where not given.

    Examples
    --------
    >>> from dualtap.cli.request import Method, FitRequest
    >>> FitRequest(Method.patterns, students=3).check()
    Traceback (most recent call last):
    ...
    ValueError: --students does not apply to --method patterns, whose options are --patterns
    """

    method: Method
    beta: float | None = None
    patterns: int | None = None
    students: int | None = None
    hidden: int | None = None
    updates: int | None = None
    checkpoint: Path | None = None
    resume: Path | None = None

    def check(self) -> None:
        """Raise if an option was given that the method does not have."""
        own = _OWN[self.method]
        for name in (name for names in _OWN.values() for name in names):
            if getattr(self, name) is not None and name not in own:
                raise ValueError(
                    f"--{name} does not apply to --method {self.method.value}, whose options are "
                    f"{', '.join(f'--{known}' for known in own)}"
                )

    def fit(
        self, file: SampleFile, seed: int, *, verbose: bool
    ) -> HopfieldPatterns | DualTAP | HopfieldRBM:
        """Return the fitted model; only an RBM looks at the teacher, to follow its error."""
        from dualtap.published import DualTAP
        from dualtap.recovery import HopfieldPatterns

        if self.method in (Method.rbm, Method.rbm_paper):
            return self._fit_rbm(file, seed, verbose)
        options: dict[str, Any] = {"random_state": seed, "verbose": verbose}
        model: HopfieldPatterns | DualTAP
        if self.method is Method.patterns:
            model = HopfieldPatterns(self.patterns, **options)
        else:
            model = DualTAP(self.patterns, self.beta, n_students=self.students, **options)
        model.fit(file.spins, sample_weight=file.weights)
        return model

    def _fit_rbm(self, file: SampleFile, seed: int, verbose: bool) -> HopfieldRBM:
        from dualtap.rbm import HopfieldRBM

        given = {"n_hidden": self.hidden, "max_updates": self.updates, "beta": self.beta}
        changes = {name: value for name, value in given.items() if value is not None}
        make = HopfieldRBM.paper if self.method is Method.rbm_paper else HopfieldRBM
        parameters: dict[str, Any] = {"random_state": seed}
        if self.resume is not None:
            make, parameters = HopfieldRBM, HopfieldRBM.read(self.resume).get_params()
        model = make(**(parameters | changes | {"verbose": verbose}))
        kept = self.checkpoint or self.resume
        try:
            model.fit(
                file.spins,
                sample_weight=file.weights,
                teacher=file.teacher,
                checkpoint=kept,
                resume_from=self.resume,
            )
        except KeyboardInterrupt:
            done = model.n_updates_ if hasattr(model, "n_updates_") else 0
            hint = f"; continue with --resume {kept}" if kept is not None and kept.exists() else ""
            print(f"dualtap: interrupted after {done} updates{hint}", file=sys.stderr)
            raise typer.Exit(130) from None
        return model
