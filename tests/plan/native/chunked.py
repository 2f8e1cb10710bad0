"""Nests in chunks, however small, and a number of threads for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import tracegraph
from lowering.native import chunks
from lowering.native.report import schedules_text
from lowering.plan.plan import Plan


@contextmanager
def small_chunks() -> Iterator[None]:
    """Within, code is written with chunks of a few steps wherever a nest can have some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "LEAST_TIME", 1e-3)
        patch.setattr(chunks, "CHUNK_TIME", 1)
        patch.setattr(chunks, "LINE", 1)
        patch.setattr(chunks, "RUN", 1)
        yield


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Native code has `number` threads within this context."""
    tracegraph.set_threads(number)
    try:
        yield
    finally:
        tracegraph.set_threads(None)


def chunked_nests(plan: Plan) -> int:
    """How many nests of a plan have chunks."""
    return schedules_text(plan).count("; threads: ")
