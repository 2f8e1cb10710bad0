"""Layout propagation: transpose the inputs of a chain of calls if that moves fewer bytes.

A call that reads one memory order and writes another misses the cache at each element, or starts an
inner loop for each short row. What is computed from a transposed argument has the argument's order,
but results are row-major. If several results need the other order, it is cheaper to transpose the
argument once than each result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from lowering.host.evaluation import numpy_calls
from lowering.host.evaluation.hazards import Overlaps, buffer_of, stored_buffer
from lowering.host.evaluation.instructions import Instruction, NumpyValue, Temporary, View
from lowering.host.tuning.groups.access_orders import MOST_COLUMNS
from lowering.host.tuning.instructions.memory_orders import memory_order
from lowering.host.tuning.instructions.pointwise import is_pointwise
from lowering.host.tuning.instructions.reversed_chains import LEAST_ELEMENTS


@dataclass(frozen=True, slots=True)
class _Chain:
    """The values that `ends` read in another memory order than the `order` that they write.

    `members` are computed pointwise from each other and the `sources`; nothing else reads them.
    """

    order: tuple[int, ...] | None
    members: set[NumpyValue]
    sources: set[NumpyValue]
    ends: set[Instruction]


def propagate_layouts(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions, with transposed copies of sources in place of transposing calls."""
    result = list(instructions)
    for _ in instructions:
        found = _with_one_transposed(result, overlaps)
        if found is None:
            break
        result = found
    return result


def _with_one_transposed(
    instructions: Sequence[Instruction], overlaps: Overlaps
) -> list[Instruction] | None:
    """The instructions with the first chain transposed for which it pays; None if there is none."""
    transposing = [each for each in instructions if _transposed_inputs(each)]
    if not transposing:
        return None
    makers: dict[NumpyValue, Instruction] = {
        each.output: each for each in instructions if isinstance(each.output, Temporary)
    }
    readers: dict[NumpyValue, list[Instruction]] = {}
    for each in instructions:
        for value in dict.fromkeys(each.inputs):
            readers.setdefault(value, []).append(each)
    while transposing:
        chain = _chain_of(transposing[0], makers, readers)
        if _pays(chain, makers) and not _changes(chain, instructions, overlaps):
            return _transposed(chain, instructions)
        transposing = [each for each in transposing[1:] if each not in chain.ends]
    return None


def _transposed_inputs(reader: Instruction) -> list[NumpyValue]:
    """The inputs of a pointwise call in another memory order than its output."""
    output = reader.output
    if not isinstance(output, View | Temporary) or not is_pointwise(reader):
        return []
    if reader.function is not numpy_calls.store and prod(output.shape) < LEAST_ELEMENTS:
        return []
    alike = [each for each in dict.fromkeys(reader.inputs) if each.shape == output.shape]
    return [each for each in alike if memory_order(each) != memory_order(output)]


def _chain_of(
    end: Instruction,
    makers: Mapping[NumpyValue, Instruction],
    readers: Mapping[NumpyValue, Sequence[Instruction]],
) -> _Chain:
    """The chain that ends in a call."""
    assert end.output is not None
    order, found = memory_order(end.output), _transposed_inputs(end)
    seen: set[NumpyValue] = set()
    ends: set[Instruction] = set()
    while found:
        value = found.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in makers and _may_transpose(makers[value], value, order):
            found += [each for each in makers[value].inputs if each.shape == value.shape]
        for reader in readers.get(value, ()) if memory_order(value) != order else ():
            if value in _transposed_inputs(reader) and _writes_in(reader, order):
                ends.add(reader)
            elif reader.output is not None and _may_transpose(reader, value, order):
                found.append(reader.output)
    members = {v for v in seen if v in makers and _may_transpose(makers[v], v, order)}

    def is_read_elsewhere(value: NumpyValue) -> bool:
        return any(r not in ends and r.output not in members for r in readers.get(value, ()))

    while excluded := [value for value in members if is_read_elsewhere(value)]:
        members.difference_update(excluded)
    read = {r for value in members for r in makers[value].inputs if r.shape == value.shape}
    read.update(r for each in ends for r in _transposed_inputs(each))
    return _Chain(order, members, read - members, ends)


