"""Aliasing: tracers, and Arrays on a device, that are views of others, and writes through them.

NumPy's rule: `row = x[0]; x[:] = 1` changes what `row` reads, and `row[:] = 1` changes `x`. So a
view remembers its base and the op that derives it. It is derived again after a write to the base,
and a write to the view becomes a write to the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from operator import ge, is_
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tracegraph.errors import TracerIndexError, TracerWriteError
from tracegraph.errors.wording import TracerLike
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Op, get
from tracegraph.ir.program import Atom, Eqn
from tracegraph.ir.types import ArrayType, row_major_strides

Strides = tuple[int, ...]

Layout = tuple[Strides | None, tuple[int, ...] | None]
"""`own_strides` and `axis_order` of an array."""

BROADCAST_VIEW = "a broadcast view, several elements of which may be one"
"""What NumPy's `broadcast_to` gives, for the message of a write."""


class Recorder(Protocol):
    """A trace, as far as its tracers know it."""

    eqns: list[Eqn]
    device: str
    uses: Any
    index_error: TracerIndexError | None

    def read(self, x: Any) -> Atom:
        """`x` as an operand of the region."""

    def record(
        self, op: Op, operands: Sequence[Atom], attrs: Mapping[str, Any]
    ) -> tuple[AnyTracer, ...]:
        """Append an equation; its results as tracers."""

    def origin_of(self, atom: Atom) -> str:
        """Where a value comes from, for messages."""

    def is_current(self, tracer: AnyTracer) -> bool:
        """Whether this is the innermost trace; raises if the trace of the tracer is over."""


class AnyTracer(TracerLike, Protocol):
    """A tracer, as far as views know it."""

    alias: TracerView | None
    axis_order: tuple[int, ...] | None
    owner: Recorder

    @property
    def atom(self) -> Atom:
        """The value that it has now."""

    @property
    def type(self) -> ArrayType:
        """Its type."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""

    @property
    def ndim(self) -> int:
        """Number of axes."""

    @property
    def own_strides(self) -> Strides | None:
        """Those of a view that does not know its base, if it is not laid out by rows."""

    @property
    def read_only(self) -> str | None:
        """What it is, for the message, if it must not be written to."""

    def follow(self, base: Atom) -> Atom:
        """The value of a view whose base has the value `base`."""

    def set_atom(self, atom: Atom) -> None:
        """Give it another value."""


_T = TypeVar("_T", bound=AnyTracer)


@dataclass(slots=True)
class TracerView:
    """How a tracer is derived: `op[attrs](base, *indices)`. `seen` is the base's value then."""

    base: AnyTracer
    op: Op
    indices: tuple[Atom, ...]
    attrs: Mapping[str, Any]
    seen: Atom | None
    strides: Strides | None = None
    """The result of `strides_of`, once it is known."""
    read_only: str | None = None
    """What it is, for the message, if NumPy's view must not be written through."""
    computed: Callable[[Any, np.dtype[Any]], Any] | None = None
    """The function that derives it, and its base from it, by the dtype, if no single op does."""


def strides_of(tracer: AnyTracer) -> Strides:
    """The strides, in elements, of NumPy's array if the outermost base is row-major.

    They decide whether a reshape of a view is a view again.
    """
    view = tracer.alias
    if view is None:
        return tracer.own_strides or _ordered_strides(tracer.shape, tracer.axis_order)
    if view.strides is None:
        unknown = [view]
        while (below := unknown[-1].base.alias) is not None and below.strides is None:
            unknown.append(below)
        for each in reversed(unknown):  # bases first: each needs its base's
            base = each.base
            each.strides = _STRIDES[each.op.name](base.shape, strides_of(base), **each.attrs)
    assert view.strides is not None
    return view.strides


@lru_cache(maxsize=4096)
def layout_after(
    op: Op,
    attrs: tuple[tuple[str, Any], ...],
    shape: tuple[int, ...],
    strides: Strides | None,
    result: tuple[int, ...],
) -> Layout | None:
    """The layout of a view, of shape `result`, of an array with this shape and these strides, which
    are None by rows; None if NumPy copies.
    """
    found = _STRIDES[op.name](shape, strides or row_major_strides(shape), **dict(attrs))
    return None if found is None else layout_of(result, found)


