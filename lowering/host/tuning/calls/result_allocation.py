"""Result allocation: the ufunc or copy that first fills a result allocates it.

That costs less than to allocate an empty array and fill it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import buffer_of
from lowering.host.evaluation.instructions import Instruction, View
from lowering.host.evaluation.nest_program import NestProgram
from lowering.host.evaluation.numpy_calls import yields
from lowering.host.result_pool import is_pooled
from lowering.host.source.array_names import is_whole
from lowering.host.tuning.instructions.blocking import BlockedProgram
from lowering.plan.conditional_nodes import IfElseNode, SwitchNode
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import Graph, KernelNode, walk
from lowering.plan.plan import Plan
from tracegraph.ir.types import broadcast_shapes


def allocating(
    plan: Plan, programs: Mapping[KernelNode, Sequence[NestProgram]]
) -> dict[Instruction, Buffer]:
    """The instructions whose result becomes an output of the plan, and which one."""
    # an output in the memory of an input exists already, and the pool allocates large ones
    made = (buffer for buffer in plan.outputs if buffer.space == "output")
    free = {buffer for buffer in made if not is_pooled(buffer.type)}
    free -= _viewed(plan, programs)
    found: dict[Instruction, Buffer] = {}
    for node in plan.graph.nodes:
        match node:
            case KernelNode():
                found |= _made_by(programs[node], free)
            case IfElseNode() | SwitchNode():
                found |= _made_in_all(node.bodies, programs, free)
            case _:
                break  # a loop may not run, or write twice
    return found


def _made_by(nests: Sequence[NestProgram], free: set[Buffer]) -> dict[Instruction, Buffer]:
    """The instructions of a kernel that are the first to access a free buffer, and make it."""
    found: dict[Instruction, Buffer] = {}
    for program in nests:
        for each in program.instructions:
            buffer = buffer_of(each.output)
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
    """The same for branches: only buffers that each of them makes."""
    found: list[dict[Instruction, Buffer]] = []
    untouched = set(free)
    for branch in branches:
        left, made = set(free), dict[Instruction, Buffer]()
        for node in branch.nodes:
            if not isinstance(node, KernelNode):
                left.clear()  # nested bodies are not analysed
                break
            made |= _made_by(programs[node], left)
        untouched &= left
        found.append(made)
    in_all = set(free).intersection(*(made.values() for made in found))
    free &= untouched
    return {each: b for made in found for each, b in made.items() if b in in_all}


def _runs_once(program: NestProgram) -> bool:
    """Whether it runs unconditionally, each instruction once."""
    return not isinstance(program, BlockedProgram) and not program.predicates


def _viewed(plan: Plan, programs: Mapping[KernelNode, Sequence[NestProgram]]) -> set[Buffer]:
    """The buffers that are accessed through a view other than their whole array."""
    seen: set[Buffer] = set()
    for node in walk(plan.graph):
        if not isinstance(node, KernelNode):
            seen |= node.accessed_buffers
            continue
        for program in programs[node]:
            for each in program.instructions:
                for value in (*each.inputs, each.output):
                    buffer = buffer_of(value)
                    if buffer is None or buffer.space != "output":
                        continue
                    whole = isinstance(value, View) and is_whole(value)
                    if not whole or each.kind == "assign":
                        seen.add(buffer)
    return seen


def _makes(instruction: Instruction) -> bool:
    """Whether the call without `out` returns the array that the output should be."""
    function, output = instruction.function, instruction.output
    if not isinstance(output, View):
        return False
    if function is numpy_calls.store:
        value = instruction.inputs[0]
        return (value.shape, value.dtype) == (output.shape, output.dtype)
    if not (isinstance(function, np.ufunc) and output.shape):
        return False
    shape = broadcast_shapes(*(operand.shape for operand in instruction.inputs))
    dtypes = [operand.dtype for operand in instruction.inputs]
    return shape == output.shape and yields(function, dtypes, output.dtype)


def _buffers(instruction: Instruction) -> set[Buffer | None]:
    return set(map(buffer_of, (*instruction.inputs, instruction.output)))
