"""`wrap`: a NumPy-style function as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any

import jax
import numpy as np

from tracegraph import numpy as tnp
from tracegraph import tree
from tracegraph.errors import UnsupportedArgumentError
from tracegraph.errors.tracebacks import entry_point
from tracegraph.interop.flat_functions import FlatFunction, by_its_name, flat_of_tree
from tracegraph.jax.callback import call_on_host, canonical, is_weak, result_structure

__all__ = ["wrap"]


@entry_point
def wrap(body: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy-style function as a function of JAX's arrays, which runs on the host in its programs.

    A call is one program of the host; so is each derivative of any order, forwards or backwards,
    and so are all lanes of `jax.vmap` together. It works in `jax.jit`, in loops and branches of
    JAX: JAX calls back, by `jax.pure_callback`. Elements of arrays on a GPU are then copied to the
    host and back. A call that JAX does not trace runs where the arrays are, without a copy.

    Args:
        body: takes and returns trees of arrays and numbers. It is traced, as by `tracegraph.jit`.

    Returns:
        A function of trees of JAX's arrays and numbers, with results of the dtypes that JAX has for
        them: without ``jax_enable_x64``, those of 32 bits. Numbers, and scalars of JAX that are
        weakly typed, are numbers to `body`: they take the dtypes of the arrays beside them.

    Raises:
        TypeError: `body` is not callable. A call raises what tracing `body` raises.

    >>> import jax
    >>> f = wrap(lambda x: (x**2).sum())
    >>> x = jax.numpy.array([1.0, 2.0])
    >>> jax.grad(f)(x)
    Array([2., 4.], dtype=float32)
    >>> jax.jvp(f, (x,), (x,))[1]
    Array(10., dtype=float32)
    """
    if not callable(body):
        raise TypeError(f"wrap takes a function, got {body!r}")

    @wraps(body)
    def in_jax(*args: Any, **kwargs: Any) -> Any:
        return tree.map(_in_dtype_of_jax, body(*args, **kwargs))

    known: dict[Hashable, FlatFunction] = {}

    @entry_point
    @wraps(body)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        function = known.get(structure)
        if function is None:
            function = known.setdefault(structure, flat_of_tree(in_jax, structure, None))
        if any(isinstance(x, jax.core.Tracer) for x in leaves):
            weak = tuple(map(is_weak, leaves))
            results = call_on_host(function, weak, leaves)
            return tree.unflatten(result_structure(function, weak, leaves), results)
        given = [x.item() if isinstance(x, jax.Array) and is_weak(x) else x for x in leaves]
        device = _device_of(leaves)
        try:
            found = function.on(device)(*given)
        except UnsupportedArgumentError as error:
            raise by_its_name(error, body, args, kwargs) from None
        return tree.map(lambda x: _as_jax(x, device), found)

    return wrapped


def _device_of(leaves: Sequence[Any]) -> str:
    """The GPU on which all arrays of JAX are, or the host."""
    devices = {d for x in leaves if isinstance(x, jax.Array) for d in x.devices()}
    if len(devices) == 1 and (device := devices.pop()).platform == "gpu":
        return f"cuda:{device.local_hardware_id}"
    return "host"


def _as_jax(x: Any, device: str) -> Any:
    """A result as an array of JAX: on a GPU it is the same memory."""
    return jax.numpy.asarray(x.data) if device == "host" else jax.dlpack.from_dlpack(x)


def _in_dtype_of_jax(x: Any) -> Any:
    """A result in the dtype that JAX has for it, so that cotangents have it as well."""
    dtype = np.result_type(x) if not hasattr(x, "dtype") else x.dtype
    return x if dtype == canonical(dtype) else tnp.asarray(x, canonical(dtype))
