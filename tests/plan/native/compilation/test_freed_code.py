"""Code is freed by LLVM, whose lock must not be held at a fork: the child would wait for ever."""

from __future__ import annotations

from typing import Any

from lowering.native.compilation import llvm_turns, tiers


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
