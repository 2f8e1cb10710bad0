"""Root nodes, which others read from: values of small inputs, the pointer table, pointer arrays."""

from __future__ import annotations

from typing import Any

from lowering.codegen import TableEntry
from lowering.cuda.graph.emission import NOTHING, Cell, Emission, Root
from lowering.cuda.graph.pointer_arrays import (
    ARRAYS_KERNEL,
    arrays_launch,
    part_arrays,
    pointer_arrays,
)
from lowering.cuda.graph.pointer_arrays import parts as calls_of_parts
from lowering.cuda.graph.pointer_table import TABLE_KERNEL, part_words, parts
from lowering.cuda.graph.small_inputs import LOAD_KERNEL, parameter_count
from lowering.cuda.interface import KernelNodeHandle, Launch
from lowering.plan.nodes import body_graphs, launched
from lowering.plan.plan import Plan


def add_load(emission: Emission, graph: Any) -> KernelNodeHandle:
    """Add the node that writes small inputs to their slots."""
    small = list(emission.values.values())
    words = parameter_count(small) - 1
    kernel = emission.kernel(LOAD_KERNEL)
    cells = [Cell(emission.placement.values_address, True), *[Cell(0)] * words]
    readers = [
        node
        for node in launched(emission.owners.plan.graph)
        if not body_graphs(node) and not emission.values.keys().isdisjoint(emission.used(node))
    ]
    slots = emission.owners.load(LOAD_KERNEL, readers)
    launch = Launch(kernel, (1, 1, 1), (1, 1, 1))
    load = emission.add_kernel(graph, NOTHING, launch, cells, slots)
    by_table = (TableEntry(buffer) for buffer in emission.values)
    emission.roots.append(Root(load, frozenset((*emission.values, *by_table))))
    return load


def add_table(emission: Emission, graph: Any, plan: Plan) -> None:
    """Add the nodes that write the table of addresses, if the Plan has one."""
    if not plan.indirect:
        return
    kernel = emission.kernel(TABLE_KERNEL)
    slots = emission.owners.table(TABLE_KERNEL)
    words = part_words(plan.indirect)
    for part in parts(plan.indirect):
        start = Cell(emission.placement.table_address + emission.table[part[0]], True)
        unused = [Cell(0)] * (words - len(part))
        cells = [start, *map(emission.address, part), *unused]
        launch = Launch(kernel, (1, 1, 1), (1, 1, 1))
        root = emission.add_kernel(graph, NOTHING, launch, cells, slots)
        emission.roots.append(Root(root, frozenset(map(TableEntry, part))))


def add_pointer_arrays(emission: Emission, graph: Any) -> None:
    """Add the nodes that write the pointer arrays of library calls on arguments and results."""
    arrays, moving = emission.placement.pointer_arrays, emission.placement.moving
    nodes = [node for node in arrays if node in moving]
    if not nodes:
        return
    kernel = emission.kernel(ARRAYS_KERNEL)
    most = part_arrays(nodes)
    for part in calls_of_parts(nodes):
        written = [each for node in part for each in pointer_arrays(node.call)]
        cells = [Cell(arrays[part[0]], True)]
        for each in written:
            numbers = (each.offset, each.stride, each.count)
            cells += [emission.address(each.buffer), *map(Cell, numbers)]
        cells += [Cell(0)] * 4 * (most - len(written))
        launch = arrays_launch(kernel, max(each.count for each in written))
        slots = emission.owners.pointer_arrays(ARRAYS_KERNEL, part)
        root = emission.add_kernel(graph, NOTHING, launch, cells, slots)
        emission.roots.append(Root(root, frozenset(part)))
