"""ProgramFunction: a function that is known by its programs, instead of being traced."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tracegraph import tree
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.argument_ranges import ArgumentRange
from tracegraph.ir.program import Program
from tracegraph.ir.types import ArrayType
from tracegraph.staging.calls.signature import CallKey, Signature


@dataclass(frozen=True, slots=True, eq=False)
class StoredTarget:
    """A program compiled for the devices of one architecture: a recipe as a document, and the code
    and constants that it names.
    """

    recipe: Any
    data: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, eq=False)
class StoredProgram:
    """A program with targets, by architecture: what calls need of it, and `program` once it is
    asked for.
    """

    program: Callable[[], Program]
    structure: tree.Structure
    results: tuple[ArrayType, ...]
    ranges: tuple[ArgumentRange, ...]
    targets: Mapping[str, StoredTarget]


class ProgramFunction(ABC):
    """Base of callables for `Jitted` whose programs exist, such as those of a file.

    Called while a function is traced, they record the equations of a program.
    """

    @abstractmethod
    def program_for(self, signature: Signature, key: CallKey) -> tuple[Program, tree.Structure]:
        """The program for a call, and the structure of its result.

        Raises:
            ArgumentTypesError: there is none for these types.
        """

    def stored_for(self, signature: Signature, key: CallKey) -> StoredProgram | None:
        """The program for a call, if it has targets; raises as `program_for`."""
        return None
