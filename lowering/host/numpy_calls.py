"""The NumPy calls that instructions are made of. All take the output as the last argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.dynamic_offsets import Offset
from lowering.host.instructions import Instruction, Method
from tracegraph.ir.op import Op
from tracegraph.ir.types import row_major_strides
from tracegraph.ops.convert import clip

BITWISE_SIZE = 8192
"""Elements from which the calls of choosing bits take less time than the branches of copying."""

RUN = 8
"""Elements of a run that a masked copy takes as long for as choosing bits does."""

NEIGHBOURS = 2048
"""About as many are asked whether they differ."""

NEAR, PAGE = 64, 1 << 12
MOVED = range(1 << 11, 1 << 20)
"""Bytes that a copy is slow of if they go to less than `NEAR` bytes past where they are, but for
whole pages: processors move few of them then without asking what an earlier step has written.
"""

CLIP: np.ufunc = inspect.unwrap(clip.reference)
"""(values, low, high, out)"""

_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def of_op(
    op: Op, dtypes: Sequence[np.dtype[Any]], dtype: np.dtype[Any], attrs: Mapping[str, Any]
) -> tuple[Callable[..., object], bool]:
    """An elementwise op as function(*operands, out); whether `out` may be an operand's memory."""
    if op.name == "cast":
        return convert, True
    if op.name == "where":
        return where, False
    reference = op.reference
    ufunc = inspect.unwrap(reference)  # a call of a plan silences warnings once for all
    if isinstance(ufunc, np.ufunc) and not attrs and yields(ufunc, dtypes, dtype):
        return ufunc, True

    def computed(*arrays: Array) -> None:
        convert(np.asarray(reference(*arrays[:-1], **attrs)), arrays[-1])

    return computed, True


def is_pointwise(instruction: Instruction) -> bool:
    """Whether it computes every element from those at the same place, whatever numbers they are:
    powers of integers may raise.
    """
    function = instruction.function
    known = isinstance(function, np.ufunc) and function is not np.power
    return (
        instruction.kind == "write"
        and not instruction.keeps
        and bool(instruction.output is not None and instruction.output.shape)
        and (known or function in (store, convert, where))
    )


