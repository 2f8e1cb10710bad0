"""Reports on native code: the schedule of each nest, and what is a call of the host."""

from __future__ import annotations

from collections.abc import Iterator

from lowering.native.chunks import chunked_schedule_of
from lowering.native.compilation.code_files import why_not_kept
from lowering.native.compilation.compiler import Level, assembly
from lowering.native.compilation.first_level import rule_text
from lowering.native.compilation.llvm_turns import first_in_llvm
from lowering.native.graphs import WRITTEN
from lowering.native.module import modules_of
from lowering.native.nests.supported import missing
from lowering.native.products import has_routines
from lowering.plan.calls.matrix_product import MatrixProduct
from lowering.plan.nodes import KernelNode, LibraryNode, Node, walk
from lowering.plan.plan import Plan


def schedules_text(plan: Plan) -> str:
    """When which code runs, and a line for each node that is not a branch, a loop or a copy.

    A kernel has a line for each nest.

    >>> import numpy as np, tracegraph
    >>> plan = tracegraph.jit(lambda x: x.sum(0), device="host").lower(np.ones((100, 64))).plan
    >>> print(schedules_text(plan).splitlines()[-1].strip())
    lambda_k0: i0 < 64: fold over i1 < 100, columns
    """
    reason = why_not_kept()
    kept = (f"not kept on disk: {reason}",) if reason else ()
    lines = (*kept, *_lines(plan))
    return "\n".join((f"native code: {rule_text(plan)}", *(f"  {line}" for line in lines)))


def _lines(plan: Plan) -> Iterator[str]:
    for node in walk(plan.graph):
        if isinstance(node, KernelNode):
            for nest in node.kernel.nests:
                lacking = missing(nest)
                how = (
                    f"a call of the host, for {lacking}"
                    if lacking
                    else str(chunked_schedule_of(nest))
                )
                yield f"{node.kernel.name}: {how}"
        elif isinstance(node, LibraryNode) and isinstance(node.call, MatrixProduct):
            how = "BLAS" if has_routines(node.call) else "a call of the host"
            yield f"{node.title}: {how}"
        elif _is_called(node):
            yield f"{node.title}: a call of the host"


def _is_called(node: Node) -> bool:
    return type(node) not in WRITTEN or isinstance(node, LibraryNode)


def source_text(plan: Plan) -> str:
    """The schedules as comments, and the LLVM IR of a plan without that of the library."""
    comments = "\n".join(f"; {line}" for line in schedules_text(plan).split("\n"))
    return f"{comments}\n{modules_of(plan).text}"


def assembly_text(plan: Plan, level: Level = "full") -> str:
    """The assembly of a plan for this processor, from quick or full code.

    >>> import numpy as np, tracegraph
    >>> lowered = tracegraph.jit(lambda x: x + 1, device="host").lower(np.ones(3))
    >>> "run:" in assembly_text(lowered.plan)
    True
    """
    with first_in_llvm():
        return "\n".join(assembly(each.joined(), level) for each in modules_of(plan).modules)
