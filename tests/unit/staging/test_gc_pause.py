"""Pauses of the garbage collector, and what is counted as old behind them."""

from __future__ import annotations

import gc

from tracegraph.staging import gc_pause


def test_what_was_made_is_traversed_by_full_collections_only() -> None:
    gc.unfreeze()  # the suite has frozen what it imports
    try:
        with gc_pause.paused():
            kept = [[number] for number in range(2000)]
            gc_pause.count_as_old()
            assert gc.get_count()[0] < 700
        assert any(each is kept for each in gc.get_objects(generation=2))
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()


def test_what_somebody_has_frozen_stays_so() -> None:
    old = ["frozen"]
    gc.freeze()
    new = ["not frozen"]
    gc_pause.count_as_old()  # the number of frozen objects falls whenever one of them is freed
    traversed = gc.get_objects()  # all but those that are frozen
    assert not any(each is old for each in traversed)
    assert any(each is new for each in traversed)
