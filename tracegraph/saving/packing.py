"""Exported functions as the bytes of files."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import numpy as np

from tracegraph.ir.program import Program
from tracegraph.ir.stored.writing import program_to_json, text_of
from tracegraph.saving.container import FUNCTIONS, packed
from tracegraph.saving.entries import SavedProgram, SavedTargets
from tracegraph.saving.functions.writing import FunctionsWriter
from tracegraph.staging.calls.signature import Signature
from tracegraph.version import __version__


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

    functions, programs, archs = FunctionsWriter(stored), [], set[str]()
    for number, entry in enumerate(saved):
        label = f"program/{number}.json"
        constants = stored(entry.program)
        entries[label] = text_of(program_to_json(entry.program, functions.number))
        written = {"program": label, "constants": constants, **entry.to_json()}
        if entry.targets is not None:
            written["targets"] = _targets(entry.targets, number, entries)
            archs |= entry.targets.by_arch.keys()
        programs.append(written)
    manifest = {
        "made_by": __version__,
        "name": name,
        "signature": _signature_to_json(signature),
        "programs": programs,
    }
    if functions.documents:
        entries[FUNCTIONS] = text_of(functions.documents)
    code = [*functions.labels, *(f"target {arch}" for arch in sorted(archs))]
    if code:
        manifest["code"] = code
    return packed(manifest, entries)


def _targets(targets: SavedTargets, number: int, entries: dict[str, bytes]) -> dict[str, Any]:
    """What a manifest has of the targets of a program, whose code and constants become entries."""
    files: dict[str, Any] = {}
    for arch, target in sorted(targets.by_arch.items()):
        recipe = f"target/{arch}/{number}.json"
        entries[recipe] = text_of(target.recipe)
        data = {name: _label(name, arch) for name in sorted(target.data)}
        entries.update({data[name]: target.data[name] for name in data})
        files[arch] = {"recipe": recipe, "data": data}
    return {**targets.to_json(), "files": files}


def _label(name: str, arch: str) -> str:
    """Where code and constants are: constants of all targets, and of programs, in one place."""
    return f"constants/{name}" if name.endswith(".bin") else f"target/{arch}/{name}"


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
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    try:
        number, name = mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:  # names the file that it could not make
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
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
