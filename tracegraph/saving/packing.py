"""Exported functions as the bytes of files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import numpy as np

from tracegraph.ir.program import Program
from tracegraph.ir.stored.writing import program_to_json, text_of
from tracegraph.saving.container import packed
from tracegraph.saving.entries import SavedProgram
from tracegraph.saving.functions.writing import FunctionsWriter
from tracegraph.staging.calls.signature import Signature
from tracegraph.version import __version__

FUNCTIONS = "functions.json"
"""The entry of the functions and kernels of the user's, if there are any."""


def file_of(name: str, signature: Signature, saved: Sequence[SavedProgram]) -> bytes:
    """The file of a function with these programs."""
    entries: dict[str, bytes] = {}

    def stored(program: Program) -> list[str]:
        """The names of entries with the constants of a program."""
        constants = []
        for constant in program.constants:
            data = np.ascontiguousarray(constant).tobytes()
            label = f"constants/{sha256(data).hexdigest()[:32]}.bin"
            entries[label] = data
            constants.append(label)
        return constants

    functions, programs = FunctionsWriter(stored), []
    for number, entry in enumerate(saved):
        label = f"program/{number}.json"
        constants = stored(entry.program)
        entries[label] = text_of(program_to_json(entry.program, functions.number))
        programs.append({"program": label, "constants": constants, **entry.to_json()})
    manifest = {
        "made_by": __version__,
        "name": name,
        "signature": _signature_to_json(signature),
        "programs": programs,
    }
    if functions.documents:
        entries[FUNCTIONS] = text_of(functions.documents)
        manifest["code"] = functions.labels
    return packed(manifest, entries)


def _signature_to_json(signature: Signature) -> dict[str, Any]:
    return {
        "function": signature.function,
        "names": list(signature.names),
        "rest": signature.rest,
        "static": sorted(signature.static, key=str),
        "donated": sorted(signature.donated, key=str),
    }


def write_whole(data: bytes, path: str | os.PathLike[str]) -> None:
    """Write a file in place of what was there: readers see all of it, or what was there before.

    Raises:
        OSError: it cannot be written.
    """
    target = Path(path)
    number, name = mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
