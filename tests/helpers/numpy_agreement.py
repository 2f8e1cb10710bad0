"""Comparing expressions of NumPy functions, traced and interpreted, with NumPy itself."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp
from tests.helpers.traced import trace_with_structure
from tracegraph import tree
from tracegraph.ir import interpret


def assert_expression_equals_numpy(expression: str, arguments: Mapping[str, Any]) -> None:
    """Require that an expression in `xp` and the arguments traces to what NumPy computes.

    It is traced twice: with `xp` as `tracegraph.numpy`, and as `numpy`.
    Dtypes, shapes and structure are exact, floating-point numbers close to a few units.
    """
    used = {k: v for k, v in arguments.items() if re.search(rf"\b{k}\b", expression)}
    code = compile(expression, expression, "eval")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy's, of NaNs and empty means
        expected, structure = tree.flatten(eval(code, {"xp": np, "np": np, **used}))
        for xp in (tnp, np):
            assert_program_gives(code, xp, used, expected, structure)


def assert_jitted_equals_numpy(expression: str, arguments: Mapping[str, Any]) -> None:
    """Require that an expression gives what NumPy computes, traced, and jitted for the host.

    Where NumPy raises TypeError, ValueError or IndexError, tracing must raise one of its class.
    """
    used = {k: v for k, v in arguments.items() if re.search(rf"\b{k}\b", expression)}
    code = compile(expression, expression, "eval")

    def function(*values: Any) -> Any:
        return eval(code, {"xp": np, "np": np, **dict(zip(used, values, strict=True))})

    jitted = tracegraph.jit(function, device="host")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = tree.leaves(function(*used.values()))
    except (TypeError, ValueError, IndexError) as error:
        kind = next(k for k in (TypeError, ValueError, IndexError) if isinstance(error, k))
        with pytest.raises(kind):
            jitted(*used.values())
        return
    assert_expression_equals_numpy(expression, arguments)
    for got, wanted in zip(tree.leaves(jitted(*used.values())), expected, strict=True):
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got, wanted)


def assert_program_gives(
    code: Any, xp: Any, used: Mapping[str, Any], expected: Any, structure: Any
) -> None:
    def function(*values: Any) -> Any:
        names = dict(zip(used, values, strict=True))
        return eval(code, {"xp": xp, "np": np, **names})

    program, found = trace_with_structure(function, *used.values())
    assert found == structure
    results = interpret.run(program, *map(np.asarray, used.values()))
    for got, wanted in zip(results, map(np.asarray, expected), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        assert_close(got, wanted)


def numpys_and_jitted(call: Callable[..., Any], *arguments: Any) -> list[tuple[Any, Any]]:
    """Results of NumPy's, each with that of the jitted call, of the same dtype and shape."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wanted = map(np.asarray, tree.leaves(call(*arguments)))
    found = map(np.asarray, tree.leaves(tracegraph.jit(call, device="host")(*arguments)))
    pairs = list(zip(wanted, found, strict=True))
    for value, got in pairs:
        assert (got.dtype, got.shape) == (value.dtype, value.shape)
    return pairs


def assert_close(got: Any, wanted: Any) -> None:
    if wanted.dtype.kind in "biu":
        np.testing.assert_array_equal(got, wanted)
        return
    eps = 2.0**-7 if wanted.dtype.kind == "V" else np.finfo(wanted.dtype).eps
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), rtol=16 * eps, atol=16 * eps)


def expressions(table: str) -> list[str]:
    """The expressions of a table, separated by semicolons or by lines."""
    return [text for text in map(str.strip, re.split("[;\n]", table)) if text]


def functions_in(expressions: list[str]) -> set[str]:
    """The names of the functions of `xp` that expressions call."""
    return {name for text in expressions for name in re.findall(r"\bxp\.([\w.]+)", text)}
