"""Formulas as MathML, made by docutils: browsers show it by themselves, and no script is loaded."""

import re
from html import escape

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)

# docutils reads \frac12 as "12 over what follows"; TeX reads one digit at a time.
DIGITS = re.compile(r"(\\[dt]?frac)\s*(\d)\s*(\d)")
# Between a function and its argument goes a thin space, unless there is a bracket.
APPLIED = re.compile(r"<mo>&ApplyFunction;</mo>(?!\s*(?:<mrow>\s*)?<mo[^>]*>[(\[{|])")
# Bars grow with what they enclose, but not those with an index, so that a norm would look lopsided.
BARS = re.compile(r"<mo>([|‖])</mo>")
THIN_SPACE = '<mspace width="0.167em"></mspace>'


def to_mathml(text: str, block: bool = False) -> str:
    """Convert a formula of LaTeX."""
    found = tex2mathml(DIGITS.sub(r"\1{\2}{\3}", text), as_block=block)
    found = BARS.sub(r'<mo stretchy="false">\1</mo>', found)
    return APPLIED.sub(lambda match: match[0] + THIN_SPACE, found)


def _converted(node: nodes.Element, block: bool) -> str:
    text = node.astext().strip()
    try:
        return to_mathml(text, block)
    except MathError as error:
        logger.warning("this formula cannot be shown: %s\n%s", error, text, location=node)
        return f"<code>{escape(text)}</code>"


def visit_math(self, node):
    """Write a formula within a line."""
    self.body.append(_converted(node, False))
    raise nodes.SkipNode


def visit_math_block(self, node):
    """Write a formula of its own, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append(_converted(node, True) + "</div>\n")
    raise nodes.SkipNode


def setup(app):
    """Make it known to Sphinx as ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
