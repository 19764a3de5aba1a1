"""Formulas drawn as SVG while the site is built: they need no script, no font and no network.

An outline takes the colour and the size of the text around it. Its TeX source is its label for
readers who listen.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import ziafont
import ziamath
from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata
    from sphinx.writers.html5 import HTML5Translator

_UNITS = 20.0  # of the drawing, an em
ziafont.config.svg2 = False  # paths in place: the glyphs of two drawings cannot be confused


@cache
def drawn(tex: str, *, inline: bool) -> str:
    """Return a formula as an SVG element whose lengths are in em."""
    if unknown := re.search(
        r"\\[a-zA-Z]+", convert(tex)
    ):  # passed on as it is, to be drawn as text
        raise ValueError(f"{unknown[0]} cannot be drawn, in the formula {tex!r}")
    formula = ziamath.Latex(tex, size=_UNITS, inline=inline, color="currentColor", margin=1)
    svg = formula.svgxml()
    _, top, width, height = (float(x) / _UNITS for x in svg.attrib["viewBox"].split())
    svg.attrib.pop("width", None)
    svg.attrib.pop("height", None)
    svg.attrib |= {
        "class": "formula",
        "role": "img",
        "aria-label": tex,
        # The baseline of the drawing is at y = 0.
        "style": f"width:{width:.3f}em;height:{height:.3f}em;vertical-align:{-top - height:.3f}em",
    }
    return ElementTree.tostring(svg, encoding="unicode")


def aligned(tex: str) -> str:
    """Return the source of a block, lines aligned if it has several."""
    tex = " ".join(tex.split())
    return rf"\begin{{aligned}}{tex}\end{{aligned}}" if r"\\" in tex else tex


def _visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(drawn(" ".join(node.astext().split()), inline=True))
    raise nodes.SkipNode


def _visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula-block"))
    self.body.append(drawn(aligned(node.astext()), inline=False))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer ``drawn``."""
    nothing: Any = None  # both visitors end the node themselves
    app.add_html_math_renderer("drawn", (_visit_inline, nothing), (_visit_block, nothing))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
