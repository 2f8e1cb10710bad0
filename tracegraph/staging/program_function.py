"""ProgramFunction: a function that is known by its programs, instead of being traced."""

from __future__ import annotations

from abc import ABC, abstractmethod

from tracegraph import tree
from tracegraph.ir.program import Program
from tracegraph.staging.calls.signature import CallKey, Signature


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
