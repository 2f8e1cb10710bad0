"""The loop of one lane: a lane is one of the threads that share the loop of an output.

Every value is folded in an order that depends on shapes only, so results are the same at each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lowering.codegen.expressions import (
    WIDE,
    cast,
    compute,
    hoist,
    index_type,
    operand,
    value,
    write_store,
)
from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.maps.loads import UnrolledParts
from lowering.codegen.maps.vector_accesses import Vectors, declare_aligned
from lowering.codegen.rows.accumulators import NumberedAccumulator
from lowering.codegen.rows.column_runs import Run, load_runs, load_runs_of_steps, longest, runs_of
from lowering.codegen.rows.flat_passes import FlatPass
from lowering.codegen.rows.vector_groups import loop_over_groups, vectors_of_pass
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div, share_of
from lowering.plan.target.hardware import WARP
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis

SERIAL_LIMIT = 256
"""Elements of a partial sum: the rounding error grows with the length of the longest chain, as in
NumPy's pairwise summation, whose blocks are of 128."""

GROUPS_IN_FLIGHT = 4
"""Vectors that a lane loads before it folds the first. Sums reach 107 % of a copy with four (H200);
eight were no better for small arrays."""

UNROLLED_TURNS = 4
"""Steps of a lane that are written as a loop of known length. NVRTC does not find out the length of
a loop that begins with the lane: it makes four copies and a loop of the rest, in 10 ms more."""


def declare_lane(
    writer: SourceWriter, geometry: RowGeometry, points: int, tile: str = "block"
) -> None:
    """Declare the thread's `point` and `lane`, whether it is `live`, and its block's `split`.

    In a cluster, `tile` and `rank` are declared, and lanes are numbered across its blocks.
    """
    if geometry.splits > 1:
        writer.line(
            f"const int tile = block / {geometry.splits}, split = block % {geometry.splits};"
        )
        tile = "tile"
    output, lane = f"thread % {geometry.outputs}", f"thread / {geometry.outputs}"
    if geometry.adjacent:
        output, lane = f"thread / {geometry.lanes}", f"thread % {geometry.lanes}"
    if geometry.cluster > 1:
        output, lane = "0", f"rank * {geometry.threads} + thread"
    writer.line(f"const int lane = {lane};")
    kind = index_type(geometry.tiles * geometry.outputs)
    first = cast(kind, tile) if kind == WIDE else tile
    writer.line(f"const {kind} point = {first} * {geometry.outputs} + {output};")
    writer.line(f"const bool live = point < {points};")


def write_loop(
    writer: SourceWriter, flat: FlatPass, step: Axis, geometry: RowGeometry, backwards: bool = False
) -> None:
    """Write the loop over the lane's steps, which folds into `total`.

    With `backwards`, long loops that are not split run in reverse, but for those that find the
    first of several elements.
    """
    width = geometry.width
    found = runs_of(flat.values) if width == 1 else []
    once, runs = [run for run in found if not run.moves(step)], [r for r in found if r.moves(step)]
    if once:
        aligned = declare_aligned(writer, [run.loads[0] for run in once], longest(once))
        load_runs_of_steps(UnrolledParts(writer, 1, (), step, "0"), once, aligned, "0")
    hoist(writer, flat.roots, step)
    whole = step.extent // width * width  # the rest is less than a vector
    share = share_of(step.extent, geometry.splits, geometry.lanes * width)
    kind = index_type(step.extent + 2 * share + SERIAL_LIMIT * geometry.lanes)
    begin, end = "0", str(whole)
    if geometry.splits > 1:
        writer.line(f"const {kind} begin = {kind}(split) * {share};")
        writer.line(f"const {kind} end = begin + {share} < {whole} ? begin + {share} : {whole};")
        begin, end = "begin", "end"
    vectors = vectors_of_pass(flat, width)
    accesses = vectors.accesses if width > 1 else [run.loads[0] for run in runs]
    aligned = declare_aligned(writer, accesses, width if width > 1 else longest(runs))
    loop = _LaneLoop(writer, flat, step, geometry, whole, share, kind, vectors, runs, aligned)
    inexact = any(fold.dtype.kind not in "biu" and not fold.arg for fold in flat.folds)
    backwards = backwards and geometry.splits == 1 and whole >= geometry.lanes * width
    backwards = backwards and not any(fold.arg for fold in flat.folds)
    if inexact and share > SERIAL_LIMIT * geometry.lanes:
        loop.write_chunks(begin, end, backwards)
    else:
        loop.write(begin, end, "total", backwards)
    loop.write_rest()