def layout_of(shape: tuple[int, ...], strides: Strides) -> Layout:
    """What says that an array has these strides. Those of repeated axes do not order its axes."""
    known = [abs(s) for s in strides if s]
    is_ordered = all(map(ge, known, known[1:]))
    own = None if strides == row_major_strides(shape) else strides
    return own, None if is_ordered else ()


def _ordered_strides(shape: tuple[int, ...], order: tuple[int, ...] | None) -> Strides:
    """The strides of packed elements, whose axes are in an order by falling strides."""
    if order is None:
        return row_major_strides(shape)
    packed = row_major_strides([shape[axis] for axis in order])
    return tuple(packed[order.index(axis)] for axis in range(len(shape)))


def attach(result: _T, base: AnyTracer, strides: Strides | None = None) -> _T:
    """Mark the result of the last equation as a view of `base`, unless NumPy would have copied.

    `strides` are those of a gather at more than one place.
    """
    eqn = result.owner.eqns[-1]
    return linked(result, TracerView(base, eqn.op, eqn.operands[1:], eqn.attrs, base.atom, strides))


def linked(result: _T, view: TracerView) -> _T:
    """Mark a result as this view, unless NumPy would have copied."""
    base, name = view.base, view.op.name
    moves = name == "windows" or (name == "transpose" and not _is_sorted(view.attrs["axes"]))
    if base.axis_order is not None or moves:
        mark_unordered(result)
    may_copy = base.alias is not None or base.axis_order is not None
    if name == "reshape" and may_copy:
        view.strides = _reshaped(base.shape, strides_of(base), result.shape)
        if view.strides is None:
            result.axis_order = None
            return result
    if name == "broadcast_to":
        view.read_only = BROADCAST_VIEW
    result.alias = view
    return result


def attach_computed(
    result: _T, base: AnyTracer, compute: Callable[[Any, np.dtype[Any]], Any]
) -> _T:
    """Mark `compute(base, dtype)` as a view, from which `compute` with its dtype gives the base."""
    strides = strides_of_bits(result.type, base)
    attrs = {"dtype": result.type.dtype}
    if base.axis_order is not None:
        mark_unordered(result)
    result.alias = TracerView(base, get("bits"), (), attrs, base.atom, strides, computed=compute)
    return result


