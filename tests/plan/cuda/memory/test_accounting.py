"""What is held, by purpose, follows memory that comes and goes in any thread."""

import threading

from lowering.cuda.memory.accounting import Holdings
from tests.helpers.threads import in_threads


class Memory:
    """Something that is entered, and dies."""


def entered(holdings, purpose, nbytes):
    memory = Memory()
    holdings.enter(memory, purpose, nbytes)
    return memory


def test_bytes_are_counted_as_long_as_their_memory_lives():
    holdings = Holdings()
    first, second = entered(holdings, "arrays", 3), entered(holdings, "arrays", 4)
    arena = entered(holdings, "arenas", 10)
    assert holdings.held == {"arrays": 7, "arenas": 10, "constants": 0}
    del first
    assert holdings.held == {"arrays": 4, "arenas": 10, "constants": 0}
    assert holdings.high_water == 17
    del second, arena
    again = entered(holdings, "constants", 16)
    assert holdings.held == {"arrays": 0, "arenas": 0, "constants": 16}
    assert holdings.high_water == 17, "what is dead does not count beside it"
    del again


def test_threads_may_take_and_free_at_once():
    holdings = Holdings()

    def work(_):
        for _ in range(2000):
            entered(holdings, "arrays", 5)

    in_threads(4, work)
    assert holdings.held["arrays"] == 0


def test_a_finalizer_that_runs_meanwhile_may_enter_memory():
    holdings, kept = Holdings(), []

    class Interrupted(set):
        def add(self, entry):
            super().add(entry)
            if not kept:
                kept.append(None)
                kept.append(entered(holdings, "arenas", 5))

    holdings._living = Interrupted()
    work = threading.Thread(target=lambda: kept.append(entered(holdings, "arrays", 3)), daemon=True)
    work.start()
    work.join(timeout=30)
    assert not work.is_alive()
    assert holdings.held == {"arrays": 3, "arenas": 5, "constants": 0}


def test_entering_memory_looks_at_none_that_is_alive():
    class Looked(set):
        def __iter__(self):
            raise AssertionError("it would cost more, the more is alive")

    holdings = Holdings()
    holdings._living = Looked()
    kept = [entered(holdings, "arrays", 1) for _ in range(3)]
    del kept[0]
    assert holdings.held["arrays"] == 2
