"""From a Program to a running graph: Program -> Plan -> Executable.

Internal to tracegraph, which imports it when a function is first compiled.
"""

from lowering.backends.registry import (
    backend,
    create_stream,
    default_device,
    reset,
    source,
    synchronize,
    trim,
)
from lowering.lower import lower
from lowering.plan.reports import display as _views  # noqa: F401 - printers
from lowering.plan.reports.explain import explain, memory, schedules
from lowering.plan.reports.graphviz import dot
from tracegraph.user_source import add_own

add_own(__file__)

# tracegraph compares it with its own version, to know this package from another of the name.
TRACEGRAPH_VERSION = "0.1.0"

__all__ = [
    "TRACEGRAPH_VERSION",
    "backend",
    "create_stream",
    "default_device",
    "dot",
    "explain",
    "lower",
    "memory",
    "reset",
    "schedules",
    "source",
    "synchronize",
    "trim",
]
