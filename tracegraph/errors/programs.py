"""Programs that are not well formed: defects of this package, not of the traced function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracegraph.ir.program import Eqn, Program


class VerificationError(Exception):
    """A program is not well formed: a defect of a pass or of an op, not of the traced function."""

    def __init__(self, program: Program, problem: str, eqn: Eqn | None) -> None:
        from tracegraph.ir.text import (
            program_text,  # imports the op record, which imports this module
        )

        text = program_text(program, mark=eqn)
        super().__init__(f"program {program.name}: {problem}\n{text}")


class ResultTypeError(Exception):
    """The reference of an op gave results of other types than its type rule says."""

    def __init__(self, eqn: Eqn, got: Sequence[str]) -> None:
        needed = ", ".join(str(v.type) for v in eqn.outputs)
        where = f" # {eqn.source}" if eqn.source else ""
        operands = ", ".join(str(a.type) for a in eqn.operands)
        attrs = f"[{', '.join(f'{k}={v}' for k, v in eqn.attrs.items())}]" if eqn.attrs else ""
        super().__init__(
            f"reference of {eqn.op.name}{attrs} ({operands}) gave ({', '.join(got)}), its type "
            f"rule says ({needed}){where}"
        )
