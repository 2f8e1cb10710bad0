"""Access maps: the flat offsets that a load or a store accesses, as strides and a residual.

A buffer is contiguous, so an index is one number, Σ index · stride. Terms that are affine in the
axes become strides of a NumPy view, which costs nothing. The other terms (gathered positions,
remainders) are the residual. If the residual varies along no axis, it is an offset of the view,
computed when the step runs. If it varies, it is an array of positions for NumPy's fancy indexing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lowering.plan.nests.buffer import Buffer
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.scalar import Axis, Const, Expr, Sum, const, linear
from tracegraph.ir.types import row_major_strides

AxesOf = Callable[[Expr], frozenset[int]]


@dataclass(frozen=True, slots=True)
class AccessMap:
    """The elements at residual + Σ strides[axis] · axis; the residual varies along `axes`.

    `low` and `high` bound Σ strides[axis] · axis.
    """

    strides: Mapping[int, int]
    residual: Expr
    axes: frozenset[int]
    low: int
    high: int

    @property
    def fixed(self) -> int | None:
        """The residual, if it is a constant."""
        if isinstance(self.residual, Const):
            return int(self.residual.value)  # type: ignore[arg-type]
        return None

    def fits(self, size: int) -> bool:
        """Whether all elements are known to be inside a buffer of `size` elements."""
        return (
            self.fixed is not None and 0 <= self.fixed + self.low <= self.fixed + self.high < size
        )


def access_map(
    buffer: Buffer,
    indices: tuple[Expr, ...],
    extents: tuple[int, ...],
    axes_of: AxesOf,
    gathered: Iterable[int] = (),
) -> AccessMap:
    """The access map of buffer[indices]; terms of the axes in `gathered` go to the residual."""
    strides = row_major_strides(buffer.type.shape)
    flat = linear(list(zip(indices, strides, strict=True)))
    terms = flat.terms if isinstance(flat, Sum) else ((flat, 1),)
    offset = flat.offset if isinstance(flat, Sum) else 0
    others = [(term, factor) for term, factor in terms if not isinstance(term, Axis)]
    axes = frozenset(gathered).union(*(axes_of(term) for term, _ in others))
    affine: dict[int, int] = {}
    for term, factor in terms:
        if isinstance(term, Axis):
            if term.number in axes:
                others.append((term, factor))
            elif extents[term.number] > 1:
                affine[term.number] = factor
    residual = linear([*others], offset) if others else const(offset)
    spans = [factor * (extents[axis] - 1) for axis, factor in affine.items()]
    low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0)
    return AccessMap(dict(sorted(affine.items())), residual, axes, low, high)
