"""The functions of the library: their names, their signatures and the C++ text of each.

A name is ``tgo_``, the op, the dtypes of the operands, two underscores and that of the result, then
the attributes that the text uses: ``tgo_less_i8_u8__bool``, ``tgo_polygamma_f64__f64__n_2``.
Combiners are ``tgo_combine_NAME_DTYPE``.

What fits a register is passed by value: bool as ``i1 zeroext``, integers and floats as themselves
(narrow ones ``signext`` or ``zeroext``), float16 and bfloat16 as ``i16 zeroext``, which are their
bits. Complex numbers are passed by address, and a complex result is stored at the address that is
then the first argument. So nothing depends on how a system passes structures.

The ranges of fast forms (`fast`): a function that is exact everywhere may have a slow part, which
keeps LLVM from vectorizing the loop around it. ``NAME__fast`` has none and is right wherever
``NAME__in_range``, of the same operands, holds. A loop tests a block of elements first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from lowering.codegen.preamble import c_type, kind, value_type
from tracegraph.dtypes import BOOL, SHORT_NAMES, is_half
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import Combiner, Elementwise, Op

DType = np.dtype[Any]
Attrs = Mapping[str, Any] | Iterable[tuple[str, Any]]

MOST_CACHED = 1 << 12
"""Functions that are held: a module asks for the same few again and again."""

FAST_FORMS = frozenset({"sin", "cos", "tan", "fmod", "remainder", "floor_divide"})
"""Ops whose functions of real floats have a fast form besides."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the library.

    Args:
        name: its symbol.
        result: the dtype of its result.
        arguments: the dtypes of its arguments.
        text: the C++ expression of `a0`, `a1`, … that it computes, in the types of `c_type`.
        fast: the symbols of its fast form and of that form's range, where it has these.
    """

    name: str
    result: DType
    arguments: tuple[DType, ...]
    text: str
    fast: tuple[str, str] | None = None

    @property
    def declaration(self) -> str:
        """Its declaration in LLVM IR.

        >>> from tracegraph.ir.combiners import ADD
        >>> combiner(ADD, np.dtype(np.complex64)).declaration
        'declare void @tgo_combine_add_c64(ptr, ptr, ptr)'
        >>> combiner(ADD, np.dtype(np.int8)).declaration
        'declare signext i8 @tgo_combine_add_i8(i8 signext, i8 signext)'
        """
        return _declaration(self)


@lru_cache(MOST_CACHED)
def _declaration(function: Function) -> str:
    parameters = [" ".join(parameter(dtype)).strip() for dtype in function.arguments]
    if by_address(function.result):
        return f"declare void @{function.name}({', '.join(['ptr', *parameters])})"
    type_, extension = parameter(function.result)
    text = f"declare {extension} {type_} @{function.name}({', '.join(parameters)})"
    return text.replace("  ", " ")


def by_address(dtype: DType) -> bool:
    """Whether arguments and results of a dtype are passed by address."""
    return dtype.kind == "c"


def parameter(dtype: DType) -> tuple[str, str]:
    """The LLVM type of an argument, and how a narrow one is extended to a register.

    >>> parameter(np.dtype(np.float16)), parameter(np.dtype(np.float64))
    (('i16', 'zeroext'), ('double', ''))
    """
    if by_address(dtype):
        return "ptr", ""
    if dtype == BOOL:
        return "i1", "zeroext"
    if is_half(dtype):
        return "i16", "zeroext"
    if dtype.kind == "f":
        return ("float" if dtype.itemsize == 4 else "double"), ""
    narrow = dtype.itemsize < 4
    extension = ("signext" if dtype.kind == "i" else "zeroext") if narrow else ""
    return f"i{8 * dtype.itemsize}", extension


def elementwise(op: Op, attrs: Attrs, arguments: Sequence[DType], result: DType) -> Function | None:
    """The function of an op for operands of these dtypes.

    None if the library cannot have it: there is no C++ text for the dtypes, or the text is a
    user's.

    >>> import tracegraph.ops
    >>> from tracegraph.ir.op import get
    >>> double = np.dtype(np.float64)
    >>> elementwise(get("sin"), {}, [double], double).name
    'tgo_sin_f64__f64'
    """
    form = op.form
    if not isinstance(form, Elementwise) or form.definition:
        return None
    if attrs:
        return _function_of(op, attrs, tuple(arguments), result)
    return _without_attrs(op, (), tuple(arguments), result)


def _function_of(
    op: Op, attrs: Attrs, arguments: tuple[DType, ...], result: DType
) -> Function | None:
    form = op.form
    assert isinstance(form, Elementwise)
    native = is_half(arguments[0]) and "e" in form.c
    template = form.c.get("e" if native else kind(arguments[0]))
    if template is None:
        return None
    attributes = dict(attrs)
    used = {name: attributes[name] for name in sorted(attributes) if f"{{{name}}}" in template}
    names = [f"a{n}" for n in range(len(arguments))]
    operands = names if native else [_widened(d, a) for d, a in zip(arguments, names, strict=True)]
    text = template.format(*operands, T=c_type(result), **used)
    if is_half(result) and not native:
        text = f"tg_cast<{c_type(result)}>({text})"
    types = "_".join(SHORT_NAMES[d] for d in arguments)
    suffix = "".join(f"__{_word(name)}_{_word(value)}" for name, value in used.items())
    name = f"tgo_{op.name}_{types}__{SHORT_NAMES[result]}{suffix}"
    has_fast_form = op.name in FAST_FORMS and kind(arguments[0]) == "f"
    fast = (f"{name}__fast", f"{name}__in_range") if has_fast_form else None
    return Function(name, result, arguments, text, fast)


@lru_cache(MOST_CACHED)
def _without_attrs(
    op: Op, attrs: tuple[()], arguments: tuple[DType, ...], result: DType
) -> Function | None:
    return _function_of(op, attrs, arguments, result)


def combiner(combiner: Combiner, dtype: DType) -> Function | None:
    """The function that combines two values of a fold over elements of a dtype.

    float16 and bfloat16 are folded in float32, and this is the function of float32. None as for
    `elementwise`.
    """
    if is_half(dtype):
        return _combiner(combiner, np.dtype(np.float32))
    return _combiner(combiner, dtype)


def cast(source: DType, target: DType) -> Function:
    """The function that converts an element as `astype` does.

    >>> cast(np.dtype(np.bool_), np.dtype(np.int8)).declaration
    'declare signext i8 @tgo_cast_bool__i8(i1 zeroext)'
    """
    name = f"tgo_cast_{SHORT_NAMES[source]}__{SHORT_NAMES[target]}"
    return Function(name, target, (source,), f"tg_cast<{c_type(target)}>(a0)")


def _combiner(combiner: Combiner, dtype: DType) -> Function | None:
    template = None if combiner.definition else combiner.c.get(kind(dtype))
    if template is None or (by_address(dtype) and combiner.name.startswith("logical")):
        return None  # truth values are folded as bool
    text = template.format("a0", "a1", T=value_type(dtype))
    name = f"tgo_combine_{combiner.name}_{SHORT_NAMES[dtype]}"
    return Function(name, dtype, (dtype, dtype), text)


def _widened(dtype: DType, name: str) -> str:
    return f"tg_cast<{value_type(dtype)}>({name})" if is_half(dtype) else name


def _word(value: object) -> str:
    return re.sub(r"\W", "_", str(value))
