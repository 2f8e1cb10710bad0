"""Runs whole Plans as the GPU would: generated kernels on the CPU, conditions, copies, products."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from emulator import FILL, Emulator

from lowering.plan.buffer import Buffer
from lowering.plan.nodes import (
    Graph,
    IfElseNode,
    KernelNode,
    LibraryNode,
    MatrixOperand,
    MemcpyNode,
    Node,
    SwitchNode,
    WhileNode,
)
from lowering.plan.plan import Plan

Array = np.ndarray[Any, Any]
MOST_ITERATIONS = 10_000


class PlanMemory:
    """One arena for scratch, and memory of their own for all other buffers."""

    def __init__(self, plan: Plan) -> None:
        self._offsets = plan.offsets
        self._arena = _aligned_bytes(plan.arena_bytes)
        others = [*plan.inputs, *plan.outputs, *(buffer for buffer, _ in plan.constants)]
        self._own = {buffer: _aligned_bytes(buffer.type.nbytes) for buffer in others}

    def view(self, buffer: Buffer) -> Array:
        """The array in the memory of a buffer."""
        start = self._offsets.get(buffer, 0)
        place = self._own.get(buffer, self._arena)[start : start + buffer.type.nbytes]
        return place.view(buffer.type.dtype).reshape(buffer.type.shape)

    def address(self, buffer: Buffer) -> int:
        return int(self.view(buffer).ctypes.data)


def _aligned_bytes(nbytes: int) -> Array:
    block = np.full(nbytes + 256, FILL, np.uint8)
    start = -block.ctypes.data % 256
    return block[start : start + nbytes]


class PlanEmulator:
    """Runs a Plan. Nodes that no edge orders are run in an order drawn at random."""

    def __init__(self, plan: Plan, kernels: Emulator, seed: int = 0) -> None:
        self.plan = plan
        self._kernels = kernels
        self._random = random.Random(seed)
        self._memory = PlanMemory(plan)

    def __call__(self, *args: Any) -> list[Array]:
        """The results for arguments of the Plan's types."""
        memory = self._memory
        for buffer, data in [*zip(self.plan.inputs, args, strict=True), *self.plan.constants]:
            memory.view(buffer)[...] = data
        self._run(self.plan.graph)
        return [memory.view(buffer).copy() for buffer in self.plan.outputs]

    def _run(self, graph: Graph) -> None:
        for node in self._order(graph):
            self._run_node(node)

    def _order(self, graph: Graph) -> Sequence[Node]:
        waiting = {i: {a for a, b in graph.edges if b == i} for i in range(len(graph.nodes))}
        order = []
        while waiting:
            ready = [i for i, before in waiting.items() if not before & waiting.keys()]
            chosen = self._random.choice(ready)
            del waiting[chosen]
            order.append(graph.nodes[chosen])
        return order

    def _run_node(self, node: Node) -> None:
        match node:
            case KernelNode():
                self._kernels.launch(node, self._memory)
            case MemcpyNode():
                source = self._memory.view(node.source_buffer)
                target = self._memory.view(node.target)
                target.reshape(-1).view(np.uint8)[...] = source.reshape(-1).view(np.uint8)
            case LibraryNode():
                self._multiply(node)
            case IfElseNode():
                self._run(node.then if self._condition(node) else node.otherwise)
            case SwitchNode():
                self._run(node.branches[self._condition(node)])
            case WhileNode():
                for _ in range(MOST_ITERATIONS):
                    if not self._condition(node):
                        return
                    self._run(node.body)
                raise AssertionError("a loop that should have ended did not")

    def _condition(self, node: IfElseNode | SwitchNode | WhileNode) -> int:
        return self._kernels.conditions[node.condition]

    def _multiply(self, node: LibraryNode) -> None:
        left = self._matrices(node.left, node.batch, node.m, node.k)
        right = self._matrices(node.right, node.batch, node.k, node.n)
        target = self._matrices(node.target, node.batch, node.m, node.n)
        wide = np.result_type(target.dtype, np.float32) if target.dtype.itemsize == 2 else None
        target[...] = np.matmul(left.astype(wide or left.dtype), right.astype(wide or right.dtype))

    def _matrices(self, operand: MatrixOperand, batch: int, rows: int, columns: int) -> Array:
        flat = self._memory.view(operand.buffer).reshape(-1)[operand.offset :]
        strides = (operand.batch_stride, operand.row_stride, operand.column_stride)
        return np.lib.stride_tricks.as_strided(
            flat, (batch, rows, columns), [s * flat.itemsize for s in strides]
        )
