"""`axes`, `axis` and `keepdims` of generalized ufuncs: where the core dimensions are."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from tracegraph.numpy.axes import moveaxis
from tracegraph.numpy.dispatching.dispatch import as_array
from tracegraph.numpy.shapes import reshape

Function = Callable[..., Any]

Axes = Sequence[tuple[int, ...]]


def with_core_axes(ufunc: np.ufunc, compute: Function, options: dict[str, Any]) -> Function:
    """A function whose core dimensions are last, with those that keywords name; these are taken.

    Raises:
        TypeError: both `axes` and `axis` are given; `axis` of a ufunc with more than one core
            dimension; `keepdims` of one whose results have core dimensions.
        AxisError: an axis is out of range.
        ValueError: another number of axes than of core dimensions.
    """
    axes, axis = options.pop("axes", None), options.pop("axis", None)
    given = options.pop("keepdims", False)
    if not isinstance(given, (bool, np.bool_, int)):
        raise TypeError(f"keepdims of {ufunc.__name__} must be a boolean, got {given!r}")
    keepdims = bool(given)
    if axes is None and axis is None and not keepdims:
        return compute
    core = _core_dimensions(ufunc)
    counts = [len(c) for c in core]
    name = ufunc.__name__
    if axes is not None and axis is not None:
        raise TypeError("cannot specify both 'axis' and 'axes'")
    single = all(n == 1 for n in counts[: ufunc.nin]) and not counts[-1]
    if axis is not None and not single:
        raise TypeError(f"{name}: axis can only be used with a single shared core dimension")
    if keepdims and not single:
        raise TypeError(f"{name} does not support keepdims")
    if axis is not None:
        axes = [(operator.index(axis),)] * ufunc.nin
    last = tuple(range(-counts[0], 0))

    def moved(*operands: Any) -> Any:
        arrays = [as_array(x) for x in operands]
        present = _counts(core, arrays)
        places = (
            [last] * ufunc.nin if axes is None else _places(name, axes, present, bool(keepdims))
        )
        arrays = [
            _moved(x, p, tuple(range(-len(p), 0))) for x, p in zip(arrays, places, strict=False)
        ]
        result = compute(*arrays)
        if keepdims:
            result = reshape(result, (*result.shape, *[1] * counts[0]))
        default = [places[0] if axis is not None else last] if keepdims else [()]
        target = [*places[ufunc.nin :], *default][0]
        return _moved(result, tuple(range(-len(target), 0)), target) if target else result

    return moved


def _moved(x: Any, source: tuple[int, ...], target: tuple[int, ...]) -> Any:
    if x.ndim < len(source):  # a vector where a matrix may be: matmul
        return x
    normalize_axis_tuple(source, x.ndim)
    return x if source == target else moveaxis(x, source, target)


def _core_dimensions(ufunc: np.ufunc) -> list[list[str]]:
    """The names of the core dimensions of operands and results."""
    operands, _, results = str(ufunc.signature).partition("->")
    return [
        [d for d in part.split(",") if d]
        for side in (operands, results)
        for part in side.strip("()").split("),(")
    ]


def _counts(core: list[list[str]], arrays: Sequence[Any]) -> list[int]:
    """How many core dimensions there are: optional ones, "n?", may be missing in an operand."""
    missing: set[str] = set()
    for names, x in zip(core, arrays, strict=False):
        optional = [n for n in names if n.endswith("?")]
        if x.ndim < len(names):
            missing.update(optional)
    return [len([n for n in names if n not in missing]) for names in core]


def _places(name: str, axes: Any, counts: Sequence[int], keepdims: bool) -> Axes:
    if not isinstance(axes, list):
        raise TypeError(f"axes of {name} should be a list, got {type(axes).__name__}")
    shorter = [n for n in counts if n] if len(axes) < len(counts) else counts
    if keepdims and len(axes) == len(counts):
        shorter = [*counts[:-1], counts[0]]
    if len(axes) not in (len(counts), len(shorter)) or len(axes) < len(counts) - 1:
        raise ValueError(f"axes of {name} should be a list of {len(counts)} entries")
    places = []
    for given, count in zip(axes, shorter, strict=False):
        entry = given if isinstance(given, tuple) else (given,)
        if len(entry) != count:
            raise ValueError(f"an entry of axes of {name} should have {count} axes, got {given!r}")
        places.append(tuple([operator.index(k) for k in entry]))
    return places
