"""One assertion: a user's kernel computes on a device what its reference does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tracegraph import tree
from tracegraph.testing.differences import Tolerance, of_arrays, tolerance_of

ULPS = 8
"""The tolerance for floating-point numbers, in units in the last place of 1: what contracted
multiplications and additions, and functions of CUDA's, come to in short formulas."""


def check_kernel(
    kernel: Callable[..., Any],
    *arguments: Any,
    rtol: float | None = None,
    atol: float = 0.0,
    device: str = "cuda",
) -> None:
    """Assert that a kernel computes what its reference does, and writes to no argument.

    Integers and booleans must be equal. NaNs equal each other, and so do both zeros.

    Args:
        kernel: what `tracegraph.kernel` or `tracegraph.elementwise` made.
        *arguments: NumPy arrays and numbers.
        rtol: difference allowed between floating-point numbers, relative to the reference's; by
            default, 8 units in the last place of each dtype.
        atol: absolute difference allowed, in addition.
        device: where the kernel runs. On ``"host"``, the reference itself runs.

    Raises:
        AssertionError: the results differ, or an argument has changed.
        RuntimeError: there is no GPU, or the kernel does not compile.
        TypeError: `kernel` has no reference.

    >>> cubed = tracegraph.elementwise(lambda x: x * x * x, cuda="{0} * {0} * {0}")
    >>> check_kernel(cubed, np.linspace(-1, 1, 9), device="host")  # "cuda" runs the CUDA text
    """
    if not callable(getattr(kernel, "reference", None)):
        raise TypeError(
            f"check_kernel takes what tracegraph.kernel returns, not {type(kernel).__qualname__}"
        )
    given = [isinstance(argument, np.ndarray) for argument in arguments]

    def call(*arrays: Any) -> Any:
        each = iter(arrays)
        pairs = zip(arguments, given, strict=True)
        return kernel(*[next(each) if is_array else value for value, is_array in pairs])

    arrays = [a for a, is_array in zip(arguments, given, strict=True) if is_array]
    expected = kernel(*arguments)
    try:
        on_device = [tracegraph.asarray(array, device=device) for array in arrays]
        found = tracegraph.jit(call, device=device)(*on_device)
    except RuntimeError as error:
        error.add_note(f"check_kernel runs {kernel!r} on {device}")
        raise
    wanted, structure = tree.flatten(expected)
    paths = tree.paths(structure, "result")
    for path, a, b in zip(paths, wanted, tree.leaves(found), strict=True):
        a = np.asarray(a)
        allowed = tolerance_of(a.dtype, ULPS) if rtol is None else rtol
        line = of_arrays(path, a, np.asarray(b), Tolerance(rtol=allowed, atol=atol))
        if line is not None:
            raise AssertionError(f"{kernel!r} differs from its reference on {device}:\n  {line}")
    for number, (before, after) in enumerate(zip(arrays, on_device, strict=True)):
        np.testing.assert_array_equal(
            np.asarray(after), before, err_msg=f"{kernel!r} has written to array {number}"
        )
