"""Functions of elements, applied to selected elements: at all places of the mask.

What is computed at places that are not selected is never used, but it must do no harm: an integer
to a negative power is an error, and 0, the cotangent there, times an infinite derivative is NaN. So
operands are replaced by 1 there, and no cotangent comes through that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tracegraph import errors
from tracegraph.ir.op import Elementwise, Op
from tracegraph.ir.types import broadcast_shapes
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.same_values import are_same
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.trace import current_trace
from tracegraph.tracing.tracer import Tracer


class Applying(Protocol):
    """What applies an op to arrays: `eager.apply`."""

    def __call__(self, op: Op, *args: Any, **attrs: Any) -> Any:
        """The result of the op."""


def applied(apply: Applying, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """An op applied to operands some of which are selected elements: selected elements again.

    Raises:
        BooleanMaskError: the op is not one of elements, or the operands are selected by different
            masks, or one has another number of elements.
    """
    first = next(x for x in args if isinstance(x, Selected))
    if not isinstance(op.form, Elementwise):
        first.refuse("{read} as an array", is_of_shape=True)
    regions = [region_of(x, first) for x in args]
    results = apply(op, *regions, **attrs)
    if isinstance(results, tuple):
        return tuple([first.like(result) for result in results])
    return first.like(results)


def region_of(x: Any, selected: Selected) -> Any:
    """An operand beside selected elements, at all places, with no derivative at others.

    Raises:
        BooleanMaskError: it is selected by another mask, or has a number of elements of its own.
    """
    if isinstance(x, Selected):
        require_same_places(x, selected)
        if not x.guarded:
            x.region, x.guarded = guarded(x.region, x.condition), True
        return x.region
    found = aligned(x, selected)
    return guarded(found, selected.condition) if isinstance(found, Tracer) else found


def guarded(region: Any, condition: Any) -> Any:
    """A region with 1 at places that are not selected; one of booleans itself."""
    if region.dtype == np.bool_:
        return region
    return FUNCTIONS["where"](condition, region, 1)


def aligned(x: Any, selected: Selected) -> Any:
    """An array as NumPy broadcasts it with selected elements, as one that broadcasts at all places.

    Its axis beside the count axis, if it has one, becomes those of the mask.

    Raises:
        BooleanMaskError: the extent of that axis is not 1.
    """
    shape = np.shape(x)
    place = len(shape) - 1 - selected.after
    if place < 0:
        return x
    if shape[place] != 1:
        selected.refuse(
            f"an array of shape {shape} beside {{read}}, one of whose elements belongs to each "
            "selected one,",
            "read an array of the shape of {array} at {mask}, too, or use numpy.where({mask}, "
            "values, {array}); to write values one after another, numpy.place({array}, {mask}, "
            "values)",
        )
    axes = (1,) * selected.mask.ndim
    return FUNCTIONS["reshape"](x, (*shape[:place], *axes, *shape[place + 1 :]))


def have_same_mask(x: Selected, y: Selected) -> bool:
    """Whether two operands are selected by one mask, or by two that are computed alike."""
    trace = current_trace()
    if trace is None:
        raise errors.EscapedTracerError(y)
    return x.mask.shape == y.mask.shape and are_same(x.mask, y.mask, trace)


def require_same_mask(x: Selected, y: Selected) -> None:
    """Require that two operands are selected by the same mask.

    Raises:
        BooleanMaskError: they are not.
    """
    if not have_same_mask(x, y):
        other = y.read_text
        x.refuse(
            f"{{read}} beside {other.read}, which another mask selects,",
            f"read both at one mask, as {{array}}[{{mask}}] and {other.array}[{{mask}}]; or write "
            "numpy.where({mask}, {array}, other) for both, which keeps the shape",
        )


def require_same_places(x: Selected, y: Selected) -> None:
    """Require that two operands are selected by the same mask, and their count axes are one axis.

    Raises:
        BooleanMaskError: they are not.
    """
    require_same_mask(x, y)
    if x.after != y.after:
        x.refuse(
            f"{{read}} beside {y.read_text.read}, whose selected elements are along another axis,",
            "add axes until both have the selected elements along the same: {read}[:, None]",
        )


def fitted(value: Any, selected: Selected) -> Any:
    """A value that is written to selected elements, as one that broadcasts to their region.

    As in NumPy, further leading axes of extent 1 are dropped.

    Raises:
        BooleanMaskError: as `region_of`.
        ValueError: it does not broadcast.
    """
    elements: Any
    if isinstance(value, Selected):
        require_same_places(value, selected)
        elements = value.region
    else:
        elements = value
        while np.ndim(elements) > selected.ndim and np.shape(elements)[0] == 1:
            elements = FUNCTIONS["reshape"](elements, np.shape(elements)[1:])
        elements = aligned(elements, selected)
    shape = selected.region.shape
    extra = elements.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in elements.shape[:extra]):
        elements = FUNCTIONS["reshape"](elements, elements.shape[extra:])
    try:
        fits = broadcast_shapes(elements.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        names = selected.read_text
        got = f"{value.ndim} axes" if isinstance(value, Selected) else f"shape {np.shape(value)}"
        raise ValueError(
            f"could not broadcast a value of {got} into {names.read}, elements of an array of "
            f"shape {shape} at a mask of shape {selected.mask.shape}"
        )
    return elements
