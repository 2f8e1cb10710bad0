"""Compilation: kernel source to cubin, by NVRTC behind a disk cache. No GPU is needed.

The key of an entry is made of the source, the options and the compiler. A truncated or damaged
entry is compiled again. Making the key does not load the compiler, which would take longer than all
else for a cached kernel.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from lowering.disk_cache.location import CACHE_VARIABLE, KeepsNothingError, code_store
from lowering.disk_cache.store import CodeStore

OPTIONS: dict[str, Any] = {"std": "c++17", "fma": False, "minimal": True}
"""`minimal` leaves out declarations of textures and of the CUDA runtime, which takes 4 ms less."""

_PACKAGES = ("cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")

_CUSTOM_OPTIONS: dict[str, Any] = {"std": "c++17"}
"""Options of users' own units: nvcc's, which contracts multiplications and additions."""


def cubin(source: str, arch: str) -> Any:
    """Compile CUDA C++ for `arch` (such as ``"sm_90"``), or take the result from the cache.

    Multiplications and additions are not contracted: NumPy rounds both.

    Returns:
        A `cuda.core.ObjectCode` holding the cubin.

    Raises:
        RuntimeError: the source does not compile; the compiler's log is in the message.
    """
    return _from_cache(source, arch, OPTIONS)


def kept_functions(functions: Mapping[str, str], arch: str) -> list[tuple[list[str], Any]]:
    """The code on disk of functions, by name, each given as the source of a unit of its own.

    A function is found in whichever unit it was compiled: with others, on a machine with more
    processors, for another program. Returned are names with the code that has them.
    """
    store = program_cache()
    if store is None:
        return []
    names: dict[bytes, list[str]] = {}
    for name, source in functions.items():
        unit = store.get(_function_key(source, arch))
        if unit is not None:
            names.setdefault(unit, []).append(name)
    codes = [(each, store.get(unit)) for unit, each in names.items()]
    return [(each, object_code(code)) for each, code in codes if code is not None]


def note_functions(functions: Iterable[str], source: str, arch: str) -> None:
    """Note that functions, each given as the source of a unit of its own, are in this unit."""
    store = program_cache()
    if store is not None:
        unit = _key(source, arch, OPTIONS)
        for each in functions:
            _keep(store, _function_key(each, arch), unit)


def _function_key(source: str, arch: str) -> bytes:
    return hashlib.sha256(b"the unit of " + _key(source, arch, OPTIONS)).digest()


def object_code(code: bytes) -> Any:
    """A cubin as an `ObjectCode`."""
    from cuda.core import ObjectCode

    return ObjectCode.from_cubin(code)


def custom_cubin(source: str, arch: str, name: str, include_paths: Sequence[str] = ()) -> Any:
    """The same for a unit that a user wrote, which the compiler's log calls `name`.

    With `include_paths` nothing is kept: headers may change.
    """
    options = {**_CUSTOM_OPTIONS, "name": name}
    if include_paths:
        return _compiled(source, arch, {**options, "include_path": list(include_paths)})
    return _from_cache(source, arch, options)


def _from_cache(source: str, arch: str, options: Mapping[str, Any]) -> Any:
    key = _key(source, arch, options)
    store = program_cache()
    code = store.get(key) if store is not None else None
    if code is not None:
        return object_code(code)
    compiled = _compiled(source, arch, options)
    if store is not None:
        _keep(store, key, bytes(compiled.code))
    return compiled


def _compiled(source: str, arch: str, options: Mapping[str, Any]) -> Any:
    from cuda.core import Program, ProgramOptions

    try:
        program = Program(source, "c++", options=ProgramOptions(arch=arch, **options))
    except RuntimeError:
        compiler_version(arch)  # raises if that is why
        raise
    try:
        return program.compile("cubin")
    except Exception as error:
        log = str(error).replace("\0", "").rstrip()
        raise RuntimeError(f"the kernels do not compile for {arch}: {log}") from error
    finally:
        program.close()
        del program  # in a cycle with the error's traceback, its finalizer fails


def usable_processors() -> int:
    """The processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _key(source: str, arch: str, options: Mapping[str, Any]) -> bytes:
    parts = (arch, repr(sorted(options.items())), *compiler_identity(), source)
    return hashlib.sha256("\0".join(parts).encode()).digest()


@cache
def compiler_identity() -> tuple[str, ...]:
    """What identifies an NVRTC: packages with their versions, and toolkit directories."""
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    toolkits = (os.environ.get(variable) for variable in _TOOLKIT_VARIABLES)
    return (*found, *(str(Path(toolkit).resolve()) for toolkit in toolkits if toolkit))


def compiler_version(arch: str) -> tuple[int, int]:
    """The version of CUDA that the compiler is of, which compiles for an architecture.

    Raises:
        RuntimeError: there is no compiler, or it does not know the architecture.
    """
    from cuda.bindings import nvrtc  # noqa: TID251 - the compiler, which needs no driver

    try:
        _, major, minor = nvrtc.nvrtcVersion()
    except RuntimeError:
        raise RuntimeError(
            f"NVRTC, which compiles kernels for {arch}, was not found: install it by "
            "pip install 'tracegraph[cu13]', or install a CUDA toolkit"
        ) from None  # it has frames of cuda.bindings alone
    _, known = nvrtc.nvrtcGetSupportedArchs()
    names = [f"sm_{number}" for number in known]
    if arch not in names:
        raise RuntimeError(
            f"NVRTC {major}.{minor} does not compile for {arch}, but for {', '.join(names)}"
        )
    return int(major), int(minor)


def program_cache() -> CodeStore | None:
    """The cache, or None: where it is switched off, and with a warning, where none can be made, or
    others could write to it.
    """
    try:
        return code_store()
    except KeepsNothingError:
        return None
    except (OSError, RuntimeError) as error:  # of a user without a home, as in some containers
        warnings.warn(
            f"compiled kernels are not kept: {error}; set {CACHE_VARIABLE} to a directory that "
            "you, and nobody else, can write to",
            stacklevel=3,
        )
        return None


def _keep(store: CodeStore, key: bytes, code: bytes) -> None:
    try:
        store.put(key, code)
    except OSError as error:
        warnings.warn(f"a compiled kernel was not kept: {error}", stacklevel=3)
