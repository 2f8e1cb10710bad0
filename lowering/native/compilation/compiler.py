"""Machine code of LLVM modules, by llvmlite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Literal

from tracegraph.generated.dataclass import dataclass

Phase = Callable[[], AbstractContextManager[object]]
"""Makes the context that a phase of compiling is in."""

Level = Literal["quick", "full"]
"""How much a module is optimised. Both levels give the same bits: LLVM may not reorder operations
on floats, nor contract them.
"""

QUICK_PASSES = ("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "loop_rotate")
"""What makes code bearable at least cost: registers in place of memory, and inlined ops."""

FULL_OPTIONS: Mapping[str, Any] = {
    "speed_level": 2,
    "loop_vectorization": True,
    "loop_interleaving": True,
    "loop_unrolling": True,
    "slp_vectorization": False,  # takes long, and gave slower code
}

CODE_GENERATION: Mapping[Level, int] = {"quick": 0, "full": 2}


@dataclass(frozen=True, slots=True)
class Loaded:
    """Machine code in memory, as long as this lives, with the addresses of functions by name."""

    library: Any
    addresses: Mapping[str, int]


@cache
def _llvm() -> Any:
    """Llvmlite's binding, loaded when code is first compiled: that takes 25 ms and 43 MB."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@cache
def processor() -> tuple[str, str]:
    """The name and the features of the processor that code is made for."""
    llvm = _llvm()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@cache
def _triple() -> str:
    return str(_llvm().get_default_triple())


def compiler_identity(level: Level) -> tuple[str, ...]:
    """What machine code depends on besides the text: versions, the processor, and the passes.

    Once known, it is there without a call of LLVM, which another thread may be using.
    """
    import llvmlite

    llvm = _llvm()
    passes = QUICK_PASSES if level == "quick" else sorted(FULL_OPTIONS.items())
    return (
        *("llvmlite", llvmlite.__version__, *map(str, llvm.llvm_version_info)),
        *(_triple(), *processor()),
        *(level, repr(passes), str(CODE_GENERATION[level])),
    )


def _target_machine(level: Level = "full") -> Any:
    """A target machine of this processor; an execution engine takes it for itself."""
    llvm = _llvm()
    target = llvm.Target.from_default_triple()
    name, features = processor()
    return target.create_target_machine(
        cpu=name,
        features=features,
        opt=CODE_GENERATION[level],
        jit=True,
        reloc="pic",  # code may be anywhere
        codemodel="small",
    )


def compile(text: str, level: Level = "full", phase: Phase = nullcontext) -> bytes:
    """The object file of a module that defines all that it calls: see `joined`.

    Reading, optimising and writing it are a phase each: others may use LLVM between them.

    Raises:
        RuntimeError: LLVM does not accept the text.
    """
    with phase():
        machine = _target_machine(level)
        module = _parsed(text, machine)
    with phase():
        _optimise(module, machine, level)
    with phase():
        code = bytes(machine.emit_object(module))
        del machine, module  # to free them takes LLVM, too
    return code


def assembly(text: str, level: Level = "full") -> str:
    """The assembly of a module that defines all that it calls, for inspection."""
    machine = _target_machine(level)
    module = _parsed(text, machine)
    _optimise(module, machine, level)
    return str(machine.emit_assembly(module))


def _parsed(text: str, machine: Any) -> Any:
    module = _llvm().parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module


def _optimise(module: Any, machine: Any, level: Level) -> None:
    llvm = _llvm()
    if level == "quick":
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(0))
        passes = llvm.create_new_module_pass_manager()
        for name in QUICK_PASSES:
            getattr(passes, f"add_{name}_pass")()
    else:
        options = llvm.create_pipeline_tuning_options()
        for name, value in FULL_OPTIONS.items():
            setattr(options, name, value)
        builder = llvm.create_pass_builder(machine, options)
        passes = builder.getModulePassManager()
    passes.run(module, builder)


def load(codes: Iterable[bytes], *names: str) -> Loaded:
    """Load object files that call one another, and find the addresses of functions.

    LLVM's newer linker puts all of an object into one piece of memory. The older one puts code and
    constants wherever the process has room, and ends the process if these are more than 2 GB apart,
    as happens beside the address space that CUDA reserves.

    Raises:
        RuntimeError: LLVM cannot read one.
    """
    llvm = _llvm()
    library = llvm.JITLibraryBuilder()
    for code in codes:
        library.add_object_img(code)
    for name in names:
        library.export_symbol(name)
    linked = library.link(
        llvm.create_lljit_compiler(_target_machine(), use_jit_link=True), names[0]
    )
    return Loaded(linked, {name: linked[name] for name in names})
