"""Tracing test functions, and comparing what is traced and interpreted with the eager run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracegraph import testing, tree
from tracegraph.ir.program import Program
from tracegraph.ir.types import type_of
from tracegraph.ir.verify import verify
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
    """Require equal results of the eager run, the interpreted program and the interpreted optimized
    program; returns the eager ones.
    """
    return testing.assert_traced_equals_eager(
        function, *args, ulps=0, ways=("interpreted", "optimized")
    )
