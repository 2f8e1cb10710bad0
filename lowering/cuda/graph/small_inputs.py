"""Small inputs by value: scalars and short arrays that travel in the parameters of one root node.

Each small input has a slot at a fixed address. A host value goes into the parameters of the load
kernel, which writes all slots at the start of every launch. A device array is read in place, and
its slot is not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowering.cuda.interface import Words
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.rounding import ceil_div
from lowering.plan.target.hardware import PARAMETER_BYTES
from tracegraph.generated.dataclass import dataclass

LOAD_KERNEL = "tracegraph_load"


@dataclass(frozen=True, slots=True)
class ValueSlot:
    """One input's words, in the memory of the slots and among the kernel's parameters.

    Parameter 0 of the load kernel is the address of the slots.
    """

    word: int
    parameter: int
    words: int

    @property
    def offset(self) -> int:
        """Bytes from the start of the slots; a multiple of 16."""
        return self.word * PARAMETER_BYTES


@dataclass(slots=True, eq=False)
class Values:
    """The parameters of a load kernel.

    `stale` says whether words were written that some executable's node lacks. It is set before they
    are: after an interrupt in between, the next call finds the word unchanged.
    """

    words: Words
    stale: bool = False


def value_slots(inputs: Sequence[Buffer]) -> dict[Buffer, ValueSlot]:
    """The slots of the inputs that are passed by value, one behind the other."""
    slots: dict[Buffer, ValueSlot] = {}
    word, parameter = 0, 1
    for buffer in inputs:
        words = ceil_div(buffer.type.nbytes, PARAMETER_BYTES)
        slots[buffer] = ValueSlot(word, parameter, words)
        word += words + words % 2
        parameter += words
    return slots


def slots_bytes(slots: Sequence[ValueSlot]) -> int:
    """The size of the memory that holds all slots."""
    return max(
        (PARAMETER_BYTES * (slot.word + slot.words + slot.words % 2) for slot in slots), default=0
    )


def parameter_count(slots: Sequence[ValueSlot]) -> int:
    """The number of parameters of the load kernel."""
    return 1 + sum(slot.words for slot in slots)


def load_source(slots: Sequence[ValueSlot]) -> str:
    """CUDA C++ of the load kernel, for one thread."""
    places = [(s.parameter + i, s.word + i) for s in slots for i in range(s.words)]
    parameters = "".join(f",\n    unsigned long long v{number}" for number, _ in places)
    stores = "".join(f"  slots[{word}] = v{number};\n" for number, word in places)
    return (
        f'extern "C" __global__ void __launch_bounds__(1) {LOAD_KERNEL}('
        f"\n    unsigned long long* slots{parameters}) {{\n  tg_launch_dependents();\n{stores}}}\n"
    )
