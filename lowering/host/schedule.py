"""How the instructions of a nest are run: stores forwarded, blocks chosen, temporaries placed.

A large nest runs block by block along one axis, all its instructions for one block before the next
block, so that intermediate values stay in the cache.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from lowering.buffer import Buffer
from lowering.host import functions
from lowering.host.arena import Workspace
from lowering.host.evaluate import Evaluator
from lowering.host.hull import as_ranges
from lowering.host.registers import Instruction, Late, Register, Temporary, View

BLOCK_BYTES = 1 << 18
"""About what each intermediate value of a block takes: several fit a second-level cache."""

STRIP = 32
"""Elements of a strip: two cache lines of 32-bit numbers."""

Overlaps = Callable[[Buffer, Buffer], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """What one nest runs: `before` once, then `each` for every block of `length` along `axis`.

    `starts` places the temporaries in the workspace. Without an axis there is one block.
    """

    before: tuple[Instruction, ...]
    each: tuple[Instruction, ...]
    axis: int | None
    extent: int
    length: int
    starts: Mapping[Temporary, int]


def schedule(run: Evaluator, overlaps: Overlaps, workspace: Workspace) -> Schedule:
    """Choose where values live and in which blocks they are made.

    `overlaps` tells of two buffers whether they share memory.
    """
    instructions = forward_stores(save_reads(run.instructions, overlaps), overlaps)
    instructions, extents = write_early(instructions, overlaps), run.extents
    ranges = as_ranges(instructions, extents, run.spare) if run.spare else None
    if ranges is not None:
        instructions, extents = ranges
    axis, length = choose_block(instructions, extents)
    before = tuple(i for i in instructions if axis is not None and not _varies(i, axis))
    each = tuple(i for i in instructions if axis is None or _varies(i, axis))
    extent = 1 if axis is None else extents[axis]
    starts = place_temporaries(before, each, axis, length, workspace)
    return Schedule(before, each, axis, extent, length, starts)


def _varies(instruction: Instruction, axis: int) -> bool:
    output = instruction.output
    written = instruction.kind == "write" and output is not None and axis in output.dims
    return written or any(axis in register.dims for register in instruction.inputs)


# -- stores ------------------------------------------------------------------------------------


def save_reads(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let a store that would read what an earlier store of the nest overwrites read a copy."""
    result: list[Instruction] = []
    written: list[Buffer] = []
    first = 0  # where the first store stands
    for each in instructions:
        stored = _stored_buffer(each)
        if stored is None:
            result.append(each)
            continue
        first = first if written else len(result)
        for register in each.inputs:
            buffer = _read_buffer(register)
            if buffer is not None and any(overlaps(buffer, other) for other in written):
                copy = Temporary(register.dtype, register.shape, register.dims)
                saved = Instruction("write", functions.store, (register,), copy, elementwise=True)
                result.insert(first, saved)
                each = _renamed(each, register, copy)
        result.append(each)
        written.append(stored)
    return result


def _stored_buffer(instruction: Instruction) -> Buffer | None:
    """The buffer that an instruction writes to."""
    return _read_buffer(instruction.output) if instruction.kind == "write" else None


def _read_buffer(register: Register | None) -> Buffer | None:
    """The buffer in which a register lies."""
    return register.buffer if isinstance(register, View | Late) else None


