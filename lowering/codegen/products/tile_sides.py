"""Sides of a product: each factor with its indices separated, and the tile that is loaded of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from lowering.codegen.expressions import index_type
from lowering.codegen.flatten import Flattener, linear_axis
from lowering.codegen.geometry_records import ProductGeometry
from lowering.codegen.maps.vector_accesses import vectors_of
from lowering.codegen.products.product_geometry import padded
from lowering.codegen.products.separated import Separated, separated
from lowering.plan.nests.analysis import loads
from lowering.plan.nests.kernel import Store
from lowering.plan.nests.strides import offset_in
from lowering.plan.nests.tiled_products import Axes, TiledProduct
from lowering.plan.target.hardware import VECTOR_BYTES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.record import replace
from tracegraph.ir.scalar import Axis, Expr, affine
from tracegraph.ir.scalar_values import Load

BATCH, ROW, COLUMN, SUMMED = -3, -4, -5, -6
"""Axis numbers of the linear indices of a product."""

FIRST_OF_LEFT, FIRST_OF_RIGHT = -10, -1010
"""Axis numbers of what stands for parts of indices; those after it are lower."""


@dataclass(frozen=True, slots=True)
class Side:
    """One factor: its expression over linear indices, the index of its own outputs, and its tile.

    `each` of the `threads` along it has that many outputs, of which a `vector` are neighbours. Rows
    of the tile are a `stride` apart. With `steps_first`, neighbouring threads load neighbouring
    steps of the sums, and else neighbouring outputs: as vectors, if several are `loaded` together.
    """

    name: str
    factor: Separated
    own: Axis
    threads: int
    each: int
    vector: int
    stride: int
    steps_first: bool
    batch: Axis
    by_warps: bool
    loaded: int

    @property
    def side(self) -> int:
        """Outputs of a tile."""
        return self.threads * self.each

    @property
    def is_whole(self) -> bool:
        """Whether all tiles are full."""
        return self.own.extent % self.side == 0

    @property
    def index_type(self) -> str:
        """The type of the index of an output."""
        return index_type(self.own.extent + self.side)

    def output(self, counter: str) -> str:
        """The text of the index of a thread's output: groups of neighbours, so that threads access
        neighbouring vectors.
        """
        if self.by_warps and self.name == "left":
            matrix = f"thread_left / 8 * {self.each // 2} + {counter} / 2"
            return f"start_left + ({matrix}) * 16 + {counter} % 2 * 8 + thread_left % 8"
        if self.by_warps:
            matrix = f"thread_right / 4 * {self.each // 2} + {counter} / 2"
            return f"start_right + ({matrix}) * 8 + thread_right % 4 * 2 + {counter} % 2"
        width = self.vector
        group = f"{counter} / {width} * {self.threads} + thread_{self.name}"
        return f"start_{self.name} + ({group}) * {width} + {counter} % {width}"


@dataclass(frozen=True, slots=True)
class FlatProduct:
    """A product over linear indices."""

    flat: Flattener
    batch: Axis
    step: Axis
    left: Side
    right: Side

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both factors."""
        return self.left, self.right


def flattened(
    product: TiledProduct, stores: Sequence[Store], geometry: ProductGeometry
) -> FlatProduct:
    """A product with its axes in the order in which memory is accessed best."""
    product = replace(
        product,
        rows=_by_strides(product.rows, loads([product.left])),
        columns=_by_strides(product.columns, stores),
        summed=_by_strides(product.summed, loads([product.left, product.right])),
    )
    kinds = {
        BATCH: product.batch,
        ROW: product.rows,
        COLUMN: product.columns,
        SUMMED: product.summed,
    }
    flat = Flattener({kind: list(axes) for kind, axes in kinds.items()})
    batch, row, column, step = (
        linear_axis(kind, tuple([n for _, n in axes])) for kind, axes in kinds.items()
    )
    dtype, g = product.left.dtype, geometry
    most = VECTOR_BYTES // dtype.itemsize

    def side(name: str, factor: Expr, own: Axis, axes: Axes, threads: int, each: int) -> Side:
        steps_first = _is_along(factor, product.summed, axes)
        along, neighbours = (step, g.depth) if steps_first else (own, threads * each)
        whole = flat(factor)
        return Side(
            name,
            separated(whole, step, FIRST_OF_LEFT if name == "left" else FIRST_OF_RIGHT),
            own,
            threads,
            each,
            vector=gcd(each, most),
            stride=padded(threads * each, dtype, g.by_warps),
            steps_first=steps_first,
            batch=batch,
            by_warps=g.by_warps,
            loaded=_loaded(whole, along, gcd(most, neighbours)),
        )

    left = side("left", product.left, row, product.rows, g.rows, g.row_outputs)
    right = side("right", product.right, column, product.columns, g.columns, g.column_outputs)
    return FlatProduct(flat, batch, step, left, right)


def _by_strides(axes: Axes, accesses: Sequence[Load | Store]) -> Axes:
    """Axes in the order of the largest array that is accessed along them, its neighbours last."""
    for access in sorted(accesses, key=lambda access: -access.buffer.type.size):
        found = affine(offset_in(access.buffer.type.shape, access.indices))
        if found is not None and any(axis in found[0] for axis, _ in axes):
            return tuple(sorted(axes, key=lambda each: -abs(found[0].get(each[0], 0))))
    return axes


def _is_along(factor: Expr, summed: Axes, outputs: Axes) -> bool:
    """Whether elements of a factor are nearer to each other along its sums than along outputs."""
    for load in sorted(loads([factor]), key=lambda load: -load.buffer.type.size):
        found = affine(offset_in(load.buffer.type.shape, load.indices))
        if found is None:
            continue
        strides, _ = found
        across, along = (abs(strides.get(axes[-1][0], 0)) for axes in (outputs, summed))
        if along and across:
            return along < across
    return False


def _loaded(factor: Expr, axis: Axis, most: int) -> int:
    """How many neighbours along an axis are one access, if the factor is in memory as it is."""
    width = most if isinstance(factor, Load) and factor.guard is None else 1
    while width > 1 and (
        axis.extent % width or not vectors_of([], width, [factor], axis.number).loads
    ):
        width //= 2
    return width
