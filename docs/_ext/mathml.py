"""Formulas as MathML, which browsers draw by themselves: no script, no font, nothing to fetch."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, wrap_math_code
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def drawn(node: nodes.Element, display: bool) -> str:
    """The MathML of a formula; what cannot be drawn is a warning, and shown as it was written."""
    text = node.astext()
    code = wrap_math_code(text, as_block=True) if display else text
    try:
        return tex2mathml(code, as_block=display)
    except MathError as error:
        logger.warning("formula %r: %s", text, error, location=node)
        return f"<code>{text}</code>"


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(drawn(node, False))
    raise nodes.SkipNode


def visit_math_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{drawn(node, True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
