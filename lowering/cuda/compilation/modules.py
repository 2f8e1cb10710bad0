"""Modules: the loaded code of a Plan's kernels, by the names of their functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lowering.codegen import partition, translation_unit
from lowering.cuda.open_devices import OpenDevice


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """Code on a device, which was compiled together."""

    code: Any
    nbytes: int


def load_modules(
    functions: Mapping[str, str],
    device: OpenDevice,
    definitions: Sequence[str] = (),
    head: str = "",
) -> dict[str, Module]:
    """Compile CUDA C++ functions, by name, and load them.

    Each unit begins with `head`; `definitions` are added to those that need them.

    Raises:
        RuntimeError: one does not compile.
    """
    units = partition(functions, device.compilers)
    codes = device.compile_all(
        [head + translation_unit(unit.values(), definitions) for unit in units]
    )
    modules: dict[str, Module] = {}
    for unit, code in zip(units, codes, strict=True):
        module = Module(device.driver.load(code), device.code_bytes(code))
        modules |= dict.fromkeys(unit, module)
    return modules
