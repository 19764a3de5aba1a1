"""The pages of claims and figures, and a verdict as a line of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dualtap.experiments.experiment import OURS, Claim, Experiment, Results
from dualtap.experiments.rules import CHANGES, RULES, fingerprints

CLOSE = "the threshold is within the error"


@dataclass(frozen=True)
class Report:
    """What came of one experiment.

    Attributes
    ----------
    experiment : Experiment
    results : Results
    n_tasks : int
        Trials that there should be.
    kind : str
        "quick", "" for the paper's counts, or "own parameters".
    caption : str
        Empty if nothing was drawn.
    undrawn : str
        Why nothing was drawn.
    claims : sequence of Claim
    code : str
        Version of the code that made the rows, if it is not the present one.
    """

    experiment: Experiment
    results: Results
    n_tasks: int
    kind: str
    caption: str = ""
    undrawn: str = ""
    claims: Sequence[Claim] = ()
    code: str = ""

    @property
    def basis(self) -> str:
        """What a verdict rests on, if not on all trials at the paper's counts by this code."""
        parts = [self.kind] if self.kind else []
        if len(self.results) < self.n_tasks:
            parts.append(f"{len(self.results)} of {self.n_tasks} trials")
        if self.code:
            parts.append("trials of older code")
        return ", ".join(parts)

    def verdict(self, claim: Claim) -> str:
        """Return a verdict with what it rests on."""
        notes = [self.basis] if self.basis else []
        notes += [CLOSE] if claim.close else []
        return claim.verdict + (f" ({'; '.join(notes)})" if notes else "")


def verdict_lines(report: Report) -> list[str]:
    """Return what is printed of an experiment: its verdicts, or why there are none."""
    name = report.experiment.name
    lines = [f"{name}: {report.undrawn}"] if report.undrawn else []
    for claim in report.claims:
        lines += [f"{name}: {report.verdict(claim)}: {claim.says}", f"    {claim.measured}"]
    return lines


def claims_page(
    reports: Sequence[Report], command: str, fixed: Mapping[str, str] | None = None
) -> str:
    """Return the verdicts as a page of Markdown.

    Parameters
    ----------
    reports : sequence of Report
    command : str
        That writes this page.
    fixed : mapping, optional
        Fingerprints of the rules as they were before the trials.
    """
    judged = [(report, claim) for report in reports for claim in report.claims]
    head = ["| claim | where | decided by | measured | verdict |", "|---|---|---|---|---|"]
    lines = [
        "# The paper's claims, one by one",
        "",
        f"Written by `{command}` from its trials. Each claim is in our own words. Proportions "
        "are given with their 95 % (Wilson) intervals, means with standard errors and the number "
        "n of trials.",
        "",
        *_how_fixed(reports, fixed or {}),
        "",
        *head,
        *(_row(report, claim) for report, claim in judged if claim.where != OURS),
    ]
    ours = [_row(report, claim) for report, claim in judged if claim.where == OURS]
    if ours:
        lines += ["", "## Claims of this software", "", *head, *ours]
    slips = dict.fromkeys(f"- {claim.where}: {claim.slip}" for _, claim in judged if claim.slip)
    if slips:
        lines += ["", "## Slips of the printed text, mended here", "", *slips]
    names = {claim.rule for _, claim in judged}
    changes = [
        f"| {_cell(RULES[c.rule].says)} | {_cell(c.before)} | {_cell(c.reason)} |"
        for c in CHANGES
        if c.rule in names
    ]
    if changes:
        lines += ["", "## Rules that were changed after quick runs", ""]
        lines += ["| claim | was decided by | changed because |", "|---|---|---|", *changes]
    return "\n".join(lines) + "\n"


def _how_fixed(reports: Sequence[Report], fixed: Mapping[str, str]) -> list[str]:
    """Say of the rules when they were fixed, and whether they are still the same."""
    text = (
        "A claim holds if every criterion meets its threshold; it holds with a limit if every one "
        "meets the limit in brackets. The rules are data in `dualtap.experiments.rules`."
    )
    kinds = {report.kind for report in reports}
    if kinds != {""}:
        return [text, "", f"These are not verdicts at the paper's counts: {', '.join(kinds)}."]
    now = fingerprints()
    changed = [name for name, mark in fixed.items() if now.get(name, mark) != mark]
    judged_by = [claim.rule for report in reports for claim in report.claims if claim.rule]
    added = [rule for rule in judged_by if rule not in fixed]
    if not fixed:
        return [text]
    said = f"{text} They were fixed before the full run, and their fingerprints kept with it. "
    if not changed and not added:
        return [said + "None has been touched since."]
    return [
        said
        + (f"Changed since: {', '.join(changed)}. " if changed else "")
        + (f"Added since: {', '.join(dict.fromkeys(added))}." if added else "")
    ]


def _row(report: Report, claim: Claim) -> str:
    decided = f"{claim.decided_by} (`{report.experiment.name}`)"
    cells = (claim.says, claim.where, decided, claim.measured)
    verdict = report.verdict(claim).replace(claim.verdict, f"**{claim.verdict}**", 1)
    return f"| {' | '.join(map(_cell, cells))} | {verdict} |"


def figures_page(reports: Sequence[Report], command: str) -> str:
    """Return all figures with their captions as a page of Markdown."""
    lines = ["# Every figure", "", f"Drawn by `{command}`.", ""]
    for report in reports:
        name, title = report.experiment.name, report.experiment.title
        lines += [f"## {name}: {title}", ""]
        if report.undrawn:
            lines += [f"Not drawn: {report.undrawn}.", ""]
            continue
        basis = f" ({report.basis})" if report.basis else ""
        picture = f"![{title}](figures/{name}.png)"
        files = f"[SVG](figures/{name}.svg)"
        lines += [picture, "", f"{report.caption}{basis} {files}", ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
