"""Code of classes of nodes: kernels that they are launched as, and parts of persistent kernels.

Kernel nodes and what has bodies are written by `translation_unit` and `persistent`, and are not in
the table; nor are nodes of libraries and users, which have no code of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any

from lowering.codegen.kernel_code import KernelCode
from lowering.codegen.persistent.storage import copy_elements
from lowering.codegen.sorting.selection_kernels import SelectionKernels
from lowering.codegen.sorting.sort_kernels import SortKernels
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import MemcpyNode, Node
from lowering.plan.selection import SelectionNode
from lowering.plan.sort import SortNode
from lowering.plan.target.hardware import WARP
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class NodeCode:
    """What is written for a class of nodes.

    Args:
        kernels: the text of each kernel of a node, called `NAME`, and how it is launched: one after
            the other. Given the buffers whose addresses are read from the pointer table.
        phase: writes the statements of a node that `may_be_phase` of a persistent kernel.
    """

    kernels: Callable[[Any, Set[Buffer]], Iterable[tuple[str, KernelCode]]] | None = None
    phase: Callable[[SourceWriter, Scope, Any], None] | None = None


def _write_copy(writer: SourceWriter, scope: Scope, node: MemcpyNode) -> None:
    """Write the copy of a buffer's elements, or of its bytes."""
    target, source = (writer.pointers[b] for b in (node.target, node.source_buffer))
    size = node.target.type.size
    if node.target.type.dtype != node.source_buffer.type.dtype:
        size = node.target.type.nbytes
        target, source = f"((unsigned char*){target})", f"((const unsigned char*){source})"
    copy_elements(writer, size, scope, target, source)


def _write_warps(writer: SourceWriter, scope: Scope, node: CustomKernelNode) -> None:
    """Write the calls of a function that warps share."""
    function = node.call.kernel.warp_function
    assert function is not None
    assert scope.threads >= WARP, "a warp runs it"
    given = [
        writer.pointers[each] if isinstance(each, Buffer) else f"{each.value}ll"
        for each in node.parameters
    ]
    first, warps = f"thread / {WARP}", f"{scope.threads // WARP}"
    if scope.blocks > 1:  # one in each block first
        first, warps = f"{first} * int(gridDim.x) + int(blockIdx.x)", f"int(gridDim.x) * {warps}"
    call = f"{function.name}({', '.join(['part', *given])});"
    writer.line("#pragma unroll 1")
    writer.line(f"for (int part = {first}; part < {node.parts}; part += {warps}) {call}")


NODE_CODE: dict[type[Node], NodeCode] = {
    SortNode: NodeCode(kernels=SortKernels),
    SelectionNode: NodeCode(kernels=SelectionKernels),
    MemcpyNode: NodeCode(phase=_write_copy),
    CustomKernelNode: NodeCode(phase=_write_warps),
}
