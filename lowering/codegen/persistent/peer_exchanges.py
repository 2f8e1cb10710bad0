"""Exchanges of devices inside of a persistent kernel: collectives by stores to other devices.

The kernel runs on all devices of a mesh together. Each has room in its workspace, which has one
layout on all, and stores what others need into theirs.

- A small exchange posts words that have their turn beside them. Each block waits for them and has
  the whole result, so that no barrier of all blocks follows.
- Of a larger one, each block waits for its share of the words.
- The largest store arrays, behind which each block posts the turn.

Reductions are in the order of devices: all have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from lowering.codegen.expressions import combine, round_to, widen
from lowering.codegen.persistent.peer_arrays import FOLDS, write_arrays
from lowering.codegen.persistent.peer_rooms import (
    PeerRoom,
    SentStop,
    call_of,
    chosen,
    words_of,
)
from lowering.codegen.persistent.running_blocks import running_blocks
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.calls.collectives import (
    AllGather,
    AllReduce,
    AllToAll,
    CollectiveKind,
    Permute,
    ReduceScatter,
)
from lowering.plan.calls.library_call import StridedArray
from lowering.plan.nodes import LibraryNode
from lowering.plan.target.hardware import WARP
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass


def write_exchange(
    writer: SourceWriter, scope: Scope, node: LibraryNode, room: PeerRoom, stop: SentStop
) -> None:
    """Write an exchange, behind a barrier after what it sends was computed."""
    call = call_of(node)
    writer.line(f"++{room.counter};")
    if room.form != "small":
        write_arrays(writer, scope, room, call, stop)
        return
    members = list(zip(call.kinds, call.sources, call.targets, room.arrays, strict=True))
    writing = _Words(writer, scope, room, call.count, stop)
    with writer.block(""):
        for number, (_, source, _, at) in enumerate(members):
            writing.post_words(source, at, number)
        for number, (kind, source, target, at) in enumerate(members):
            writing.take_words(kind, source, target, at, number)


@dataclass(frozen=True, slots=True)
class _Words:
    """Writes the parts of one exchange of words."""

    writer: SourceWriter
    scope: Scope
    room: PeerRoom
    count: int
    stop: SentStop

    @property
    def _stop(self) -> str:
        return self.stop.word(self.writer)

    def post_words(self, source: StridedArray, at: int, number: int) -> None:
        """All threads of all blocks post the words of an array to each device; those of the next
        one begin with another warp, at the same time.
        """
        if source.buffer is self.stop.buffer:
            there = self.room.room("tg_u64", "to", at)
            word = f"(tg_u64)stops << 32 | {self.room.counter}"
            place = self.room.place(self.room.own, 1)
            test = f"thread == {WARP * number % self.scope.threads}"
            if self.scope.blocks > 1:
                test += " && blockIdx.x == 0"
            text = f"tg_post_word({there} + {place}, {word});"
            self.stop.send(self.writer, test, self.count, text)
            return
        words, room, turn = words_of(source), self.room, self.room.counter
        with self.writer.block(_across(self.scope, self.count * words, number)):
            self.writer.line(f"const int to = i / {words}, number = i % {words};")
            text = f"tg_word_of({self._pointer(source)}, {prod(source.shape)}, number)"
            there = room.room("tg_u64", "to", at)
            self.writer.line(
                f"tg_post_word({there} + {self.room.place(room.own, words)} + number, "
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
        words, turn = words_of(source), self.room.counter
        here = f"reinterpret_cast<const tg_u64*>(workspace + {at})"
        if not isinstance(kind, AllReduce | ReduceScatter):  # those wait for all in any case
            loop, place = _within(self.scope, self.count, number), self.room.place("i", words)
            self.writer.line(f"{loop} tg_await_word({here} + {place}, {turn}, {self._stop});")
        type_ = c_type(source.buffer.type.dtype)

        def element(device: str, index: str) -> str:
            given = f"{here} + {self.room.place(device, words)}"
            return f"tg_received<{type_}>({given}, {index}, {turn}, {self._stop})"

        def elements(index: str) -> None:
            """All of a point, whose words are loaded at once."""
            self.writer.line(f"{type_} each[{self.count}];")
            first = f"{here} + {self.room.place('0', words)}"
            given = f"{first}, {words}, {index}, {turn}, {self._stop}"
            self.writer.line(f"tg_receive_all<{self.count}>({given}, each);")

        with self.writer.block(_within(self.scope, prod(target.shape), number)):
            self._combine(kind, source, target, element, elements)

    def _combine(
        self,
        kind: CollectiveKind,
        source: StridedArray,
        target: StridedArray,
        element: Callable[[str, str], str],
        elements: Callable[[str], None],
    ) -> None:
        """Write element `i` of the result, given the element of a device by an index of what it has
        sent, which is whole; `elements` declares those of all devices as an array `each`.
        """
        writer, dtype, own = self.writer, source.buffer.type.dtype, self.room.own
        part = prod(source.shape) // self.count
        result = f"{self._pointer(target)}[i]"
        match kind:
            case AllReduce() | ReduceScatter():
                elements("i" if isinstance(kind, AllReduce) else f"{own} * {part} + i")
                combiner = FOLDS[kind.fold if isinstance(kind, AllReduce) else "sum"]
                writer.line(f"{c_type(dtype)} folded = each[0];")
                loop = f"for (int device = 1; device < {self.count}; ++device)"
                operands = widen(dtype, "folded"), widen(dtype, "each[device]")
                folded = round_to(dtype, combine(combiner, dtype, *operands))
                writer.line("#pragma unroll")
                writer.line(f"{loop} folded = {folded};")
                writer.line(f"{result} = folded;")
            case AllGather():
                size = prod(source.shape)
                writer.line(f"{result} = {element(f'i / {size}', f'i % {size}')};")
            case AllToAll():
                writer.line(f"{result} = {element(f'i / {part}', f'{own} * {part} + i % {part}')};")
            case Permute(perm=perm):
                from_ = chosen(own, {target: source for source, target in perm})
                writer.line(f"{result} = {element(from_, 'i')};")

    def _pointer(self, array: StridedArray) -> str:
        name = self.writer.pointers[array.buffer]
        return f"({name} + {array.offset})" if array.offset else name


def _across(scope: Scope, size: int, number: int = 0) -> str:
    """The head of a loop that all threads of all blocks share; the first is in warp `number`."""
    if scope.blocks > 1:
        first = f"int(blockIdx.x) * {scope.threads} + {_thread(scope, number)}"
        return f"for (int i = {first}; i < {size}; i += {running_blocks(scope)} * {scope.threads})"
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