def yields(ufunc: np.ufunc, dtypes: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether the ufunc takes and gives arrays of these dtypes by itself."""
    if ufunc.nout != 1 or ufunc.nin != len(dtypes):
        return False
    try:
        return bool(ufunc.resolve_dtypes((*dtypes, None))[-1] == dtype)
    except TypeError:
        return False


def convert(value: Array, out: Array) -> None:
    """Cast as `astype` does; the imaginary part is dropped where there is no room for it."""
    if value.dtype.kind == "c" and out.dtype.kind not in "cb":
        value = value.real
    np.copyto(out, value, casting="unsafe")


def where(predicate: Array, chosen: Array, other: Array, out: Array) -> None:
    """`chosen` where the predicate holds, else `other`.

    Of bits, each is the other's, turned over where the predicate holds and the two differ: NumPy
    does so without branches, of which a processor foretells few where the predicate is random.
    """
    bits = _BITS.get(out.itemsize)
    if bits is None or out.size < BITWISE_SIZE or _is_in_runs(predicate, out):
        np.copyto(out, other)
        np.copyto(out, chosen, where=predicate)
        return
    ours, others = out.view(bits), other.view(bits)
    np.bitwise_xor(chosen.view(bits), others, ours)
    np.multiply(ours, predicate, ours)
    np.bitwise_xor(ours, others, ours)


def _is_in_runs(predicate: Array, out: Array) -> bool:
    """Whether the predicate is one for long runs of elements: those are copied as they are, in less
    time than 64-bit numbers are multiplied.
    """
    if predicate.size < out.size:
        return True
    if out.itemsize < 8:
        return False
    each = predicate.reshape(-1)
    step = max(1, out.size // NEIGHBOURS)
    here, after = each[:-1:step], each[1::step]
    return RUN * int(np.count_nonzero(here != after)) < here.size


def masked(value: Array, guard: Array, out: Array) -> None:
    """`value` where the guard holds, else zero."""
    out.fill(0)
    np.copyto(out, value, where=guard)


def in_columns(function: Callable[..., Any] | Method, dim: int) -> Callable[..., None]:
    """The same function of arrays, and an output, at one index of a dimension after the other."""
    fill = _filling(function)

    def each_column(*arrays: Array) -> None:
        for column in range(arrays[-1].shape[dim]):
            fill(*[_column(array, dim, column) for array in arrays])

    return each_column


def stepwise(ufunc: np.ufunc, axis: int) -> Callable[[Array, Array], None]:
    """A function (values, out) that folds along an axis and keeps every partial result, one step of
    all at a time.
    """

    def step_by_step(values: Array, out: Array) -> None:
        before = _column(out, axis, 0)
        before[...] = _column(values, axis, 0)
        for column in range(1, out.shape[axis]):
            after = _column(out, axis, column)
            ufunc(before, _column(values, axis, column), out=after)
            before = after

    return step_by_step


def _column(array: Array, dim: int, column: int) -> Array:
    if not array.ndim or array.shape[dim] == 1:
        return array
    found: Array = array[(*(slice(None),) * dim, slice(column, column + 1))]
    return found


def _filling(function: Callable[..., Any] | Method) -> Callable[..., Any]:
    """A function that takes the output as its last argument."""
    if isinstance(function, Method):
        method, before, after = function.bound, function.before, function.after
        return lambda operand, out: method(operand, *before, out, *after)
    if isinstance(function, np.ufunc):  # some of them take it by name only
        return lambda *arrays: function(*arrays[:-1], out=arrays[-1])
    return function


def number(value: Array) -> object:
    """The element of an array without axes, as a Python number."""
    return value.item()


def store(value: Array, out: Array) -> None:
    """A copy."""
    out[...] = value


def is_slow_to_store(value: Array, out: Array) -> bool:
    """Whether a copy of one range of memory to another takes ten times as long as elsewhere."""
    ranges = value.flags.c_contiguous and out.flags.c_contiguous and value.shape == out.shape
    if not ranges or value.dtype != out.dtype or value.itemsize not in _BITS:
        return False
    return value.nbytes in MOVED and 0 < (out.ctypes.data - value.ctypes.data) % PAGE < NEAR


def bits(array: Array) -> Array:
    """The elements as unsigned integers."""
    return array.view(_BITS[array.itemsize])


def store_where(value: Array, guard: Array, out: Array) -> None:
    """A copy of the elements where the guard holds."""
    np.copyto(out, value, where=guard)


def taken(
    rank: int, chosen: Sequence[int], outer: Sequence[int], inner: Sequence[int]
) -> Callable[[Array, Array, Array], object]:
    """A function (rows, positions, out) that fills an open mesh with the rows at the positions.

    The rows are in as many parts as the axes `outer` have points, and have the axes `inner`; the
    positions vary along the `chosen` ones, in the order of memory. All are in range: the mode
    'clip' only spares NumPy a copy of `out`.
    """
    in_order = list(chosen) == sorted(chosen)
    if not outer and not inner and in_order:
        return lambda source, positions, out: source.take(positions, None, out, "clip")
    order = (*outer, *chosen, *inner)
    squeeze, kept = _only(rank, chosen), _only(rank, order)
    dim, turn = len(outer), tuple(sorted(order).index(axis) for axis in order)
    ranked = tuple(sorted(chosen).index(axis) for axis in chosen)

    def take(source: Array, positions: Array, out: Array) -> None:
        at = positions[squeeze].transpose(ranked) if positions.ndim else positions
        source.take(at, dim, out[kept].transpose(turn), "clip")

    return take


def shifted(
    shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...], offset: Offset
) -> Callable[..., Array]:
    """A function (flat source, *scalars) -> the window that begins at element `offset(scalars)`."""
    if not shape:
        return lambda source, *scalars: source[offset(scalars), ...]
    size, count = dtype.itemsize, prod(shape)
    dense = tuple(n * size for n in row_major_strides(shape))
    if all(n == 1 or s == d for n, s, d in zip(shape, strides, dense, strict=True)):

        def consecutive(source: Array, *scalars: Array) -> Array:
            first = offset(scalars)
            return source[first : first + count].reshape(shape)

        return consecutive  # takes half the time of the other

    def window(source: Array, *scalars: Array) -> Array:
        return np.ndarray(shape, dtype, source, offset(scalars) * size, strides)

    return window


def gathered(
    rank: int, position_axes: Sequence[int], window_axes: Sequence[int]
) -> Callable[[Array, Array], Array]:
    """A function (sliding window, positions) -> an open mesh of the window at every position."""
    squeeze = _only(rank, position_axes)
    order = [*position_axes, *window_axes]
    transpose = tuple(int(i) for i in np.argsort(order))
    expand = tuple(slice(None) if axis in order else None for axis in range(rank))

    def gather(source: Array, positions: Array) -> Array:
        found: Array = source[positions[squeeze] if positions.ndim else positions]
        return found.transpose(transpose)[expand]

    return gather


def _only(rank: int, axes: Sequence[int]) -> tuple[Any, ...]:
    """The index that leaves these dimensions of an open mesh."""
    return tuple(slice(None) if axis in axes else 0 for axis in range(rank))


def scattered(
    extents: tuple[int, ...],
    position_axes: Sequence[int],
    window_axes: Sequence[int],
    combine: np.ufunc | None,
    spread: Array | None,
) -> Callable[..., None]:
    """A function (positions, values[, guard], sliding window) that stores or combines values.

    Where positions repeat, values are applied in row-major order of the axes: the last store wins.
    To combine them, `spread` has the distance of each element of the window from its first, and
    the target is flat: only in one dimension is `ufunc.at` fast.
    """
    rank = len(extents)
    squeeze = _only(rank, position_axes)
    mesh = tuple(n if axis in position_axes else 1 for axis, n in enumerate(extents))
    used = (*position_axes, *window_axes)
    order = (*used, *(axis for axis in range(rank) if axis not in used))
    shape = tuple(extents[axis] for axis in used)

    def scatter(positions: Array, value: Array, *rest: Array) -> None:
        *guard, target = rest
        index = _spread(positions, mesh)[squeeze]
        values = value  # one for all stays one: NumPy stores it in a third of the time
        if value.ndim:
            values = _spread(value, extents).transpose(order).reshape(shape)
        if guard:
            kept = _spread(guard[0], mesh)[squeeze]
            if not kept.all():
                index, values = index[kept], values[kept] if value.ndim else value
        if combine is None:
            target[index] = values
        elif spread is not None:
            places = np.add.outer(index, spread).reshape(-1)
            combine.at(target, places, values.reshape(-1) if value.ndim else value)
        else:
            target[index] = combine(target[index], values)

    return scatter


def _spread(value: Array, shape: tuple[int, ...]) -> Array:
    return value if value.shape == shape else np.broadcast_to(value, shape)


def combined(combine: np.ufunc) -> Callable[..., None]:
    """A function (values[, guard], target view) that combines; no element of the view repeats."""

    def combine_in_place(value: Array, *rest: Array) -> None:
        *guard, out = rest
        combine(out, value, out=out, where=guard[0] if guard else True)

    return combine_in_place


def broadcast(shape: tuple[int, ...]) -> Callable[[Array], Array]:
    """A function that repeats an open mesh without copying."""
    return lambda value: np.broadcast_to(value, shape)


def folded(
    ufunc: np.ufunc, dtype: np.dtype[Any], axes: tuple[int, ...] | None
) -> Callable[[Array, Array], object] | Method:
    """A function (values, out) that folds over `axes`, which stay as extents of 1; None: over all.

    Sums and products of 16-bit floats are folded in float32 and rounded once. Else NumPy folds in
    the dtype of the output, and sooner where it is not told so.
    """
    keep = axes is not None
    if not (_is_half(dtype) and ufunc in (np.add, np.multiply)):
        return Method(ufunc, "reduce", (axes, None), (True,) if keep else ())
    wide = np.dtype(np.float32)

    def fold_wide(value: Array, out: Array) -> None:
        folded: Array = np.empty(out.shape, wide)
        ufunc.reduce(value, axes, wide, out=folded, keepdims=keep)
        convert(folded, out)

    return fold_wide


def _is_half(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 2 and dtype.kind in "fV"


def positioned(ufunc: np.ufunc, kept: int) -> Callable[[Array, Array], object]:
    """A function (values, out): the first extreme over the dimensions after the first `kept`."""
    search = np.ndarray.argmin if ufunc is np.minimum else np.ndarray.argmax

    def position(value: Array, out: Array) -> None:
        found = search(value.reshape(*value.shape[:kept], -1), -1)
        out[...] = found.reshape(out.shape)

    return position


def accumulated(ufunc: np.ufunc, axis: int) -> Method:
    """A function (values, out) that folds along an axis and keeps every partial result."""
    return Method(ufunc, "accumulate", (axis, None))
