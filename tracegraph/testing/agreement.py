"""One assertion: a function gives the same traced as eagerly."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tracegraph import tree


def assert_traced_equals_eager(
    function: Callable[..., Any],
    *arguments: Any,
    run: Callable[..., Any] | None = None,
    rtol: float = 0.0,
    atol: float = 0.0,
) -> None:
    """Assert that `function` gives the same traced as eagerly under NumPy.

    Structures, dtypes and shapes must be equal, and numbers too unless tolerances are given; NaNs
    equal each other, and so do both zeros.

    Args:
        function: takes and returns pytrees of arrays and numbers.
        *arguments: what it is called with. The eager run gets copies.
        run: how the traced function is run, as `run(function, *arguments)`; through
            `tracegraph.jit` by default.
        rtol: difference allowed between floating-point numbers, relative to the eager one.
        atol: absolute difference allowed, in addition.

    Raises:
        AssertionError: the results differ; the message names the leaf by its path.

    >>> import numpy as np
    >>> assert_traced_equals_eager(lambda x: {"twice": x + x}, np.arange(3))
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # overflow is part of what is compared
        eager = function(*tree.map(_own, arguments))
        traced = (run or _jitted)(function, *arguments)
    wanted, structure = tree.flatten(eager)
    found, found_structure = tree.flatten(traced)
    if found_structure != structure:
        raise AssertionError(f"eagerly the result is {structure}, traced {found_structure}")
    for path, a, b in zip(tree.paths(structure, "result"), wanted, found, strict=True):
        compare(path, np.asarray(a), np.asarray(b), rtol, atol)


def _own(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _jitted(function: Callable[..., Any], *arguments: Any) -> Any:
    return tracegraph.jit(function)(*arguments)


def compare(path: str, eager: Any, traced: Any, rtol: float, atol: float) -> None:
    """Assert that two arrays have one dtype and shape, and numbers within tolerances."""
    if (eager.dtype, eager.shape) != (traced.dtype, traced.shape):
        raise AssertionError(
            f"{path} is {eager.dtype}{list(eager.shape)} eagerly, "
            f"and {traced.dtype}{list(traced.shape)} traced"
        )
    if eager.dtype.kind in "biu" or rtol == atol == 0.0:
        np.testing.assert_array_equal(traced, eager, err_msg=path)
    else:
        np.testing.assert_allclose(traced, eager, rtol=rtol, atol=atol, err_msg=path)
