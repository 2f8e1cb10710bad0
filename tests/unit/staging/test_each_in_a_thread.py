"""Functions in threads, and what an interrupt leaves of them."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import pytest

from tracegraph.concurrency.each_in_a_thread import each_in_a_thread


class Interrupted:
    """A function that goes on until it is released, and an interrupt while it runs."""

    def __init__(self, *, releases: bool) -> None:
        self.begun, self.released = threading.Event(), threading.Event()
        self.over = threading.Event()
        self.sender = threading.Thread(target=self._send, args=(releases,))
        self.sender.start()

    def __call__(self) -> None:
        self.begun.set()
        assert self.released.wait(60)
        self.over.set()

    def _send(self, releases: bool) -> None:
        self.begun.wait(60)
        os.kill(os.getpid(), signal.SIGINT)
        if releases:
            self.released.set()


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends processes there")
def test_an_interrupt_is_raised_when_all_are_over() -> None:
    function = Interrupted(releases=True)
    with pytest.raises(KeyboardInterrupt):
        each_in_a_thread([function, lambda: None])
    assert function.over.is_set()
    function.sender.join()


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends processes there")
@pytest.mark.parametrize("delay", [k * 2e-5 for k in range(40)])
def test_at_an_interrupt_all_have_run_or_none(delay: float) -> None:
    ran: list[int] = []
    functions = [partial(ran.append, number) for number in range(4)]
    sender = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))

    def interrupted() -> None:
        sender.start()
        each_in_a_thread(functions)
        sender.join()
        time.sleep(60)  # until the interrupt is here

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert sorted(ran) in ([], [0, 1, 2, 3])


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends processes there")
def test_an_interrupt_leaves_what_only_waits() -> None:
    function = Interrupted(releases=False)
    with pytest.raises(KeyboardInterrupt):
        each_in_a_thread([function, lambda: None], waits=True)
    assert not function.over.is_set()
    function.released.set()
    assert function.over.wait(60)
    function.sender.join()


def test_the_first_failure_is_raised() -> None:
    def fail() -> int:
        raise ValueError("of the second")

    with pytest.raises(ValueError, match="of the second"):
        each_in_a_thread([lambda: 1, fail])
