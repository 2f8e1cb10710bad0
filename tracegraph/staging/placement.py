"""Trees of arrays moved to a device and back, and waited for; the names are JAX's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.arrays.creation import array_of, asarray
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.types import type_of
from tracegraph.sharding.gathered import gathered
from tracegraph.sharding.mesh import Mesh, require_mesh
from tracegraph.sharding.partition_spec import (
    PartitionSpec,
    global_type,
    local_type,
    require_axes,
)
from tracegraph.sharding.sharded_buffer import ShardedBuffer, indices, sharded_place
from tracegraph.staging.compiler import default_device
from tracegraph.tracing.tracer import Tracer

__all__ = [
    "all_gather_to_host", "block_until_ready", "device_get", "device_put", "make_array_from_local",
]  # fmt: skip


@entry_point
def device_put(x: Any, device: Any = None, spec: Any = None) -> Any:
    """A tree of arrays, moved to a device, or divided over a mesh.

    Arrays that are there already are not copied, and traced values stay what they are. Work on a
    device goes on while the copies are made. Over a mesh of several processes, each passes the
    whole array, and takes the blocks of its own devices.

    Args:
        x: a tree of arrays of any library, and numbers.
        device: ``"host"``, ``"cuda"`` or ``"cuda:1"``, as `y.device` of an Array says; None for the
            one that functions run on. A tree of these that is a prefix of `x` moves its parts to
            several. Or a `Mesh`.
        spec: how arrays are divided over the mesh: a `PartitionSpec`, or a tree of them that is a
            prefix of `x`; None: each device has all of it.

    Shape: that of each leaf.
    Dtype: that of each leaf; that of NumPy for a Python number.

    Raises:
        TypeError: `x` has a leaf that is not an array or a number, or a device is not a string.
        UnsupportedByTracerError: a value is traced for another device.
        ValueError: there is no such device, or a tree of devices or specs is no prefix of `x`.
        ShardingError: a spec does not fit its array or the mesh, or is given without a mesh.

    >>> device_put({"w": np.ones(2), "b": 0.5}, "host")
    {'w': Array([1., 1.], dtype=float64), 'b': Array(0.5, dtype=float64)}
    """
    leaves, structure = tree.flatten(x)
    if isinstance(device, Mesh):
        return _divided(x, device, PartitionSpec() if spec is None else spec)
    if spec is not None:
        raise errors.ShardingError(
            "device_put divides an array by a spec over a mesh: device_put(x, mesh, spec); got "
            f"{errors.value_text(device)} for the mesh"
        )
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


def _divided(x: Any, mesh: Mesh, specs: Any) -> Any:
    """The tree, each leaf of which is divided over a mesh."""
    leaves, structure = tree.flatten(x)
    try:
        each = tree.spread_prefix(specs, x)
    except ValueError as error:
        raise ValueError(f"the specs of device_put are no prefix of its tree: {error}") from None
    moved = []
    for number, (leaf, spec) in enumerate(zip(leaves, each, strict=True)):
        what = tree.paths(structure, "x")[number]
        known = require_axes(mesh, spec, f"the spec of {what}")
        place = sharded_place(mesh, known)
        if isinstance(leaf, Tracer):
            raise errors.ShardingError(
                f"device_put cannot divide {errors.value_text(leaf)} over {mesh} while it is "
                "traced; divide arguments by in_specs of shard"
            )
        if type(leaf) is Array and getattr(leaf.data, "where", None) == place:
            moved.append(leaf)
            continue
        whole = np.asarray(leaf if type(leaf) is Array else _as_array(leaf, structure, number))
        type_ = type_of(whole)
        local_type(mesh, known, type_, what)
        pieces = [np.array(whole[index]) for index in indices(mesh, known, whole.shape)]
        blocks = _on_devices(mesh, pieces)
        moved.append(Array(ShardedBuffer(type_, mesh, known, blocks)))
    return tree.unflatten(structure, moved)


@entry_point
def make_array_from_local(blocks: Sequence[Any], mesh: Mesh, spec: PartitionSpec) -> Array:
    """The Array whose blocks on the devices of this process are these, without copies.

    Args:
        blocks: an array for each device of this process, in the order of the mesh; all of one shape
            and dtype, in rows. Nothing may write to them from then on. Other processes pass those
            of their devices, of the same shape and dtype.
        mesh: the devices.
        spec: how the array is divided. Devices along an axis that it does not name have the same
            block each, which is not checked.

    Shape: that of a block, times the number of parts along each axis.
    Dtype: that of a block.

    Raises:
        ShardingError: the number of blocks is not that of the devices, their types differ, or the
            spec does not fit them.
        TypeError: a block is not an array.

    >>> mesh = tracegraph.Mesh(2, "x", device="host")
    >>> P = tracegraph.PartitionSpec
    >>> np.asarray(make_array_from_local([np.zeros(2), np.ones(2)], mesh, P("x")))
    array([0., 0., 1., 1.])
    """
    require_mesh("make_array_from_local", mesh)
    require_axes(mesh, spec, "make_array_from_local: spec")
    given: Any = blocks
    if not isinstance(given, Iterable):
        got = errors.value_text(given)
        raise TypeError(f"make_array_from_local: blocks must be several arrays, not {got}")
    arrays = [b if type(b) is np.ndarray else asarray(b) for b in blocks]
    types = [type_of(array) for array in arrays]
    own = len(mesh.local_devices)
    if len(arrays) != own or len(set(types)) > 1:
        got = ", ".join(map(str, types))
        here = " of this process" if mesh.processes > 1 else ""
        raise errors.ShardingError(
            f"make_array_from_local takes a block for each of {own} devices{here}, all of one "
            f"type; got {got or 'none'}"
        )
    whole = global_type(mesh, spec, types[0], "a block")
    return Array(ShardedBuffer(whole, mesh, spec, _on_devices(mesh, arrays)))


@entry_point
def all_gather_to_host(x: Any) -> Any:
    """A tree of arrays as NumPy's, whole in each process; all of them call it at the same place.

    Elements travel by way of the first process: it is meant for results, not for each step. In one
    process, it is `device_get`.

    Shape: that of each leaf.
    Dtype: that of each leaf.

    Raises:
        PeerLostError: a process is no longer there.
        DeadlockError: processes wait for one another at different places.

    >>> mesh = tracegraph.Mesh(2, "x", device="host")
    >>> all_gather_to_host(device_put(np.arange(4), mesh, PartitionSpec("x")))
    array([0, 1, 2, 3])
    """

    def whole(leaf: Any) -> Any:
        data = leaf.data if type(leaf) is Array else leaf
        return gathered(data) if isinstance(data, ShardedBuffer) else np.asarray(leaf)

    return tree.map(whole, x)


def _on_devices(mesh: Mesh, blocks: Sequence[Any]) -> list[Any]:
    """The memory of blocks, each on its device."""
    pairs = zip(mesh.ordinals, blocks, strict=True)
    moves = [partial(_on_device, mesh, ordinal, block) for ordinal, block in pairs]
    return each_in_a_thread(moves) if mesh.kind != "host" else [move() for move in moves]


def _on_device(mesh: Mesh, ordinal: int, block: Any) -> Any:
    """The memory of a block on its device; in rows and read-only on the host."""
    if mesh.kind != "host":
        whole = block if type(block) is Array else Array(np.array(block))
        return whole.to_device(f"{mesh.kind}:{ordinal}").data
    rows = np.ascontiguousarray(block).reshape(block.shape)
    rows.flags.writeable = False
    return rows


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
        return leaf if isinstance(leaf, Tracer) else array_of(leaf)
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
        if type(leaf) is Array:
            leaf.synchronize()
    return x
