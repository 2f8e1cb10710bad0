"""Launch nodes: what loads values and addresses, and what allocates and frees scratch."""

from __future__ import annotations

from functools import partial
from typing import Any

from lowering.cuda.graph.emission import Before, Cell, Emission
from lowering.cuda.graph.node_owners import freeing
from lowering.cuda.graph.pointer_table import TABLE_KERNEL, part_words
from lowering.cuda.graph.small_inputs import LOAD_KERNEL, parameter_count
from lowering.cuda.interface import Launch
from lowering.cuda.libraries.pointer_arrays import (
    ARRAYS_KERNEL,
    arrays_launch,
    part_arrays,
    pointer_arrays,
)
from lowering.plan.launch_nodes import (
    AllocationNode,
    FreeNode,
    LoadNode,
    PointersNode,
    TableNode,
)


def add_load(emission: Emission, graph: Any, node: LoadNode, before: Before) -> tuple[Any, ...]:
    """Add the kernel that writes small inputs to their slots."""
    words = parameter_count(list(emission.values.values())) - 1
    kernel = emission.kernel(LOAD_KERNEL)
    cells = [Cell(emission.placement.values_address, True), *[Cell(0)] * words]
    launch = Launch(kernel, (1, 1, 1), (1, 1, 1))
    slots = emission.owners.kernel(LOAD_KERNEL, node, ())
    emission.load = emission.add_kernel(graph, before, launch, cells, slots)
    return (emission.load.node,)


def add_table(emission: Emission, graph: Any, node: TableNode, before: Before) -> tuple[Any, ...]:
    """Add a kernel that writes a part of the table of addresses."""
    kernel = emission.kernel(TABLE_KERNEL)
    start = Cell(emission.placement.table_address + emission.table[node.entries[0]], True)
    unused = [Cell(0)] * (part_words(emission.code.plan.indirect) - len(node.entries))
    cells = [start, *map(emission.address, node.entries), *unused]
    launch = Launch(kernel, (1, 1, 1), (1, 1, 1))
    slots = emission.owners.kernel(TABLE_KERNEL, node, ())
    return (emission.add_kernel(graph, before, launch, cells, slots).node,)


def add_pointers(
    emission: Emission, graph: Any, node: PointersNode, before: Before
) -> tuple[Any, ...]:
    """Add a kernel that writes the pointer arrays of some library calls."""
    written = [array for call in node.calls for array in pointer_arrays(call.call)]
    cells = [Cell(emission.placement.pointer_arrays[node.calls[0]], True)]
    for array in written:
        numbers = (array.offset, array.stride, array.count)
        cells += [emission.address(array.buffer), *map(Cell, numbers)]
    cells += [Cell(0)] * 4 * (part_arrays(emission.placement.moving) - len(written))
    launch = arrays_launch(emission.kernel(ARRAYS_KERNEL), max(array.count for array in written))
    slots = emission.owners.kernel(ARRAYS_KERNEL, node, ())
    return (emission.add_kernel(graph, before, launch, cells, slots).node,)


def add_allocation(
    emission: Emission, graph: Any, node: AllocationNode, before: Before
) -> tuple[Any, ...]:
    """The node is there since memory was placed: nodes get addresses in what it allocates."""
    scratch = emission.placement.scratch
    assert scratch is not None
    assert scratch.nbytes == node.nbytes
    return (scratch.node,)


def add_free(emission: Emission, graph: Any, node: FreeNode, before: Before) -> tuple[Any, ...]:
    """Add the node that frees scratch."""
    scratch = emission.placement.scratch
    assert scratch is not None
    add = partial(emission.driver.add_free, graph, before.nodes, scratch)
    emission.definition.add(freeing(node.nbytes), "mem_free", add)
    return ()
