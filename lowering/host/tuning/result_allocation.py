"""Result allocation: the ufunc or copy that first fills a result allocates it.

That costs less than to allocate an empty array and fill it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lowering.host import numpy_calls as functions
from lowering.host.array_names import is_whole
from lowering.host.instructions import DynamicView, Instruction, NumpyValue, View
from lowering.host.nest_program import NestProgram
from lowering.host.numpy_calls import yields
from lowering.host.result_pool import is_pooled
from lowering.host.tuning.blocking import BlockedProgram
from lowering.plan.buffer import Buffer
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode
from lowering.plan.nodes import Graph, KernelNode, walk
from lowering.plan.plan import Plan


def allocating(
    plan: Plan, programs: Mapping[KernelNode, Sequence[NestProgram]]
) -> dict[Instruction, Buffer]:
    """The instructions whose result becomes an output of the plan, and which one."""
    # an output that is written over an input has its memory, a large one that of the pool
    made = (buffer for buffer in plan.outputs if buffer.space == "output")
    free = {buffer for buffer in made if not is_pooled(buffer.type)}
    free -= _seen_in_part(plan, programs)
    found: dict[Instruction, Buffer] = {}
    for node in plan.graph.nodes:
        match node:
            case KernelNode():
                found |= _made_by(programs[node], free)
            case IfElseNode() | SwitchNode():
                found |= _made_in_all(node.bodies, programs, free)
            case _:
                break  # what a loop writes, it may not write
    return found


def _made_by(nests: Sequence[NestProgram], free: set[Buffer]) -> dict[Instruction, Buffer]:
    """The instructions of a kernel that make a free buffer; what it touches is free no more."""
    found: dict[Instruction, Buffer] = {}
    for program in nests:
        for each in program.instructions:
            buffer = _buffer(each.output)
            if buffer in free and _runs_once(program) and _makes(each):
                assert buffer is not None
                found[each] = buffer
            free.difference_update(_buffers(each))
    return found


def _made_in_all(
    branches: Sequence[Graph],
    programs: Mapping[KernelNode, Sequence[NestProgram]],
    free: set[Buffer],
) -> dict[Instruction, Buffer]:
    """The same of branches, one of which runs: they make what each of them makes."""
    found: list[dict[Instruction, Buffer]] = []
    untouched = set(free)
    for branch in branches:
        left, made = set(free), dict[Instruction, Buffer]()
        for node in branch.nodes:
            if not isinstance(node, KernelNode):
                left.clear()  # what is made further inside is not seen out here
                break
            made |= _made_by(programs[node], left)
        untouched &= left
        found.append(made)
    in_all = set(free).intersection(*(made.values() for made in found))
    free &= untouched
    return {each: b for made in found for each, b in made.items() if b in in_all}


def _runs_once(program: NestProgram) -> bool:
    """Whether it runs in any case, and each instruction once."""
    return not isinstance(program, BlockedProgram) and not program.predicates


def _seen_in_part(plan: Plan, programs: Mapping[KernelNode, Sequence[NestProgram]]) -> set[Buffer]:
    """The buffers that something sees otherwise than as the array that they are."""
    seen: set[Buffer] = set()
    for node in walk(plan.graph):
        if not isinstance(node, KernelNode):
            seen |= node.accessed_buffers
            continue
        for program in programs[node]:
            for each in program.instructions:
                for register in (*each.inputs, each.output):
                    buffer = _buffer(register)
                    if buffer is None or buffer.space != "output":
                        continue
                    whole = isinstance(register, View) and is_whole(register)
                    if not whole or each.kind == "assign":
                        seen.add(buffer)
    return seen


def _makes(instruction: Instruction) -> bool:
    """Whether the result of the bare call is the array that the output should be."""
    function, output = instruction.function, instruction.output
    if not isinstance(output, View):
        return False
    if function is functions.store:
        value = instruction.inputs[0]
        return (value.shape, value.dtype) == (output.shape, output.dtype)
    if not (isinstance(function, np.ufunc) and output.shape):
        return False
    shape = np.broadcast_shapes(*(register.shape for register in instruction.inputs))
    dtypes = [register.dtype for register in instruction.inputs]
    return shape == output.shape and yields(function, dtypes, output.dtype)


def _buffers(instruction: Instruction) -> set[Buffer | None]:
    return set(map(_buffer, (*instruction.inputs, instruction.output)))


def _buffer(register: NumpyValue | None) -> Buffer | None:
    return register.buffer if isinstance(register, View | DynamicView) else None
