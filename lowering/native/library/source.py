"""The C++ of the whole library: the folder's mathematics, the device texts, and the functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

import tracegraph.ops  # noqa: F401  (registers them)
from lowering.codegen.preamble import c_type, preamble, value_type
from lowering.native.library.symbols import (
    Function,
    by_address,
    cast,
    combiner,
    elementwise,
)
from tracegraph.dtypes import SHORT_NAMES, is_half
from tracegraph.ir import combiners
from tracegraph.ir.op import Combiner, Elementwise, Op, all_ops
from tracegraph.ir.types import ArrayType

MATHEMATICS = (
    "numbers.h",
    "remainders.h",
    "exponentials.h",
    "logarithms.h",
    "trigonometry.h",
    "error_functions.h",
    "gamma.h",
    "bessel.h",
    "narrow.h",
    "shim.h",
    "pool.h",
)
"""The folder's own C++ in its order. The device texts follow."""

POLYGAMMA_ORDERS = range(1, 9)


def functions() -> list[Function]:
    """Every function of the library, by name: ops and combiners for all dtypes, and casts."""
    found = {
        function.name: function
        for function in itertools.chain(_of_ops(), _of_combiners(), _casts())
    }
    return [found[name] for name in sorted(found)]


def source() -> str:
    """The unit that `build` compiles."""
    whole = functions()
    texts = "\n".join(map(definition, whole))
    fast = [function for function in whole if function.fast is not None]
    fast_texts = "\n".join(map(_fast_definitions, fast))
    mathematics = "\n".join(_text(name) for name in MATHEMATICS)
    fast_forms = f"namespace tgm_fast {{\n{preamble(fast_texts)}\n{fast_texts}\n}}"
    return "\n".join((mathematics, preamble(texts), texts, fast_forms))


def definition(function: Function, name: str | None = None) -> str:
    """A function as C++, under its own or another name."""
    parameters = [f"{_passed(dtype)} p{n}" for n, dtype in enumerate(function.arguments)]
    loads = "".join(_load(dtype, n) for n, dtype in enumerate(function.arguments))
    type_ = c_type(function.result)
    compute = f"{loads}const {type_} r = {function.text};"
    if by_address(function.result):
        parameters = [f"{type_}* result", *parameters]
        signature, give = "void", "*result = r;"
    else:
        signature = _passed(function.result)
        give = f"return r{'.bits' if is_half(function.result) else ''};"
    symbol = name or function.name
    return f'extern "C" {signature} {symbol}({", ".join(parameters)}) {{ {compute} {give} }}'


def _fast_definitions(function: Function) -> str:
    assert function.fast is not None
    fast, in_range = function.fast
    parameters = ", ".join(f"{_passed(d)} p{n}" for n, d in enumerate(function.arguments))
    loads = "".join(_load(dtype, n) for n, dtype in enumerate(function.arguments))
    values = ", ".join(f"tg_cast<{value_type(d)}>(a{n})" for n, d in enumerate(function.arguments))
    test = "tgm_is_near_angle" if len(function.arguments) == 1 else "tgm_is_near_quotient"
    return f"""{definition(function, fast)}
extern "C" bool {in_range}({parameters}) {{ {loads}return {test}({values}); }}"""


def _passed(dtype: Any) -> str:
    if by_address(dtype):
        return f"const {c_type(dtype)}*"
    return "tg_u16" if is_half(dtype) else c_type(dtype)


def _load(dtype: Any, number: int) -> str:
    value = f"*p{number}" if by_address(dtype) else f"p{number}"
    braces = f"{{{value}}}" if is_half(dtype) else f" = {value}"
    return f"const {c_type(dtype)} a{number}{braces}; "


def _of_ops() -> Iterator[Function]:
    for op in all_ops():
        if not isinstance(op.form, Elementwise):
            continue
        samples = op.samples()
        for attrs in _attributes(op):
            for count in sorted({len(sample.operands) for sample in samples}):
                for arguments in itertools.product(SHORT_NAMES, repeat=count):
                    result = _result(op, arguments, attrs)
                    found = None if result is None else elementwise(op, attrs, arguments, result)
                    if found is not None:
                        yield found


def _attributes(op: Op) -> Iterable[Mapping[str, Any]]:
    """Attributes that make a difference to the text or the result: those of samples, and orders."""
    if op.name == "polygamma":
        return [{"n": n} for n in POLYGAMMA_ORDERS]
    return {str(sample.attrs): sample.attrs for sample in op.samples()}.values()


def _result(op: Op, arguments: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any | None:
    """The dtype of the result. None if the op casts operands of these dtypes, or refuses them."""
    types = [ArrayType(dtype, ()) for dtype in arguments]
    try:
        if op.promote is not None and tuple(op.promote(*types, **attrs)) != arguments:
            return None
        return op.result_types(types, attrs)[0].dtype
    except TypeError:
        return None


def _of_combiners() -> Iterator[Function]:
    for value in vars(combiners).values():
        if isinstance(value, Combiner):
            for dtype in SHORT_NAMES:
                found = combiner(value, dtype)
                if found is not None:
                    yield found


def _casts() -> Iterator[Function]:
    for source, target in itertools.product(SHORT_NAMES, repeat=2):
        yield cast(source, target)


def _text(name: str) -> str:
    return files("lowering.native.library").joinpath(name).read_text("utf-8")
