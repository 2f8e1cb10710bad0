"""Totals: what the lanes of an output have folded, folded into every one of them.

Between the passes over a row, each lane needs to know what all of them have found.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.codegen.body import Body
from lowering.codegen.clusters import BARRIER
from lowering.codegen.folds import Fold
from lowering.codegen.lanes import fold_lanes
from lowering.codegen.shapes import WARP, ReduceShape


def fold_to_all(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Fold the lanes of each output into every one of them.

    Neighbours exchange their results within each warp, and the warps of an output by way of shared
    memory, of which each pass has its own: so none needs to wait until it is read.
    """
    if shape.lanes == 1 or not folds:
        return
    if not shape.adjacent or shape.outputs * shape.lanes < WARP:
        fold_lanes(body, folds, shape)
        _tell_lanes(body, folds, shape)
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
    _agree(body, folds, min(shape.lanes, WARP))
    if warps <= 1:
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
    body.line(BARRIER)
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


def _tell_lanes(body: Body, folds: Sequence[Fold], shape: ReduceShape) -> None:
    """Give every lane what its output's first lane has, in shared memory."""
    stride = 1 if shape.adjacent else shape.outputs
    if 2 * stride <= WARP < shape.lanes * stride:  # the last to wait was one warp
        body.line("__syncthreads();")
    for mine, shared in _pairs(folds):
        body.line(f"{mine} = {shared}[thread - lane * {stride}];")


def _pairs(folds: Sequence[Fold]) -> list[tuple[str, str]]:
    """Each cell's own variable and its array in shared memory."""
    return [pair for f in folds for pair in zip(f.cells("total"), f.cells("shared"), strict=True)]
