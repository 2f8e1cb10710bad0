"""Exchanges of devices inside of a persistent kernel: collectives by stores to other devices.

The kernel runs on all devices of a mesh together. Each has room in its workspace, which has one
layout on all, and stores what others need into theirs.

- A small exchange posts words that have their turn beside them. Each block waits for them and has
  the whole result, so that no barrier of all blocks follows.
- A larger one stores arrays. Behind a barrier, the first block posts the turn, for which all wait.

Reductions are in the order of devices: all have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod

from lowering.codegen.effects.signals import STOP_WATCH
from lowering.codegen.expressions import combine, round_to, widen
from lowering.codegen.kernel_code import PeerTable
from lowering.codegen.kernel_parameters import StopFlagAddress
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.calls.collectives import (
    AllGather,
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
from lowering.plan.target.hardware import ALIGNMENT, WARP
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.combiners import ADD, MAXIMUM, MINIMUM

_FOLDS = {"sum": ADD, "max": MAXIMUM, "min": MINIMUM}

_WORD_BYTES = 8
"""A word of 32 bits with its turn."""

_TURN_BYTES = 4


@dataclass(frozen=True, slots=True)
class PeerRoom:
    """What an exchange has in the workspace: bytes from its start.

    `number` names its variables, `line` those of its devices. `turn` is where the turn is between
    launches, `posted` has the turns that devices post, and `arrays` the room of each array.
    """

    number: int
    line: int
    small: bool
    turn: int
    posted: int
    arrays: tuple[int, ...]

    def room(self, type_: str, device: str, count: int, at: int) -> str:
        """A pointer to `at` in the workspace of one of `count` devices, whose number is a text."""
        starts = {number: _start(self.line, number) for number in range(count)}
        return f"tg_room<{type_}>({_chosen(device, starts)}, {at})"

    @property
    def own(self) -> str:
        """The number of this device among them."""
        return f"device{self.line}"

    @property
    def counter(self) -> str:
        """The turn."""
        return f"exchange{self.number}"


@dataclass(frozen=True, slots=True)
class SentStop:
    """The buffer that stands for the word of this device which ends loops, and is sent.

    It may be `watched`, so that it is read only now and then, if no loop inside ends by it alone.
    """

    buffer: Buffer | None
    watched: bool


@dataclass(frozen=True, slots=True)
class PeerLayout:
    """The exchanges of a kernel, and the tables of devices, in its workspace up to `end`."""

    rooms: Mapping[LibraryNode, PeerRoom]
    tables: tuple[PeerTable, ...]
    end: int


def peer_layout(nodes: Iterable[LibraryNode], start: int) -> PeerLayout:
    """The layout of exchanges, from `start` on in the workspace."""
    end = start

    def put(nbytes: int) -> int:
        nonlocal end
        at = end
        end = round_up(at + nbytes, ALIGNMENT)
        return at

    tables: dict[tuple[str, ...], PeerTable] = {}
    rooms: dict[LibraryNode, PeerRoom] = {}
    for number, node in enumerate(nodes):
        call = _call(node)
        if call.axes not in tables:
            tables[call.axes] = PeerTable(put(8 * (1 + call.count)), call.axes, call.count)
        line = [*tables].index(call.axes)
        small = call.is_small
        turn, posted = put(_TURN_BYTES), put(_TURN_BYTES * call.count)
        members = zip(call.kinds, call.sources, strict=True)
        arrays = tuple([put(2 * _room_bytes(kind, x, call.count, small)) for kind, x in members])
        rooms[node] = PeerRoom(number, line, small, turn, posted, arrays)
    return PeerLayout(rooms, tuple(tables.values()), end)


def declare_exchanges(writer: SourceWriter, layout: PeerLayout) -> None:
    """Declare the tables of devices, and the turns of the exchanges before this launch."""
    for line, table in enumerate(layout.tables):
        place = f"reinterpret_cast<const tg_u64*>(workspace + {table.offset})"
        writer.line(f"const tg_u64* const devices{line} = {place};")
        writer.line(f"const int device{line} = int(devices{line}[0]);")
        for number in range(table.count):
            start = f"devices{line}[{1 + number}]"
            writer.line(f"const tg_u64 {_start(line, number)} = {start};")
    for room in layout.rooms.values():
        place = f"reinterpret_cast<const volatile tg_u32*>(workspace + {room.turn})"
        writer.line(f"tg_u32 {room.counter} = *{place};")


def save_turns(writer: SourceWriter, layout: PeerLayout, scope: Scope) -> None:
    """Keep the turns for the next launch. All blocks have read them: each has been at a barrier."""
    test = "thread == 0 && blockIdx.x == 0" if scope.blocks > 1 else "thread == 0"
    with writer.block(f"if ({test})"):
        for room in layout.rooms.values():
            place = f"reinterpret_cast<volatile tg_u32*>(workspace + {room.turn})"
            writer.line(f"*{place} = {room.counter};")


def write_exchange(
    writer: SourceWriter,
    scope: Scope,
    node: LibraryNode,
    room: PeerRoom,
    barrier: Callable[[], None],
    stop: SentStop,
) -> None:
    """Write an exchange, behind a barrier after what it sends was computed."""
    call = _call(node)
    writer.line(f"++{room.counter};")
    members = list(zip(call.kinds, call.sources, call.targets, room.arrays, strict=True))
    writing = _Exchange(writer, scope, room, call.count, stop)
    if room.small:
        with writer.block(""):
            for number, (_, source, _, at) in enumerate(members):
                writing.post_words(source, at, number)
            for number, (kind, source, target, at) in enumerate(members):
                writing.take_words(kind, source, target, at, number)
        return
    for kind, source, _, at in members:
        writing.store(kind, source, at)
    barrier()
    writing.meet()
    for kind, source, target, at in members:
        writing.take(kind, source, target, at)


@dataclass(frozen=True, slots=True)
class _Exchange:
    """Writes the parts of one exchange."""

    writer: SourceWriter
    scope: Scope
    room: PeerRoom
    count: int
    stop: SentStop

    @property
    def _stop(self) -> str:
        return self.writer.names[StopFlagAddress()]

    def _send_stop(self, text: str, number: int = 0) -> None:
        """Write how the stop flag is sent to device `to`. A single thread reads it, once: it may
        change at any time, and all are to get the same.
        """
        test = f"thread == {WARP * number % self.scope.threads}"
        if self.scope.blocks > 1:
            test += " && blockIdx.x == 0"
        with self.writer.block(f"if ({test})"):
            watched = f"{STOP_WATCH}.look({self._stop}, tg_clock())"
            text_of_flag = watched if self.stop.watched else f"*{self._stop}"
            self.writer.line(f"const tg_u32 stops = {text_of_flag};")
            self.writer.line(f"for (int to = 0; to < {self.count}; ++to) {text}")

    def post_words(self, source: StridedArray, at: int, number: int) -> None:
        """All threads of all blocks post the words of an array to each device; those of the next
        one begin with another warp, at the same time.
        """
        if source.buffer is self.stop.buffer:
            there = self.room.room("tg_u64", "to", self.count, at)
            word = f"(tg_u64)stops << 32 | {self.room.counter}"
            place = self._place(self.room.own, 1)
            self._send_stop(f"tg_post_word({there} + {place}, {word});", number)
            return
        words, room, turn = _words(source), self.room, self.room.counter
        with self.writer.block(_across(self.scope, self.count * words, number)):
            self.writer.line(f"const int to = i / {words}, number = i % {words};")
            text = f"tg_word_of({self._pointer(source)}, {prod(source.shape)}, number)"
            there = room.room("tg_u64", "to", self.count, at)
            self.writer.line(
                f"tg_post_word({there} + {self._place(room.own, words)} + number, "
                f"(tg_u64){text} << 32 | {turn});"
            )

    def take_words(
        self,
        kind: CollectiveKind,
        source: StridedArray,
        target: StridedArray,
        at: int,
        number: int,
    ) -> None:
        """Each block takes the whole result from the words that it waits for, those of the next
        array with other warps first.
        """
        words, turn = _words(source), self.room.counter
        here = f"reinterpret_cast<const tg_u64*>(workspace + {at})"
        if not isinstance(kind, AllReduce | ReduceScatter):  # those wait for all in any case
            loop, place = _within(self.scope, self.count, number), self._place("i", words)
            self.writer.line(f"{loop} tg_await_word({here} + {place}, {turn}, {self._stop});")
        type_ = c_type(source.buffer.type.dtype)

        def element(device: str, index: str) -> str:
            words_of = f"{here} + {self._place(device, words)}"
            return f"tg_received<{type_}>({words_of}, {index}, {turn}, {self._stop})"

        def elements(index: str) -> None:
            """All of a point, whose words are loaded at once."""
            self.writer.line(f"{type_} each[{self.count}];")
            words_of = f"{here} + {self._place('0', words)}"
            given = f"{words_of}, {words}, {index}, {turn}, {self._stop}"
            self.writer.line(f"tg_receive_all<{self.count}>({given}, each);")

        with self.writer.block(_within(self.scope, prod(target.shape), number)):
            self._combine(kind, source, target, element, elements)

    def store(self, kind: CollectiveKind, source: StridedArray, at: int) -> None:
        """All threads of all blocks store what each device needs into its room."""
        type_, room, own = c_type(source.buffer.type.dtype), self.room, self.room.own
        part = _part(kind, source, self.count)
        array = self._pointer(source)
        if source.buffer is self.stop.buffer:
            there = f"{room.room(type_, 'to', self.count, at)} + {self._place(own, 1)}"
            self._send_stop(f"*({there}) = {type_}(stops);")
            return
        if isinstance(kind, Permute):
            to = _chosen(own, dict(kind.perm))
            there = f"{room.room(type_, to, self.count, at)} + {self._turn(part)}"
            with self.writer.block(""):
                self.writer.line(f"{type_}* const there = {there};")
                self.writer.line(f"{_across(self.scope, part)} there[i] = {array}[i];")
            return
        with self.writer.block(_across(self.scope, self.count * part)):
            self.writer.line(f"const int to = i / {part}, at = i % {part};")
            there = f"{room.room(type_, 'to', self.count, at)} + {self._place(own, part)}"
            index = "i" if isinstance(kind, AllToAll | ReduceScatter) else "at"
            self.writer.line(f"({there})[at] = {array}[{index}];")

    def meet(self) -> None:
        """The first block posts the turn to each device, and all blocks wait for all devices."""
        writer, room, turn = self.writer, self.room, self.room.counter
        each = _within(self.scope, self.count)
        there = f"{room.room('tg_u32', 'i', self.count, room.posted)} + {room.own}"
        first = "if (blockIdx.x == 0) " if self.scope.blocks > 1 else ""
        writer.line(f"{first}{each} tg_post_turn({there}, {turn});")
        here = f"reinterpret_cast<const tg_u32*>(workspace + {room.posted}) + i"
        writer.line(f"{each} tg_await_turn({here}, {turn}, {self._stop});")
        if self.scope.threads > 1:
            writer.line("__syncthreads();")

    def take(
        self, kind: CollectiveKind, source: StridedArray, target: StridedArray, at: int
    ) -> None:
        """All threads of all blocks compute the result from what the device was sent."""
        type_ = c_type(source.buffer.type.dtype)
        part = _part(kind, source, self.count)
        here = f"reinterpret_cast<const {type_}*>(workspace + {at})"

        def element(device: str, index: str) -> str:
            place = (
                self._turn(part) if isinstance(kind, Permute) else f"{self._place(device, part)}"
            )
            return f"({here} + {place})[{index}]"

        with self.writer.block(_across(self.scope, prod(target.shape))):
            self._combine(kind, source, target, element)

    def _combine(
        self,
        kind: CollectiveKind,
        source: StridedArray,
        target: StridedArray,
        element: Callable[[str, str], str],
        elements: Callable[[str], None] | None = None,
    ) -> None:
        """Write element `i` of the result, given the element of a device by an index.

        With `elements`, which declares those of all devices as an array `each`, all have been sent
        whole arrays: the index is that in the whole.
        """
        writer, dtype, own = self.writer, source.buffer.type.dtype, self.room.own
        part = prod(source.shape) // self.count
        block = f"{own} * {part} + " if elements is not None else ""
        result = f"{self._pointer(target)}[i]"
        match kind:
            case AllReduce() | ReduceScatter():
                index = "i" if isinstance(kind, AllReduce) else f"{block}i"
                combiner = _FOLDS[kind.fold if isinstance(kind, AllReduce) else "sum"]
                first, other = element("0", index), element("device", index)
                if elements is not None:
                    elements(index)
                    first, other = "each[0]", "each[device]"
                writer.line(f"{c_type(dtype)} folded = {first};")
                loop = f"for (int device = 1; device < {self.count}; ++device)"
                operands = widen(dtype, "folded"), widen(dtype, other)
                folded = round_to(dtype, combine(combiner, dtype, *operands))
                writer.line("#pragma unroll")
                writer.line(f"{loop} folded = {folded};")
                writer.line(f"{result} = folded;")
            case AllGather():
                size = prod(source.shape)
                writer.line(f"{result} = {element(f'i / {size}', f'i % {size}')};")
            case AllToAll():
                writer.line(f"{result} = {element(f'i / {part}', f'{block}i % {part}')};")
            case Permute(perm=perm):
                from_ = _chosen(own, {target: source for source, target in perm})
                writer.line(f"{result} = {element(from_, 'i')};")

    def _pointer(self, array: StridedArray) -> str:
        name = self.writer.pointers[array.buffer]
        return f"({name} + {array.offset})" if array.offset else name

    def _turn(self, size: int) -> str:
        """Where the room of this turn is, of `size` elements."""
        return f"int({self.room.counter} & 1u) * {size}"

    def _place(self, device: str, size: int) -> str:
        """Where the room of a device is in that of this turn."""
        return f"(int({self.room.counter} & 1u) * {self.count} + {device}) * {size}"


def _call(node: LibraryNode) -> CollectiveCall:
    assert isinstance(node.call, CollectiveCall), "no other call of a library is a phase"
    return node.call


def _words(array: StridedArray) -> int:
    return ceil_div(array.nbytes, 4)


def _part(kind: CollectiveKind, source: StridedArray, count: int) -> int:
    """The elements that one device is sent."""
    size = prod(source.shape)
    return size // count if isinstance(kind, AllToAll | ReduceScatter) else size


def _room_bytes(kind: CollectiveKind, source: StridedArray, count: int, small: bool) -> int:
    """The bytes of what all devices send, in one turn."""
    if small:
        return count * _words(source) * _WORD_BYTES
    part = _part(kind, source, count) * source.buffer.type.dtype.itemsize
    return part if isinstance(kind, Permute) else count * part


def _start(line: int, number: int) -> str:
    """The name of the address of the workspace of a device."""
    return f"workspace{line}_{number}"


def _chosen(device: str, found: Mapping[int, int | str]) -> str:
    """What a device has, as an expression of its number."""
    *others, (_, last) = sorted(found.items())
    text = str(last)
    for number, value in reversed(others):
        text = f"{device} == {number} ? {value} : {text}"
    return f"({text})"


def _across(scope: Scope, size: int, number: int = 0) -> str:
    """The head of a loop that all threads of all blocks share; the first is in warp `number`."""
    if scope.blocks > 1:
        first = f"int(blockIdx.x) * {scope.threads} + {_thread(scope, number)}"
        return f"for (int i = {first}; i < {size}; i += int(gridDim.x) * {scope.threads})"
    return _within(scope, size, number)


def _within(scope: Scope, size: int, number: int = 0) -> str:
    """The head of a loop that the threads of each block share, from warp `number` on."""
    return f"for (int i = {_thread(scope, number)}; i < {size}; i += {scope.threads})"


def _thread(scope: Scope, number: int) -> str:
    """The number of a thread, if those of warp `number` come first."""
    before = WARP * number % scope.threads
    if before == 0:
        return "thread"
    return f"(thread + {scope.threads - before}) % {scope.threads}"
