"""Exchanges of arrays that are stored into the memory of other devices.

The blocks of a kernel share the elements alike on all devices. So a block waits for the blocks of
the same number, each of which has posted the turn behind what it has stored; blocks of one device
do not wait for one another. What travels as words has the turn beside each of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from math import prod
from typing import Any

import numpy as np

from lowering.codegen.expressions import combine, round_to, widen
from lowering.codegen.persistent.peer_rooms import (
    PeerRoom,
    SentStop,
    chosen,
    chunk_of,
    part_of,
    stride_of,
    word_stride,
)
from lowering.codegen.persistent.running_blocks import running_blocks
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
from lowering.plan.nests.rounding import ceil_div, round_up
from lowering.plan.target.hardware import VECTOR_BYTES
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.combiners import ADD, MAXIMUM, MINIMUM

FOLDS = {"sum": ADD, "max": MAXIMUM, "min": MINIMUM}
"""What reductions over devices combine by."""


def write_arrays(
    writer: SourceWriter, scope: Scope, room: PeerRoom, call: CollectiveCall, stop: SentStop
) -> None:
    """Write an exchange: each block stores its part, posts the turn, waits for the others' and
    computes its part of the results.
    """
    members = list(zip(call.kinds, call.sources, call.targets, room.arrays, strict=True))
    writing = _Arrays(writer, scope, room, call.count, stop)
    with writing.parts():
        for number, (kind, source, target, at) in enumerate(members):
            if number in room.summed:
                writing.scatter(source, at)
            else:
                writing.store(kind, source, target, at)
        if room.form == "arrays":
            writing.post(room.posted)
    with nullcontext() if room.form == "whole" else writing.parts():
        if room.form == "arrays":
            writing.wait(room.posted)
        for number, (kind, source, target, at) in enumerate(members):
            if number in room.summed:
                writing.spread(kind, source, at, room.summed[number])
            else:
                writing.take(kind, source, target, at)
        if room.summed:
            writing.post(room.announced)
    if room.summed:
        with writing.parts():
            writing.wait(room.announced)
            for number, at in room.summed.items():
                writing.join(*members[number][1:3], at)


@dataclass(frozen=True, slots=True)
class _Arrays:
    """Writes the steps of one exchange."""

    writer: SourceWriter
    scope: Scope
    room: PeerRoom
    count: int
    stop: SentStop

    @contextmanager
    def parts(self) -> Iterator[None]:
        """Write a loop over the parts of a block: one, unless the device runs fewer blocks."""
        head = ""
        if self.scope.blocks > 1:
            number, step = "int part = int(blockIdx.x)", f"part += {running_blocks(self.scope)}"
            head = f"for ({number}; part < {self.scope.blocks}; {step})"
        with self.writer.block(head):
            yield

    def store(
        self, kind: CollectiveKind, source: StridedArray, target: StridedArray, at: int
    ) -> None:
        """Store what each device needs into its room; its own, if nothing is folded, where it is
        needed.
        """
        room, own, array = self.room, self.room.own, self._pointer(source)
        size, stride = part_of(kind, source, self.count), self._stride(kind, source)
        type_ = c_type(source.buffer.type.dtype)
        if isinstance(kind, AllToAll | ReduceScatter):
            array = f"{array} + to * {size}"
        to = chosen(own, dict(kind.perm)) if isinstance(kind, Permute) else "to"
        place = room.place(None if isinstance(kind, Permute) else own, stride)
        words = room.form != "arrays"
        there = f"{room.room('tg_u64' if words else type_, to, at)} + {place}"
        if source.buffer is self.stop.buffer:
            first = "thread == 0" + (" && part == 0" if self.scope.blocks > 1 else "")
            text = f"*({there}) = {type_}(stops);"
            if words:
                text = f"tg_post_word({there}, (tg_u64)stops << 32 | {room.counter});"
            self.stop.send(self.writer, first, self.count, text)
            return
        if self._is_joined(kind):
            there = f"to == {own} ? {self._pointer(target)} + {own} * {size} : {there}"
        text = f"tg_copy_part<{type_}>({there}, {array}, {self._share(size)});"
        if words:
            share = self._share_of_words(source, size)
            text = f"tg_post_part<{type_}>({there}, {array}, {share}, {room.counter});"
        if isinstance(kind, Permute):
            self.writer.line(text)
        else:
            self._each_device("to", text)

    def post(self, turns: int) -> None:
        """Post the turn to the same part of each device."""
        self._meet()
        room, blocks = self.room, self.scope.blocks
        place = f"{room.own} * {blocks} + part" if blocks > 1 else room.own
        there = f"{room.room('tg_u32', 'i', turns)} + {place}"
        self.writer.line(f"{self._each()} tg_post_turn({there}, {room.counter});")

    def wait(self, turns: int) -> None:
        """Wait for the same part of each device."""
        room, blocks = self.room, self.scope.blocks
        place = f"i * {blocks} + part" if blocks > 1 else "i"
        here = f"reinterpret_cast<const tg_u32*>(workspace + {turns}) + {place}"
        given = f"{here}, {room.counter}, {self.stop.word(self.writer)}"
        self.writer.line(f"{self._each()} tg_await_turn({given});")
        self._meet()

    def take(
        self, kind: CollectiveKind, source: StridedArray, target: StridedArray, at: int
    ) -> None:
        """Compute a part of the result from what the device was sent."""
        dtype, result = source.buffer.type.dtype, self._pointer(target)
        size, stride = part_of(kind, source, self.count), self._stride(kind, source)
        type_, words = c_type(dtype), self.room.form != "arrays"
        kept = "tg_u64" if words else type_
        place = self.room.place(None if isinstance(kind, Permute) else "0", stride)
        rooms = f"reinterpret_cast<const {kept}*>(workspace + {at}) + {place}"
        is_folded = isinstance(kind, AllReduce | ReduceScatter)
        if not is_folded and not isinstance(kind, Permute):
            result, rooms = f"{result} + from * {size}", f"{rooms} + from * {stride}"
        fold = _fold_text(kind, dtype)
        devices = self.count if is_folded else 1
        if words:
            share = self._share_of_words(source, size)
            if self.room.form == "whole":
                share = f"{size}, {self._words(source, size)}, 0, thread, {self.scope.threads}"
            waiting = f"{self.room.counter}, {self.stop.word(self.writer)}, {fold}"
            given = f"{result}, {rooms}, {stride}, {share}, {waiting}"
            text = f"tg_receive_part<{devices}, {type_}>({given});"
        elif is_folded:
            given = f"{result}, {rooms}, {stride}, {self._share(size)}, {fold}"
            text = f"tg_fold_part<{devices}, {type_}>({given});"
        else:
            text = f"tg_copy_part<{type_}>({result}, {rooms}, {self._share(size)});"
            if self._is_joined(kind):
                text = f"if (from != {self.room.own}) {text}"
        if is_folded or isinstance(kind, Permute):
            self.writer.line(text)
        else:
            self._each_device("from", text)

    def _is_joined(self, kind: CollectiveKind) -> bool:
        """Whether arrays of all devices are joined, of which the own one needs no room."""
        return self.room.form == "arrays" and isinstance(kind, AllGather | AllToAll)

    def scatter(self, source: StridedArray, at: int) -> None:
        """Store for each device the chunk of an array that it is to fold for all."""
        type_, chunk = c_type(source.buffer.type.dtype), chunk_of(source, self.count)
        there = f"{self.room.room(type_, 'to', at)} + {self.room.place(self.room.own, chunk)}"
        given = (
            f"{there}, {self._pointer(source)} + to * {chunk}, {self._share_of_chunk(source, 'to')}"
        )
        self._each_device("to", f"tg_copy_part<{type_}>({given});")

    def spread(self, kind: CollectiveKind, source: StridedArray, at: int, summed: int) -> None:
        """Fold the own chunk of what all have sent, and store it for each device."""
        dtype, own, chunk = source.buffer.type.dtype, self.room.own, chunk_of(source, self.count)
        type_ = c_type(dtype)
        rooms = (
            f"reinterpret_cast<const {type_}*>(workspace + {at}) + {self.room.place('0', chunk)}"
        )
        there = f"{self.room.room(type_, 'to', summed)} + {self.room.place(own, chunk)}"
        share = self._share_of_chunk(source, own)
        given = f"{there}, {rooms}, {chunk}, {share}, {_fold_text(kind, dtype)}"
        self._each_device("to", f"tg_fold_part<{self.count}, {type_}>({given});")

    def join(self, source: StridedArray, target: StridedArray, summed: int) -> None:
        """Copy the chunks that the devices have folded."""
        type_, chunk = c_type(source.buffer.type.dtype), chunk_of(source, self.count)
        here = f"reinterpret_cast<const {type_}*>(workspace + {summed})"
        here = f"{here} + {self.room.place('from', chunk)}"
        result = f"{self._pointer(target)} + from * {chunk}"
        share = self._share_of_chunk(source, "from")
        self._each_device("from", f"tg_copy_part<{type_}>({result}, {here}, {share});")

    def _share_of_chunk(self, source: StridedArray, device: str) -> str:
        """As `_share`, of the chunk of a device."""
        size, chunk = prod(source.shape), chunk_of(source, self.count)
        left = f"{size} - {device} * {chunk}"
        _, rest = self._share(chunk).split(", ", 1)
        return f"{left} < {chunk} ? {left} : {chunk}, {rest}"

    def _each_device(self, name: str, text: str) -> None:
        """Write something for each device, whose number has a name."""
        self.writer.line("#pragma unroll 1")
        self.writer.line(f"for (int {name} = 0; {name} < {self.count}; ++{name}) {text}")

    def _stride(self, kind: CollectiveKind, source: StridedArray) -> int:
        """The elements, or words, from the room of one device to that of the next."""
        stride = stride_of if self.room.form == "arrays" else word_stride
        return stride(kind, source, self.count)

    def _share_of_words(self, source: StridedArray, size: int) -> str:
        """As `_share`, but the share is of words."""
        words = self._words(source, size)
        share = round_up(ceil_div(words, self.scope.blocks), VECTOR_BYTES)
        part = "part" if self.scope.blocks > 1 else "0"
        return f"{size}, {share}, {part}, thread, {self.scope.threads}"

    def _words(self, source: StridedArray, size: int) -> int:
        return ceil_div(size * source.buffer.type.dtype.itemsize, 4)

    def _share(self, size: int) -> str:
        """The elements of a part, and the threads that share them, as arguments."""
        share = round_up(ceil_div(size, self.scope.blocks), VECTOR_BYTES)
        part = "part" if self.scope.blocks > 1 else "0"
        return f"{size}, {share}, {part}, thread, {self.scope.threads}"

    def _each(self) -> str:
        """The head of a loop in which a thread does something for each device."""
        return f"for (int i = thread; i < {self.count}; i += {self.scope.threads})"

    def _meet(self) -> None:
        if self.scope.threads > 1:
            self.writer.line("__syncthreads();")

    def _pointer(self, array: StridedArray) -> str:
        name = self.writer.pointers[array.buffer]
        return f"({name} + {array.offset})" if array.offset else name


def _fold_text(kind: CollectiveKind, dtype: np.dtype[Any]) -> str:
    """The function that folds two elements; the first one, if there is nothing to fold."""
    type_, text = c_type(dtype), "one"
    if isinstance(kind, AllReduce | ReduceScatter):
        combiner = FOLDS[kind.fold if isinstance(kind, AllReduce) else "sum"]
        folded = combine(combiner, dtype, widen(dtype, "one"), widen(dtype, "other"))
        text = round_to(dtype, folded)
    return f"[]({type_} one, {type_} other) -> {type_} {{ return {text}; }}"
