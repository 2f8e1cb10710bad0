"""Batched vector loads: all loads of a thread's work are issued before the first is used.

A misaligned vector straddles two aligned ones. These are also issued together: a thread that waited
for each would have too few loads in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lowering.codegen.expressions import compute
from lowering.codegen.maps.vector_accesses import address, load_text, pack
from lowering.codegen.preamble import c_type
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.hardware import VECTOR_BYTES, WORD_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis
from tracegraph.ir.scalar_values import Load


@dataclass(frozen=True, slots=True)
class UnrolledParts:
    """`count` unrolled parts of a thread's work.

    Each begins with `lines`, which compute from its number, `part`, the variable `place`: its
    position on `axis`.
    """

    writer: SourceWriter
    count: int
    lines: tuple[str, ...]
    axis: Axis
    place: str

    @contextmanager
    def each(self) -> Iterator[None]:
        """Write a loop over the parts."""
        with self.writer.unrolled(f"for (int part = 0; part < {self.count}; ++part)"):
            for line in self.lines:
                self.writer.line(line)
            self.writer.bind(self.axis, self.place)
            yield

    def declare(self, types: Mapping[Load, str]) -> dict[Load, str]:
        """Declare an array for each load, of the given C++ type, with an item for each part."""
        arrays = {load: self.writer.fresh() for load in types}
        for load, array in arrays.items():
            self.writer.line(f"{types[load]} {array}[{self.count}];")
        return arrays

    def fill(
        self, arrays: Mapping[Load, str], text: Callable[[Load], str], addressed: bool = True
    ) -> None:
        """Assign `text(load)` to the items of each load's array. If the text is `addressed`, it
        uses the load's index, which is computed for it.
        """
        with self.each():
            if addressed:
                compute(self.writer, [load.indices[0] for load in arrays])
            for load, array in arrays.items():
                self.writer.line(f"{array}[part] = {text(load)};")


def load_parts(
    parts: UnrolledParts, widths: Mapping[Load, int], aligned: Mapping[Buffer, str]
) -> dict[Load, str]:
    """Load a vector of `widths[load]` elements at each flat load, for all parts. Returns the arrays
    that hold them. `aligned` comes from `declare_aligned`.
    """
    arrays = parts.declare({load: pack(load, width) for load, width in widths.items()})
    split = {x: n for x, n in arrays.items() if x.buffer in aligned and _is_split(x, widths[x])}
    whole = {load: array for load, array in arrays.items() if load not in split}
    if split:
        _fill_by_words(parts, split, widths, aligned)
    if whole:
        parts.fill(whole, lambda load: load_text(parts.writer, load, widths[load], aligned))
    return arrays


def _fill_by_words(
    parts: UnrolledParts,
    arrays: Mapping[Load, str],
    widths: Mapping[Load, int],
    aligned: Mapping[Buffer, str],
) -> None:
    """Load vectors that may be misaligned as words, and extract the elements."""
    writer = parts.writer
    sizes = {load: _nbytes(load, widths[load]) // WORD_BYTES for load in arrays}
    words = parts.declare({load: f"tg_block<{size}>" for load, size in sizes.items()})

    def block(load: Load) -> str:
        return f"*reinterpret_cast<const tg_block<{sizes[load]}>*>({address(writer, load)})"

    def straddle(load: Load) -> str:
        return f"tg_load_straddle<{sizes[load]}>({address(writer, load)})"

    def within(load: Load) -> str:
        return f"tg_within({both[load]}[part], {address(writer, load)})"

    def elements(load: Load) -> str:
        kind = c_type(load.buffer.type.dtype)
        return f"tg_elements<{widths[load]}, {kind}>({words[load]}[part])"

    (test,) = {aligned[load.buffer] for load in arrays}
    with writer.block(f"if ({test})"):
        parts.fill(words, block)
    with writer.block("else"):
        # one load after the other: together, the rare case would need the most registers
        for load, size in sizes.items():
            both = parts.declare({load: f"tg_straddle<{size}>"})
            parts.fill(both, straddle)
            parts.fill({load: words[load]}, within)
    parts.fill(arrays, elements, addressed=False)


def _is_split(load: Load, width: int) -> bool:
    """Whether a misaligned vector is loaded as two aligned ones, and not element by element. This
    is the rule of `tg_load` in preamble.cuh.
    """
    nbytes = _nbytes(load, width)
    return nbytes >= WORD_BYTES and (width > 2 or nbytes == VECTOR_BYTES)


def _nbytes(load: Load, width: int) -> int:
    nbytes: int = width * load.buffer.type.dtype.itemsize
    return nbytes
