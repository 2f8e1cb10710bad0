"""The LLVM modules of a plan: one function, those that it calls, and what calling it takes.

    i32 run(ptr table)

`table` has the addresses of arguments, results, constants, functions and of the scratch memory. The
result is 0, or 1 if a call of the host failed: the run then ended there. A large plan has further
functions, each with a module of its own:

    i64 part1(ptr table, ptr arena, ptr conditions)
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from lowering.native.host_calls import Sites
from lowering.native.library.load import ModuleText
from lowering.native.table import Table
from lowering.plan.plan import Plan
from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from lowering.native.graphs import NativeGraphWriter

ENTRY = "run"
"""The name of the function."""


@dataclass(frozen=True)
class NativeModules:
    """The modules of a plan, the first one with its function; the table and the sites."""

    modules: tuple[ModuleText, ...]
    table: Table
    sites: Sites

    @property
    def text(self) -> str:
        """The texts of all modules."""
        return "\n".join(module.text for module in self.modules)


def modules_of(plan: Plan, order: Random | None = None) -> NativeModules:
    """The modules of a plan; with `order`, nodes are in a random order that their edges allow."""
    from lowering.native.graphs import NativeGraphWriter  # modules on disk need no writer

    graphs = NativeGraphWriter(plan, order)
    graphs.write(plan.graph)
    entry = [
        f"define i32 @{ENTRY}(ptr %table) #0 {{",
        "  %arena = load ptr, ptr %table",
        "  %failed = call i64 @plan(ptr %table, ptr %arena)",
        "  %short = trunc i64 %failed to i32",
        "  ret i32 %short",
        "}",
        "define internal i64 @plan(ptr noalias readonly %table, ptr noalias %arena) #1 {",
    ]
    texts = [_text(graphs, entry)]
    pointers = "ptr noalias readonly %table, ptr noalias %arena, ptr noalias %conditions"
    for number, part in enumerate(graphs.parts, 1):
        texts.append(_text(part, [f"define i64 @part{number}({pointers}) #1 {{"]))
    return NativeModules(tuple(texts), graphs.table, graphs.sites)


def _text(graphs: NativeGraphWriter, head: list[str]) -> ModuleText:
    """The module of one function that begins with `head`."""
    from lowering.native.graphs import STOPPED

    writer = graphs.writer
    lines = [
        *writer.globals,
        *head,
        "entry:",
        *writer.frame,
        *writer.lines,
        "  ret i64 0",
        f"{STOPPED}:",
        "  ret i64 1",
        "}",
        *writer.functions,
        *graphs.polls.functions,
        *writer.declarations,
        "attributes #0 = { nounwind }",
        "attributes #1 = { nounwind noinline }",
        *writer.metadata,
        "",
    ]
    return ModuleText("\n".join(lines), frozenset(graphs.operations.functions))
