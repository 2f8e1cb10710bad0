"""Units: functions of CUDA C++ that are compiled together, with their text and their launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from itertools import chain

from lowering.codegen.kernel_code import KernelCode
from lowering.codegen.preamble import preamble
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.nodes import Node
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import CUSTOM_NAMESPACE

SMALL_UNIT = 3_000
"""Characters up to which a unit is not worth a thread of its own.

NVRTC needs 20 to 45 ms for what every unit begins with, and as long again for each 1,500 to 3,000
characters of kernels.
"""


@dataclass(frozen=True, slots=True)
class Unit:
    """The functions of a Plan by name, and the one that each kernel node launches.

    `sequences` has the nodes of other kinds, each with kernels that run one after the other.
    """

    functions: Mapping[str, str]
    kernels: Mapping[Node, KernelCode]
    sequences: Mapping[Node, tuple[KernelCode, ...]] = field(default_factory=dict)
    definitions: tuple[str, ...] = ()
    """What users' elementwise functions need in each unit that has one."""

    @property
    def source(self) -> str:
        """All functions as one translation unit."""
        return translation_unit(self.functions.values(), self.definitions)

    def codes(self, node: Node) -> tuple[KernelCode, ...]:
        """The kernels that a node is launched as, in order.

        Raises:
            NotImplementedError: no code is written for its class.
        """
        if node in self.kernels:
            return (self.kernels[node],)
        if node not in self.sequences:
            raise NotImplementedError(
                f"nodes of kind {node.kind!r} cannot be emitted: enter their class in NODE_CODE or "
                "EMITTERS"
            )
        return self.sequences[node]

    @property
    def launches(self) -> Iterator[KernelCode]:
        """Every launch of a kernel."""
        yield from self.kernels.values()
        for codes in self.sequences.values():
            yield from codes


def translation_unit(functions: Iterable[str], definitions: Iterable[str] = ()) -> str:
    """CUDA C++ that can be compiled: functions behind what they need."""
    text = "\n".join(functions)
    if CUSTOM_NAMESPACE in text:
        text = "\n".join((*definitions, text))
    return f"{preamble(text)}\n{text}"


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
