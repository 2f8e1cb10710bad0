"""Recipes without a compiler: texts of kernels in place of machine code."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from lowering.cuda.recipe import recorder
from lowering.cuda.recipe.targets import target_of
from tracegraph.staging.program_function import StoredTarget


@dataclass(frozen=True)
class TextCode:
    """In place of a cubin."""

    code: bytes


@pytest.fixture
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets have texts in place of code meanwhile."""

    def text(source: str, *others: Any) -> TextCode:
        return TextCode(source.encode())

    monkeypatch.setattr(recorder, "cubin", text)
    monkeypatch.setattr(recorder, "custom_cubin", text)


def stored(plan: Any, arch: str = "sm_90") -> StoredTarget:
    """The target of a Plan as a file has it."""
    target = target_of(plan, arch)
    return StoredTarget(json.loads(json.dumps(target.recipe)), target.data)
