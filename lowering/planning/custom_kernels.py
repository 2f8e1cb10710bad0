"""Kernels and captured calls of users: operands in memory, outputs written over some of them."""

from __future__ import annotations

from collections.abc import Sequence

from lowering.draft.draft_nodes import FinishedNode
from lowering.plan.calls.captured_call import CapturedCall
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.custom_kernel import CustomKernelNode
from lowering.plan.embedded_graph import EmbeddedGraphNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import space_index
from lowering.plan.nodes import LibraryNode
from lowering.planning.library_operands import contiguous, operand, strided
from lowering.planning.region_builder import RegionBuilder
from tracegraph.ir.custom_kernels import CapturedFunction, ForeignGraph
from tracegraph.ir.kernel_calls import KernelCall
from tracegraph.ir.program import Atom, Eqn


def custom_kernel(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the node, unless its outputs have no elements.

    A captured call is a library call, an embedded graph a node of its own. What a kernel writes
    over is copied to the output first; `drop_copies` removes the copy of an array that is not
    needed any more.
    """
    call = eqn.attrs["call"]
    types = tuple([atom.type.strong() for atom in eqn.operands])
    launch = call.launch(types)
    outputs = builder.results(eqn)
    if not any(type_.size for type_ in launch.out_types):
        return
    if isinstance(call.kernel.code, CapturedFunction):
        arrays = tuple([operand(builder, atom, contiguous) for atom in eqn.operands])
        captured = CapturedCall(call, arrays, tuple(map(StridedArray.whole, outputs)))
        builder.add(FinishedNode(LibraryNode(captured, builder.sources)))
        return
    if isinstance(call.kernel.code, ForeignGraph):
        builder.add(FinishedNode(_embedded(builder, call, eqn.operands, outputs)))
        return
    replaced = {operand: outputs[out] for out, operand in call.kernel.aliases.items()}
    buffers = {
        number: _whole_buffer(builder, atom)
        for number, atom in enumerate(eqn.operands)
        if number not in replaced
    }
    for number, buffer in replaced.items():
        builder.store_value(eqn.operands[number], buffer)
    arguments = tuple([{**buffers, **replaced}[number] for number in range(len(types))])
    node = CustomKernelNode(
        call, launch, types, arguments, outputs, builder.sources, builder.within
    )
    builder.add(FinishedNode(node))


def embedded_graph(builder: RegionBuilder, eqn: Eqn) -> None:
    """Emit the node of a graph that is run for its effect. The new token has no elements."""
    (token,) = eqn.outputs
    builder.bindings[token] = eqn
    builder.add(FinishedNode(_embedded(builder, eqn.attrs["call"], eqn.operands[1:], ())))


def _embedded(
    builder: RegionBuilder, call: KernelCall, operands: Sequence[Atom], outputs: Sequence[Buffer]
) -> EmbeddedGraphNode:
    """The node of somebody's graph."""
    arrays = tuple([operand(builder, atom, contiguous) for atom in operands])
    return EmbeddedGraphNode(call, arrays, tuple(map(StridedArray.whole, outputs)), builder.sources)


def _whole_buffer(builder: RegionBuilder, atom: Atom) -> Buffer:
    """A buffer that begins with the elements of a value: its own, or a copy."""
    shape = atom.type.shape
    index = space_index(shape)
    value = builder.element(atom, index, None)
    array = strided(value, shape)
    if array is not None and array.offset == 0 and contiguous(array) is not None:
        return array.buffer
    return builder.materialize(atom.type, value, index)