def strides_of_bits(type_: ArrayType, base: AnyTracer) -> Strides:
    """The strides of the bits of an array as elements of another type, maybe of another size."""
    strides, old, new = strides_of(base), base.type.dtype.itemsize, type_.dtype.itemsize
    return strides if old == new else (*[s * old // new for s in strides[:-1]], 1)


def has_layout(x: Any) -> bool:
    """Whether `strides_of` says how NumPy would lay `x` out: it is traced, or an Array on a device.
    NumPy does what concerns views and layouts of other arrays.
    """
    return bool(getattr(x, "has_layout", False))


def detached(copy: Any) -> Any:
    """What was made as a view, as the copy that NumPy makes there."""
    copy.alias = copy.axis_order = None
    return copy.local()


def mark_unordered(view: AnyTracer) -> None:
    """Say that the strides of a view may not fall from axis to axis; `strides_of` has them."""
    view.axis_order = ()
    view.owner.uses.transposes = True


def _is_sorted(axes: tuple[int, ...]) -> bool:
    return axes == tuple(range(len(axes)))


def current(tracer: AnyTracer) -> Atom:
    """The value of a view now. Bases first: views of views may be deeper than Python's stack."""
    chain = [tracer]
    while (view := chain[-1].alias) is not None:
        chain.append(view.base)
    atom = chain.pop().atom
    for each in reversed(chain):
        atom = each.follow(atom)
    return atom


def derived(tracer: AnyTracer, view: TracerView) -> Atom:
    """The value of a view, derived again from its base."""
    if view.computed is not None:
        again: AnyTracer = view.computed(view.base, view.attrs["dtype"])
        return again.atom
    operands = [tracer.owner.read(view.base), *view.indices]
    (fresh,) = tracer.owner.record(view.op, operands, view.attrs)
    return fresh.atom


def root_of(tracer: AnyTracer) -> AnyTracer:
    """The tracer that a chain of views starts from."""
    while tracer.alias is not None:
        tracer = tracer.alias.base
    return tracer


def is_same_view(x: AnyTracer, y: AnyTracer) -> bool:
    """Whether two tracers select the same elements of the same base."""
    while x is not y and x.alias is not None and y.alias is not None:
        a, b = x.alias, y.alias
        same_indices = len(a.indices) == len(b.indices) and all(map(is_, a.indices, b.indices))
        if a.op is not b.op or a.attrs != b.attrs or not same_indices:
            return False
        x, y = a.base, b.base
    return x is y


def is_row_major(tracer: AnyTracer) -> bool:
    """Whether the elements are in row-major order and next to each other."""
    return _is_packed(tracer.shape, strides_of(tracer))


def is_column_major(tracer: AnyTracer) -> bool:
    """Whether the elements are in column-major order, next to each other, and not in row-major."""
    shape, strides = tracer.shape, strides_of(tracer)
    return not _is_packed(shape, strides) and _is_packed(shape[::-1], strides[::-1])


def _is_packed(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether strides are row-major; those of axes of extent 1 do not count, as in NumPy."""
    packed = zip(shape, strides, row_major_strides(shape), strict=True)
    return 0 in shape or all(n == 1 or own == wanted for n, own, wanted in packed)


def order_of(order: str | None, default: str = "C") -> str:
    """An order of elements as NumPy spells it, in upper or lower case: C, F, A or K.

    Raises:
        TypeError: it is not a string, nor None for the default.
        ValueError: it is another word.
    """
    if order is None:
        return default
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    known = order.upper()
    if known not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return known


def memory_order(tracer: AnyTracer) -> tuple[int, ...]:
    """The axes by falling strides."""
    return by_strides(strides_of(tracer))


def by_strides(strides: Strides) -> tuple[int, ...]:
    """The axes of an array with these strides, by falling strides."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))


def check_writable(tracer: AnyTracer, instead: str = "") -> None:
    """Raise unless the memory behind a tracer was made in the region being traced; `instead` says
    what to do where it was not.

    Raises:
        TracerWriteError: an argument, a value of an outer region, or a view that is also read-only
            in NumPy.
        EscapedTracerError: its trace is over.
    """
    reason = read_only_reason(tracer)
    if reason is not None:
        raise TracerWriteError(tracer, reason, instead)


def read_only_reason(tracer: AnyTracer) -> str | None:
    """What a tracer is, for the message, if it must not be written to.

    Raises:
        EscapedTracerError: its trace is over.
    """
    root = tracer
    while root.alias is not None:
        if root.alias.read_only is not None:
            return root.alias.read_only
        root = root.alias.base
    part = "" if root is tracer else "a view of "
    if not root.owner.is_current(root):
        return f"{part}a value captured from outside this branch or loop"
    return None if root.read_only is None else f"{part}{root.read_only}"


def store(tracer: AnyTracer, atom: Atom) -> None:
    """Write `atom`, of the same type, to a tracer and through it to its bases."""
    views: list[tuple[AnyTracer, TracerView, Atom]] = []
    while (view := tracer.alias) is not None:
        views.append((tracer, view, atom))
        atom = _put(tracer, view, atom)
        tracer = view.base
    tracer.set_atom(atom)
    for tracer, view, own in reversed(views):
        view.seen = atom
        tracer.set_atom(own)
        atom = own


def _put(tracer: AnyTracer, view: TracerView, atom: Atom) -> Atom:
    """The value of the base, once the view has the value `atom`."""
    if view.computed is None:
        return _PUT[view.op.name](view, atom)
    written = type(tracer)(tracer.owner, atom)  # type: ignore[call-arg]
    base: AnyTracer = view.computed(written, view.base.atom.type.dtype)
    return base.atom


def _record(view: TracerView, name: str, operands: Sequence[Atom], **attrs: Any) -> Atom:
    (out,) = view.base.owner.record(get(name), operands, attrs)
    return out.atom


def _put_reshape(view: TracerView, atom: Atom) -> Atom:
    return _record(view, "reshape", [atom], shape=view.base.shape)


def _put_transpose(view: TracerView, atom: Atom) -> Atom:
    inverse = tuple(int(n) for n in np.argsort(view.attrs["axes"]))
    return _record(view, "transpose", [atom], axes=inverse)


def _put_slice(view: TracerView, atom: Atom) -> Atom:
    starts, steps = view.attrs["starts"], view.attrs["steps"]
    operands = [view.base.atom, atom]
    return _record(view, "scatter_set", operands, dims=(), starts=starts, steps=steps)


def _put_gather(view: TracerView, atom: Atom) -> Atom:
    dims = view.attrs["dims"]
    rest = view.base.ndim - len(dims)
    operands = [view.base.atom, atom, *view.indices]
    return _record(view, "scatter_set", operands, dims=dims, starts=(0,) * rest, steps=(1,) * rest)


def _put_real(view: TracerView, atom: Atom) -> Atom:
    return _record(view, "complex", [atom, _record(view, "imag", [view.base.atom])])


def _put_imag(view: TracerView, atom: Atom) -> Atom:
    return _record(view, "complex", [_record(view, "real", [view.base.atom]), atom])


def _put_bits(view: TracerView, atom: Atom) -> Atom:
    return _record(view, "bits", [atom], dtype=view.base.atom.type.dtype)


_PUT: Mapping[str, Callable[[TracerView, Atom], Atom]] = {
    "reshape": _put_reshape,
    "transpose": _put_transpose,
    "slice": _put_slice,
    "gather": _put_gather,
    "real": _put_real,
    "imag": _put_imag,
    "bits": _put_bits,
}


@lru_cache(maxsize=1024)
def _reshaped(old: tuple[int, ...], strides: Strides, shape: tuple[int, ...]) -> Strides | None:
    """The strides of NumPy's reshape, or None if it copies."""
    one = np.empty((), np.int8)  # of itemsize 1, so that strides count elements; never read
    try:
        return np.reshape(as_strided(one, old, strides), shape, copy=False).strides
    except ValueError:
        return None


def _transpose_strides(_: Any, strides: Strides, axes: tuple[int, ...]) -> Strides:
    return tuple(strides[a] for a in axes)


def _slice_strides(_: Any, strides: Strides, steps: tuple[int, ...], **__: Any) -> Strides:
    return tuple(s * step for s, step in zip(strides, steps, strict=True))


def _broadcast_strides(old: tuple[int, ...], strides: Strides, shape: tuple[int, ...]) -> Strides:
    one = np.empty((), np.int8)
    return np.broadcast_to(as_strided(one, old, strides), shape).strides


def _bits_strides(_: Any, strides: Strides, dtype: np.dtype[Any]) -> Strides:
    return strides


def _part_strides(_: Any, strides: Strides) -> Strides:
    """Strides of a part of complex numbers, in elements of half their size."""
    return tuple(2 * s for s in strides)


def _windows_strides(_: Any, strides: Strides, axis: int, size: int) -> Strides:
    return (*strides, strides[axis])


def _gather_strides(_: Any, strides: Strides, dims: tuple[int, ...], **__: Any) -> Strides:
    return tuple(s for axis, s in enumerate(strides) if axis not in dims)


_STRIDES: Mapping[str, Callable[..., Strides | None]] = {
    "reshape": _reshaped,
    "transpose": _transpose_strides,
    "slice": _slice_strides,
    "broadcast_to": _broadcast_strides,
    "gather": _gather_strides,
    "windows": _windows_strides,
    "real": _part_strides,
    "imag": _part_strides,
    "bits": _bits_strides,
}
