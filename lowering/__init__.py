"""From a Program to a running graph: Program -> Plan -> Executable.

Internal to tracegraph, which imports it when a function is first compiled.
"""

from lowering.backends.profiles import profile as profile
from lowering.backends.registry import backend as backend
from lowering.backends.registry import create_stream as create_stream
from lowering.backends.registry import default_device as default_device
from lowering.backends.registry import explain as explain
from lowering.backends.registry import reset as reset
from lowering.backends.registry import source as source
from lowering.backends.registry import synchronize as synchronize
from lowering.backends.registry import trim as trim
from lowering.lower import lower as lower
from lowering.plan.reports.explain import memory as memory
from lowering.plan.reports.explain import schedules as schedules
from lowering.plan.reports.graphviz import dot as dot
from tracegraph.user_source import add_own

add_own(__file__)

# tracegraph compares it with its own version, to know this package from another of the name.
TRACEGRAPH_VERSION = "0.1.0"
