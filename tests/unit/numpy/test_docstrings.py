"""Docstrings of `tracegraph.numpy`: their sections; examples hold for NumPy arrays and for ours."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tracegraph
import tracegraph.numpy as tnp

Function = Callable[..., Any]

# what is answered from types alone, or writes to its argument
NO_ARRAY = {
    "can_cast", "common_type", "copyto", "diag_indices_from", "einsum_path", "fill_diagonal",
    "finfo", "iinfo", "iscomplexobj", "isrealobj", "ndim", "place", "put", "put_along_axis",
    "putmask", "result_type", "shape", "size", "tril_indices_from", "triu_indices_from",
}  # fmt: skip

# total functions of any array
CANNOT_FAIL = {
    "angle", "array_equal", "array_equiv", "atleast_1d", "atleast_2d", "atleast_3d", "diagflat",
    "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "kron", "ndim", "real", "shape",
    "sinc",
}  # fmt: skip


def public_functions() -> dict[str, Function]:
    """Each function of ours once, under the name by which it calls itself."""
    found = {}
    for prefix, namespace in (
        ("", tnp),
        ("linalg.", tnp.linalg),
        ("fft.", tnp.fft),
        ("lib.stride_tricks.", tnp.lib.stride_tricks),
    ):
        for name in namespace.__all__:
            function = getattr(namespace, name)
            if isinstance(function, FunctionType) and function.__module__.startswith("tracegraph"):
                found.setdefault(function, prefix + function.__name__)
    return {name: function for function, name in found.items()}


FUNCTIONS = public_functions()


def examples(function: Function) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(function.__doc__ or "")


def test_there_are_functions() -> None:
    assert len(FUNCTIONS) > 190


@pytest.mark.parametrize("name", FUNCTIONS)
def test_sections(name: str) -> None:
    doc = inspect.getdoc(FUNCTIONS[name])
    assert doc is not None
    first, *rest = doc.split("\n")
    assert first.endswith((".", ":", '",')), first
    assert all(len(line) <= 100 for line in rest)
    if name not in NO_ARRAY:
        assert re.search(r"^Shape: \S.*\n(.+\n)*Dtype: \S", doc, re.M), doc
    assert ("\nRaises:\n    " in doc) is (name not in CANNOT_FAIL), doc
    assert examples(FUNCTIONS[name]), doc


def holds(function: Function, names: Any) -> bool:
    """Whether the examples of a function print what they say, `tnp` being these names."""
    runner = doctest.DocTestRunner(verbose=False)
    globs = {"tnp": names, "np": np, "tracegraph": tracegraph}
    test = doctest.DocTest(examples(function), globs, function.__name__, None, None, None)
    return runner.run(test).failed == 0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_hold_for_numpy_arrays(name: str) -> None:
    assert holds(FUNCTIONS[name], tnp)


def ours(x: Any) -> Any:
    """Arrays and lists of numbers as Arrays; ragged lists, and lists of arrays, part by part."""
    if not isinstance(x, (list, np.ndarray)):
        return x
    try:
        if not isinstance(x[0], np.ndarray):
            return tracegraph.asarray(np.asarray(x))
    except ValueError:  # ragged
        pass
    return [ours(part) for part in x]


def numpys(x: Any) -> Any:
    if type(x) is tracegraph.Array:  # not a tracer, which is an instance, too
        x = np.asarray(x)
        return x if x.ndim else x.item() if x.dtype == np.bool_ else x[()]
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(numpys, x))
    return type(x)(map(numpys, x)) if isinstance(x, (list, tuple)) else x


def of_arrays(namespace: Any) -> SimpleNamespace:
    """The namespace with functions that compute with Arrays and give NumPy arrays."""

    def calling(function: Function) -> Function:
        return lambda *args, **options: numpys(function(*map(ours, args), **options))

    known = {name: getattr(namespace, name) for name in namespace.__all__}
    return SimpleNamespace(
        **{
            name: calling(value) if isinstance(value, FunctionType) else value
            for name, value in known.items()
        }
    )


OF_ARRAYS = of_arrays(tnp)
OF_ARRAYS.linalg = of_arrays(tnp.linalg)
OF_ARRAYS.fft = of_arrays(tnp.fft)
OF_ARRAYS.lib = SimpleNamespace(stride_tricks=of_arrays(tnp.lib.stride_tricks))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_hold_for_our_arrays(name: str) -> None:
    assert holds(FUNCTIONS[name], OF_ARRAYS)
