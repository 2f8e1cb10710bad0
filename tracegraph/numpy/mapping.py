"""Functions of one slice or one element, applied to all of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from tracegraph import control, tree
from tracegraph.arrays.eager import apply
from tracegraph.control.regions import TracedRegion, trace_tree
from tracegraph.errors import UnsupportedByTracerError
from tracegraph.ir.op import Elementwise
from tracegraph.ir.program import Atom
from tracegraph.ir.types import ArrayType
from tracegraph.numpy.axes import moveaxis, transpose
from tracegraph.numpy.dispatching.dispatch import as_array, is_ours, lifted, numpy_function
from tracegraph.numpy.shapes import broadcast_to, reshape
from tracegraph.tracing.trace import Trace, current_trace
from tracegraph.tracing.tracer import Tracer

__all__ = ["apply_along_axis", "apply_over_axes", "vectorize"]

Function = Callable[..., Any]


@numpy_function
def apply_along_axis(func1d: Function, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """`func1d` of each vector along an axis, one after the other, as `tracegraph.map` does.

    Shape: that of `arr`, with the axes of a result in place of the axis.
    Dtype: that of the results.

    Raises:
        AxisError: the axis is out of range.
        ValueError: another axis has no elements.

    >>> tnp.apply_along_axis(np.sum, 1, np.array([[1, 2], [3, 4]]))
    array([3, 7])
    """
    arr = as_array(arr)
    axis = normalize_axis_index(axis, arr.ndim)
    last = moveaxis(arr, axis, -1)
    outer = last.shape[:-1]
    if 0 in outer:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    rows = reshape(last, (int(np.prod(outer, dtype=np.int64)), last.shape[-1]))

    def of_row(row: Any) -> Any:
        return as_array(func1d(row, *args, **kwargs))

    mapped = control.map(of_row, rows)
    inner = mapped.shape[1:]
    mapped = reshape(mapped, outer + inner)
    order = [*range(axis), *range(len(outer), mapped.ndim), *range(axis, len(outer))]
    return transpose(mapped, order)


@numpy_function
def apply_over_axes(func: Function, a: Any, axes: int | Sequence[int]) -> Any:
    """`func(a, axis)` for one axis after the other; an axis that it removes stays with extent 1.

    Shape: that of `a`, the axes with the extents that `func` leaves.
    Dtype: that of the results.

    Raises:
        AxisError: an axis is out of range.
        ValueError: `func` changes the number of axes by more than one.

    >>> tnp.apply_over_axes(np.sum, np.array([[1, 2], [3, 4]]), [0, 1])
    array([[10]])
    """
    a = as_array(a)
    for axis_given in np.atleast_1d(axes):
        axis = normalize_axis_index(axis_given, a.ndim)
        reduced = as_array(func(a, axis))
        if reduced.ndim == a.ndim - 1:
            reduced = reshape(reduced, (*reduced.shape[:axis], 1, *reduced.shape[axis:]))
        if reduced.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = reduced
    return a


def vectorize(
    pyfunc: Function,
    otypes: str | Iterable[Any] | None = None,
    doc: str | None = None,
    excluded: Iterable[int | str] | None = None,
    cache: bool = False,
    signature: str | None = None,
) -> Function:
    """A function of arrays, from one of scalars that can be traced.

    Arguments broadcast. If `pyfunc` does only arithmetic, it is applied to whole arrays;
    otherwise it is called for one element after the other, as `tracegraph.map` does. With `otypes`
    it computes as with Python's numbers, in 64 bits. Arguments named in `excluded`, by position or
    keyword, are passed on as they are.

    Shape: that to which the arguments broadcast, for each result.
    Dtype: that of each result, or that in `otypes`.

    Raises:
        UnsupportedByTracerError: `signature` with a traced argument; use `apply_along_axis`.
        ValueError: the arguments do not broadcast, or have no elements while there are no `otypes`.

    >>> tnp.vectorize(lambda a, b: a * b + 1)(np.array([1, 2]), 3)
    array([4, 7])
    """
    kept = frozenset(() if excluded is None else excluded)
    plain = np.vectorize(pyfunc, otypes, doc, set(kept), cache, signature)

    @wraps(pyfunc)
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        if not is_ours(args) and not is_ours(kwargs.values()):
            return plain(*args, **kwargs)
        if signature is not None:
            raise UnsupportedByTracerError(
                "numpy.vectorize with signature=", "use numpy.apply_along_axis or tracegraph.map"
            )
        by_name: dict[int | str, Any] = dict(enumerate(args))
        by_name.update(kwargs)
        as_given = as_array if otypes is None else _of_python
        arrays = {k: as_given(v) for k, v in by_name.items() if k not in kept}

        def of_scalars(values: Sequence[Any]) -> Any:
            now = {**by_name, **dict(zip(arrays, values, strict=True))}
            return pyfunc(*[now[k] for k in range(len(args))], **{k: now[k] for k in kwargs})

        dtypes = None if plain.otypes is None else [np.dtype(c) for c in plain.otypes]
        mapped = _elementwise(pyfunc, of_scalars, list(arrays.values()), dtypes is not None)
        if isinstance(mapped, tuple):
            return tuple([_cast(x, dtypes, k) for k, x in enumerate(mapped)])
        return _cast(mapped, dtypes, 0)

    if doc is not None:
        vectorized.__doc__ = doc
    return vectorized


def _of_python(x: Any) -> Any:
    """An array in the dtype of Python's numbers, which NumPy passes to such functions."""
    x = as_array(x)
    if x.dtype.kind == "b" or x.dtype == np.uint64:
        return x
    wide = {"f": np.float64, "c": np.complex128, "V": np.float64}
    return as_array(x, wide.get(x.dtype.kind, np.int64))


def _cast(x: Any, dtypes: list[np.dtype[Any]] | None, position: int) -> Any:
    return as_array(x) if dtypes is None else as_array(x, dtypes[position])


def _elementwise(
    pyfunc: Function, call: Callable[[Sequence[Any]], Any], arrays: list[Any], typed: bool
) -> Any:
    """The function of scalars for all elements of arrays."""
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    if 0 in shape and not typed:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    trace = current_trace()
    if trace is not None:
        types = [ArrayType(a.dtype, ()) for a in arrays]
        traced = trace_tree(call, types, trace, "vectorize", pyfunc)
        if _is_elementwise(traced):
            found = [broadcast_to(lifted(x), shape) for x in _replayed(trace, traced, arrays)]
            return tree.unflatten(traced.structure, found)
    flat = tuple([reshape(broadcast_to(lifted(a), shape), -1) for a in arrays])
    found = control.map(call, flat)
    return tree.map(lambda x: reshape(x, shape), found)


def _is_elementwise(traced: TracedRegion) -> bool:
    """Whether a function of scalars does the same to each element of arrays."""
    eqns = traced.region.eqns
    return traced.tokens is None and all(
        isinstance(e.op.form, Elementwise) and not any(a.type.shape for a in e.operands)
        for e in eqns
    )


def _replayed(trace: Trace, traced: TracedRegion, arrays: Sequence[Any]) -> list[Any]:
    """The results of a region of elementwise equations for whole arrays."""
    region = traced.region
    captured = [Tracer(trace, atom) for atom in traced.captures]
    known: dict[Atom, Any] = dict(zip(region.params, (*arrays, *captured), strict=True))

    def read(atom: Atom) -> Any:
        return known[atom] if atom in known else Tracer(trace, atom)

    for eqn in region.eqns:
        known[eqn.outputs[0]] = apply(eqn.op, *map(read, eqn.operands), **eqn.attrs)
    return [read(a) for a in region.results]
