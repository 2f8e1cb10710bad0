"""Sharding: how the arguments and results of a program of each device are divided over a mesh."""

from __future__ import annotations

from tracegraph.ir.record import record
from tracegraph.ir.types import ArrayType
from tracegraph.sharding.mesh import Mesh
from tracegraph.sharding.partition_spec import PartitionSpec
from tracegraph.sharding.sharded_buffer import sharded_place


@record
class Sharding:
    """The specs of the flat arguments and results, and the types of these as a whole.

    Behind the arguments, the program takes the number of the device along each axis of `indices`.
    """

    mesh: Mesh
    in_specs: tuple[PartitionSpec, ...]
    out_specs: tuple[PartitionSpec, ...]
    in_types: tuple[ArrayType, ...]
    out_types: tuple[ArrayType, ...]
    paths: tuple[str, ...]
    indices: tuple[str, ...] = ()

    @property
    def places(self) -> list[str]:
        """Where the results are."""
        return [sharded_place(self.mesh, spec) for spec in self.out_specs]
