"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing to fetch."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

STRETCHED = re.compile(r"<mo>([{}‖∥])</mo>")  # which browsers would draw as high as all that is beside them
BAR = re.compile(r"<mo[^>]*>\|</mo>")  # of |c|, which stands close; what is given has another sign, of \mid
NAME = re.compile(r"(<mo>&ApplyFunction;</mo>)(?!\s*<mo[^>]*>[(\[])")  # log of what is in no brackets
AFTER = re.compile(r"(</(?:mi|mn|mover|msub|msup)>)(\s*<mi>(?:exp|log|max|min)</mi>)")  # κ log c
GAP = '<mspace width="0.17em"></mspace>'
ACCENTED = re.compile(r"(\{?\\(?:tilde|hat|bar)\s*\{?\w\}?\}?)_")  # else docutils puts the subscript below
logger = logging.getLogger(__name__)


def drawn(node: nodes.Element, display: bool) -> str:
    """The MathML of a formula; what cannot be drawn is a warning, and shown as it was written."""
    text = node.astext()
    text = ACCENTED.sub(r"\1{}_", text)
    code = rf"\begin{{align*}}{text}\end{{align*}}" if r"\\" in text and r"\begin" not in text else text
    try:
        return spaced(tex2mathml(code, as_block=display))
    except MathError as error:
        logger.warning("formula %r: %s", text, error, location=node)
        return f"<code>{text}</code>"


def spaced(formula: str) -> str:
    """MathML with the heights and gaps that TeX would give it, in characters that fonts have."""
    formula = STRETCHED.sub(r'<mo stretchy="false">\1</mo>', formula)
    formula = BAR.sub('<mo stretchy="false" lspace="0" rspace="0">|</mo>', formula)
    formula = AFTER.sub(r"\1" + GAP + r"\2", NAME.sub(r"\1" + GAP, formula))
    formula = formula.replace('<mi class="capital-greek">', '<mi mathvariant="normal">')  # upright
    return formula.replace("\u29f5", "\u2216")


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(drawn(node, False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{drawn(node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
