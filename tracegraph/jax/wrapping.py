"""`wrap`: a NumPy-style function as a function of JAX's arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any

import jax

from tracegraph import tree
from tracegraph.errors.tracebacks import entry_point
from tracegraph.interop.flat_functions import FlatFunction, flat_of_tree
from tracegraph.jax.callback import canonical, jax_function

__all__ = ["wrap"]

_NUMBERS = (bool, int, float, complex)


@entry_point
def wrap(body: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy-style function as a function of JAX's arrays, which runs on the host.

    A call is one program of the host; so is its backward pass, and each further derivative.
    `jax.jit`, `jax.grad` of any order and `jax.vmap` take it: JAX calls back, by
    `jax.pure_callback`, and lanes of `vmap` are computed together. It has no forward derivative
    (`jax.jvp`). Elements of arrays on a GPU are copied to the host and back.

    Args:
        body: takes and returns trees of arrays and numbers. It is traced, as by `tracegraph.jit`.

    Returns:
        A function of trees of JAX's arrays and numbers, with results of the dtypes that JAX has for
        them: without ``jax_enable_x64``, those of 32 bits.

    Raises:
        TypeError: `body` is not callable.

    >>> import jax
    >>> f = wrap(lambda x: (x**2).sum())
    >>> jax.grad(f)(jax.numpy.array([1.0, 2.0]))
    Array([2., 4.], dtype=float32)
    """
    if not callable(body):
        raise TypeError(f"wrap takes a function, got {body!r}")
    known: dict[Hashable, tuple[FlatFunction, list[tree.Structure]]] = {}

    @wraps(body)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree.flatten((args, kwargs))
        found = known.get(structure)
        if found is None:
            found = known.setdefault(structure, flat_of_tree(body, structure, None))
        function, results = found
        if any(isinstance(x, jax.core.Tracer) for x in leaves):
            weak = tuple([isinstance(x, _NUMBERS) for x in leaves])
            flat = jax_function(function, weak)(*leaves)
        else:
            flat = tuple(map(_as_jax, function.on("host")(*leaves)))
        return tree.unflatten(results[0], flat)

    return wrapped


def _as_jax(x: Any) -> Any:
    return jax.numpy.asarray(x.data, canonical(x.type))
