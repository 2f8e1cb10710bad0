"""Modules: the loaded code of a Plan's kernels, by the names of their functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lowering.codegen.units import partition, translation_unit
from lowering.cuda.open_devices import OpenDevice
from tracegraph.generated.dataclass import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """Code on a device, which was compiled together."""

    code: Any
    nbytes: int


Cubins = list[tuple[list[str], Any]]
"""What was compiled together, with the names of the functions that are used of it."""


def load_modules(
    functions: Mapping[str, str],
    device: OpenDevice,
    definitions: Sequence[str] = (),
    head: str = "",
) -> tuple[dict[str, Module], Cubins]:
    """Load CUDA C++ functions, by name: compiled ones from disk, in whichever units they are there,
    and others once they are compiled. The modules by name, and the code that they were loaded from.

    Each unit begins with `head`; `definitions` are added to those that need them.

    Raises:
        RuntimeError: one does not compile.
    """

    def unit_of(texts: Iterable[str]) -> str:
        return head + translation_unit(texts, definitions)

    def loaded(code: Any) -> Module:
        return Module(device.driver.load(code), device.code_bytes(code))

    alone = {name: unit_of([text]) for name, text in functions.items()}
    modules: dict[str, Module] = {}
    cubins = device.kept(alone)
    for names, code in cubins:
        modules |= dict.fromkeys(names, loaded(code))
    missing = {name: text for name, text in functions.items() if name not in modules}
    units = partition(missing, device.compilers)
    sources = [unit_of(unit.values()) for unit in units]
    for unit, source, code in zip(units, sources, device.compile_all(sources), strict=True):
        modules |= dict.fromkeys(unit, loaded(code))
        cubins.append((list(unit), code))
        device.note([alone[name] for name in unit], source)
    return modules, cubins
