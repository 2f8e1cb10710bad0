"""Trees of arrays moved to a device and back, and waited for; the names are JAX's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import asarray
from tracegraph.errors.tracebacks import entry_point
from tracegraph.staging.compiler import default_device
from tracegraph.tracing.tracer import Tracer

__all__ = ["block_until_ready", "device_get", "device_put"]


@entry_point
def device_put(x: Any, device: Any = None) -> Any:
    """A tree of arrays, moved to a device.

    Arrays that are there already are not copied, and traced values stay what they are. Work on a
    device goes on while the copies are made.

    Args:
        x: a tree of arrays of any library, and numbers.
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``, as `y.device` of an Array says; None for the
            one that functions run on. A tree of these that is a prefix of `x` moves its parts to
            several.

    Shape: that of each leaf.
    Dtype: that of each leaf; that of NumPy for a Python number.

    Raises:
        TypeError: `x` has a leaf that is not an array or a number, or a device is not a string.
        UnsupportedByTracerError: a value is traced for another device.
        ValueError: there is no such device, or a tree of devices is no prefix of `x`.

    >>> device_put({"w": np.ones(2), "b": 0.5}, "host")
    {'w': Array([1., 1.], dtype=float64), 'b': Array(0.5, dtype=float64)}
    """
    leaves, structure = tree.flatten(x)
    devices = _devices(device, x)
    moved = []
    for number, (leaf, where) in enumerate(zip(leaves, devices, strict=True)):
        if where is None:
            where = leaf.device if isinstance(leaf, Tracer) else default_device()
        elif not isinstance(where, str):
            raise TypeError(
                f'device_put moves to a device such as "host" or "cuda:0", or that of an Array y, '
                f"y.device; got {errors.value_text(where)}"
            )
        if not isinstance(leaf, (Tracer, Array)):
            leaf = _as_array(leaf, structure, number)
        moved.append(leaf.to_device(where))
    return tree.unflatten(structure, moved)


def _devices(device: Any, x: Any) -> list[Any]:
    """The device of each leaf."""
    try:
        return tree.spread_prefix(device, x)
    except ValueError as error:
        raise ValueError(
            f"the devices of device_put are no prefix of its tree: {error}; give one device for "
            "all, or a tree of devices that ends where that of the arrays does, or above"
        ) from None


def _as_array(leaf: Any, structure: tree.Structure, number: int) -> Any:
    try:
        return asarray(leaf)
    except TypeError as error:
        if type(error) is not TypeError:  # it says itself what is wrong
            raise
        path = tree.paths(structure, "x")[number]
        raise TypeError(
            f"leaf {path} of device_put {error}; it moves arrays, numbers, and trees of them"
        ) from None


@entry_point
def device_get(x: Any) -> Any:
    """A tree of arrays as NumPy's, in host memory; waits for those that are being computed.

    Raises:
        TracerArrayError: a leaf is a traced value.

    >>> device_get((tracegraph.asarray([1.0, 2.0]), 3))
    (array([1., 2.]), array(3))
    """
    return tree.map(np.asarray, x)


@entry_point
def block_until_ready(x: Any) -> Any:
    """The tree itself, once all Arrays in it are computed. Other leaves are not looked at.

    Raises:
        DonatedArrayError: an Array was donated.
        Exception: what the computation raises, such as StepLimitError.

    >>> block_until_ready({"x": tracegraph.asarray(1.5)})
    {'x': Array(1.5, dtype=float64)}
    """
    for leaf in tree.leaves(x):
        if isinstance(leaf, Array):
            leaf.synchronize()
    return x
