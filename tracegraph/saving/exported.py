"""Exported: the programs of a function, which is called as a jitted one."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracegraph import tree
from tracegraph.errors import ExportedTypesError
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.ir.op import find
from tracegraph.ir.program import Program, walk
from tracegraph.ir.types import ArrayType
from tracegraph.modes import process
from tracegraph.saving.entries import SavedProgram
from tracegraph.saving.inlining import inlined
from tracegraph.staging.calls.fast_call import MISS
from tracegraph.staging.calls.signature import CallKey, Signature
from tracegraph.staging.compiler import compiler
from tracegraph.staging.jitted import Jitted
from tracegraph.staging.program_function import ProgramFunction, StoredProgram
from tracegraph.tracing.trace import current_trace, outermost
from tracegraph.tracing.tracer import Tracer

if TYPE_CHECKING:
    from pathlib import Path

    from tracegraph.saving.functions.writing import FunctionsWriter
    from tracegraph.saving.targets import TargetSizes


class SavedFunction(ProgramFunction):
    """The programs of a function in place of the function."""

    def __init__(self, name: str, signature: Signature, entries: Sequence[SavedProgram]) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "tracegraph"
        self.__doc__ = f"The saved function {signature.function}."
        self.signature, self.entries = signature, tuple(entries)
        self.__signature__ = _parameters(signature)

    def program_for(self, signature: Signature, key: CallKey) -> tuple[Program, tree.Structure]:
        """As `ProgramFunction` has it.

        Raises:
            ExportedTypesError: there is none for these types.
        """
        entry = self._entry(signature, key)
        return entry.program, entry.result_structure(key)

    def _entry(self, signature: Signature, key: CallKey) -> SavedProgram:
        for entry in self.entries:
            if entry.fits(key):
                return entry
        there = [signature.shown(entry.key()) for entry in self.entries]
        raise ExportedTypesError(signature.function, signature.shown(key), there)

    def stored_for(self, signature: Signature, key: CallKey) -> StoredProgram | None:
        """As `ProgramFunction` has it."""
        entry = self._entry(signature, key)
        found = entry.targets
        if found is None:
            return None
        structure = entry.result_structure(key)
        return StoredProgram(
            lambda: entry.program, structure, found.results, found.ranges, found.by_arch
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record the equations of a program in the trace in progress; its results."""
        trace = current_trace()
        assert trace is not None
        types, named = tree.map(_type_alone, (args, kwargs))
        key = self.signature.bind(types, named, abstract=True).key
        program, structure = self.program_for(self.signature, key)
        leaves = self.signature.leaves(args, kwargs)
        return tree.unflatten(structure, inlined(trace, program, leaves))


def _type_alone(leaf: Any) -> Any:
    return leaf.type if isinstance(leaf, Tracer) else leaf