@dataclass(frozen=True, slots=True)
class _LaneLoop:
    """The loop of a lane over the steps of a pass.

    The first `whole` steps are whole vectors, and a block has a `share` of them. Steps are of the
    type `kind`.
    """

    writer: SourceWriter
    flat: FlatPass
    step: Axis
    geometry: RowGeometry
    whole: int
    share: int
    kind: str
    vectors: Vectors
    runs: Sequence[Run]
    aligned: Mapping[Buffer, str]

    def write(self, begin: str, end: str, total: str, backwards: bool) -> None:
        """Write the steps between two, which fold into accumulators of this name."""
        width = self.geometry.width
        lane = "lane" if width == 1 else f"lane * {width}"
        first = lane if begin == "0" else f"{begin} + {lane}"
        if width > 1:
            self._write_vectors(first, end, total, backwards)
        else:
            self._write_steps(first, end, total, backwards)

    def write_chunks(self, begin: str, end: str, backwards: bool) -> None:
        """Write loops over parts of the steps, each of which has a partial sum."""
        writer, kind, folds = self.writer, self.kind, self.flat.folds
        chunk = SERIAL_LIMIT * self.geometry.lanes
        head = f"for ({kind} first = {begin}; first < {end}; first += {chunk})"
        if backwards:
            last = (self.whole - 1) // chunk * chunk
            head = f"for ({kind} first = {last}; first >= 0; first -= {chunk})"
        with writer.block(head):
            writer.line(f"const {kind} stop = first + {chunk} < {end} ? first + {chunk} : {end};")
            for fold in folds:
                fold.declare(writer, "part")
            self.write("first", "stop", "part", backwards=False)
            for fold in folds:
                fold.accumulate(writer, "total", fold.variables("part"))

    def write_rest(self) -> None:
        """Write what is less than a vector: a step for each of the first lanes."""
        writer, geometry, rest = self.writer, self.geometry, self.step.extent - self.whole
        if not rest:
            return
        last = f"split == {geometry.splits - 1} && " if geometry.splits > 1 else ""
        with writer.block(f"if ({last}lane < {rest})"):
            writer.line(f"const {self.kind} step = {self.whole} + lane;")
            writer.bind(self.step, "step")
            write_step(writer, self.flat, "total")

    def _write_vectors(self, first: str, end: str, total: str, backwards: bool) -> None:
        writer, flat, step, geometry = self.writer, self.flat, self.step, self.geometry
        vectors, parts = self.vectors, list(self._parts())
        writer.line(f"{self.kind} base = {first};")
        loop_over_groups(
            writer, flat, step, geometry, vectors, self.aligned, parts, end, total, backwards
        )

    def _write_steps(self, first: str, end: str, total: str, backwards: bool) -> None:
        writer, kind, lanes = self.writer, self.kind, self.geometry.lanes
        if self.runs and not backwards and self.share >= lanes * GROUPS_IN_FLIGHT:
            writer.line(f"{kind} base = {first};")
            self._write_runs(end, total)
            first = "base"
        turns = ceil_div(self.whole, lanes)
        whole_row = first == "lane" and end == str(self.whole)
        if whole_row and turns <= UNROLLED_TURNS and not backwards:
            with writer.unrolled(f"for (int turn = 0; turn < {turns}; ++turn)"):
                writer.line(f"const {kind} step = lane + turn * {lanes};")
                if self.whole % lanes:
                    writer.line(f"if (turn == {turns - 1} && step >= {self.whole}) continue;")
                self._write_step(total)
            return
        head = f"for ({kind} step = {first}; step < {end}; step += {lanes})"
        if backwards:
            last = f"{first} + ({end} - 1 - lane) / {lanes} * {lanes}"
            head = f"for ({kind} step = {last}; step >= 0; step -= {lanes})"
        with writer.block(head):
            self._write_step(total)

    def _write_step(self, total: str) -> None:
        self.writer.bind(self.step, "step")
        load_runs(self.writer, self.runs, self.aligned)
        write_step(self.writer, self.flat, total)

    def _write_runs(self, end: str, total: str) -> None:
        """Write a loop over GROUPS_IN_FLIGHT steps at a time, from `base` on."""
        writer, count, lanes = self.writer, GROUPS_IN_FLIGHT, self.geometry.lanes
        head = f"for (; base + {(count - 1) * lanes} < {end}; base += {count * lanes})"
        declared = (f"const auto step = base + part * {lanes};",)
        parts = UnrolledParts(writer, count, declared, self.step, "step")
        with writer.block(head):
            load_runs_of_steps(parts, self.runs, self.aligned)
            with parts.each():
                write_step(writer, self.flat, total)

    def _parts(self) -> Iterator[int]:
        """The groups of each loop's iteration: first several, then one for the rest."""
        stride = self.geometry.lanes * self.geometry.width
        parts = min(GROUPS_IN_FLIGHT // max(len(self.vectors.loads), 1), self.share // stride)
        if parts > 1:
            yield parts
        if parts <= 1 or self.share % (stride * parts) or self.whole % (stride * parts):
            yield 1


def write_step(writer: SourceWriter, flat: FlatPass, name: str) -> None:
    """Fold one element into the accumulators called `name`, and write the stores of the step."""
    compute(writer, flat.roots)
    for fold, element in zip(flat.folds, flat.values, strict=True):
        fold.take(writer, name, operand(writer, element), "step")
    for store in flat.stores:
        write_store(writer, store, value(writer, store.value))


def declare_shared(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry
) -> None:
    """Declare an array in shared memory for each component of the folds, if they need one."""
    if not geometry.shared_slots:
        return
    offsets = iter(geometry.shared_offsets(dtype for fold in folds for dtype in fold.dtypes))
    for fold in folds:
        for array, type_ in zip(fold.variables("shared"), fold.types, strict=True):
            place = f"reinterpret_cast<{type_}*>(shared + {next(offsets)})"
            writer.line(f"{type_}* const {array} = {place};")


def barrier(together: int) -> str:
    """The barrier for `together` neighbouring threads, a power of two."""
    return "__syncthreads();" if together > WARP else "__syncwarp();"
