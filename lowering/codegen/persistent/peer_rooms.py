"""Rooms of exchanges between devices: where each has what the others store, in its workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from math import prod
from typing import Literal

from lowering.codegen.effects.signals import STOP_WATCH
from lowering.codegen.kernel_code import PeerTable
from lowering.codegen.kernel_parameters import StopFlagAddress
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.calls.collectives import (
    AllReduce,
    AllToAll,
    CollectiveCall,
    CollectiveKind,
    Permute,
    ReduceScatter,
)
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div, round_up
from lowering.plan.nodes import LibraryNode
from lowering.plan.target.hardware import ALIGNMENT, VECTOR_BYTES
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass

_WORD_BYTES = 8
"""A word of 32 bits with its turn."""

_TURN_BYTES = 4


RoomForm = Literal["small", "whole", "words", "arrays"]
"""Words that each block reads, one by one or as vectors, words that blocks share, or arrays."""

WHOLE_BYTES = 16 << 10
"""What devices may send as words that each of few blocks reads: two vectors of each thread for an
array of 8 KB. A barrier of the blocks would take longer."""


@dataclass(frozen=True, slots=True)
class PeerRoom:
    """What an exchange has in the workspace: bytes from its start.

    `number` names its variables, `line` those of its `count` devices. `turn` is where the turn of
    each block is between launches, `posted` has the turns that blocks of devices post, and `arrays`
    the room of each array. `sources` has room for what a small exchange sends in two steps. Of
    arrays that are folded `in_parts`, `summed` has the results, and `announced` their turns.
    """

    number: int
    line: int
    count: int
    form: RoomForm
    turn: int
    posted: int
    arrays: tuple[int, ...]
    sources: tuple[int, ...] = ()
    announced: int = 0
    summed: Mapping[int, int] = field(default_factory=dict)

    def room(self, type_: str, device: str, at: int) -> str:
        """A pointer to `at` in the workspace of a device, whose number is a text."""
        starts = {number: _start(self.line, number) for number in range(self.count)}
        return f"tg_room<{type_}>({chosen(device, starts)}, {at})"

    @property
    def own(self) -> str:
        """The number of this device among them."""
        return f"device{self.line}"

    @property
    def counter(self) -> str:
        """The turn."""
        return f"exchange{self.number}"

    def place(self, device: str | None, size: int) -> str:
        """Where the room of a device is in that of this turn, if each has `size` elements; None if
        there is room for one device only.
        """
        turn = f"int({self.counter} & 1u)"
        return (
            f"{turn} * {size}" if device is None else f"({turn} * {self.count} + {device}) * {size}"
        )


@dataclass(frozen=True, slots=True)
class SentStop:
    """The buffer that stands for the word of this device which ends loops, and is sent.

    It may be `watched`, so that it is read only now and then, if no loop inside ends by it alone.
    """

    buffer: Buffer | None
    watched: bool

    def word(self, writer: SourceWriter) -> str:
        """The pointer to the word."""
        return writer.names[StopFlagAddress()]

    def send(self, writer: SourceWriter, test: str, count: int, text: str) -> None:
        """Write how the word is sent to device `to` as `stops`, by the one thread that passes a
        test. It is read once: it may change at any time, and all are to get the same.
        """
        with writer.block(f"if ({test})"):
            watched = f"{STOP_WATCH}.look({self.word(writer)}, tg_clock())"
            writer.line(
                f"const tg_u32 stops = {watched if self.watched else f'*{self.word(writer)}'};"
            )
            writer.line(f"for (int to = 0; to < {count}; ++to) {text}")


@dataclass(frozen=True, slots=True)
class PeerLayout:
    """The exchanges of a kernel, and the tables of devices, in its workspace up to `end`."""

    rooms: Mapping[LibraryNode, PeerRoom]
    tables: tuple[PeerTable, ...]
    end: int


def peer_layout(
    nodes: Iterable[LibraryNode], scope: Scope, start: int, *, alone: bool
) -> PeerLayout:
    """The layout of exchanges, from `start` on in the workspace; `alone` if one is all of a kernel,
    so that no other phases need its results in each block.
    """
    end = start

    def put(nbytes: int) -> int:
        nonlocal end
        at = end
        end = round_up(at + nbytes, ALIGNMENT)
        return at

    tables: dict[tuple[str, ...], PeerTable] = {}
    rooms: dict[LibraryNode, PeerRoom] = {}
    for number, node in enumerate(nodes):
        call = call_of(node)
        if call.axes not in tables:
            tables[call.axes] = PeerTable(put(8 * (1 + call.count)), call.axes, call.count)
        line = [*tables].index(call.axes)
        form: RoomForm = "words" if call.travels_as_words else "arrays"
        if scope.beside and call.travels_as_words:
            form = "whole" if call.stored_bytes <= WHOLE_BYTES else "words"
        elif call.is_small and not (alone and call.travels_as_words):
            form = "small"
        turn = put(_TURN_BYTES * scope.blocks)
        posted = put(_TURN_BYTES * call.count * scope.blocks)
        members = list(zip(call.kinds, call.sources, strict=True))
        sizes = [2 * _room_bytes(kind, x, call.count, form) for kind, x in members]
        arrays = tuple(map(put, sizes))
        sent = call.sources if form == "small" and scope.blocks > 1 else ()
        sources = tuple([put(2 * round_up(x.buffer.type.nbytes, ALIGNMENT)) for x in sent])
        parted = [form == "arrays" and in_parts(kind, x, call.count) for kind, x in members]
        announced = put(_TURN_BYTES * call.count * scope.blocks) if any(parted) else 0
        summed = {place: put(sizes[place]) for place, each in enumerate(parted) if each}
        own = number, line, call.count, form
        rooms[node] = PeerRoom(*own, turn, posted, arrays, sources, announced, summed)
    return PeerLayout(rooms, tuple(tables.values()), end)


def declare_exchanges(writer: SourceWriter, layout: PeerLayout, scope: Scope) -> None:
    """Declare the tables of devices, and the turns of the exchanges before this launch."""
    for line, table in enumerate(layout.tables):
        place = f"reinterpret_cast<const tg_u64*>(workspace + {table.offset})"
        writer.line(f"const tg_u64* const devices{line} = {place};")
        writer.line(f"const int device{line} = int(devices{line}[0]);")
        for number in range(table.count):
            start = f"devices{line}[{1 + number}]"
            writer.line(f"const tg_u64 {_start(line, number)} = {start};")
    for room in layout.rooms.values():
        writer.line(f"tg_u32 {room.counter} = *{_turn(room, scope)};")


def save_turns(writer: SourceWriter, layout: PeerLayout, scope: Scope) -> None:
    """Keep the turns for the next launch, when all threads have read them."""
    if scope.threads > 1:
        writer.line("__syncthreads();")
    with writer.block("if (thread == 0)"):
        for room in layout.rooms.values():
            writer.line(f"*{_turn(room, scope)} = {room.counter};")


def _turn(room: PeerRoom, scope: Scope) -> str:
    """Where the turn of a block is between launches."""
    block = " + 4 * blockIdx.x" if scope.blocks > 1 else ""
    return f"reinterpret_cast<volatile tg_u32*>(workspace + {room.turn}{block})"


def call_of(node: LibraryNode) -> CollectiveCall:
    """The collectives that a phase carries out."""
    assert isinstance(node.call, CollectiveCall), "no other call of a library is a phase"
    return node.call


def words_of(array: StridedArray) -> int:
    """The words of 32 bits that an array has."""
    return ceil_div(array.nbytes, 4)


def in_parts(kind: CollectiveKind, source: StridedArray, count: int) -> bool:
    """Whether each of several devices folds a part of an array for all of them, where each is sent
    arrays: that halves what they send, if there are four.
    """
    return isinstance(kind, AllReduce) and count > 2 and prod(source.shape) >= VECTOR_BYTES * count


def part_of(kind: CollectiveKind, source: StridedArray, count: int) -> int:
    """The elements that one device is sent."""
    size = prod(source.shape)
    return size // count if isinstance(kind, AllToAll | ReduceScatter) else size


def stride_of(kind: CollectiveKind, source: StridedArray, count: int) -> int:
    """The elements from the room of one device to that of the next, both of which are aligned."""
    return round_up(part_of(kind, source, count), VECTOR_BYTES)


def word_stride(kind: CollectiveKind, source: StridedArray, count: int) -> int:
    """The words from the room of one device to that of the next."""
    nbytes = part_of(kind, source, count) * source.buffer.type.dtype.itemsize
    return round_up(ceil_div(nbytes, 4), VECTOR_BYTES)


def _room_bytes(kind: CollectiveKind, source: StridedArray, count: int, form: RoomForm) -> int:
    """The bytes of what all devices send, in one turn."""
    if form == "small":
        return count * words_of(source) * _WORD_BYTES
    if form in ("whole", "words"):
        part = word_stride(kind, source, count) * _WORD_BYTES
        return part if isinstance(kind, Permute) else count * part
    stride = (
        chunk_of(source, count) if in_parts(kind, source, count) else stride_of(kind, source, count)
    )
    part = stride * source.buffer.type.dtype.itemsize
    return part if isinstance(kind, Permute) else count * part


def chunk_of(source: StridedArray, count: int) -> int:
    """The elements that one of several devices folds for all; the last has what is left."""
    return round_up(ceil_div(prod(source.shape), count), VECTOR_BYTES)


def _start(line: int, number: int) -> str:
    """The name of the address of the workspace of a device."""
    return f"workspace{line}_{number}"


def chosen(device: str, found: Mapping[int, int | str]) -> str:
    """What a device has, as an expression of its number."""
    *others, (_, last) = sorted(found.items())
    text = str(last)
    for number, value in reversed(others):
        text = f"{device} == {number} ? {value} : {text}"
    return f"({text})"
