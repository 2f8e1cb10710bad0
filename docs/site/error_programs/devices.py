"""Meshes: functions of each device, and arrays in blocks, that do not fit or do not agree."""

from __future__ import annotations

import numpy as np

import tracegraph
from tracegraph import PartitionSpec as P


def ShardingError():
    mesh = tracegraph.Mesh(2, "x", device="host")
    double = tracegraph.shard(lambda x: 2 * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    double(np.ones(3))

    # Instead:
    double(np.ones(4))


def CollectiveOutsideShardError():
    tracegraph.psum(1.0, "x")

    # Instead:
    tracegraph.vmap(lambda x: tracegraph.psum(x, "x"), axis_name="x")(np.ones(3))


def UnknownAxisError():
    tracegraph.vmap(lambda x: tracegraph.psum(x, "rows"), axis_name="x")(np.ones(3))

    # Instead:
    tracegraph.vmap(lambda x: tracegraph.psum(x, "x"), axis_name="x")(np.ones(3))


def UniformityError():
    def halved(x):
        return tracegraph.while_loop(lambda x: x > 1, lambda x: tracegraph.pmean(x, "x") / 2, x)

    tracegraph.vmap(halved, axis_name="x")(np.array([3.0, 9.0]))

    # Instead:
    def halved(x):
        def large(x):
            return tracegraph.pmax(x, "x") > 1

        return tracegraph.while_loop(large, lambda x: tracegraph.pmean(x, "x") / 2, x)

    tracegraph.vmap(halved, axis_name="x")(np.array([3.0, 9.0]))


def OutSpecError():
    mesh = tracegraph.Mesh(2, "x", device="host")
    tracegraph.shard(lambda x: np.sum(x), mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones(4))

    # Instead:
    def total(x):
        return tracegraph.psum(np.sum(x), "x")

    tracegraph.shard(total, mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones(4))


def MeshDeviceError():
    tracegraph.Mesh(2, "x", device="tpu")

    # Instead:
    tracegraph.Mesh(2, "x", device="host")


def DeadlockError():
    # On a mesh:
    # Tracing refuses what may deadlock, as a UniformityError. This is left for what it cannot
    # see, such as a custom kernel or a callback that ends on one of the devices.
    # Message:
    tracegraph.errors.DeadlockError(
        "the devices of the mesh wait for one another",
        ["device 0: in psum over 'x'", "device 1: has returned"],
    )


def PeerFailedError():
    # On a mesh:
    # Another device has raised an error, which the call raises; this is what the others say.
    # Message:
    tracegraph.errors.PeerFailedError(1, "psum over 'x'")


def ProcessGroupError():
    tracegraph.distributed.initialize(num_processes=2)

    # Instead:
    tracegraph.distributed.initialize()  # a launcher says who is who; without one, it is alone


def NotAddressableError():
    # In several processes:
    mesh = tracegraph.Mesh(2, "x")
    x = tracegraph.shard(lambda x: 2 * x, mesh=mesh, in_specs=P("x"), out_specs=P("x"))(np.ones(4))
    np.asarray(x)

    # Instead:
    tracegraph.all_gather_to_host(x)  # in all processes

    # Message:
    tracegraph.errors.NotAddressableError("Array of f64[4]", "Mesh(2, 'x')")


def MeshMismatchError():
    # In several processes:
    mesh = tracegraph.Mesh(2, "x")
    total = tracegraph.shard(
        lambda x: tracegraph.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
    )
    total(np.ones(4 + 2 * tracegraph.process_index()))  # not the same in all

    # Message:
    tracegraph.errors.MeshMismatchError(
        "the processes of a mesh have built different programs",
        [1],
        "process 0: input[0]: f64[2]",
        "process 1: input[0]: f64[3]",
    )


def PeerLostError():
    # In several processes:
    # One of them has ended, or was killed, while others wait for it.

    # Message:
    tracegraph.errors.PeerLostError("process 1 is lost", 1)
