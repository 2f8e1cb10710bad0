"""Tracing test functions, and comparing what is traced and interpreted with the eager run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracegraph import tree
from tracegraph.ir import interpret
from tracegraph.ir.program import Program
from tracegraph.ir.types import type_of
from tracegraph.ir.verify import verify
from tracegraph.passes import optimize
from tracegraph.tracing.trace import trace_program


def trace(function: Callable[..., Any], *args: Any) -> Program:
    """The verified program of a function for arguments like these."""
    return trace_with_structure(function, *args)[0]


def trace_with_structure(function: Callable[..., Any], *args: Any) -> tuple[Program, Any]:
    leaves, structure = tree.flatten(args)
    structures = []

    def flat(*tracers: Any) -> list[Any]:
        found, returned = tree.flatten(function(*tree.unflatten(structure, tracers)))
        structures.append(returned)
        return found

    program = trace_program(flat, [type_of(leaf) for leaf in leaves], "f")
    return verify(program), structures[0]


def assert_traced_equals_eager(function: Callable[..., Any], *args: Any) -> Any:
    """Require equal results, in value, dtype and structure, of the eager run, the interpreted
    program and the interpreted optimized program; returns the eager ones.

    The inputs must stay as they were. Python scalars are compared by value and dtype.
    """
    before = [np.array(leaf) for leaf in tree.leaves(args)]
    eager = function(*args)
    program, structure = trace_with_structure(function, *args)
    for variant in (program, verify(optimize(program))):
        results = interpret.run(variant, *map(np.asarray, tree.leaves(args)))
        expected, expected_structure = tree.flatten(eager)
        assert structure == expected_structure
        for got, wanted in zip(results, map(np.asarray, expected), strict=True):
            assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_array_equal(got, wanted)
    for leaf, old in zip(tree.leaves(args), before, strict=True):
        np.testing.assert_array_equal(leaf, old)
    return eager
