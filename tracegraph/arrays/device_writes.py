"""Writes to Arrays on a device, also through views.

A device buffer is a value: a write gives the outermost base of a view another buffer. One program
computes it, in which the views are made again and written to as in a traced function, whose rules
are the same. It takes over the buffer of the base, and so writes in place, unless something else
refers to that: a program that captured it, or another Array.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tracegraph.arrays.device_calls import compiled, compiled_op
from tracegraph.dtypes import SHORT_NAMES
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Op
from tracegraph.tracing import views
from tracegraph.tracing.function_table import FUNCTIONS
from tracegraph.tracing.selection import entries_of, parse, plain
from tracegraph.tracing.trace import bind, current_trace
from tracegraph.tracing.tracer import Tracer


@dataclass(frozen=True, slots=True)
class _Step:
    """How a view is made of its base, without its index arrays."""

    op: Op
    attrs: tuple[tuple[str, Any], ...]
    strides: views.Strides | None
    computed: Callable[[Any, np.dtype[Any]], Any] | None
    indices: int


class _Eager:
    """What stands for the trace of Arrays, of whose views traces are not told."""

    def __init__(self) -> None:
        self.uses = SimpleNamespace(transposes=False)


EAGER = _Eager()


def is_read_at(value: Any, array: Any, index: Any) -> bool:
    """Whether `value` is the view `array[index]`: the end of `array[index] += y`, which has written
    through the view already.
    """
    place = getattr(value, "_place", None)
    if place is None or place[0] is not array or place[1] is None:
        return False
    return bool(place[1] == plain(index if isinstance(index, tuple) else (index,)))


def derived(view: views.TracerView) -> Any:
    """The elements of a view, computed from its base."""
    if view.computed is not None:
        return view.computed(view.base, view.attrs["dtype"])
    return compiled_op(view.op, tuple(view.attrs.items()))(view.base, *view.indices)


class _Argument:
    """Stands for an entry of an index that is an argument of the program."""


_ARGUMENT = _Argument()


def write(array: Any, index: Any, value: Any) -> None:
    """`array[index] = value` of an Array on a device that may be written to.

    Raises:
        IndexError: as `getitem`.
        ValueError: the value does not broadcast to the selected shape.
        TypeError, ValueError, OverflowError: it cannot be converted, as NumPy says it.
    """
    chain = []
    root = array
    while root.alias is not None:
        chain.append(root.alias)
        root = root.alias.base
    chain.reverse()
    steps = tuple(
        [_Step(v.op, tuple(v.attrs.items()), v.strides, v.computed, len(v.indices)) for v in chain]
    )
    if isinstance(value, (list, tuple)):
        value = FUNCTIONS["asarray"](value)
    value = _converted(value, array.dtype)
    template, entries = _separated(index, array.shape, np.size(value) == 1)
    arguments = [*(i for v in chain for i in v.indices), *entries, value]
    own, where = root.data, root.placement
    given = [x.copy() if getattr(x, "memory", None) is own else x for x in arguments]
    del own
    root.renew(_writer(root.axis_order, steps, template)(root, *given).memory, where)


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """A value that a program takes; NumPy makes an array of the dtype of others, such as text."""
    given = getattr(value, "dtype", None)
    if isinstance(given, np.dtype):
        return value if given.newbyteorder("=") in SHORT_NAMES else np.asarray(value, dtype)
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else np.asarray(value, dtype)
    if isinstance(value, complex):
        return value if dtype.kind == "c" else np.asarray(value, dtype)
    is_taken = isinstance(value, float) or any(map(partial(hasattr, value), _OF_ARRAYS))
    return value if is_taken else np.asarray(value, dtype)


_OF_ARRAYS = ("dtype", "__dlpack__", "__cuda_array_interface__")


def _separated(
    index: Any, shape: tuple[int, ...], is_one_value: bool
) -> tuple[tuple[Any, ...], list[Any]]:
    """An index as a hashable template, and the integers and arrays that are arguments.

    So a loop over integers calls one program. A mask is an argument where one value is written.
    """
    known, arguments, template = [], list[Any](), list[Any]()
    for given in index if isinstance(index, tuple) else (index,):
        is_mask = getattr(given, "dtype", None) == np.bool_ and given.ndim > 0
        if is_mask and is_one_value:
            found, entries = [slice(None)] * given.ndim, [given]
        else:
            (entry,) = entries_of(given)
            if isinstance(entry, np.ndarray) and entry.dtype == np.bool_ and entry.ndim:
                found = entries = list(np.nonzero(entry))
            elif isinstance(entry, (np.ndarray, int)) and not _is_bool(entry):
                found = entries = [entry]
            else:
                found, entries = [entry], []
        known += found
        arguments += entries
        template += [_ARGUMENT] * len(entries) if entries else map(_static, found)
    parse(tuple(known), shape)  # raises
    return tuple(template), arguments


def _is_bool(entry: Any) -> bool:
    return isinstance(entry, np.ndarray) and entry.dtype == np.bool_


def _static(entry: Any) -> Any:
    """None, an ellipsis, a boolean, or the bounds of a slice in a tuple."""
    if isinstance(entry, slice):
        bounds = (entry.start, entry.stop, entry.step)
        return tuple([None if x is None else operator.index(x) for x in bounds])
    return bool(entry) if _is_bool(entry) else entry


@lru_cache(maxsize=4096)
def _writer(
    order: tuple[int, ...] | None, steps: tuple[_Step, ...], template: tuple[Any, ...]
) -> Callable[..., Any]:
    """A program (base, indices of views, arguments of the index, value) -> the base, written to.

    The `order` of the base's axes in memory decides whether NumPy's reshapes of it are views.
    """

    def setitem(root: Any, *arguments: Any) -> Any:
        given = iter(arguments)
        base = view = root.copy()  # which belongs to the caller
        base.axis_order = order
        for step in steps:
            view = _view(view, step, [next(given) for _ in range(step.indices)])
        index = tuple([_entry(entry, given) for entry in template])
        view[index] = next(given)
        return base

    return compiled(setitem, donate=True)


def _view(base: Tracer, step: _Step, indices: Sequence[Any]) -> Tracer:
    attrs: Mapping[str, Any] = dict(step.attrs)
    if step.computed is not None:
        computed: Tracer = step.computed(base, attrs["dtype"])
        return views.attach_computed(computed, base, step.computed)
    trace = current_trace()
    assert trace is not None
    view: Tracer = bind(trace, step.op, (base, *indices), attrs)
    return view if step.op.is_view else views.attach(view, base, step.strides)


def _entry(entry: Any, given: Iterator[Any]) -> Any:
    if entry is _ARGUMENT:
        return next(given)
    return slice(*entry) if isinstance(entry, tuple) else entry
