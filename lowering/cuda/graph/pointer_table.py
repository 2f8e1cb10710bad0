"""Pointer table: addresses in device memory that bodies read, and the root kernels that write them.

Each kernel writes a part of the table from its parameters, which calls update.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.plan.launch_graph import table_parts
from lowering.plan.nests.buffer import Buffer
from lowering.plan.target.hardware import PARAMETER_BYTES

TABLE_KERNEL = "tracegraph_table"


def entries(indirect: Sequence[Buffer]) -> dict[Buffer, int]:
    """The offset of each buffer's entry in the table, in bytes."""
    return {buffer: PARAMETER_BYTES * number for number, buffer in enumerate(indirect)}


def part_words(indirect: Sequence[Buffer]) -> int:
    """The entries that each kernel writes; some of the last part are padding."""
    return max(map(len, table_parts(indirect)), default=0)


def table_bytes(indirect: Sequence[Buffer]) -> int:
    """The size of the table."""
    return PARAMETER_BYTES * part_words(indirect) * len(table_parts(indirect))


def table_source(indirect: Sequence[Buffer]) -> str:
    """CUDA C++ of the kernel, for one thread."""
    numbers = range(part_words(indirect))
    parameters = "".join(f",\n    unsigned long long a{number}" for number in numbers)
    stores = "".join(f"  table[{number}] = a{number};\n" for number in numbers)
    return (
        f'extern "C" __global__ void __launch_bounds__(1) {TABLE_KERNEL}('
        f"\n    unsigned long long* table{parameters}) {{\n  tg_launch_dependents();\n{stores}}}\n"
    )