def _writes_in(call: Instruction, order: tuple[int, ...] | None) -> bool:
    return call.output is not None and memory_order(call.output) == order


def _may_transpose(call: Instruction, value: NumpyValue, order: tuple[int, ...] | None) -> bool:
    """Whether a call makes a temporary of the value's shape pointwise, and may do so in this order.

    A call that already transposes to that order may not.
    """
    if not isinstance(call.output, Temporary) or call.output.shape != value.shape:
        return False
    if call.keeps or not (call.elementwise or is_pointwise(call)):
        return False
    return not (_writes_in(call, order) and _transposed_inputs(call))


def _against(chain: _Chain) -> set[NumpyValue]:
    """The sources that have another memory order."""
    return {source for source in chain.sources if memory_order(source) != chain.order}


def _pays(chain: _Chain, makers: Mapping[NumpyValue, Instruction]) -> bool:
    """Whether fewer bytes are transposed or computed in short rows afterwards."""
    values = chain.members | chain.sources
    transposed = _nbytes(r for end in chain.ends for r in _transposed_inputs(end) if r in values)
    short = _nbytes(v for v in chain.members if _has_short_rows(makers[v], memory_order(v)))
    then = _nbytes(v for v in chain.members if _has_short_rows(makers[v], chain.order))
    return _nbytes(_against(chain)) + then < transposed + short


def _has_short_rows(call: Instruction, order: tuple[int, ...] | None) -> bool:
    """Whether a call with an output in this order broadcasts an operand along short rows."""
    assert call.output is not None
    shape = call.output.shape
    row = next((shape[d] for d in reversed(order or range(len(shape))) if shape[d] > 1), 1)
    broadcast = any(prod(each.shape) > 1 and each.shape != shape for each in call.inputs)
    return broadcast and row <= MOST_COLUMNS


def _nbytes(values: Iterable[NumpyValue]) -> int:
    return sum(each.nbytes for each in values)


def _changes(chain: _Chain, instructions: Sequence[Instruction], overlaps: Overlaps) -> bool:
    """Whether a source may be written before the whole chain has read it."""
    sources = [buffer for each in _against(chain) if (buffer := buffer_of(each)) is not None]
    if not sources:
        return False
    used = [i for i, each in enumerate(instructions) if _is_of(chain, each)]
    written = map(stored_buffer, instructions[used[0] : used[-1]])
    return any(b is not None and overlaps(b, source) for b in written for source in sources)


def _is_of(chain: _Chain, instruction: Instruction) -> bool:
    return instruction.output in chain.members or instruction in chain.ends


def _transposed(chain: _Chain, instructions: Sequence[Instruction]) -> list[Instruction]:
    against = _against(chain)
    replacement: dict[NumpyValue, NumpyValue] = {
        each: Temporary(each.dtype, each.shape, each.dims, chain.order)
        for each in (*chain.members, *against)
    }
    copies: dict[NumpyValue, NumpyValue] = {  # a transposing copy is now the value itself
        end.output: replacement[end.inputs[0]]
        for end in chain.ends
        if isinstance(end.output, Temporary) and end.function is numpy_calls.store
    }
    result: list[Instruction] = []
    for each in instructions:
        if not _is_of(chain, each):
            result.append(each.renamed(copies))
            continue
        for source in [r for r in dict.fromkeys(each.inputs) if r in against]:
            copy = Instruction(
                "write", numpy_calls.store, (source,), replacement[source], elementwise=True
            )
            result.append(copy)
            against.remove(source)
        if each.output not in copies:
            result.append(each.renamed(replacement | copies))
    return result
