"""The face of the package: what `dir` shows, and what importing it loads."""

from __future__ import annotations

import os

import pytest

import tracegraph
from tests.helpers.processes import end_of


def test_dir_shows_the_public_names_only() -> None:
    assert dir(tracegraph) == sorted(tracegraph.__all__)
    assert not {"ir", "staging", "arrays", "annotations"} & set(dir(tracegraph))


def test_every_public_name_is_there() -> None:
    for name in tracegraph.__all__:
        assert getattr(tracegraph, name) is not None


def test_importing_the_package_loads_nothing_that_is_seldom_needed() -> None:
    optional = ("tqdm", "cuda", "nvmath", "scipy", "numpy.ma", "pathlib", "importlib.metadata")
    code = f"import sys, tracegraph; print([m for m in {optional} if m in sys.modules])"
    assert end_of(code) == (0, "[]\n", "")


def test_importing_the_package_loads_what_tracing_needs_when_it_is_needed() -> None:
    late = ("numpy", "ops", "control", "transforms", "random", "linalg", "special", "custom")
    code = f"import sys, tracegraph; print([m for m in {late} if 'tracegraph.' + m in sys.modules])"
    assert end_of(code) == (0, "[]\n", "")


SECOND_DERIVATIVES = {
    "np.linalg.det": "np.diag([2.0, 3.0])",
    "lambda x: np.sum(np.i0(x))": "np.ones(2)",
    "lambda x: np.sum(x**x)": "np.ones(2)",
    "lambda x: np.sum(np.linalg.qr(x, mode='complete')[1])": "np.ones((3, 1))",
    "lambda x: np.sum(scipy.special.gammainc(2.0, x))": "np.ones(2)",
}


IN_CHILDREN = """
import os, sys, numpy as np, scipy.special, tracegraph
for function, x in {cases}:
    child = os.fork()
    if not child:
        hessian = tracegraph.jit(tracegraph.hessian(eval(function)), device="host")
        os._exit(not np.isfinite(hessian(eval(x))).all())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Nothing but the packages is imported in the process that has the children."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_second_derivative_finds_its_rule_in_a_new_process() -> None:
    code = IN_CHILDREN.replace("{cases}", repr(list(SECOND_DERIVATIVES.items())))
    assert end_of(code) == (0, "0\n" * len(SECOND_DERIVATIVES), "")


def test_an_operator_of_arrays_finds_its_function_in_a_new_process() -> None:
    code = "import tracegraph; print(tracegraph.asarray([1, 2]) + 1)"
    assert end_of(code) == (0, "[2 3]\n", "")


def test_star_imports_give_the_public_names() -> None:
    code = "from tracegraph import *; print(grad.__module__, numpy.__name__, 'ir' in globals())"
    assert end_of(code) == (
        0,
        "tracegraph.transforms.derivatives.reverse tracegraph.numpy False\n",
        "",
    )
