"""One self-contained HTML page that shows what a model has found."""

from dualtap.report.writing import write_report

__all__ = ["write_report"]
