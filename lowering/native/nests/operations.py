"""Calls of the library of ops: elementwise ops, combiners and casts, as functions of addresses.

LLVM inlines the functions. Complex numbers are passed by address, in memory that goes when it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowering.native.library.symbols import (
    Function,
    by_address,
    cast,
    combiner,
    parameter,
)
from lowering.native.types import Parts, element_type, memory_parts
from lowering.native.writer import Writer
from tracegraph.dtypes import is_half
from tracegraph.ir.op import Combiner

DIRECT_FOLDS = {
    ("add", "f"): "fadd",
    ("multiply", "f"): "fmul",
    ("add", "i"): "add",
    ("multiply", "i"): "mul",
    ("add", "u"): "add",
    ("multiply", "u"): "mul",
    ("logical_or", "b"): "or",
    ("add", "b"): "or",
    ("maximum", "b"): "or",
    ("logical_and", "b"): "and",
    ("multiply", "b"): "and",
    ("minimum", "b"): "and",
    ("logical_xor", "b"): "xor",
    **{(f"bitwise_{name}", kind): name for name in ("and", "or", "xor") for kind in "biu"},
}
"""Combiners that are one instruction; floats that LLVM knows, not those of 16 bits."""

EXTREMES = {
    ("maximum", "f"): "maximum",
    ("minimum", "f"): "minimum",
    ("maximum", "i"): "smax",
    ("minimum", "i"): "smin",
    ("maximum", "u"): "umax",
    ("minimum", "u"): "umin",
}
"""Combiners that are one intrinsic function, with NumPy's rules for NaN."""

_SUFFIXES = {"float": "f32", "double": "f64"}
"""What names of intrinsic functions call types."""


class Operations:
    """Writes calls of library functions, and collects their names."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self.functions: set[str] = set()
        self._memory: dict[tuple[str, int], str] = {}

    def convert(self, source: np.dtype[Any], target: np.dtype[Any], value: Parts) -> Parts:
        """A value in another dtype."""
        return value if source == target else self.call(cast(source, target), [value])

    def combine(self, how: Combiner, dtype: np.dtype[Any], left: Parts, right: Parts) -> Parts:
        """Two values combined."""
        direct = direct_instruction(how, dtype)
        if direct is None:
            function = combiner(how, dtype)
            assert function is not None, f"combiner {how.name} of {dtype} has no native form"
            return self.call(function, [left, right])
        types = ["i1"] if dtype.kind == "b" else memory_parts(dtype)
        found: list[str] = []
        for type_, x, y in zip(types, left, right, strict=True):
            if direct.startswith("llvm."):
                name = f"{direct}.{_SUFFIXES.get(type_, type_)}"
                found.append(self.writer.call(type_, name, f"{type_} {x}", f"{type_} {y}"))
            else:
                found.append(self.writer.assign(f"{direct} {type_} {x}, {y}"))
        return tuple(found)

    def folded(self, how: Combiner, dtype: np.dtype[Any], left: Parts, right: Parts) -> Parts:
        """Two elements combined; those of 16 bits in float32, and rounded."""
        wide = fold_dtype(dtype)
        left, right = (self.convert(dtype, wide, value) for value in (left, right))
        return self.convert(wide, dtype, self.combine(how, wide, left, right))

    def call(self, function: Function, args: Sequence[Parts]) -> Parts:
        """The value of a library function."""
        self.functions.add(function.name)
        self.writer.declare(function.declaration)
        passed: list[str] = []
        if by_address(function.result):
            passed.append(f"ptr {self._slot(function.result, 0)}")
        for number, (dtype, value) in enumerate(zip(function.arguments, args, strict=True)):
            type_, extension = parameter(dtype)
            given = value[0]
            if by_address(dtype):
                given = self._slot(dtype, number + 1)
                self.store_parts(dtype, value, given, private=True)
            passed.append(f"{type_} {extension} {given}")
        arguments = ", ".join(passed)
        if by_address(function.result):
            self.writer.line(f"call void @{function.name}({arguments})")
            return self.load_parts(function.result, self._slot(function.result, 0), private=True)
        type_, extension = parameter(function.result)
        return (self.writer.assign(f"call {extension} {type_} @{function.name}({arguments})"),)

    def load_parts(self, dtype: np.dtype[Any], address: str, private: bool = False) -> Parts:
        """The value at an address; `private` memory is that of the function's frame."""
        found = []
        for number, type_ in enumerate(memory_parts(dtype)):
            part = self._part(dtype, address, number)
            found.append(self.writer.load(type_, part, private))
        if dtype.kind == "b":
            return (self.writer.assign(f"icmp ne i8 {found[0]}, 0"),)
        return tuple(found)

    def store_parts(
        self, dtype: np.dtype[Any], value: Parts, address: str, private: bool = False
    ) -> None:
        """Store a value at an address."""
        if dtype.kind == "b":
            value = (self.writer.assign(f"zext i1 {value[0]} to i8"),)
        for number, (type_, x) in enumerate(zip(memory_parts(dtype), value, strict=True)):
            self.writer.store(type_, x, self._part(dtype, address, number), private)

    def _part(self, dtype: np.dtype[Any], address: str, number: int) -> str:
        if number == 0:
            return address
        type_ = element_type(dtype)
        return self.writer.assign(
            f"getelementptr inbounds {type_}, ptr {address}, i64 0, i32 {number}"
        )

    def _slot(self, dtype: np.dtype[Any], position: int) -> str:
        key = (element_type(dtype), position)
        if key not in self._memory:
            self._memory[key] = self.writer.variable(key[0])
        return self._memory[key]


def fold_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that elements are folded in."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def direct_instruction(how: Combiner, dtype: np.dtype[Any]) -> str | None:
    """The instruction or intrinsic function of a combiner; None if the library has it.

    That of complex sums adds each part.
    """
    if dtype.kind == "c":
        return "fadd" if how.name == "add" else None
    if (dtype.kind == "f" and dtype.itemsize == 2) or dtype.kind not in "biuf":
        return None
    if (how.name, dtype.kind) in EXTREMES:
        return f"llvm.{EXTREMES[how.name, dtype.kind]}"
    return DIRECT_FOLDS.get((how.name, dtype.kind))
