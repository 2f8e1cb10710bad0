"""The library call and the node kind of docs/extending.md run on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tracegraph
from tests.programs.extension import PROGRAMS, extended


@PROGRAMS
def test_what_is_added_from_outside_runs(program: Callable[..., Any], x: Any) -> None:
    with extended() as extension:
        fn = program(extension)
        result = tracegraph.jit(fn, device="cuda")(x)
        expected = np.asarray(fn(tracegraph.asarray(x)))
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12)
