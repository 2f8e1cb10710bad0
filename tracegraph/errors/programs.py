"""Programs that are not well formed, by defects of this package or of files; what no file holds."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph.user_source import Source

__all__ = [
    "DamagedFileError", "ExportFormatError", "ExportVersionError", "MalformedProgramError",
    "MalformedTargetError", "ResultTypeError", "UnknownTreeWarning", "UnsavableError",
    "UntrustedCodeError",
    "VerificationError",
]  # fmt: skip


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


class UnsavableError(TypeError):
    """A function holds what cannot be written to a file: Python that it calls, or a kernel."""


class ExportFormatError(ValueError):
    """A file of saved programs cannot be read; the subclasses say why."""


class DamagedFileError(ExportFormatError):
    """A file is not one of saved programs, or was truncated or changed."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"this is no file that tracegraph.save has written: {problem}")


class UntrustedCodeError(ExportFormatError):
    """A file holds code, and was loaded as one that is not trusted."""

    def __init__(self, what: Sequence[str]) -> None:
        super().__init__(
            f"the file is not trusted and holds code for GPUs: {', '.join(what)}; if you trust its "
            "author as that of a library that you install, load it with trusted=True"
        )


class ExportVersionError(ExportFormatError):
    """A file needs a newer tracegraph, or an older one: `is_older` says so of the file."""

    def __init__(self, needed: str, has: str, *, is_older: bool = False) -> None:
        instead = "save it again with this one" if is_older else "install a newer one"
        super().__init__(f"the file needs {needed}; this tracegraph has {has}: {instead}")


class MalformedProgramError(ExportFormatError):
    """A file holds a program that is not well formed."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"a program of the file is not well formed: {problem}")


class MalformedTargetError(ExportFormatError):
    """A file holds a target, a program compiled for some devices, that is not well formed."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"a target of the file is not well formed: {problem}")


class UnknownTreeWarning(UserWarning):
    """A saved function returns a class that is not registered here: a tuple takes its place."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the saved function returns the dataclass {name}, which is not registered here: the "
            "result has a tuple of its fields; define it, with @tracegraph.register_dataclass, "
            "before the first call"
        )
