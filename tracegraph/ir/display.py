"""How programs print and draw themselves: imported when one is."""

from __future__ import annotations

from tracegraph.inspection.drawable import VIEWS, Views
from tracegraph.ir.diagram import program_diagram
from tracegraph.ir.program import Program
from tracegraph.ir.text import program_line, program_text

VIEWS[Program] = Views(program_line, program_text, program_diagram)
