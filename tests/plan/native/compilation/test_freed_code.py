"""Code is freed by LLVM, whose lock must not be held at a fork: the child would wait for ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lowering.native.compilation import compiler, llvm_turns, tiers


def test_the_background_frees_what_it_held_last_in_its_turn() -> None:
    in_turn: list[bool] = []

    class Dropped:
        """Tiers that nobody else has any more."""

        level = "full"

        def __del__(self) -> None:
            in_turn.append(llvm_turns._of_process[0].is_taken)

    last: list[Any] = [Dropped()]
    tiers._finish_in_background(last.pop, None)  # type: ignore[arg-type]
    assert in_turn == [True]


def test_a_compilation_frees_its_module_in_its_last_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    in_phase = [False]
    freed: list[bool] = []

    class Machine:
        """What LLVM frees, and tells when."""

        def emit_object(self, module: object) -> bytes:
            return b"code"

        def __del__(self) -> None:
            freed.append(in_phase[0])

    @contextmanager
    def phase() -> Iterator[None]:
        in_phase[0] = True
        yield
        in_phase[0] = False

    monkeypatch.setattr(compiler, "_target_machine", lambda level: Machine())
    monkeypatch.setattr(compiler, "_parsed", lambda text, machine: Machine())
    monkeypatch.setattr(compiler, "_optimise", lambda module, machine, level: None)
    assert compiler.compile("", "full", phase) == b"code"
    assert freed == [True, True]
