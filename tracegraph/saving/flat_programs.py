"""Programs for C: one program of an exported function as the file that the C loader reads."""

from __future__ import annotations

from collections.abc import Sequence

from tracegraph import tree
from tracegraph.errors.keywords import required_int
from tracegraph.saving.entries import SavedProgram
from tracegraph.saving.targets import traced_for_gpus
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.program_function import StoredTarget


def flat_program(
    signature: Signature,
    saved: Sequence[SavedProgram],
    arch: str,
    number: int | None,
    libraries: bool,
) -> bytes:
    """The file of a program, by its number; from its target for the architecture, if it has one.

    Raises:
        TypeError: the number is none.
        ValueError: there is no program of the number, or there are several and none is chosen.
        UnsavableError: it has what C cannot have; the message has the line.
        RuntimeError: it does not compile, or there is no compiler.
    """
    if number is None and len(saved) > 1:
        raise ValueError(
            f"{signature.function} has {len(saved)} programs, and a file for C has one: choose it "
            "by program=, the number of its types in the list `types`"
        )
    chosen = 0 if number is None else required_int("program", number, "the number of a program")
    if not 0 <= chosen < len(saved):
        raise ValueError(
            f"{signature.function} has {len(saved)} program(s), counted from 0; there is no "
            f"program={number}"
        )
    entry = saved[chosen]
    key = entry.key()
    return compiler().flat_file_of(
        _target(entry, signature, arch, libraries),
        signature.paths(key.structure),
        tree.paths(entry.result_structure(key), "result"),
    )


def _target(entry: SavedProgram, signature: Signature, arch: str, libraries: bool) -> StoredTarget:
    known = None if entry.targets is None else entry.targets.by_arch.get(arch)
    if known is not None and libraries:
        return known
    traced = traced_for_gpus(entry, signature)
    if libraries:
        plan = traced.lower().plan
    else:
        donated = signature.donated_leaves(traced.key.structure)
        plan = compiler().plan_without_libraries(traced.optimized, donated)
    return compiler().target_of(plan, arch)
