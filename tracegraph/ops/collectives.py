"""Collectives: ops that the devices along axes of a mesh carry out together.

In attributes, `axes` are the names of these axes, and `count` is the number of devices along them.
Each op takes one array of each device. Blocks of several devices are along axis 0, as libraries
have them in memory; `tracegraph.sharding.collectives` has other axes.

    psum, pmax, pmin    elements over devices: the same result on all
    all_gather          x of all devices, one after the other: the same on all
    psum_scatter        of the sum of all, block i for device i
    all_to_all          block j of device i becomes block i of device j
    ppermute            x of another device, or zeros
    axis_index          the number of the device along an axis

What differs between devices, and what is the same on all, is said by `Collective.varies`. Each op
has two batching rules: `batch` for lanes of other axes, which are more elements, and `over_lanes`
for lanes that take the place of devices. Derivatives assume that a value which is the same on all
devices has a cotangent that is the same, too: transposition sees to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.ir.derivative import Constant, Derivative, Emitter, Linear, Rewrite
from tracegraph.ir.op import Collective, Op, Sample, register
from tracegraph.ir.program import Atom, Literal
from tracegraph.ir.types import ArrayType
from tracegraph.ops.batching import Flags, Lanes
from tracegraph.ops.cotangents import Types, filled, indicator
from tracegraph.ops.sampling import ramp

Axes = tuple[str, ...]
Permutation = tuple[tuple[int, int], ...]

_NUMBER = np.dtype(np.int64)


def _register(
    name: str,
    doc: str,
    type_rule: Callable[..., ArrayType],
    alone: Callable[..., Any],
    form: Collective,
    derivative: Derivative,
    batch: Callable[..., Any] | None,
    attrs: Mapping[str, Any],
    shape: tuple[int, ...],
) -> Op:
    """Register a collective; `alone` is what a single device computes, for the samples."""

    def reference(*operands: Any, **given: Any) -> np.ndarray[Any, Any]:
        if given["count"] != 1:
            raise errors.CollectiveOutsideShardError(name)
        return np.array(alone(*map(np.asarray, operands)))

    def samples() -> list[Sample]:
        known = {"axes": ("x",), "count": 1, **attrs}
        if name == "axis_index":
            return [Sample((), known)]
        dtypes = (np.int32, np.float32, np.float64, np.complex128)
        kinds = dtypes[:3] if name in {"pmax", "pmin"} else dtypes
        return [Sample((ramp(shape, dtype),), known) for dtype in kinds]

    return register(
        Op(name, doc, type_rule, reference, form, samples, derivative=derivative, batch=batch)
    )


def _check(name: str, x: ArrayType, kinds: str = "iufcV") -> None:
    if x.dtype.kind not in kinds:
        complex_ = "; take real and imaginary parts apart" if x.dtype.kind == "c" else ""
        raise TypeError(f"{name}: takes numbers of other dtypes than {x}{complex_}")


def _check_blocks(name: str, x: ArrayType, count: int) -> None:
    if not x.shape or x.shape[0] != count:
        raise ValueError(f"{name}: axis 0 of {x} must have a block for each of {count} devices")


# reductions over devices


def _same_type(name: str, kinds: str) -> Callable[..., ArrayType]:
    def rule(x: ArrayType, *, axes: Axes, count: int) -> ArrayType:
        _check(name, x, kinds)
        return x.strong()

    return rule


def _more_elements(name: str) -> Callable[..., Atom]:
    def rule(lanes: Lanes, operands: Sequence[Atom], batched: Flags, **attrs: Any) -> Atom:
        """Lanes are more elements; those that have the name of one of its axes are combined."""
        return lanes.emit(name, lanes.spread(operands[0], batched[0]), **attrs)

    return rule


def _reduced(name: str, fold: str) -> Callable[..., Atom]:
    def over_lanes(lanes: Lanes, axis: str, x: Atom, *, axes: Axes, count: int) -> Atom:
        total = lanes.emit(fold, x, axes=(0,))
        rest = tuple([each for each in axes if each != axis])
        return lanes.emit(name, total, axes=rest, count=count // lanes.count) if rest else total

    return over_lanes


def _times(emit: Callable[..., Atom], x: Atom, count: int) -> Atom:
    return emit("multiply", x, Literal.of(count, x.type.strong().with_shape(())))


def _cast_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Axes, count: int
) -> tuple[Any]:
    """The cotangent of the sum, which is the same on all devices, is that of each operand."""
    return (ct,)


def _share_of_extremes(f: Emitter, out: Any, x: Any, *, axes: Axes, count: int) -> tuple[Any]:
    """Devices whose element is the extreme one share equally."""
    equal = indicator(f, f.equal(x, out), x)
    return (f.divide(equal, f.psum(equal, axes=axes, count=count)),)


def _weighted_sum(f: Emitter, values: Any, tangents: Any, *, axes: Axes, count: int) -> Any:
    return f.psum(f.multiply(values[0], tangents[0]), axes=axes, count=count)


psum = _register(
    "psum",
    "The sum over devices.",
    _same_type("psum", "iufcV"),
    lambda x: x,
    Collective(True, False, _reduced("psum", "sum"), _times),
    Linear(_cast_back),
    _more_elements("psum"),
    {},
    (2, 3),
)

pmax, pmin = (
    _register(
        name,
        f"The {which} element over devices.",
        _same_type(name, "iufV"),
        lambda x: x,
        Collective(True, False, _reduced(name, fold)),
        Rewrite(_share_of_extremes, _weighted_sum),
        _more_elements(name),
        {},
        (2, 3),
    )
    for name, which, fold in (("pmax", "largest", "max"), ("pmin", "smallest", "min"))
)


# blocks


def _gathered_type(x: ArrayType, *, axes: Axes, count: int) -> ArrayType:
    _check("all_gather", x, "biufcV")
    return ArrayType(x.dtype, (count, *x.shape))


def _gathered_by_lane(
    lanes: Lanes, operands: Sequence[Atom], batched: Flags, *, axes: Axes, count: int
) -> Atom:
    """Lanes are more elements, behind the axis of devices; those of its axis are that axis."""
    x = lanes.spread(operands[0], batched[0])
    return _front_swapped(lanes, lanes.emit("all_gather", x, axes=axes, count=count))


def _front_swapped(lanes: Lanes, x: Atom) -> Atom:
    return lanes.emit("transpose", x, axes=(1, 0, *range(2, x.type.ndim)))


def _own_block(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Axes, count: int
) -> tuple[Any]:
    (type_,) = types
    start = [f.axis_index(axes=axes, count=count), *[np.int64(0)] * len(type_.shape)]
    block = f.dynamic_slice(ct, *start, sizes=(1, *type_.shape))
    return (f.reshape(block, shape=type_.shape),)


def _repeated(emit: Callable[..., Atom], x: Atom, count: int) -> Atom:
    return emit("broadcast_to", x, shape=(count, *x.type.shape))


all_gather = _register(
    "all_gather",
    "The operands of all devices along a new axis 0.",
    _gathered_type,
    lambda x: x[None],
    Collective(True, False, lambda lanes, axis, x, **attrs: x, _repeated),
    Linear(_own_block),
    _gathered_by_lane,
    {},
    (2, 3),
)


def _scattered_type(x: ArrayType, *, axes: Axes, count: int) -> ArrayType:
    _check("psum_scatter", x)
    _check_blocks("psum_scatter", x, count)
    return ArrayType(x.dtype, x.shape[1:])


def _scattered_by_lane(
    lanes: Lanes, operands: Sequence[Atom], batched: Flags, *, axes: Axes, count: int
) -> Atom:
    """Lanes are more elements of each block; over those of its axis, it is a sum."""
    x = _front_swapped(lanes, lanes.spread(operands[0], batched[0]))
    return lanes.emit("psum_scatter", x, axes=axes, count=count)


def _all_blocks(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Axes, count: int
) -> tuple[Any]:
    return (f.all_gather(ct, axes=axes, count=count),)


psum_scatter = _register(
    "psum_scatter",
    "Block i of the sum over devices, for device i; blocks are along axis 0.",
    _scattered_type,
    lambda x: x[0],
    Collective(True, True, lambda lanes, axis, x, **attrs: lanes.emit("sum", x, axes=(0,))),
    Linear(_all_blocks),
    _scattered_by_lane,
    {},
    (1, 2, 3),
)


def _exchanged_type(x: ArrayType, *, axes: Axes, count: int) -> ArrayType:
    _check("all_to_all", x, "biufcV")
    _check_blocks("all_to_all", x, count)
    return x.strong()


def _exchanged_by_lane(
    lanes: Lanes, operands: Sequence[Atom], batched: Flags, *, axes: Axes, count: int
) -> Atom:
    """Lanes are more elements of each block; with those of its axis, blocks change places."""
    x = _front_swapped(lanes, lanes.spread(operands[0], batched[0]))
    return _front_swapped(lanes, lanes.emit("all_to_all", x, axes=axes, count=count))


def _exchanged_back(
    f: Emitter, ct: Any, acc: Any, types: Types, x: Any, *, axes: Axes, count: int
) -> tuple[Any]:
    return (f.all_to_all(ct, axes=axes, count=count),)


all_to_all = _register(
    "all_to_all",
    "Block j of device i becomes block i of device j; blocks are along axis 0.",
    _exchanged_type,
    lambda x: x,
    Collective(True, True, lambda lanes, axis, x, **attrs: _front_swapped(lanes, x)),
    Linear(_exchanged_back),
    _exchanged_by_lane,
    {},
    (1, 2, 3),
)


# neighbours


def _permuted_type(x: ArrayType, *, axes: Axes, count: int, perm: Permutation) -> ArrayType:
    _check("ppermute", x, "biufcV")
    for what, ends in zip(("sources", "targets"), zip(*perm, strict=True), strict=False):
        if len(set(ends)) < len(ends) or not all(0 <= i < count for i in ends):
            raise ValueError(
                f"ppermute: the {what} of perm must be distinct numbers of {count} devices, from 0 "
                f"to {count - 1}; got {list(ends)}"
            )
    return x.strong()


def _permuted_lanes(
    lanes: Lanes, axis: str, x: Atom, *, axes: Axes, count: int, perm: Permutation
) -> Atom:
    """Runs of lanes whose sources are neighbours, and zeros, one after the other."""
    sources = {target: source for source, target in perm}
    rest, parts = x.type.shape[1:], list[Atom]()
    start = 0
    while start < count:
        first, end = sources.get(start), start + 1
        while end < count and sources.get(end) == (None if first is None else first + end - start):
            end += 1
        size = end - start
        if first is None:
            zero = Literal.of(0, ArrayType(x.type.dtype))
            parts.append(lanes.emit("broadcast_to", zero, shape=(size, *rest)))
        else:
            starts, steps = (first, *(0,) * len(rest)), (1,) * (1 + len(rest))
            parts.append(lanes.emit("slice", x, starts=starts, steps=steps, sizes=(size, *rest)))
        start = end
    return parts[0] if len(parts) == 1 else lanes.emit("concatenate", *parts, axis=0)


def _permuted_back(
    f: Emitter,
    ct: Any,
    acc: Any,
    types: Types,
    x: Any,
    *,
    axes: Axes,
    count: int,
    perm: Permutation,
) -> tuple[Any]:
    back = tuple([(target, source) for source, target in perm])
    if not back:
        return (filled(f, types[0]),)
    return (f.ppermute(ct, axes=axes, count=count, perm=back),)


ppermute = _register(
    "ppermute",
    "x of the device that sends to this one, by `perm`, pairs (source, target); or zeros.",
    _permuted_type,
    lambda x: x,
    Collective(True, True, _permuted_lanes),
    Linear(_permuted_back),
    _more_elements("ppermute"),
    {"perm": ((0, 0),)},
    (2, 3),
)


# where a device is


def _index_type(*, axes: Axes, count: int) -> ArrayType:
    return ArrayType(_NUMBER)


axis_index = _register(
    "axis_index",
    "The number of the device along an axis, from 0.",
    _index_type,
    partial(np.zeros, (), _NUMBER),
    Collective(
        True, True, lambda lanes, axis, **_: lanes.emit("iota", size=lanes.count, dtype=_NUMBER)
    ),
    Constant(),
    None,
    {},
    (),
)