class Exported:
    """A function as its programs, for the types of arguments that were listed when it was exported.

    Made by `tracegraph.export` and `tracegraph.load`. It is called as a jitted function is, also
    while another function is traced: then its equations become part of that one, and derivatives,
    `vmap` and all else apply to them. It is pickled with all programs.

    >>> import tracegraph
    >>> double = tracegraph.export(lambda x: 2 * x, 1.0)
    >>> float(double(4.0)), [list(map(str, types)) for types in double.types]
    (8.0, [['~f64[]']])
    """

    def __init__(
        self,
        name: str,
        signature: Signature,
        entries: Sequence[SavedProgram],
        device: str | None = None,
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.entries = tuple(entries)
        self._function = function = SavedFunction(name, signature, entries)
        self.__signature__ = function.__signature__
        self.signature = signature
        self.jitted: Jitted[..., Any] = Jitted(function, signature, device, "kept", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for the types of these arguments.

        Raises:
            ExportedTypesError: there is none for these; an ArgumentTypesError that lists them.
        """
        try:
            jitted = self.jitted
            if not outermost and not process.entered:
                result = jitted.recent(args, kwargs)  # mostly it is, and saves a call in between
                if result is not MISS:
                    return result
            return jitted(*args, **kwargs)
        except BaseException as error:
            hide_frames(error)
            raise

    @property
    def programs(self) -> tuple[Program, ...]:
        """The programs, in the order in which their types were listed."""
        return tuple([entry.program for entry in self.entries])

    @property
    def types(self) -> tuple[tuple[ArrayType, ...], ...]:
        """For each program the types of the leaves of its arguments."""
        return tuple([entry.types for entry in self.entries])

    @property
    def requires(self) -> Mapping[str, int]:
        """The ops that the programs use, with the versions of their meaning."""
        eqns = (eqn for program in self.programs for eqn in walk(program.body))
        ops = {eqn.op.name: eqn.op.version for eqn in eqns if find(eqn.op.name) is eqn.op}
        return dict(sorted(ops.items()))

    @property
    def code(self) -> tuple[str, ...]:
        """The kernels and functions of the user's whose text the programs bring along, and the
        architectures that there is machine code for.

        A file with one is loaded only if it is `trusted`.
        """
        archs = {arch for e in self.entries if e.targets is not None for arch in e.targets.by_arch}
        return (*self._functions().labels, *(f"target {arch}" for arch in sorted(archs)))

    @property
    def gpu_only(self) -> Mapping[str, str]:
        """Those of `code` that run on GPUs alone, with why: their NumPy form cannot be traced.

        >>> import numpy as np
        >>> import tracegraph
        >>> reads = tracegraph.elementwise(
        ...     lambda x: np.array([float(each) for each in x]), cuda="{0} + 0"
        ... )
        >>> exported = tracegraph.export(lambda x: reads(x), 1.0)
        >>> list(exported.gpu_only) == list(exported.code)
        True
        """
        return self._functions().faults

    def _functions(self) -> FunctionsWriter:
        """The kernels and functions of the user's that the programs call, written as JSON."""
        from tracegraph.ir.stored.writing import program_to_json
        from tracegraph.saving.functions.writing import FunctionsWriter

        functions = FunctionsWriter()
        for program in self.programs:
            program_to_json(program, functions.number)
        return functions

    @property
    def constant_bytes(self) -> int:
        """Bytes of the arrays that the function closed over."""
        arrays = {id(c): c.nbytes for program in self.programs for c in program.constants}
        return sum(arrays.values())

    @property
    def targets(self) -> Mapping[str, tuple[TargetSizes, ...]]:
        """The architectures that all programs are compiled for, with what each program has there.

        Raises:
            MalformedTargetError: a target of the file is not well formed.
        """
        from tracegraph.saving.targets import TargetSizes

        found: dict[str, tuple[TargetSizes, ...]] = {}
        for arch in self._archs():
            sizes = [
                compiler().target_sizes(entry.targets.by_arch[arch])
                for entry in self.entries
                if entry.targets is not None
            ]
            found[arch] = tuple([TargetSizes(**each) for each in sizes])
        return found

    def _archs(self) -> list[str]:
        """The architectures of which each program has a target."""
        known = [set(e.targets.by_arch) if e.targets is not None else set() for e in self.entries]
        return sorted(set.intersection(*known))

    @entry_point
    def add_target(self, arch: str) -> None:
        """Compile all programs for the GPUs of an architecture, such as ``"sm_90"``.

        A file then has a *target* beside each program: machine code, and the graph as data, whose
        addresses are relocations. On a GPU of that architecture, a process that loads the file
        plans and compiles nothing: the first call takes milliseconds. Everywhere else the program
        serves as before. No GPU is needed for it, but NVRTC is. A target that is there is replaced.

        Args:
            arch: the compute capability of the GPUs, without the dot.

        Raises:
            ValueError: it is no architecture.
            UnsavableError: a program calls what belongs to this process, or runs on a mesh; the
                message has the line.
            RuntimeError: there is no NVRTC, or it does not know the architecture.

        >>> import tracegraph
        >>> double = tracegraph.export(lambda x: 2 * x, tracegraph.ArrayType("float32", (1000,)))
        >>> double.add_target("sm_90")
        >>> double.targets["sm_90"][0].kernels
        1
        """
        require_architecture(arch)
        from tracegraph.saving.targets import with_target

        self.entries = tuple([with_target(entry, self.signature, arch) for entry in self.entries])
        self._function.entries = self.entries

    @entry_point
    def on_device(self, device: str) -> Exported:
        """The same function for another device.

        Raises:
            TypeError: `device` is not a string.
            ValueError: there is no such device.
        """
        return Exported(self.__name__, self.signature, self.entries, device)

    @entry_point
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file; see `tracegraph.save`."""
        from tracegraph.saving.packing import write_whole

        write_whole(bytes(self), path)

    @entry_point
    def save_flat(
        self,
        path: str | os.PathLike[str],
        arch: str,
        *,
        program: int | None = None,
        libraries: bool = True,
    ) -> None:
        """Write a program to a file that C runs, without Python: kernels for one GPU architecture.

        The file has the CUDA graph as records, with compiled kernels and constants; the header
        `c_loader` reads it. No GPU is needed to write it, but NVRTC, unless there is a target for
        the architecture.

        Args:
            path: of the file.
            arch: the architecture, such as ``"sm_90"``; later minor versions of it run the file.
            program: the number of the program, if there are several.
            libraries: without, matrix products, factorizations and Fourier transforms are kernels
                of our own even where a library of NVIDIA is faster, as C calls none. Results are
                rounded otherwise then.

        Raises:
            UnsavableError: the program calls a library, or prints; the message has the line.
            TypeError: `program` is not a number, or `libraries` neither True nor False.
            ValueError: there is no such architecture or program.
            RuntimeError: there is no NVRTC, or it does not know the architecture.
            OSError: the file cannot be written.
        """
        from tracegraph.saving.flat_programs import flat_program
        from tracegraph.saving.packing import write_whole

        require_architecture(arch)
        required_bool("libraries", libraries)
        data = flat_program(self.signature, self.entries, arch, program, libraries)
        write_whole(data, path)

    @staticmethod
    def c_loader() -> Path:
        """The C header that runs files of `save_flat`: ``tracegraph_load.h``.

        It needs no other file of tracegraph, no header of CUDA, and at run time the driver alone.

        >>> Exported.c_loader().name
        'tracegraph_load.h'
        """
        return compiler().c_loader()

    def __bytes__(self) -> bytes:
        from tracegraph.saving.packing import file_of

        return file_of(self.__name__, self.signature, self.entries)

    def __repr__(self) -> str:
        where = ", for GPUs alone" if self.gpu_only else ""
        return f"<exported {self.signature.function}, {len(self.entries)} program(s){where}>"

    def __str__(self) -> str:
        from tracegraph.ir.text import program_line

        lines = [f"function {self.signature.function}"]
        lines += [program_line(program) for program in self.programs]
        ops = [name if v == 1 else f"{name} (version {v})" for name, v in self.requires.items()]
        for arch, programs in self.targets.items():
            lines += [f"target {arch}: {sizes}" for sizes in programs]
        lines += [f"for GPUs alone: {label}: {why}" for label, why in self.gpu_only.items()]
        lines.append(f"constants: {self.constant_bytes} B; ops: {', '.join(ops) or 'none'}")
        return "\n\n".join(("\n".join(lines), *map(str, self.programs)))


def require_architecture(arch: object) -> None:
    """Refuse what is no architecture of GPUs.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(arch, str) or re.fullmatch(r"sm_\d{2,3}", arch) is None:
        raise ValueError(f"{arch!r} is no architecture: GPUs of compute capability 9.0 are 'sm_90'")


def _parameters(signature: Signature) -> inspect.Signature:
    """The parameters as `inspect.signature` has them."""
    kinds = inspect.Parameter
    found = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in signature.names]
    if not found or signature.rest != "args":
        found.append(kinds(signature.rest, kinds.VAR_POSITIONAL))
    return inspect.Signature(found)
