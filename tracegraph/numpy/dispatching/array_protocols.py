"""NumPy's protocols for Arrays: NumPy itself on the host, our functions for Arrays on a device.

And for Arrays of bfloat16, which NumPy's functions do not know as a floating-point dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.eager import any_of_bfloat16, any_on_device, as_numpy, result_of
from tracegraph.numpy.dispatching import protocols, ufunc_at
from tracegraph.numpy.dispatching.output import require_writable
from tracegraph.tracing.tracer import Tracer


def _as_array(x: Any, args: Sequence[Any] = ()) -> Any:
    """Results of NumPy as Arrays, if they can be: `numpy.shape` gives plain ints, and what is
    joined with an array of objects is one.
    """
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind in _NO_NUMBERS:
        return x
    return result_of(x, args)


_NO_NUMBERS = "OSUMmT"
"""Kinds of dtypes that Arrays cannot have: objects, text and times."""


def array_ufunc(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """NumPy's ufunc dispatch for Arrays.

    Raises:
        ImmutableArrayError: `out` is an Array that is read-only, or what `at` writes to, of which
            NumPy itself does not ask that.
        TypeError: a device has no such function.
    """
    out = kwargs.get("out", ())
    if any(isinstance(x, Tracer) for x in (*inputs, *out)):
        return NotImplemented  # the tracer records it
    if out:
        require_writable(ufunc.__name__, (), kwargs)
    if method == "at" and type(inputs[0]) is Array:
        inputs[0].check_writable(*_at_and_instead(ufunc))
    if any_on_device((*inputs, *out)) or (any_of_bfloat16(inputs) and not out):
        with _naming(protocols.ufunc_label(ufunc)):
            return protocols.array_ufunc(ufunc, method, inputs, kwargs)
    if method == "__call__" and not kwargs and protocols.is_ours(ufunc):
        return tree.map(_as_array, protocols.array_ufunc(ufunc, method, inputs, kwargs))
    operands = tuple(map(as_numpy, inputs))
    if not out:
        results = getattr(ufunc, method)(*operands, **kwargs)
        return tree.map(lambda x: _as_array(x, inputs), results)
    written = tuple(map(as_numpy, out))
    results = getattr(ufunc, method)(*operands, **{**kwargs, "out": written})
    return _returned(results, inputs, zip(written, out, strict=True))


def array_function(
    function: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """NumPy's function dispatch for Arrays.

    Raises:
        ImmutableArrayError: the function writes to an Array that is read-only.
        TypeError: an Array is on a device, for which there is no such function.
    """
    if any(issubclass(t, Tracer) for t in types):
        return NotImplemented
    require_writable(function.__name__, args, kwargs)
    leaves = tree.leaves((args, dict(kwargs)))
    if any_on_device(leaves) or (any_of_bfloat16(leaves) and protocols.has(function)):
        with _naming(f"numpy.{function.__name__}"):
            return protocols.array_function(function, args, kwargs)
    host_args, host_kwargs = tree.map(as_numpy, (args, dict(kwargs)))
    results = function(*host_args, **host_kwargs)
    passed = zip(tree.leaves((host_args, host_kwargs)), leaves, strict=True)
    out = kwargs.get("out")
    written = () if out is None else out if isinstance(out, tuple) else (out,)
    pairs = [(x, own) for x, own in passed if type(own) is Array or any(own is y for y in written)]
    return _returned(results, leaves, pairs)


def _returned(results: Any, args: Sequence[Any], pairs: Iterable[tuple[Any, Any]]) -> Any:
    """Results of NumPy for these arguments as Arrays. Of the pairs, the second stands for the
    first, if that is returned.
    """
    known = {id(x): own for x, own in pairs}
    return tree.map(lambda x: known[id(x)] if id(x) in known else _as_array(x, args), results)


def _at_and_instead(ufunc: np.ufunc) -> tuple[str, str]:
    update = ufunc_at.UPDATES.get(ufunc.__name__)
    arguments = "x, index, value" if ufunc.nin == 2 else "x, index"
    given = "set(...)" if update is None else f"{update}(value)"
    return f"numpy.{ufunc.__name__}.at({arguments})", f"write `x = x.at[index].{given}`"


@contextmanager
def _naming(function: str) -> Iterator[None]:
    """Replace the error for tracers: an Array, unlike a tracer, can be copied to the host."""
    try:
        yield
    except errors.UnsupportedByTracerError:
        raise TypeError(
            f"{function}, used like this, is not available for Arrays on a device or of "
            "bfloat16; apply it to numpy.asarray(x)"
        ) from None
