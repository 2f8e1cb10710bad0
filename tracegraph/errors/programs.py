"""Programs that are not well formed: defects of this package, not of the traced function."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.user_source import Source

__all__ = ["ResultTypeError", "VerificationError"]


class VerificationError(Exception):
    """A program is not well formed: a defect of a pass or of an op, not of the traced function."""

    def __init__(self, program: str, problem: str, text: str) -> None:
        super().__init__(f"program {program}: {problem}\n{text}")


class ResultTypeError(Exception):
    """The reference of an op gave results of other types than its type rule says."""

    def __init__(
        self, applied: str, got: Sequence[str], needed: Sequence[str], source: Source | None
    ) -> None:
        where = f" # {source}" if source else ""
        super().__init__(
            f"reference of {applied} gave ({', '.join(got)}), its type "
            f"rule says ({', '.join(needed)}){where}"
        )
