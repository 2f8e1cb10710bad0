"""The LLVM module of a plan: one function, and what calling it takes.

    i32 run(ptr table)

`table` has the addresses of arguments, results, constants, functions and of the scratch memory. The
result is 0, or 1 if a call of the host failed: the run then ended there.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from lowering.native.graphs import STOPPED, NativeGraphWriter
from lowering.native.host_calls import Sites
from lowering.native.table import Table
from lowering.plan.plan import Plan

ENTRY = "run"
"""The name of the function."""


@dataclass(frozen=True)
class NativeModule:
    """The text of a module, the library functions that it calls, its table and its sites."""

    text: str
    functions: frozenset[str]
    table: Table
    sites: Sites


def module_of(plan: Plan, order: Random | None = None) -> NativeModule:
    """The module of a plan; with `order`, nodes are in a random order that their edges allow."""
    graphs = NativeGraphWriter(plan, order)
    graphs.write(plan.graph)
    writer = graphs.writer
    lines = [
        *writer.globals,
        f"define i32 @{ENTRY}(ptr %table) #0 {{",
        "  %arena = load ptr, ptr %table",
        "  %failed = call i32 @plan(ptr %table, ptr %arena)",
        "  ret i32 %failed",
        "}",
        "define internal i32 @plan(ptr noalias readonly %table, ptr noalias %arena) #1 {",
        "entry:",
        *writer.frame,
        *writer.lines,
        "  ret i32 0",
        f"{STOPPED}:",
        "  ret i32 1",
        "}",
        *writer.functions,
        *graphs.polls.functions,
        *writer.declarations,
        "attributes #0 = { nounwind }",
        "attributes #1 = { nounwind noinline }",
        *writer.metadata,
        "",
    ]
    return NativeModule(
        "\n".join(lines), frozenset(graphs.operations.functions), graphs.table, graphs.sites
    )
