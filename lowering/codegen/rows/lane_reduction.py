"""Warp and block reduction: the totals of an output's lanes, folded into its first lane or all.

Adjacent lanes use butterfly shuffles within each warp, and shared memory between warps. Lanes that
are not adjacent use a tree in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.geometry_records import RowGeometry
from lowering.codegen.rows.accumulators import NumberedAccumulator
from lowering.codegen.rows.clusters import cluster_barrier
from lowering.codegen.rows.lane_loops import barrier
from lowering.codegen.source_writer import SourceWriter
from lowering.plan.target.hardware import WARP


def reduce_to_first_lane(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry
) -> None:
    """Reduce the lanes of each output into its lane 0.

    It ends without a barrier: some warps may still read shared memory.
    """
    if geometry.lanes == 1 or not folds:
        return
    if not geometry.by_shuffle:
        _reduce_tree(writer, folds, geometry)
        return
    _reduce_warp(writer, folds, min(geometry.lanes, WARP))
    warps = geometry.lanes // WARP
    if warps > 1:
        _store_warp_results(writer, folds)
        if geometry.cluster > 1:
            _load_cluster_results(writer, folds, geometry, warps)
        else:
            _load_block_results(writer, folds, geometry, warps)
        _reduce_warp(writer, folds, min(warps, WARP))


def reduce_to_all_lanes(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry
) -> None:
    """Reduce the lanes of each output into every one of them.

    Each pass over a row has shared memory of its own, so no barrier is needed before the next.
    """
    reduce_to_first_lane(writer, folds, geometry)
    if geometry.lanes == 1 or not folds:
        return
    if not geometry.by_shuffle:
        _broadcast_shared(writer, folds, geometry)
        return
    _broadcast_warp(writer, folds, min(geometry.lanes, WARP))
    if geometry.lanes <= WARP:
        writer.line("__syncwarp();")  # lanes may now overwrite what others have read


def _reduce_warp(writer: SourceWriter, folds: Sequence[NumberedAccumulator], lanes: int) -> None:
    """Butterfly reduction of neighbouring lanes, a power of two, into every one of them."""
    with writer.block(f"for (int width = {lanes // 2}; width >= 1; width /= 2)"):
        theirs = [tuple(writer.fresh() for _ in fold.types) for fold in folds]
        for fold, names in zip(folds, theirs, strict=True):
            for name, type_, mine in zip(names, fold.types, fold.variables("total"), strict=True):
                writer.line(f"const {type_} {name} = tg_shuffle_xor({mine}, thread, width);")
        for fold, names in zip(folds, theirs, strict=True):
            fold.accumulate(writer, "total", names)


def _broadcast_warp(writer: SourceWriter, folds: Sequence[NumberedAccumulator], lanes: int) -> None:
    """Broadcast the first lane's total, where lanes may differ in the sign of zero."""
    for fold in folds:
        if not fold.commutative:
            (mine,) = fold.variables("total")
            writer.line(f"{mine} = tg_shuffle_xor({mine}, thread, thread % {lanes});")


def _store_warp_results(writer: SourceWriter, folds: Sequence[NumberedAccumulator]) -> None:
    with writer.block(f"if (thread % {WARP} == 0)"):
        for mine, shared in _pairs(folds):
            writer.line(f"{shared}[thread / {WARP}] = {mine};")


def _load_block_results(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry, warps: int
) -> None:
    """Load the totals of an output's warps, one for each lane."""
    writer.line("__syncthreads();")
    for mine, shared in _pairs(folds):
        writer.line(f"{mine} = {shared}[thread / {geometry.lanes} * {warps} + thread % {warps}];")


def _load_cluster_results(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry, warps: int
) -> None:
    """Load the totals of the warps of all blocks, WARP at a time. Shared memory must stay as it is
    until the next barrier of the cluster.
    """
    own = warps // geometry.cluster
    cluster_barrier(writer)
    for first in range(0, warps, WARP):
        with writer.block(""):
            writer.line(f"const int warp = thread % {min(warps, WARP)} + {first};")
            place = f"warp % {own}, warp / {own}"
            for fold in folds:
                names = fold.variables("total" if first == 0 else "theirs")
                for name, type_, shared in zip(
                    names, fold.types, fold.variables("shared"), strict=True
                ):
                    declared = name if first == 0 else f"const {type_} {name}"
                    writer.line(f"{declared} = tg_of_peer({shared} + {place});")
                if first > 0:
                    fold.accumulate(writer, "total", names)


def _reduce_tree(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry
) -> None:
    """Tree reduction in shared memory, by halving distances, into lane 0 of each output.

    Once both lanes of a pair are in one warp, only the warp synchronises.
    """
    stride = geometry.stride
    for mine, shared in _pairs(folds):
        writer.line(f"{shared}[thread] = {mine};")
    writer.line(barrier(geometry.lanes * stride))
    far = [w for w in _tree_widths(geometry.lanes) if 2 * w * stride > WARP]
    near = [w for w in _tree_widths(geometry.lanes) if 2 * w * stride <= WARP]
    for widths, sync in ((far, "__syncthreads();"), (near, "__syncwarp();")):
        if not widths:
            continue
        head = f"for (int width = {widths[0]}; width >= {widths[-1]}; width /= 2)"
        with writer.block(head):
            with writer.block("if (lane < width)"):
                other = "thread + width" if stride == 1 else f"thread + width * {stride}"
                for fold in folds:
                    theirs = tuple(f"{variable}[{other}]" for variable in fold.variables("shared"))
                    fold.accumulate(writer, "total", theirs)
                    for mine, shared in zip(
                        fold.variables("total"), fold.variables("shared"), strict=True
                    ):
                        writer.line(f"{shared}[thread] = {mine};")
            writer.line(sync)


def _broadcast_shared(
    writer: SourceWriter, folds: Sequence[NumberedAccumulator], geometry: RowGeometry
) -> None:
    """Broadcast the total of each output's first lane through shared memory."""
    stride = geometry.stride
    if 2 * stride <= WARP < geometry.lanes * stride:  # the last barrier was that of one warp
        writer.line("__syncthreads();")
    for mine, shared in _pairs(folds):
        writer.line(f"{mine} = {shared}[thread - lane * {stride}];")


def _pairs(folds: Sequence[NumberedAccumulator]) -> list[tuple[str, str]]:
    """Each component's variable and its array in shared memory."""
    return [
        pair
        for f in folds
        for pair in zip(f.variables("total"), f.variables("shared"), strict=True)
    ]


def _tree_widths(lanes: int) -> list[int]:
    """Half the lanes, a quarter of them, and so on.

    >>> _tree_widths(8)
    [4, 2, 1]
    """
    return [1 << bit for bit in reversed(range(lanes.bit_length() - 1))]
