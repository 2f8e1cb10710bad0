"""How plans and nodes print and draw themselves: imported when one is."""

from __future__ import annotations

from lowering.plan.nodes import Node
from lowering.plan.plan import Plan
from lowering.plan.reports.diagram import node_diagram, plan_diagram, profile_diagram
from lowering.plan.reports.profile import Profile
from lowering.plan.reports.text import node_line, node_text, plan_line, plan_text
from tracegraph.inspection.drawable import VIEWS, Views

VIEWS[Plan] = Views(plan_line, plan_text, plan_diagram)
VIEWS[Profile] = Views(Profile.line, str, profile_diagram)
VIEWS[Node] = Views(node_line, node_text, node_diagram)
