"""Partition: which functions of a Plan are compiled together; units compile side by side."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from lowering.plan.nests.rounding import ceil_div

SMALL_UNIT = 3_000
"""Characters up to which a unit is not worth a thread of its own.

NVRTC needs 20 to 45 ms for what every unit begins with, and as long again for each 1,500 to 3,000
characters of kernels.
"""


def partition(functions: Mapping[str, str], workers: int) -> list[dict[str, str]]:
    """Split functions, by name, into units that up to about `workers` threads compile.

    The units are of similar length: first fit, the longest function first (Johnson et al., 1974).

    >>> [list(unit) for unit in partition({"a": 3000 * "a", "b": "b", "c": 3000 * "c"}, 2)]
    [['a', 'b'], ['c']]
    """
    lengths = {name: len(text) for name, text in functions.items()}
    most = max(chain([SMALL_UNIT], lengths.values(), [ceil_div(sum(lengths.values()), workers)]))
    units: list[set[str]] = []
    taken: list[int] = []
    for name in sorted(lengths, key=lambda name: -lengths[name]):
        rooms = (i for i, length in enumerate(taken) if length + lengths[name] <= most)
        unit = next(rooms, len(units))
        if unit == len(units):
            units.append(set())
            taken.append(0)
        units[unit].add(name)
        taken[unit] += lengths[name]
    return [{name: text for name, text in functions.items() if name in unit} for unit in units]
