"""Kernels written by hand, for the tests of code generation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import tracegraph.ops  # noqa: F401 - registers the ops that `call` names
from lowering.codegen import Unit
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nests.kernel import Kernel, Nest, Store
from lowering.plan.nodes import Graph, KernelNode
from lowering.plan.plan import Plan
from tracegraph.ir.op import get
from tracegraph.ir.scalar import Axis, Expr
from tracegraph.ir.scalar_values import Load, apply
from tracegraph.ir.types import ArrayType

_numbers = itertools.count()


def text_of(unit: Unit, kernel: KernelNode) -> str:
    """The body of a kernel's function."""
    function = unit.kernels[kernel].name
    return unit.source.split(f"\n{function}(")[1].split("\n}\n")[0]


def buffer(dtype: Any, *shape: int) -> Buffer:
    """A new input buffer."""
    return Buffer("input", next(_numbers), ArrayType(dtype, shape))


def axes(*extents: int) -> tuple[Axis, ...]:
    """The axes of a space, or of a space followed by a loop."""
    return tuple(Axis.make(number, extent) for number, extent in enumerate(extents))


def load(source: Buffer, *indices: Expr, guard: Expr | None = None) -> Expr:
    """An element of a buffer."""
    return Load.make(source, indices, guard)


def call(name: str, *args: Expr, dtype: Any = None, **attrs: Any) -> Expr:
    """An elementwise op, of the dtype of its first operand unless one is given."""
    return apply(get(name), args, np.dtype(dtype or args[0].dtype), attrs)


def store(target: Buffer, indices: tuple[Expr, ...], value: Expr, guard: Any = None) -> Store:
    """A store of a nest."""
    return Store(target, indices, value, guard)


def node(name: str, *nests: Nest) -> KernelNode:
    """A kernel node of nests."""
    return KernelNode(Kernel(name, nests))


def plan(*nodes: KernelNode, offsets: Any = None) -> Plan:
    """A plan of kernel nodes that do not depend on each other."""
    return Plan("test", Graph(nodes, frozenset()), (), (), (), offsets or {}, 0, 64)
