"""The words for collectives: psum and its relatives, on trees of arrays, along named axes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.op import Op, get
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.tracing.trace import Trace, bind, current_trace
from tracegraph.tracing.tracer import Tracer

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute",
    "psum", "psum_scatter",
]  # fmt: skip

AxisNames = str | Sequence[str]
"""The name of an axis, or several."""


@entry_point
def psum(x: Any, axis_name: AxisNames) -> Any:
    """The sum over the devices along axes; the same on all of them.

    Shape: that of x, for each leaf of the tree.
    Dtype: that of x; bools are counted, as int64.

    Args:
        x: a tree of arrays and numbers.
        axis_name: the name of an axis of the mesh, or of lanes of `vmap`; or several names.

    Its derivative follows the rule that a value which is the same on all devices has a cotangent
    that is the same: that of the sum is the cotangent of each operand.

    Raises:
        CollectiveOutsideShardError: no axis has a name here.
        UnknownAxisError: none has this one.
        TypeError: a leaf is not an array or a number.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: x / tracegraph.psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([0.25, 0.75])
    """
    return _reduced("psum", x, axis_name, _scaled)


@entry_point
def pmax(x: Any, axis_name: AxisNames) -> Any:
    """The largest element over the devices along axes; the same on all. As `psum`, but for real
    numbers. In derivatives, devices that have it share equally.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: tracegraph.pmax(x, "i") - x, axis_name="i")(np.array([1, 3]))
    array([2, 0])
    """
    return _reduced("pmax", x, axis_name, _same)


@entry_point
def pmin(x: Any, axis_name: AxisNames) -> Any:
    """The smallest element over the devices along axes; the same on all. As `pmax`.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: x - tracegraph.pmin(x, "i"), axis_name="i")(np.array([1, 3]))
    array([0, 2])
    """
    return _reduced("pmin", x, axis_name, _same)


@entry_point
def pmean(x: Any, axis_name: AxisNames) -> Any:
    """The mean over the devices along axes; the same on all. As `psum`, over the number of devices.

    Dtype: that of x; float64 for integers and bools.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: tracegraph.pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
    array([2., 2.])
    """
    trace, names, count = _place("pmean", axis_name)

    def mean(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return leaf * 1.0
        total = _bind(trace, "psum", _counted(leaf), axes=names, count=count)
        if total.dtype.kind in "iu":
            total = bind(trace, get("cast"), [total], {"dtype": np.dtype(np.float64)})
        return bind(trace, get("divide"), [total, total.dtype.type(count)], {})

    return tree.map(mean, _checked("pmean", x))


@entry_point
def all_gather(x: Any, axis_name: str, *, axis: int = 0, tiled: bool = False) -> Any:
    """The arrays of all devices along an axis, one after the other; the same on all.

    Shape: with a new axis of as many elements as devices at `axis`; `tiled`, that axis of x is as
    many times longer.
    Dtype: that of x.

    Args:
        x: a tree of arrays and numbers.
        axis_name: the name of an axis of devices.
        axis: where the devices are in the result.
        tiled: join along an axis that x has.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.
        numpy.exceptions.AxisError: the result has no such axis.

    >>> import tracegraph
    >>> def gathered(x):
    ...     return tracegraph.all_gather(x, "i", tiled=True)
    >>> tracegraph.vmap(gathered, axis_name="i", out_axes=None)(np.arange(4).reshape(2, 2))
    array([0, 1, 2, 3])
    """
    trace, names, count = _place("all_gather", axis_name, one=True)
    required_bool("tiled", tiled)

    def gather(leaf: Any) -> Any:
        rank = np.ndim(leaf)
        at = _axis("all_gather", axis, rank if tiled else rank + 1)
        found = _bind(trace, "all_gather", leaf, axes=names, count=count)
        found = _moved(trace, found, 0, at)
        return _merged(trace, found, at) if tiled else found

    return tree.map(gather, _checked("all_gather", x))


@entry_point
def psum_scatter(x: Any, axis_name: str, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """The sum over devices; each device gets its own block of it.

    Shape: x has as many elements as there are devices along `scatter_dimension`, an axis which the
    result lacks; `tiled`, it has a multiple of them, and the result a block.
    Dtype: that of x; bools are counted, as int64.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis of devices.
        scatter_dimension: the axis of x that has the blocks.
        tiled: keep the axis, as a block of several elements.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.
        ShardingError: the extent does not fit the number of devices.

    >>> import tracegraph
    >>> def own(x):
    ...     return tracegraph.psum_scatter(x, "i")
    >>> tracegraph.vmap(own, axis_name="i")(np.array([[1, 2], [3, 4]]))
    array([4, 6])
    """
    trace, names, count = _place("psum_scatter", axis_name, one=True)
    required_bool("tiled", tiled)

    def scatter(leaf: Any) -> Any:
        at = _axis("psum_scatter", scatter_dimension, np.ndim(leaf))
        blocks = _blocks(trace, "psum_scatter", _counted(leaf), at, count, tiled)
        return _bind(trace, "psum_scatter", blocks, axes=names, count=count)

    return tree.map(scatter, _checked("psum_scatter", x))


@entry_point
def all_to_all(
    x: Any, axis_name: str, split_axis: int, concat_axis: int, *, tiled: bool = False
) -> Any:
    """Each device splits its array into blocks and sends one to each device, in order.

    As a transpose of a matrix of which devices have rows: then they have columns.

    Shape: x has as many elements as there are devices along `split_axis`. The result lacks that
    axis, and has a new one for the devices at `concat_axis`. `tiled`, both axes stay: the one is
    as many times shorter as there are devices, the other longer.
    Dtype: that of x.

    Args:
        x: a tree of arrays.
        axis_name: the name of an axis of devices.
        split_axis: the axis of x that has the blocks.
        concat_axis: the axis of the result along which those that arrive are joined.
        tiled: split and join axes that stay.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.
        ShardingError: the extent does not fit the number of devices.

    >>> import tracegraph
    >>> rows = np.arange(4).reshape(2, 1, 2)
    >>> def columns(row):
    ...     return tracegraph.all_to_all(row, "i", 1, 0, tiled=True)
    >>> tracegraph.vmap(columns, axis_name="i")(rows)[:, :, 0]
    array([[0, 2],
           [1, 3]])
    """
    trace, names, count = _place("all_to_all", axis_name, one=True)
    required_bool("tiled", tiled)

    def exchange(leaf: Any) -> Any:
        split = _axis("all_to_all", split_axis, np.ndim(leaf))
        join = _axis("all_to_all", concat_axis, np.ndim(leaf))
        blocks = _blocks(trace, "all_to_all", leaf, split, count, tiled)
        found = _moved(trace, _bind(trace, "all_to_all", blocks, axes=names, count=count), 0, join)
        return _merged(trace, found, join) if tiled else found

    return tree.map(exchange, _checked("all_to_all", x))


@entry_point
def ppermute(x: Any, axis_name: str, perm: Sequence[tuple[int, int]]) -> Any:
    """The array of another device along an axis; zeros where none sends.

    Shape: that of x.
    Dtype: that of x.

    Args:
        x: a tree of arrays and numbers.
        axis_name: the name of an axis of devices.
        perm: pairs of numbers of devices, (source, target): no two have one source or one target.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.
        ShardingError: `perm` is no such sequence.

    >>> import tracegraph
    >>> def from_left(x):
    ...     return tracegraph.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> tracegraph.vmap(from_left, axis_name="i")(np.array([5, 6, 7]))
    array([0, 5, 6])
    """
    trace, names, count = _place("ppermute", axis_name, one=True)
    pairs = _permutation(perm, count)

    def permute(leaf: Any) -> Any:
        if not pairs:
            return bind(
                trace, get("broadcast_to"), [type_of(leaf).dtype.type(0)], {"shape": np.shape(leaf)}
            )
        return _bind(trace, "ppermute", leaf, axes=names, count=count, perm=pairs)

    return tree.map(permute, _checked("ppermute", x))


@entry_point
def axis_index(axis_name: str) -> Any:
    """The number of this device along an axis, from 0: an int64 scalar, which differs between them.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: x + tracegraph.axis_index("i"), axis_name="i")(np.zeros(3))
    array([0., 1., 2.])
    """
    trace, names, count = _place("axis_index", axis_name, one=True)
    return bind(trace, get("axis_index"), [], {"axes": names, "count": count})


@entry_point
def axis_size(axis_name: AxisNames) -> int:
    """The number of devices along an axis, or several, as a Python int.

    Raises:
        CollectiveOutsideShardError, UnknownAxisError: as in `psum`.

    >>> import tracegraph
    >>> tracegraph.vmap(lambda x: x + tracegraph.axis_size("i"), axis_name="i")(np.zeros(2))
    array([2., 2.])
    """
    return _place("axis_size", axis_name)[2]


# what they share


def _place(name: str, axis_name: Any, one: bool = False) -> tuple[Trace, tuple[str, ...], int]:
    """The trace, the axes, and the number of devices along them."""
    trace = current_trace()
    if trace is None or not trace.axes:
        raise errors.CollectiveOutsideShardError(name)
    names = (axis_name,) if isinstance(axis_name, str) else axis_name
    if not isinstance(names, (tuple, list)) or not names or (one and len(names) > 1):
        what = "the name of one axis" if one else "the name of an axis, or several"
        raise errors.ShardingError(
            f"{name}: axis_name must be {what}, got {errors.value_text(axis_name)}"
        )
    for each in names:
        if each not in trace.axes:
            raise errors.UnknownAxisError(name, each, list(trace.axes))
    if len(set(names)) < len(names):
        raise errors.ShardingError(f"{name}: axis_name names an axis twice: {list(names)}")
    order = tuple([each for each in trace.axes if each in names])
    return trace, order, prod(trace.axes[each] for each in order)


def _checked(name: str, x: Any) -> Any:
    """The tree, each leaf of which is an array or a number."""
    for path, leaf in zip(tree.paths(tree.structure(x), "x"), tree.leaves(x), strict=True):
        try:
            type_of(leaf)
        except (TypeError, OverflowError) as error:
            raise TypeError(f"{name}: leaf {path} {error}") from None
    return x


def _bind(trace: Trace, name: str, x: Any, **attrs: Any) -> Any:
    op: Op = get(name)
    try:
        return bind(trace, op, [x], attrs)
    except ValueError as error:
        raise errors.ShardingError(str(error)) from None


def _reduced(name: str, x: Any, axis_name: AxisNames, of_equal: Callable[[Any, int], Any]) -> Any:
    trace, names, count = _place(name, axis_name)

    def reduced(leaf: Any) -> Any:
        if not isinstance(leaf, Tracer):
            return of_equal(leaf, count)
        given = _counted(leaf) if name == "psum" else leaf
        return _bind(trace, name, given, axes=names, count=count)

    return tree.map(reduced, _checked(name, x))


def _scaled(x: Any, count: int) -> Any:
    """The sum of as many equal values."""
    return x * count


def _same(x: Any, count: int) -> Any:
    return x


def _counted(x: Any) -> Any:
    """Bools as integers."""
    return x.astype(np.int64) if type_of(x).dtype.kind == "b" else x


def _axis(name: str, axis: Any, rank: int) -> int:
    try:
        at = operator.index(axis)
    except TypeError:
        raise errors.ShardingError(
            f"{name}: an axis of an array is an int, not {errors.value_text(axis)}"
        ) from None
    if not -rank <= at < rank:
        raise np.exceptions.AxisError(at, rank, name)
    return at % rank


def _moved(trace: Trace, x: Any, source: int, target: int) -> Any:
    if source == target:
        return x
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return bind(trace, get("transpose"), [x], {"axes": tuple(order)})


def _merged(trace: Trace, x: Any, axis: int) -> Any:
    """The axis and the next one as one."""
    shape = x.shape
    joined = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
    return bind(trace, get("reshape"), [x], {"shape": joined})


def _blocks(trace: Trace, name: str, x: Any, axis: int, count: int, tiled: bool) -> Any:
    """The blocks of an axis along a new axis 0; one element each unless `tiled`."""
    type_: ArrayType = type_of(x)
    extent = type_.shape[axis]
    fits = extent % count == 0 if tiled else extent == count
    if not fits:
        needed = f"a multiple of {count}" if tiled else str(count)
        raise errors.ShardingError(
            f"{name}: axis {axis} of {type_} has {extent} elements, but there are {count} devices; "
            f"it must have {needed}{'' if tiled else ', or give tiled=True for a multiple'}"
        )
    if not tiled:
        return _moved(trace, x, axis, 0)
    shape = (*type_.shape[:axis], count, extent // count, *type_.shape[axis + 1 :])
    return _moved(trace, bind(trace, get("reshape"), [x], {"shape": shape}), axis, 0)


def _permutation(perm: Any, count: int) -> tuple[tuple[int, int], ...]:
    try:
        return tuple([(operator.index(i), operator.index(j)) for i, j in perm])
    except (TypeError, ValueError):
        raise errors.ShardingError(
            f"ppermute: perm must have pairs (source, target) of numbers of {count} devices, got "
            f"{perm!r}"
        ) from None
