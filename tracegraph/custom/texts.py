"""Expressions in CUDA C++ that users write, by kinds of dtypes, in a namespace of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tracegraph import errors
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.op import CUSTOM_NAMESPACE
from tracegraph.ir.types import ArrayType, result_type
from tracegraph.ops.elementwise import resolve

_INSTEAD = {"b": "bif", "i": "if", "u": "uf", "f": "f", "c": "c"}
"""By the kind of the operands' common dtype, the kinds that may take its place, best first."""


def function_error(where: str, problem: str, *details: str) -> errors.CustomKernelError:
    """An error about a function, which is named with its place."""
    return errors.CustomKernelError(f"function {where}", problem, *details)


@dataclass(frozen=True, slots=True)
class Expressions:
    """C++ functions of one text for each kind of dtype: their calls, and what defines them."""

    where: str
    calls: Mapping[str, str]
    definition: str

    @classmethod
    def of(cls, cuda: Any, header: str, count: int, where: str) -> Expressions:
        """The functions of `count` operands that a user's texts are.

        Raises:
            CustomKernelError: `cuda` is neither text nor texts by kinds, or the header has
                directives.
        """
        if re.search(r"^\s*#(?!\s*pragma\b)", header, re.M):
            problem = "its header has preprocessor directives, which hold for all code"
            raise function_error(where, problem)
        texts = _by_kind(cuda, count, where)
        content = repr((sorted(texts.items()), header, count))
        import hashlib  # it loads OpenSSL, which is 6 ms of the start of a process

        namespace = CUSTOM_NAMESPACE + hashlib.sha256(content.encode()).hexdigest()[:12]
        operands = ", ".join(f"{{{n}}}" for n in range(count))
        calls = {kind: f"{namespace}::of_{kind}<{{T}}>({operands})" for kind in texts}
        return cls(where, calls, _definition(namespace, texts, header, count, where))

    def common_dtype(self, types: Sequence[ArrayType]) -> np.dtype[Any]:
        """The dtype that operands are cast to: their common one, or one that has a text.

        Raises:
            CustomKernelError: none has.
        """
        common = result_type(*types)
        kind = "f" if common.kind == "V" else common.kind  # bfloat16
        for kind_of_text in _INSTEAD[kind]:
            if kind_of_text in self.calls:
                if kind_of_text == kind:
                    return common
                if kind_of_text == "i":
                    return np.dtype(np.int8)
                return resolve(np.cbrt, [ArrayType(common)])[0]  # as functions of floats do
        listed, kinds = ", ".join(map(str, types)), ", ".join(self.calls)
        raise function_error(
            self.where, f"has no text for {listed}; its texts are for kinds {kinds}"
        )


def _by_kind(cuda: Any, count: int, where: str) -> dict[str, str]:
    """The text of each kind, with names of parameters for the operands."""
    by_kinds = {"f": cuda} if isinstance(cuda, str) else cuda
    if not isinstance(by_kinds, Mapping) or not by_kinds:
        got = errors.value_text(cuda)
        raise function_error(where, f"cuda must be text, or texts by kinds of dtypes, not {got}")
    found = {}
    for kinds, text in by_kinds.items():
        if not isinstance(kinds, str) or not kinds or set(kinds) - set("biufc"):
            problem = f"cuda has a text for {kinds!r}; the kinds are b, i, u, f and c"
            raise function_error(where, problem)
        try:
            named = text.format(*[f"a{n}" for n in range(count)], T="T")
        except (IndexError, KeyError, ValueError, AttributeError) as error:
            raise function_error(
                where,
                f"cuda={text!r} must be text with {{0}} to {{{count - 1}}} for operands and {{T}} "
                f"for the result's type, other braces doubled: {error}",
            ) from None
        found.update(dict.fromkeys(kinds, named))
    return found


def _definition(
    namespace: str, texts: Mapping[str, str], header: str, count: int, where: str
) -> str:
    """The namespace: the header, and one function for each kind. Several kernels may need it."""
    label = where.replace("\\", "/").replace('"', "'")
    classes = ", ".join(f"class A{n}" for n in range(count))
    parameters = ", ".join(f"const A{n} a{n}" for n in range(count))
    guard = namespace.upper()
    lines = [f"#ifndef {guard}", f"#define {guard}", f"namespace {namespace} {{"]
    lines += [f'#line 1 "{label}"', header]
    for kind, text in texts.items():
        lines += [
            f"template <class T, {classes}>",
            f"__device__ inline auto of_{kind}({parameters}) {{ return {text}; }}",
        ]
    return "\n".join([*lines, "}", '#line 1 "kernels"', "#endif"])
