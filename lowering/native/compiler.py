"""Machine code of LLVM modules, by llvmlite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from lowering.native.library.load import joined

Level = Literal["full"]
"""How much a module is optimised."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Machine code in memory, as long as this lives."""

    engine: Any
    address: int


@cache
def _llvm() -> Any:
    """Llvmlite's binding, loaded when code is first compiled: that takes 25 ms and 43 MB."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _target_machine() -> Any:
    """A target machine of this processor; an execution engine takes it for itself."""
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
        reloc="pic",  # code may be anywhere
        codemodel="small",
    )


def compile(text: str, names: Iterable[str], level: Level = "full") -> bytes:
    """The object file of a module, with the functions of the library that it calls, by `names`.

    Raises:
        RuntimeError: LLVM does not accept the text.
    """
    machine = _target_machine()
    return bytes(machine.emit_object(_optimised(text, names, machine)))


def assembly(text: str, names: Iterable[str]) -> str:
    """The assembly of a module's text, for inspection."""
    machine = _target_machine()
    return str(machine.emit_assembly(_optimised(text, names, machine)))


def _optimised(text: str, names: Iterable[str], machine: Any) -> Any:
    llvm = _llvm()
    module = llvm.parse_assembly(joined(text, names))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = True
    options.slp_vectorization = False  # takes long, and gave slower code
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def load(code: bytes, entry: str) -> Loaded:
    """Load an object file, and find the address of a function."""
    llvm = _llvm()
    empty = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(empty, _target_machine())
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Loaded(engine, engine.get_function_address(entry))
