"""The blocks of a persistent kernel, as text."""

from __future__ import annotations

from lowering.plan.target.scope import Scope


def running_blocks(scope: Scope) -> str:
    """How many blocks run: fewer than the scope has, on a device with fewer multiprocessors; of a
    launch that has others as well, all.
    """
    return str(scope.blocks) if scope.beside else "int(gridDim.x)"
