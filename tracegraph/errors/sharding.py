"""Meshes: functions of each device, and arrays in blocks, that do not fit or do not agree."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.errors.wording import user_line

__all__ = [
    "CollectiveOutsideShardError", "DeadlockError", "MeshDeviceError", "MeshMismatchError",
    "NotAddressableError", "OutSpecError", "PeerFailedError", "PeerLostError", "ProcessGroupError",
    "ShardingError", "UniformityError", "UnknownAxisError",
]  # fmt: skip


class ShardingError(ValueError):
    """A mesh, a spec or a sharded array cannot be used in this way."""

    def __init__(self, problem: str, *details: str) -> None:
        super().__init__("\n  ".join((problem, *details)) + user_line())


class CollectiveOutsideShardError(ShardingError):
    """A collective is called where no axis of devices has a name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is called outside of shard: no axis of devices has a name here; call it in a "
            "function that tracegraph.shard maps over a mesh, or vmap with axis_name"
        )


class UnknownAxisError(ShardingError):
    """There is no axis of devices of this name."""

    def __init__(self, name: str, axis: object, known: Sequence[str]) -> None:
        names = ", ".join(map(repr, known))
        super().__init__(f"{name}: there is no axis {axis!r} here; the axes are {names}")


class UniformityError(ShardingError):
    """Devices may go different ways around a collective, which then waits for ever.

    `axis` is the one along which they do. `chain` are the values from the first that differs to the
    condition, one a line.
    """

    def __init__(
        self, what: str, axis: str, around: str, collective: str, chain: Sequence[str]
    ) -> None:
        self.axis, self.chain = axis, tuple(chain)
        lines = (
            f"devices along axis {axis!r} may {what} around a collective, and would then wait for "
            "one another for ever:",
            f"  {around}",
            f"  holds {collective}",
            "what decides differs between devices:",
            *(f"  {line}" for line in chain),
            f"take the condition from psum or pmax over {axis!r}, so that it is the same on all",
        )
        ValueError.__init__(self, "\n  ".join(lines))


class OutSpecError(ShardingError):
    """A result differs between devices along an axis that its spec does not name."""

    def __init__(
        self, path: str, spec: str, axes: Sequence[str], chain: Sequence[str], function: str
    ) -> None:
        along = " and ".join(map(repr, axes))
        super().__init__(
            f"out_specs has {spec} for {path} of {function}: it must be the same on all devices "
            f"along {along}, but differs between them:",
            *(f"  {line}" for line in chain),
            f"name {along} in its spec, or make it the same on all, by psum, pmax or all_gather",
        )


class MeshDeviceError(ShardingError):
    """A mesh of these devices cannot be made, or cannot do this."""


class NotAddressableError(ShardingError):
    """Elements of an Array are on devices of other processes, and cannot be read in this one."""

    def __init__(self, what: str, mesh: str) -> None:
        super().__init__(
            f"an {what} is divided over {mesh}, whose devices belong to several processes; this "
            "one has only some of its blocks",
            "read those, x.addressable_shards[i].data, or call tracegraph.all_gather_to_host(x) in "
            "all processes",
        )


class MeshMismatchError(ShardingError):
    """Processes of a mesh have built different programs, which would wait for one another for ever.

    `processes` are those that differ from the first one.
    """

    def __init__(self, problem: str, processes: Sequence[int], *details: str) -> None:
        self.processes = tuple(processes)
        super().__init__(problem, *details)


class ProcessGroupError(RuntimeError):
    """Processes cannot be joined, or are no longer."""


class PeerLostError(RuntimeError):
    """A device of a mesh will not come to where the others wait for it: all were ended.

    `reason` says what is known of it. `process` is the number of its process, if that is no longer
    there: it was killed, or has ended.
    """

    def __init__(self, reason: str, process: int | None = None) -> None:
        if process is None:
            what = (
                "what waits for it was ended, and results are lost; the next call of a sharded "
                "function begins anew"
            )
        else:
            what = "meshes of several processes cannot be used any more: start all of them again"
        super().__init__(f"{reason}; {what}")
        self.reason, self.process = reason, process


class DeadlockError(RuntimeError):
    """Devices of a host mesh wait for one another in different collectives, or for one that left.

    `rows` has what each device does.
    """

    def __init__(self, problem: str, rows: Sequence[str]) -> None:
        super().__init__("\n  ".join((problem, *rows)))


class PeerFailedError(RuntimeError):
    """Another device of the mesh has failed, so this one ended where it was."""

    def __init__(self, device: int, where: str) -> None:
        super().__init__(f"device {device} has failed; this one was in {where}, and ended as well")
