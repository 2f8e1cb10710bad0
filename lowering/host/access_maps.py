"""Where the elements of a load or a store lie: flat element offsets, split into strides and a rest.

A buffer is contiguous, so an index is one number, Σ index · stride. Of its terms, those affine in
the axes become the strides of a NumPy view, which costs nothing. Terms that are not (gathered
positions, remainders) leave a `rest`: if no axis is in it, it shifts the view when the step runs;
if some are, it is an array of positions for NumPy's fancy indexing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from lowering.plan.buffer import Buffer
from tracegraph.ir.scalar import Axis, Const, Expr, Sum, const, linear
from tracegraph.ir.types import row_major_strides

AxesOf = Callable[[Expr], frozenset[int]]


@dataclass(frozen=True, slots=True)
class AccessMap:
    """Elements at rest + Σ strides[axis] · axis; `axes` are those that the rest varies on.

    `low` and `high` bound Σ strides[axis] · axis. Along axes that are `turned`, the first element
    is the last.
    """

    strides: Mapping[int, int]
    residual: Expr
    axes: frozenset[int]
    low: int
    high: int
    turned: frozenset[int] = frozenset()

    @property
    def fixed(self) -> int | None:
        """The rest, if it is known."""
        return int(self.residual.value) if isinstance(self.residual, Const) else None  # type: ignore[arg-type]

    def forwards(self) -> AccessMap:
        """The same elements, in the order of memory along the axes that are `turned` for it."""
        turned = frozenset(axis for axis, stride in self.strides.items() if stride < 0)
        strides = {axis: abs(stride) for axis, stride in self.strides.items()}
        return AccessMap(
            strides, self.residual + self.low, self.axes, 0, self.high - self.low, turned
        )

    def fits(self, size: int) -> bool:
        """Whether all elements are known to lie within a buffer of `size` elements."""
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
    """The place of buffer[indices] over the axes; those in `gathered` go to the rest anyway."""
    strides = row_major_strides(buffer.type.shape)
    flat = linear(list(zip(indices, strides, strict=True)))
    terms = flat.terms if isinstance(flat, Sum) else ((flat, 1),)
    offset = flat.offset if isinstance(flat, Sum) else 0
    others = [(term, factor) for term, factor in terms if not isinstance(term, Axis)]
    axes = frozenset(gathered).union(*(axes_of(term) for term, _ in others))
    regular: dict[int, int] = {}
    for term, factor in terms:
        if isinstance(term, Axis):
            if term.number in axes:
                others.append((term, factor))
            elif extents[term.number] > 1:
                regular[term.number] = factor
    rest = linear([*others], offset) if others else const(offset)
    spans = [factor * (extents[axis] - 1) for axis, factor in regular.items()]
    low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0)
    return AccessMap(dict(sorted(regular.items())), rest, axes, low, high)
