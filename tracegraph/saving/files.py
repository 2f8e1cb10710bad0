"""Files of saved functions: written, and read with all that was said checked."""

from __future__ import annotations

import copyreg
import os
from pathlib import Path
from typing import Any

import numpy as np

from tracegraph.errors import DamagedFileError, MalformedProgramError, MalformedTargetError
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Program
from tracegraph.saving.container import SavedContainer
from tracegraph.saving.entries import SavedProgram, SavedTargets
from tracegraph.saving.exported import Exported
from tracegraph.saving.packing import write_whole
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.program_function import Target


@entry_point
def save(exported: Exported, path: str | os.PathLike[str]) -> None:
    """Write an exported function to a file, in place of what was there.

    The file is a zip of JSON and of constants as raw little-endian arrays. It holds no names of
    folders, and no code but that of targets. The same programs make the same bytes.

    Args:
        exported: what `tracegraph.export` gives.
        path: where to; ``.tg`` is the usual ending.

    Raises:
        TypeError: `exported` is something else, such as a function.
        OSError: the file cannot be written.

    >>> import tempfile
    >>> import tracegraph
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(tracegraph.export(lambda x: 2 * x, 1.0), f"{folder}/double.tg")
    ...     double = load(f"{folder}/double.tg")
    >>> float(double(4.0))
    8.0
    """
    if not isinstance(exported, Exported):
        raise TypeError(
            f"save takes what tracegraph.export gives, not a {type(exported).__qualname__}; write "
            "tracegraph.save(tracegraph.export(function, *arguments), path)"
        )
    write_whole(bytes(exported), path)


@entry_point
def load(
    source: str | os.PathLike[str] | bytes, device: str | None = None, *, trusted: bool = True
) -> Exported:
    """The exported function of a file.

    Programs are data, of which nothing is run or imported: they are checked, each operation by its
    own type rule. Registered dataclasses and namedtuples are found by name.

    The targets of a file, which `Exported.add_target` makes, are machine code: calls on a GPU of
    their architecture run it as it is, on memory that this process can reach. So a file with
    targets is trusted as a library is. With ``trusted=False`` its targets are left out, and the
    programs are planned and compiled here. A program beside targets is checked once it is needed.

    Args:
        source: a path, or the bytes of a file.
        device: where it runs, as for `jit`.
        trusted: whether the machine code of targets may run.

    Raises:
        DamagedFileError: it is no such file, or was truncated or changed.
        MalformedProgramError: a program in it is not well formed.
        MalformedTargetError: what it says of targets is not well formed. Their graphs are checked
            by the first call.
        ExportVersionError: it needs a newer tracegraph. All are `ExportFormatError`.
        OSError: the file cannot be read.

    >>> import tracegraph
    >>> saved = bytes(tracegraph.export(lambda x: 2 * x, 1.0))
    >>> float(load(saved)(4.0))
    8.0
    """
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    container = SavedContainer(data)
    manifest = container.manifest
    name, programs = manifest.get("name"), manifest.get("programs")
    if not isinstance(name, str) or not isinstance(programs, list) or not programs:
        raise DamagedFileError("its manifest has no programs")
    signature = _signature_from_json(manifest.get("signature"))
    entries = [_entry(container, written, trusted) for written in programs]
    return Exported(name, signature, entries, device)


def _entry(container: SavedContainer, written: Any, trusted: bool) -> SavedProgram:
    match written:
        case {"program": str(name), "constants": list(names)}:
            pass
        case _:
            raise DamagedFileError("its manifest does not name a program")
    targets = _targets(container, written.get("targets")) if trusted else None

    def read() -> Program:
        from tracegraph.ir.stored.reading import (  # imports all operations
            constant_types,
            program_from_json,
        )

        document = container.json(name)
        types = constant_types(document)
        if len(types) != len(names):
            count = len(types)
            raise MalformedProgramError(f"it has {count} constants, and {len(names)} are named")
        arrays = []
        for type_, each in zip(types, names, strict=True):
            data = container.entry(each)
            if len(data) != type_.nbytes:
                raise MalformedProgramError(f"the constant {each!r} has not the bytes of {type_}")
            arrays.append(np.frombuffer(data, type_.dtype).reshape(type_.shape))
        return program_from_json(document, arrays)

    return SavedProgram.from_json(written, read, targets)


def _targets(container: SavedContainer, written: Any) -> SavedTargets | None:
    """The targets of a program; None if it has none."""
    if written is None:
        return None
    match written:
        case {"files": dict(files)} if files:
            by_arch = {arch: _target(container, each) for arch, each in files.items()}
            return SavedTargets.from_json(written, by_arch)
    raise MalformedTargetError("its manifest does not name the files")


def _target(container: SavedContainer, written: Any) -> Target:
    match written:
        case {"recipe": str(recipe), "data": dict(data)}:
            found = {name: container.entry(label) for name, label in data.items()}
            return Target(container.json(recipe), found)
    raise MalformedTargetError("its manifest does not name the files")


def _signature_from_json(written: Any) -> Signature:
    match written:
        case {
            "function": str(function),
            "names": list(names),
            "rest": str(rest),
            "static": list(static),
            "donated": list(donated),
        } if _are_names([*names, rest]) and _are_places([*static, *donated]):
            pass
        case _:
            raise DamagedFileError("its manifest has no signature")
    return Signature(function, tuple(names), rest, frozenset(static), frozenset(donated))


def _are_names(given: list[Any]) -> bool:
    """Whether these can be names of parameters."""
    are = all(isinstance(name, str) and name.isidentifier() for name in given)
    return are and len(set(given)) == len(given)


def _are_places(given: list[Any]) -> bool:
    return all(type(each) in (int, str) for each in given)


def _pickled(exported: Exported) -> tuple[Any, ...]:
    return load, (bytes(exported),)


copyreg.pickle(Exported, _pickled)
