"""Kernels of our own in place of libraries, for programs that run where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from lowering.plan.target.overrides import declared, override
from lowering.plan.target.target import Target


@contextmanager
def without_libraries(target: Target) -> Iterator[Target]:
    """Within the context, Plans for the target that this returns call no library."""
    policy = target.lapack
    lapack = None if policy is None else replace(policy, least={}, at_once={})
    with override(replace(declared(), products="nests", factorizations=None)):
        yield replace(target, lapack=lapack, transforms=False)
