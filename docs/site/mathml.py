"""Formulas as MathML: browsers draw it themselves, without scripts, fonts or a network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert


def visit_inline(self: Any, node: nodes.math) -> None:
    """A formula within a line."""
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def visit_block(self: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own."""
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Make `html_math_renderer = "mathml"` known."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
