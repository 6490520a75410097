"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing to fetch."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

NARROW = r'<mo stretchy="false" lspace="0" rspace="0">|</mo>'
CHANGES = {  # what browsers would draw otherwise than TeX does
    re.compile(r"<mo>([{}‖∥])</mo>"): r'<mo stretchy="false">\1</mo>',  # not as high as all that is beside it
    re.compile(r'<mo(?: stretchy="false")?>\|</mo>'): NARROW,  # of a size; \mid is another
    re.compile(r'<mi class="capital-greek">'): '<mi mathvariant="normal">',  # upright
    re.compile(r"(?<=<mo>&ApplyFunction;</mo>)(?=\s*<m(?!o))"): '<mspace width="0.167em"></mspace>',  # log p
    re.compile("⧵"): r"\\",  # for which many fonts have nothing
}
ACCENTED = re.compile(r"(\{?\\(?:tilde|hat|bar)\s*\{?\w\}?\}?)_")  # else docutils puts the subscript below
logger = logging.getLogger(__name__)


def drawn(node: nodes.Element, display: bool) -> str:
    """The MathML of a formula; what cannot be drawn is a warning, and shown as it was written."""
    text = node.astext()
    text = ACCENTED.sub(r"\1{}_", text)
    code = rf"\begin{{align*}}{text}\end{{align*}}" if r"\\" in text and r"\begin" not in text else text
    try:
        drawing = tex2mathml(code, as_block=display)
    except MathError as error:
        logger.warning("formula %r: %s", text, error, location=node)
        return f"<code>{text}</code>"
    for pattern, change in CHANGES.items():
        drawing = pattern.sub(change, drawing)
    return drawing


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(drawn(node, False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{drawn(node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
