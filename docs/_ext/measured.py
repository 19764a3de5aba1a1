"""Tables that benchmarks write: included if they are there, named if they are not.

A block ``{measured} general`` of a Markdown page becomes the inclusion of
``benchmarks/results/general.md``. Without that file it becomes a sentence, so that a checkout in
which a benchmark has not been run still builds.
"""

import re
from pathlib import Path

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
BLOCK = re.compile(r"^```\{measured\} (\S+)\n(?::heading-offset: (\d+)\n)?```$", flags=re.M)


def with_tables(text, results=RESULTS):
    """Return the page with its blocks replaced."""

    def block(found):
        name, offset = found[1], found[2] or "2"
        if not (results / f"{name}.md").exists():
            return f"`benchmarks/results/{name}.md` is not part of this build."
        return f"```{{include}} ../benchmarks/results/{name}.md\n:heading-offset: {offset}\n```"

    return BLOCK.sub(block, text)


def setup(app):
    """Replace the blocks of every page as it is read."""

    def _read(app, docname, source):
        source[0] = with_tables(source[0])

    app.connect("source-read", _read)
    return {"version": "1", "parallel_read_safe": True}
