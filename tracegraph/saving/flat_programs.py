"""Programs for C: one program of an exported function as the file that the C loader reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tracegraph import tree
from tracegraph.saving.entries import SavedProgram
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import compiler


def flat_program(
    signature: Signature,
    saved: Sequence[SavedProgram],
    arch: str,
    program: int | None,
    libraries: bool,
) -> bytes:
    """The file of a program, by its number.

    Raises:
        ValueError: `arch` names no architecture; or there is no program of the number, or several
            and none is chosen.
        UnsavableError: as `Compiler.flat_file`.
    """
    if not re.fullmatch(r"sm_\d{2,3}", arch):
        raise ValueError(f"an architecture is a name such as 'sm_90', not {arch!r}")
    if program is None and len(saved) > 1:
        raise ValueError(
            f"{signature.function} has {len(saved)} programs, and a file for C has one: choose it "
            "by program=, the number of its types in the list `types`"
        )
    number = program or 0
    if not 0 <= number < len(saved):
        raise ValueError(f"{signature.function} has {len(saved)} programs, and none is {program}")
    entry = saved[number]
    key = entry.key()
    return compiler().flat_file(
        entry.program,
        arch,
        signature.donated_leaves(key.structure),
        inputs=signature.paths(key.structure),
        outputs=tree.paths(entry.result_structure(key), "result"),
        libraries=libraries,
    )

