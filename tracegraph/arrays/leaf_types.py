"""Types of leaves: what counts as an array or a number, and as one of which type."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracegraph import errors
from tracegraph.arrays import dlpack
from tracegraph.arrays.array import Array
from tracegraph.arrays.known_arrays import in_host_memory
from tracegraph.dtypes import canonical_dtype
from tracegraph.ir.types import ArrayType, require_plain, type_of
from tracegraph.tracing.tracer import Tracer

LeafKey = tuple[np.dtype[Any], tuple[int, ...], bool]
"""Dtype, shape and weakness, as `ArrayType(*key)` takes them; hashed and compared in C."""


def _key(type_: ArrayType) -> LeafKey:
    return type_.dtype, type_.shape, type_.weak


_NUMBER_KEYS: dict[type, LeafKey] = {kind: _key(type_of(kind())) for kind in (bool, float, complex)}
_INT_KEY = _key(type_of(0))


def classify(x: Any) -> tuple[LeafKey, Any]:
    """The key of an argument leaf, and what an executable takes for it.

    An executable takes a Python number, an ndarray in native byte order, a device buffer, or a
    foreign array in device memory. The dtype may be one that arrays cannot have: `ArrayType(*key)`
    checks that, once per compilation.

    Raises:
        TypeError: neither an array nor a number; the message says what came ("is of type …").
        EscapedTracerError: a tracer, though no trace is in progress.
    """
    kind = type(x)
    if kind is np.ndarray and x.dtype.isnative:
        return (x.dtype, x.shape, False), x
    if kind is Array:
        return _key(x.type), x.data
    if kind in _NUMBER_KEYS:
        return _NUMBER_KEYS[kind], x
    if kind is int:
        return (_INT_KEY if -(2**63) <= x < 2**63 else _key(type_of(x))), x
    return _classify_foreign(x)


def _classify_foreign(x: Any) -> tuple[LeafKey, Any]:
    if isinstance(x, Tracer):
        raise errors.EscapedTracerError(x)
    require_plain(x, "is")
    if isinstance(x, (np.ndarray, np.generic)):
        data = np.asarray(x)
        data = data.astype(data.dtype.newbyteorder("="), copy=False)
        return (data.dtype, data.shape, False), data
    if isinstance(x, (int, float, complex)):  # a subclass, such as an enumeration
        return classify(_plain_number(x))
    known = in_host_memory(x)
    if known is not None:
        return classify(known)
    found = _exported(x)
    if found is None:
        instead = "; write tracegraph.sparse.CSR.from_scipy(x)" if hasattr(x, "tocsr") else ""
        raise TypeError(f"is of type {_class_name(x)}{instead}")
    return found if isinstance(found, tuple) else classify(found)


def _exported(x: Any) -> tuple[LeafKey, Any] | NDArray[Any] | None:
    """What an object of another library says of its elements, or those on the host; None if it has
    none of the protocols.

    Raises:
        TypeError: it has one but refuses, as a tracer of that library does.
    """
    try:
        if hasattr(x, "__cuda_array_interface__"):
            interface = x.__cuda_array_interface__
            dtype = np.dtype(interface["typestr"])
            if dtype.kind != "V" or not hasattr(x, "__dlpack__"):  # there is no bfloat16
                return (dtype, tuple(interface["shape"]), False), x
        if hasattr(x, "__dlpack__"):
            host = dlpack.import_host(x)
            if host is not None:
                return host
            name, shape = str(x.dtype).rpartition(".")[2], tuple(x.shape)  # `torch.bfloat16`
        elif hasattr(x, "__array__"):
            return np.asarray(x)
        else:
            return None
    except Exception as error:
        raise TypeError(
            f"is of type {_class_name(x)}, which does not give its elements "
            f"({type(error).__name__}: {_first_line(error)}); {_advice(x)}"
        ) from error
    return (canonical_dtype(name), shape, False), x


def _advice(x: Any) -> str:
    """What to do where an array of another library refuses."""
    library = type(x).__module__.partition(".")[0]
    if library == "torch":
        return "detach it, or wrap the function by tracegraph.torch.wrap"
    if library in ("jax", "jaxlib"):
        return "call the function outside of transformations, or wrap it by tracegraph.jax.wrap"
    return (
        "pass the array itself: detach it, or call the function outside of the other library's "
        "transformations"
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["without a message"])[0]


def _plain_number(x: int | float | complex) -> int | float | complex:
    if isinstance(x, int):
        return int(x)
    return float(x) if isinstance(x, float) else complex(x)


def _class_name(x: Any) -> str:
    """The qualified name of the class of `x`, for messages."""
    kind = type(x)
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
