"""Storage of a persistent kernel: small buffers in registers or shared memory.

One thread keeps its state in arrays of its own, which become registers; a block keeps it in shared
memory. What other kernels access as well is copied there first, and back at the end.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from lowering.codegen.persistent.running_blocks import running_blocks
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import round_up
from lowering.plan.target.hardware import VECTOR_BYTES
from lowering.plan.target.scope import Scope
from tracegraph.generated.dataclass import dataclass

MAX_UNROLLED = 16
"""Points that one thread writes out, so that the arrays that they index become registers. Longer
loops would only take the compiler longer."""

THREAD_BYTES = 2048
"""Bytes of one buffer that a thread keeps. What exceeds its registers is in the L1 cache."""


@dataclass(frozen=True, slots=True)
class Storage:
    """The buffers that a kernel keeps for itself.

    `placed` has the offset of each in the shared memory of a block, which ends at `end`. Others
    have given a value to those that are `loaded`, or read it after the kernel.
    """

    placed: dict[Buffer, int]
    end: int
    loaded: tuple[Buffer, ...]


def place_storage(
    read: Sequence[Buffer],
    written: Set[Buffer],
    outside: Set[Buffer],
    scope: Scope,
    begin: int,
    end: int,
) -> Storage:
    """Choose what to keep, the smallest buffers first: what the kernel writes and reads again.

    A block has shared memory from `begin` to `end`. `outside` are the buffers that other kernels
    or the caller access.
    """
    placed: dict[Buffer, int] = {}
    at = begin
    if scope.blocks == 1 and not scope.beside:  # other blocks may read it, too
        state = [buffer for buffer in read if buffer in written and buffer.type.nbytes]
        for buffer in sorted(state, key=lambda b: b.type.nbytes):  # stable
            size = round_up(buffer.type.nbytes, VECTOR_BYTES)
            if scope.threads == 1 and size <= THREAD_BYTES:
                placed[buffer] = 0
            elif scope.threads > 1 and at + size <= end:
                placed[buffer], at = at, at + size
    return Storage(placed, at, tuple(buffer for buffer in placed if buffer in outside))


def declare_storage(writer: SourceWriter, storage: Storage, scope: Scope) -> None:
    """Declare what is kept, and load it; the buffer's own address has the name `in_memory`."""
    for buffer, offset in storage.placed.items():
        kind, name = c_type(buffer.type.dtype), writer.pointers[buffer]
        if scope.threads == 1:
            writer.line(f"__align__({VECTOR_BYTES}) {kind} {name}[{buffer.type.size}];")
        else:
            writer.line(f"{kind}* {name} = reinterpret_cast<{kind}*>(shared + {offset});")
    for buffer in storage.loaded:
        name = writer.pointers[buffer]
        copy_elements(writer, buffer.type.size, scope, name, in_memory(name))


def save_storage(writer: SourceWriter, storage: Storage, scope: Scope) -> None:
    """Store what others read, after the last barrier."""
    for buffer in storage.loaded:
        name = writer.pointers[buffer]
        copy_elements(writer, buffer.type.size, scope, in_memory(name), name)


def declare_homes(writer: SourceWriter, moved: Sequence[Buffer]) -> None:
    """Note where other kernels look for buffers in global memory that swap their places."""
    for buffer in moved:
        kind, name = c_type(buffer.type.dtype), writer.pointers[buffer]
        writer.line(f"{kind}* const home_{name} = {name};")


def bring_home(writer: SourceWriter, moved: Sequence[Buffer], scope: Scope) -> None:
    """Copy those buffers to where others look for them, after the last barrier."""
    for buffer in moved:
        name = writer.pointers[buffer]
        with writer.block(f"if ({name} != home_{name})"):
            copy_elements(writer, buffer.type.size, scope, f"home_{name}", name)


def in_memory(name: str) -> str:
    """The name of the address, in global memory, of a buffer that is kept."""
    return f"memory_{name}"


def copy_elements(writer: SourceWriter, size: int, scope: Scope, target: str, source: str) -> None:
    """Write the copy of elements by all threads.

    Its loop is not unrolled for many threads, and there is none where each thread of a block copies
    one element at most: NVRTC took 10 ms more for each copy that it unrolled by itself.
    """
    first, threads = "thread", f"{scope.threads}"
    if scope.blocks > 1:
        first = f"int(blockIdx.x) * {threads} + thread"
        threads = f"{running_blocks(scope)} * {threads}"
    elif scope.threads > 1 and size <= scope.threads:
        writer.line(f"if (thread < {size}) {target}[thread] = {source}[thread];")
        return
    short = scope.threads == 1 and size <= MAX_UNROLLED
    writer.line("#pragma unroll" if short else "#pragma unroll 1")
    writer.line(f"for (int i = {first}; i < {size}; i += {threads}) {target}[i] = {source}[i];")