def forward_stores(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let the instruction that makes a stored value write it straight to the buffer.

    That is right where nothing that still has to be read would be overwritten.
    """
    result = list(instructions)
    for position in range(len(result) - 1, -1, -1):
        copy = result[position]
        if copy.function is not functions.store or not isinstance(copy.inputs[0], Temporary):
            continue
        value, target = copy.inputs[0], copy.output
        assert target is not None
        made = next(i for i, each in enumerate(result) if each.output is value)
        if _may_forward(result, made, position, overlaps):
            del result[position]
            result = [_renamed(each, value, target) for each in result]
    return result


def _may_forward(
    instructions: Sequence[Instruction], made: int, position: int, overlaps: Overlaps
) -> bool:
    value, target = instructions[position].inputs[0], instructions[position].output
    assert isinstance(target, View | Late)
    assert target.buffer is not None
    if (value.shape, value.dtype) != (target.shape, target.dtype):
        return False
    first = made + 1 if instructions[made].elementwise else made
    later = {_read_buffer(r) for i in instructions[first:] for r in i.inputs}
    return not any(b is not None and overlaps(b, target.buffer) for b in later)


def _renamed(instruction: Instruction, old: Register, new: Register) -> Instruction:
    inputs = tuple(new if r is old else r for r in instruction.inputs)
    output = new if instruction.output is old else instruction.output
    return replace(instruction, inputs=inputs, output=output)


def write_early(instructions: Sequence[Instruction], overlaps: Overlaps) -> list[Instruction]:
    """Let a chain of elementwise instructions that ends in a buffer work in that buffer throughout.

    That is right where, meanwhile, nothing else reads or writes there.
    """
    last: dict[Register, int] = {}
    makers: dict[Register, int] = {}
    reads: dict[Buffer, list[int]] = {}
    writes: dict[Buffer, list[int]] = {}
    seen: set[Register] = set()  # through other registers, too
    for position, each in enumerate(instructions):
        last.update(dict.fromkeys(each.inputs, position))
        for read in filter(None, map(_read_buffer, each.inputs)):
            reads.setdefault(read, []).append(position)
        written = _stored_buffer(each)
        if written is not None:
            writes.setdefault(written, []).append(position)
        if each.kind == "assign":
            seen.update(each.inputs)
        if each.output is not None:
            makers[each.output] = position
    places: dict[Register, View] = {}
    for position in range(len(instructions) - 1, -1, -1):
        each = instructions[position]
        target = places.get(each.output) if isinstance(each.output, Temporary) else each.output
        if not (isinstance(target, View) and each.elementwise) or each.keeps:
            continue
        end = makers[target]
        for value in each.inputs:
            if not isinstance(value, Temporary) or last[value] != position or value in seen:
                continue
            made = makers[value]
            first = made + 1 if instructions[made].elementwise else made
            busy = _within(reads, first, end + 1, target, overlaps)
            if _same(value, target) and not (busy or _within(writes, first, end, target, overlaps)):
                places[value] = target
                break
    placed = [_placed(each, places) for each in instructions]
    return [each for each in placed if each.output not in each.inputs or not _is_copy(each)]


def _is_copy(instruction: Instruction) -> bool:
    return instruction.function is functions.store


def _within(
    touched: Mapping[Buffer, Sequence[int]], start: int, stop: int, target: View, overlaps: Overlaps
) -> bool:
    """Whether memory of the target is touched from `start` on and before `stop`."""
    return any(
        overlaps(buffer, target.buffer)
        for buffer, positions in touched.items()
        if bisect_left(positions, start) < bisect_left(positions, stop)
    )


def _placed(instruction: Instruction, places: Mapping[Register, View]) -> Instruction:
    output = instruction.output
    if places.keys().isdisjoint((*instruction.inputs, output)):
        return instruction
    inputs = tuple(places.get(register, register) for register in instruction.inputs)
    return replace(
        instruction, inputs=inputs, output=output if output is None else places.get(output, output)
    )


# -- blocks ------------------------------------------------------------------------------------


def choose_block(
    instructions: Sequence[Instruction], extents: tuple[int, ...]
) -> tuple[int | None, int]:
    """The axis to run in blocks along, and the extent of a block.

    There is none for a nest that is small, or one call, or has an instruction that needs all of
    every axis.
    """
    written = [i.output for i in instructions if i.kind == "write" and i.output is not None]
    if any(i.kind == "effect" for i in instructions) or not written:
        return None, 1
    largest = max(written, key=_nbytes)
    blocks = _nbytes(largest) // BLOCK_BYTES
    if blocks >= 4 and (crossed := _crossed_axis(instructions, extents)) is not None:
        return crossed, max(STRIP, extents[crossed] // blocks)
    if len(written) < 2:
        return None, 1
    axes = [axis for axis in largest.dims if all(_keeps(i, axis) for i in instructions)]
    if blocks < 4 or not axes:
        return None, 1
    axis = next((a for a in axes if extents[a] >= blocks), max(axes, key=extents.__getitem__))
    return axis, max(1, extents[axis] // blocks)


def _crossed_axis(instructions: Sequence[Instruction], extents: tuple[int, ...]) -> int | None:
    """An axis along which a large array is written in order, while another is read across.

    Such arrays are worked on in strips, so that lines of the one that is read stay in the cache.
    """
    for each in instructions:
        if each.output is None or _nbytes(each.output) < 4 * BLOCK_BYTES:
            continue
        axis = _fastest_axis(each.output, extents)
        read = [r for r in each.inputs if isinstance(r, View) and axis in r.dims]
        crosses = any(_fastest_axis(r, extents) != axis for r in read)
        if axis is not None and crosses and all(_keeps(i, axis) for i in instructions):
            return axis
    return None


def _fastest_axis(register: Register, extents: tuple[int, ...]) -> int | None:
    """The axis along which elements lie next to each other."""
    axes = [axis for axis in register.dims if extents[axis] > 1]
    if not isinstance(register, View):
        return max(axes, default=None)
    strides = {axis: abs(register.strides[register.dims[axis]]) for axis in axes}
    return min(axes, key=strides.__getitem__, default=None)


def _nbytes(register: Register) -> int:
    return prod(register.shape) * register.dtype.itemsize


def _keeps(instruction: Instruction, axis: int) -> bool:
    """Whether a part of the output along the axis comes from the same part of the inputs."""
    if not _varies(instruction, axis):
        return True
    output = instruction.output
    return output is not None and axis in output.dims and axis not in instruction.whole_axes


# -- temporaries -------------------------------------------------------------------------------


def place_temporaries(
    before: Sequence[Instruction],
    each: Sequence[Instruction],
    axis: int | None,
    length: int,
    workspace: Workspace,
) -> dict[Temporary, int]:
    """The start of each temporary in the workspace; memory is used again after the last use."""
    order = (*before, *each)
    last = {r: i for i, made in enumerate(order) for r in made.inputs if isinstance(r, Temporary)}
    for made in before:  # what all blocks read lives as long as the nest
        if isinstance(made.output, Temporary):
            last[made.output] = len(order)
    starts: dict[Temporary, int] = {}
    for position, made in enumerate(order):
        dying = [r for r in dict.fromkeys(_temporaries(made)) if last[r] == position]
        if isinstance(made.output, Temporary):
            heir = next((r for r in dying if _same(r, made.output)), None)
            if heir is not None and made.elementwise:
                starts[made.output] = starts[heir]
                dying.remove(heir)
            else:
                shape = block_shape(made.output, axis, length)
                size = prod(shape) * made.output.dtype.itemsize
                starts[made.output] = workspace.take(size)
            if made.output not in last:
                dying.append(made.output)
        for register in dying:
            workspace.give_back(starts[register])
    for register in {r for r, at in last.items() if at == len(order)}:
        workspace.give_back(starts[register])
    return starts


def _temporaries(instruction: Instruction) -> Iterator[Temporary]:
    return (r for r in instruction.inputs if isinstance(r, Temporary))


def _same(one: Register, other: Register) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype)


def block_shape(register: Register, axis: int | None, length: int) -> tuple[int, ...]:
    """The shape of the part of a register that one block needs."""
    if axis is None or axis not in register.dims:
        return register.shape
    dim = register.dims[axis]
    return (*register.shape[:dim], length, *register.shape[dim + 1 :])
