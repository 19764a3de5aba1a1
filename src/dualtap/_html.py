"""What a notebook shows of a fitted estimator: scikit-learn's diagram, and below it the result."""

from __future__ import annotations

from html import escape
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

_STYLE = (
    "margin:0.5em 0 0;padding:0.5em 0.8em;border-left:3px solid #999;white-space:pre-wrap;"
    "overflow-wrap:anywhere"
)


def summary_html(text: str) -> str:
    """Return a summary as an escaped block that keeps its lines.

    Examples
    --------
    >>> from dualtap._html import summary_html
    >>> summary_html("|m| < 0.8").rpartition(">|")[2]
    'm| &lt; 0.8</pre>'
    """
    return f'<pre class="dualtap-summary" style="{_STYLE}">{escape(text)}</pre>'


class SummaryInNotebooks:
    """Puts ``summary()`` below scikit-learn's diagram once an estimator is fitted."""

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + self._summary_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:  # not when scikit-learn is told to show text
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        try:
            check_is_fitted(self)
        except NotFittedError:
            return ""
        return summary_html(self.summary())  # type: ignore[attr-defined]
