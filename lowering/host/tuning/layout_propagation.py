"""Values that are read or stored in another order of memory than they are made in: made in that
order, if what they are made of takes fewer bytes to turn.

A call that reads along one axis of memory and writes along another starts an inner loop for each
short row, or misses the cache at each element. A transposed argument comes with its columns one
after the other, and so lies all that is made of it; results are to be in row-major order. Of three
results, each would be copied against the grain, and so would what is read beside values that lie by
rows: the argument is, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from lowering.host import numpy_calls as functions
from lowering.host.instructions import Instruction, NumpyValue, Temporary, View, memory_order
from lowering.host.tuning.access_orders import MOST_COLUMNS
from lowering.host.tuning.reversed_views import LEAST_ELEMENTS
from lowering.host.tuning.store_forwarding import Overlaps, read_buffer, stored_buffer


@dataclass(frozen=True, slots=True)
class _Chain:
    """What `ends` read in another order than the `order` that they write: `members` are made of
    each other and of the `sources`, element by element, and nothing else reads them.
    """

    order: tuple[int, ...] | None
    members: set[NumpyValue]
    sources: set[NumpyValue]
    ends: set[Instruction]


def propagate_layouts(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """The instructions, with copies of sources instead of calls that read what is made of them
    against the grain.
    """
    result = list(instructions)
    for _ in instructions:
        turned = _with_one_turned(result, overlaps)
        if turned is None:
            break
        result = turned
    return result


def _with_one_turned(
    instructions: Sequence[Instruction], overlaps: Overlaps
) -> list[Instruction] | None:
    """The instructions with the first chain turned for which it pays, if there is one."""
    crossing = [each for each in instructions if _read_across(each)]
    if not crossing:
        return None
    makers: dict[NumpyValue, Instruction] = {
        each.output: each for each in instructions if isinstance(each.output, Temporary)
    }
    readers: dict[NumpyValue, list[Instruction]] = {}
    for each in instructions:
        for register in dict.fromkeys(each.inputs):
            readers.setdefault(register, []).append(each)
    while crossing:
        chain = _chain_of(crossing[0], makers, readers)
        if _pays(chain, makers) and not _changes(chain, instructions, overlaps):
            return _turned(chain, instructions)
        crossing = [each for each in crossing[1:] if each not in chain.ends]
    return None


def _read_across(reader: Instruction) -> list[NumpyValue]:
    """The values that a call reads in another order of memory than it writes."""
    output = reader.output
    if not isinstance(output, View | Temporary) or not functions.is_pointwise(reader):
        return []
    if reader.function is not functions.store and prod(output.shape) < LEAST_ELEMENTS:
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
    order, found = memory_order(end.output), _read_across(end)
    seen: set[NumpyValue] = set()
    ends: set[Instruction] = set()
    while found:
        value = found.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in makers and _may_turn(makers[value], value, order):
            found += [each for each in makers[value].inputs if each.shape == value.shape]
        for reader in readers.get(value, ()) if memory_order(value) != order else ():
            if value in _read_across(reader) and _writes_in(reader, order):
                ends.add(reader)
            elif reader.output is not None and _may_turn(reader, value, order):
                found.append(reader.output)
    members = {v for v in seen if v in makers and _may_turn(makers[v], v, order)}

    def is_read_as_it_lies(value: NumpyValue) -> bool:
        return any(r not in ends and r.output not in members for r in readers.get(value, ()))

    while staying := [value for value in members if is_read_as_it_lies(value)]:
        members.difference_update(staying)
    read = {r for value in members for r in makers[value].inputs if r.shape == value.shape}
    read.update(r for each in ends for r in _read_across(each))
    return _Chain(order, members, read - members, ends)


def _writes_in(call: Instruction, order: tuple[int, ...] | None) -> bool:
    return call.output is not None and memory_order(call.output) == order


def _may_turn(call: Instruction, value: NumpyValue, order: tuple[int, ...] | None) -> bool:
    """Whether a call makes a temporary of a value's shape, element by element, and could as well
    do so in an order, for it does not read across to that already.
    """
    if not isinstance(call.output, Temporary) or call.output.shape != value.shape:
        return False
    if call.keeps or not (call.elementwise or functions.is_pointwise(call)):
        return False
    return not (_writes_in(call, order) and _read_across(call))


def _against(chain: _Chain) -> set[NumpyValue]:
    """The sources that lie in another order."""
    return {source for source in chain.sources if memory_order(source) != chain.order}


def _pays(chain: _Chain, makers: Mapping[NumpyValue, Instruction]) -> bool:
    """Whether fewer bytes are turned or made in short rows, of which each is an inner loop."""
    values = chain.members | chain.sources
    across = _nbytes(r for end in chain.ends for r in _read_across(end) if r in values)
    short = _nbytes(v for v in chain.members if _goes_by_short_rows(makers[v], memory_order(v)))
    then = _nbytes(v for v in chain.members if _goes_by_short_rows(makers[v], chain.order))
    return _nbytes(_against(chain)) + then < across + short


def _goes_by_short_rows(call: Instruction, order: tuple[int, ...] | None) -> bool:
    """Whether a call that fills an array of an order reads others beside it, row by short row."""
    assert call.output is not None
    shape = call.output.shape
    row = next((shape[d] for d in reversed(order or range(len(shape))) if shape[d] > 1), 1)
    broadcast = any(prod(each.shape) > 1 and each.shape != shape for each in call.inputs)
    return broadcast and row <= MOST_COLUMNS


def _nbytes(registers: Iterable[NumpyValue]) -> int:
    return sum(each.nbytes for each in registers)


def _changes(chain: _Chain, instructions: Sequence[Instruction], overlaps: Overlaps) -> bool:
    """Whether a source may be written before all of the chain that reads it has done so."""
    sources = [buffer for each in _against(chain) if (buffer := read_buffer(each)) is not None]
    if not sources:
        return False
    used = [i for i, each in enumerate(instructions) if _is_of(chain, each)]
    written = map(stored_buffer, instructions[used[0] : used[-1]])
    return any(b is not None and overlaps(b, source) for b in written for source in sources)


def _is_of(chain: _Chain, instruction: Instruction) -> bool:
    return instruction.output in chain.members or instruction in chain.ends


def _turned(chain: _Chain, instructions: Sequence[Instruction]) -> list[Instruction]:
    against = _against(chain)
    moved: dict[NumpyValue, NumpyValue] = {
        each: Temporary(each.dtype, each.shape, each.dims, chain.order)
        for each in (*chain.members, *against)
    }
    copies: dict[NumpyValue, NumpyValue] = {  # what was a copy to be read is the value itself
        end.output: moved[end.inputs[0]]
        for end in chain.ends
        if isinstance(end.output, Temporary) and end.function is functions.store
    }
    result: list[Instruction] = []
    for each in instructions:
        if not _is_of(chain, each):
            result.append(each.renamed(copies))
            continue
        for source in [r for r in dict.fromkeys(each.inputs) if r in against]:
            copy = Instruction("write", functions.store, (source,), moved[source], elementwise=True)
            result.append(copy)
            against.remove(source)
        if each.output not in copies:
            result.append(each.renamed(moved | copies))
    return result
