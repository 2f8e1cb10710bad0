"""Totals: what the lanes of an output have folded, folded into the first of them, or into all.

Neighbours exchange their results within each warp, and the warps of an output by way of shared
memory. Where neighbours are of different outputs, it is shared memory alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.geometry_records import WARP, ReduceShape
from lowering.codegen.rows.accumulators import Fold
from lowering.codegen.rows.clusters import wait_for_cluster
from lowering.codegen.rows.lanes import barrier
from lowering.codegen.source_writer import Body


def fold_to_first(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Fold the lanes of each output into its lane 0.

    Warps may read shared memory still when the first are done.
    """
    if shape.lanes == 1 or not folds:
        return
    if not shape.by_exchange:
        _fold_by_halves(body, folds, shape)
        return
    _fold_neighbours(body, folds, min(shape.lanes, WARP))
    warps = shape.lanes // WARP
    if warps > 1:
        _share_by_warps(body, folds)
        if shape.cluster > 1:
            _take_from_cluster(body, folds, shape, warps)
        else:
            _take_from_block(body, folds, shape, warps)
        _fold_neighbours(body, folds, min(warps, WARP))


def fold_to_all(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Fold the lanes of each output into every one of them.

    Each pass over a row has its own shared memory: so none needs to wait until it is read.
    """
    fold_to_first(body, folds, shape)
    if shape.lanes == 1 or not folds:
        return
    if not shape.by_exchange:
        _tell_lanes(body, folds, shape)
        return
    _agree(body, folds, min(shape.lanes, WARP))
    if shape.lanes <= WARP:
        body.line("__syncwarp();")  # what lanes have read may be replaced now


def _fold_neighbours(body: Body, folds: Sequence[Fold], lanes: int) -> None:
    """Fold as many neighbouring lanes, a power of two, into every one of them."""
    with body.block(f"for (int width = {lanes // 2}; width >= 1; width /= 2)"):
        theirs = [tuple(body.fresh() for _ in fold.types) for fold in folds]
        for fold, names in zip(folds, theirs, strict=True):
            for name, type_, mine in zip(names, fold.types, fold.cells("total"), strict=True):
                body.line(f"const {type_} {name} = tg_exchange({mine}, thread, width);")
        for fold, names in zip(folds, theirs, strict=True):
            fold.absorb(body, "total", names)


def _agree(body: Body, folds: Sequence[Fold], lanes: int) -> None:
    """Let neighbouring lanes have the total of the first where the order of folding may show."""
    for fold in folds:
        if not fold.symmetric:
            (mine,) = fold.cells("total")
            body.line(f"{mine} = tg_exchange({mine}, thread, thread % {lanes});")


def _share_by_warps(body: Body, folds: Sequence[Fold]) -> None:
    with body.block(f"if (thread % {WARP} == 0)"):
        for mine, shared in _pairs(folds):
            body.line(f"{shared}[thread / {WARP}] = {mine};")


def _take_from_block(body: Body, folds: Sequence[Fold], shape: ReduceShape, warps: int) -> None:
    """Give neighbouring lanes what the warps of their output have shared, one each."""
    body.line("__syncthreads();")
    for mine, shared in _pairs(folds):
        body.line(f"{mine} = {shared}[thread / {shape.lanes} * {warps} + thread % {warps}];")


def _take_from_cluster(body: Body, folds: Sequence[Fold], shape: ReduceShape, warps: int) -> None:
    """The same of the warps of all blocks, in turns if there are more than lanes in a warp. What is
    read must stay until the next barrier of the cluster.
    """
    own = warps // shape.cluster
    wait_for_cluster(body)
    for turn in range(0, warps, WARP):
        with body.block(""):
            body.line(f"const int warp = thread % {min(warps, WARP)} + {turn};")
            place = f"warp % {own}, warp / {own}"
            for fold in folds:
                names = fold.cells("total" if turn == 0 else "theirs")
                for name, type_, shared in zip(
                    names, fold.types, fold.cells("shared"), strict=True
                ):
                    declared = name if turn == 0 else f"const {type_} {name}"
                    body.line(f"{declared} = tg_of_peer({shared} + {place});")
                if turn > 0:
                    fold.absorb(body, "total", names)


def _fold_by_halves(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Fold the lanes of each output into its lane 0, by halving distances in shared memory.

    As soon as the lanes that meet are of one warp, the warp alone waits.
    """
    stride = shape.stride
    for mine, shared in _pairs(folds):
        body.line(f"{shared}[thread] = {mine};")
    body.line(barrier(shape.lanes * stride))
    far = [w for w in _halvings(shape.lanes) if 2 * w * stride > WARP]
    near = [w for w in _halvings(shape.lanes) if 2 * w * stride <= WARP]
    for widths, sync in ((far, "__syncthreads();"), (near, "__syncwarp();")):
        if not widths:
            continue
        head = f"for (int width = {widths[0]}; width >= {widths[-1]}; width /= 2)"
        with body.block(head):
            with body.block("if (lane < width)"):
                other = "thread + width" if stride == 1 else f"thread + width * {stride}"
                for fold in folds:
                    theirs = tuple(f"{cell}[{other}]" for cell in fold.cells("shared"))
                    fold.absorb(body, "total", theirs)
                    for mine, shared in zip(fold.cells("total"), fold.cells("shared"), strict=True):
                        body.line(f"{shared}[thread] = {mine};")
            body.line(sync)


def _tell_lanes(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Give every lane what its output's first lane has, in shared memory."""
    stride = shape.stride
    if 2 * stride <= WARP < shape.lanes * stride:  # the last to wait was one warp
        body.line("__syncthreads();")
    for mine, shared in _pairs(folds):
        body.line(f"{mine} = {shared}[thread - lane * {stride}];")


def _pairs(folds: Sequence[Fold]) -> list[tuple[str, str]]:
    """Each cell's own variable and its array in shared memory."""
    return [pair for f in folds for pair in zip(f.cells("total"), f.cells("shared"), strict=True)]


def _halvings(lanes: int) -> list[int]:
    """Half the lanes, a quarter of them, and so on.

    >>> _halvings(8)
    [4, 2, 1]
    """
    return [1 << bit for bit in reversed(range(lanes.bit_length() - 1))]
