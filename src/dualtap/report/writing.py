"""A report: from a model to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualtap._files import atomic_write, check_free
from dualtap.report.charts import charts
from dualtap.report.contents import contents
from dualtap.report.material import Model, checked
from dualtap.report.page import page
from dualtap.resampling import Stability


def write_report(
    model: Model,
    path: str | Path,
    *,
    spins: Any = None,
    names: Sequence[object] | None = None,
    sample_names: Sequence[object] | None = None,
    labels: Sequence[object] | None = None,
    teacher: Any = None,
    shape: tuple[int, int] | None = None,
    stability: Stability | None = None,
    sample_weight: Any = None,
    command: str | None = None,
    force: bool = False,
) -> None:
    """Write a self-contained HTML report of the patterns, their samples and their confidence.

    The page is one file, needs no network, and is identical for identical input.

    Parameters
    ----------
    model : HopfieldPatterns, DualTAP or HopfieldRBM
        Fitted.
    path : str or Path
        The file to write.
    spins : array-like of shape (n_samples, n_spins) or Spins, optional
        Samples to show, usually those of the fit. Without them the page shows the patterns only.
    names : sequence of n_spins, optional
        Names of the spins; by default those that the model was fitted with, if any.
    sample_names : sequence of n_samples, optional
    labels : sequence of n_samples, optional
        Labels of the samples; None or NaN where unknown.
    teacher : HopfieldModel or array-like of shape (n_true, n_spins), optional
        The true patterns, to compare with.
    shape : (rows, columns), optional
        Show patterns and samples as images of that shape.
    stability : Stability, optional
        Refits to halves of the samples, from :func:`dualtap.stability`.
    sample_weight : array-like of shape (n_samples,), optional
        Number of samples that each row of ``spins`` stands for, 1 by default.
    command : str, optional
        The command that writes the page, quoted in it.
    force : bool
        Overwrite an existing file.

    Raises
    ------
    ImportError
        Without Plotly or Jinja2.
    ValueError
        If names, labels, shape or samples do not match the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dualtap as dt
    >>> from dualtap.report import write_report
    >>> teacher = dt.HopfieldModel.random(n_spins=200, n_patterns=2, beta=2.0, random_state=0)
    >>> X = teacher.sample(40, random_state=1)
    >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
    >>> write_report(dt.HopfieldPatterns(random_state=0).fit(X), path, spins=X, teacher=teacher)
    >>> "<h1>2 patterns found</h1>" in path.read_text(encoding="utf-8")
    True
    """
    path = Path(path)
    check_free(path, force=force)
    plotly = _plotly()
    beside = (names, sample_names, labels, teacher, shape, command, stability, sample_weight)
    material = checked(model, spins, *beside)
    shown = contents(material)
    text = page(shown, charts(shown), plotly)
    with atomic_write(path, force=force) as file:
        file.write(text.encode("utf-8", "replace"))  # a command may hold half a character


def _plotly() -> str:
    try:
        import jinja2  # noqa: F401 (before anything is computed)
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError(
            f"a report needs {error.name}; install it with: pip install 'dualtap[report]'"
        ) from None
    source: str = get_plotlyjs()
    return source
