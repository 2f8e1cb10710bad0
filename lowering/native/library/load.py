"""The functions that a program needs, as LLVM IR text.

Text costs no link: a module of a program is written with these definitions after its own, and is
parsed once. Definitions are internal, so that those that are inlined everywhere go away.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from tracegraph.generated.dataclass import dataclass

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

POOL = ("tgp_run", "tgp_want", "tgp_work")
"""The functions of the pool of threads."""

_SYMBOL = re.compile(r"@([\w.$]+)")


@dataclass(frozen=True, slots=True)
class Definitions:
    """LLVM IR of functions with all that they call.

    Args:
        text: the definitions, and the constants that they read.
        declarations: the lines that declare the intrinsics that they call. A module has each once.
    """

    text: str
    declarations: frozenset[str]

    def module(self) -> str:
        """The text of a module that has nothing else."""
        return "\n".join((*sorted(self.declarations), self.text, ""))


def names() -> frozenset[str]:
    """The symbols of all functions that the library has."""
    return frozenset(name for name in _blocks() if name.startswith("tgo_"))


def has(name: str) -> bool:
    """Whether the library has a function. It has attributes of few values only.

    >>> has("tgo_add_f64_f64__f64"), has("tgo_polygamma_f64__f64__n_77")
    (True, False)
    """
    return name in _blocks()


def definitions(names: Iterable[str]) -> Definitions:
    """The definitions of functions and of what they call.

    Raises:
        KeyError: the library has no function of a name.

    >>> found = definitions(["tgo_add_f64_f64__f64"])
    >>> "fadd double" in found.text, sorted(found.declarations)
    (True, [])
    """
    blocks = _blocks()
    found: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            if name not in blocks:
                raise KeyError(f"the library has no function {name}; see `has`")
            found[name] = blocks[name]
            waiting += _SYMBOL.findall(blocks[name])
    declared = {text for text in found.values() if text.startswith("declare")}
    text = "\n".join(found[name] for name in sorted(found) if found[name] not in declared)
    return Definitions(text, frozenset(declared))


def joined(text: str, names: Iterable[str]) -> str:
    """A module's text with the definitions of the library's functions that it calls.

    Args:
        text: IR that may declare these functions and intrinsics, one a line.
        names: the functions.

    Raises:
        KeyError: the library has no function of a name.

    >>> "declare" in joined("declare double @tgo_add_f64_f64__f64(double, double)",
    ...                     ["tgo_add_f64_f64__f64"])
    False
    """
    needed = definitions(names)
    lines = text.split("\n")
    declared = {_symbol(line) for line in lines if line.startswith("declare ")}
    kept = [
        line
        for line in lines
        if not line.startswith("declare ")
        or not has(_symbol(line))
        or _symbol(line).startswith("llvm.")
    ]
    more = sorted(line for line in needed.declarations if _symbol(line) not in declared)
    return "\n".join((*kept, *more, needed.text, ""))


def _symbol(line: str) -> str:
    found: list[str] = _SYMBOL.findall(line)
    return found[0]


@dataclass(frozen=True, slots=True)
class ModuleText:
    """The text of a module, and the library functions that it calls."""

    text: str
    functions: frozenset[str]

    def joined(self) -> str:
        """The text with the definitions of these functions.

        Raises:
            KeyError: the library has no function of a name.
        """
        return joined(self.text, self.functions)

    def parts(self) -> tuple[str, ...]:
        """What the joined text depends on. It takes 1 ms, where the library's text takes 6 to read:
        code on disk is found by this.
        """
        return self.text, *sorted(self.functions), _digest()


@cache
def _digest() -> str:
    return sha256(_file().read_bytes()).hexdigest()


def _file() -> Traversable:
    return files("lowering.native.library").joinpath("functions.ll")


@cache
def _blocks() -> Mapping[str, str]:
    """Every constant, declaration and definition by its name."""
    text = _file().read_bytes().decode("ascii")
    found = {}
    for block in text.rstrip("\n").split("\n\n@"):
        name, _, rest = block.removeprefix("@").partition(":\n")
        found[name] = rest
    return found
