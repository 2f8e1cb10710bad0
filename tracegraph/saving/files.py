"""Files of saved functions: written, and read with all that was said checked."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tracegraph.devices import canonical_device
from tracegraph.errors import (
    DamagedFileError,
    MalformedProgramError,
    MalformedTargetError,
    UntrustedCodeError,
)
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point
from tracegraph.ir.program import Program
from tracegraph.saving.container import FUNCTIONS, SavedContainer
from tracegraph.saving.entries import SavedProgram, SavedTargets
from tracegraph.saving.exported import Exported
from tracegraph.staging import gc_pause
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.program_function import StoredTarget

if TYPE_CHECKING:
    from tracegraph.saving.functions.records import Made


@entry_point
def save(exported: Exported, path: str | os.PathLike[str]) -> None:
    """Write an exported function to a file, in place of what was there.

    The file is a zip of JSON and of constants as raw little-endian arrays, and of machine code if
    it has targets. It holds no names of folders. The same programs make the same bytes.

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
    from tracegraph.saving.packing import write_whole

    write_whole(bytes(exported), path)


@entry_point
def load(
    source: str | os.PathLike[str] | bytes, device: str | None = None, trusted: bool = True
) -> Exported:
    """The exported function of a file.

    Nothing of a file is run, and nothing imported: its programs are read as data and checked, each
    operation by its own type rule. Registered dataclasses and namedtuples are found by name. But a
    file may hold code for GPUs, kernels of the user's or the targets of `Exported.add_target`,
    which runs when the function does, on memory that this process can reach.

    A program that has targets is read once something else than these is needed.

    Args:
        source: a path, or the bytes of a file.
        device: where it runs, as for `jit`.
        trusted: whether a file may hold code, because you trust its author as you trust that of a
            library that you install.

    Raises:
        TypeError: `device` is not a string, or `trusted` neither True nor False.
        ValueError: there is no such device.
        UntrustedCodeError: it holds code, and is not trusted.
        DamagedFileError: it is no such file, or was truncated or changed.
        MalformedProgramError: a program in it is not well formed.
        MalformedTargetError: what it says of targets is not well formed; their graphs are checked
            when one of them is to run.
        ExportVersionError: it needs a newer tracegraph, or an older one. All these are
            `ExportFormatError`.
        OSError: the file cannot be read.

    >>> import tracegraph
    >>> saved = bytes(tracegraph.export(lambda x: 2 * x, 1.0))
    >>> float(load(saved)(4.0))
    8.0
    """
    chosen = None if device is None else canonical_device(device)
    required_bool("trusted", trusted)
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    with gc_pause.paused():
        return _loaded(SavedContainer(data), chosen, trusted)


def _loaded(container: SavedContainer, chosen: str | None, trusted: bool) -> Exported:
    """The function of a container; raises as `load`."""
    manifest = container.manifest
    name, programs = manifest.get("name"), manifest.get("programs")
    if not isinstance(name, str) or not isinstance(programs, list) or not programs:
        raise DamagedFileError("its manifest has no programs")
    if not trusted:
        _refuse_code(container)
    if chosen is not None and any(map(_is_of_target, container.names)):
        compiler().open_early(chosen)  # beside what runs until the first call
    signature = _signature_from_json(manifest.get("signature"))
    functions = cache(partial(_functions, container))
    entries = [_entry(container, written, functions) for written in programs]
    return Exported(name, signature, entries, chosen)


def _refuse_code(container: SavedContainer) -> None:
    """Raise UntrustedCodeError if a file holds code."""
    holds = any(name == FUNCTIONS or _is_of_target(name) for name in container.names)
    if "code" in container.manifest or holds:
        listed = container.manifest.get("code")
        what = listed if isinstance(listed, list) else []
        raise UntrustedCodeError([str(each) for each in what] or ["machine code"])


def _is_of_target(name: str) -> bool:
    """Whether an entry belongs to a target."""
    return name.startswith("target/")


def _functions(container: SavedContainer) -> Sequence[Made]:
    """The functions and kernels of the user's."""
    if FUNCTIONS not in container.names:
        return ()
    from tracegraph.saving.functions.reading import functions_from_json

    return functions_from_json(container.json(FUNCTIONS), partial(_constants, container))


def _constants(
    container: SavedContainer, document: Any, names: Sequence[Any]
) -> list[np.ndarray[Any, Any]]:
    """The constants of a program, from the entries of these names."""
    from tracegraph.ir.stored.reading import constant_types

    types = constant_types(document)
    if len(types) != len(names):
        raise MalformedProgramError(f"it has {len(types)} constants, and {len(names)} are named")
    arrays = []
    for type_, each in zip(types, names, strict=True):
        data = container.entry(each)
        if len(data) != type_.nbytes:
            raise MalformedProgramError(f"the constant {each!r} has not the bytes of {type_}")
        arrays.append(np.frombuffer(data, type_.dtype).reshape(type_.shape))
    return arrays


def _entry(
    container: SavedContainer, written: Any, functions: Callable[[], Sequence[Made]]
) -> SavedProgram:
    match written:
        case {"program": str(name), "constants": list(names)}:
            pass
        case _:
            raise DamagedFileError("its manifest does not name a program")

    def read() -> Program:
        from tracegraph.ir.stored.reading import program_from_json  # it imports all operations

        document = container.json(name)
        return program_from_json(document, _constants(container, document, names), functions())

    return SavedProgram.from_json(written, read, _targets(container, written.get("targets")))


def _targets(container: SavedContainer, written: Any) -> SavedTargets | None:
    """The targets of a program; None if it has none."""
    if written is None:
        return None
    match written:
        case {"files": dict(files)} if files:
            by_arch = {arch: _target(container, each) for arch, each in files.items()}
            return SavedTargets.from_json(written, by_arch)
    raise MalformedTargetError("its manifest does not name the files")


def _target(container: SavedContainer, written: Any) -> StoredTarget:
    match written:
        case {"recipe": str(recipe), "data": dict(data)}:
            found = {name: container.entry(label) for name, label in data.items()}
            return StoredTarget(container.json(recipe), found)
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
