"""Eager dispatch: an op is recorded if an argument is traced, else it runs now.

NumPy arrays and Arrays in host memory go through the NumPy reference. Arrays on a device go through
a compiled program of the one op, so that results stay on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.ir.op import Op
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.tracing.trace import bind, recorder
from tracegraph.tracing.tracer import Tracer


def apply(op: Op, *args: Any, **attrs: Any) -> Any:
    """Apply an op: record an equation if a tracer is among the arguments, else run it now."""
    trace = recorder(args)
    if trace is not None:
        return bind(trace, op, args, attrs)
    return run(op, args, attrs)


def run(op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Apply an op to values none of which is traced.

    The result is an Array if an argument is one, else what NumPy makes of them.
    """
    if not any(isinstance(a, Array) for a in args):
        return op.reference(*args, **attrs)
    if _any_on_device(args):
        return _compiled(op, tuple(attrs.items()))(*args)
    results = op.reference(*(_as_numpy(a) for a in args), **attrs)
    if isinstance(results, tuple):
        return tuple(Array(np.asarray(r)) for r in results)
    return Array(np.asarray(results), weak=_is_weak(op, args, attrs))


@lru_cache(maxsize=4096)
def _compiled(op: Op, attrs: tuple[tuple[str, Any], ...]) -> Callable[..., Any]:
    from tracegraph.staging.jit import jit  # built on Arrays

    keywords = dict(attrs)

    def traced(*args: Any) -> Any:
        return apply(op, *args, **keywords)

    traced.__name__ = traced.__qualname__ = op.name
    return jit(traced).launch


def _is_weak(op: Op, args: Iterable[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether the result is a number of Python arithmetic: all operands are, and the op is."""
    if not all(a.weak if isinstance(a, Array) else type(a) in (int, float, complex) for a in args):
        return False
    types = [type_of(a) for a in args]
    if op.promote is not None:
        dtypes = op.promote(*types, **attrs)
        types = [ArrayType(d, t.shape, True) for t, d in zip(types, dtypes, strict=True)]
    return op.result_types(types, attrs)[0].weak


def _any_on_device(args: Iterable[Any]) -> bool:
    return any(isinstance(a, Array) and not isinstance(a.data, np.ndarray) for a in args)


def _as_numpy(x: Any) -> Any:
    """What stands for `x` in a call of NumPy: a weak Array counts as a Python number there."""
    if not isinstance(x, Array):
        return x
    return x.item() if x.weak else x.__array__()


def _as_array(x: Any) -> Any:
    """Results of NumPy as Arrays, if they can be: `numpy.shape` gives plain ints, for instance."""
    return Array(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def apply_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """NumPy's ufunc dispatch for Arrays.

    Raises:
        TypeError: `out` is an Array, or a device has no such function.
    """
    out = kwargs.get("out", ())
    if any(isinstance(x, Tracer) for x in (*inputs, *out)):
        return NotImplemented  # the tracer records it
    if any(isinstance(x, Array) for x in out):
        raise TypeError(
            f"numpy.{ufunc.__name__}(..., out=x): x is an Array, which is immutable; drop out="
        )
    if _any_on_device(inputs):
        with _naming(f"numpy.{ufunc.__name__}"):
            return _protocols().array_ufunc(ufunc, method, inputs, kwargs)
    results = getattr(ufunc, method)(*map(_as_numpy, inputs), **kwargs)
    return results if out else tree.map(_as_array, results)


def apply_function(
    function: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """NumPy's function dispatch for Arrays.

    Raises:
        TypeError: an Array is on a device, for which there is no such function.
    """
    if any(issubclass(t, Tracer) for t in types):
        return NotImplemented
    if _any_on_device(tree.leaves((args, dict(kwargs)))):
        with _naming(f"numpy.{function.__name__}"):
            return _protocols().array_function(function, args, kwargs)
    host_args, host_kwargs = tree.map(_as_numpy, (args, dict(kwargs)))
    return tree.map(_as_array, function(*host_args, **host_kwargs))


def _protocols() -> ModuleType:
    from tracegraph.numpy import protocols  # built on the op records, which import this module

    return protocols


@contextmanager
def _naming(function: str) -> Iterator[None]:
    """What tracing lacks, a device lacks too, but there is more that one can do about it."""
    try:
        yield
    except errors.UnsupportedByTracerError:
        raise TypeError(
            f"{function}, used like this, is not available for Arrays on a device; apply it to "
            "numpy.asarray(x)"
        ) from None
