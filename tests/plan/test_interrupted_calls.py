"""A call that an interrupt ends at any point holds no lock after."""

import random
import signal
from contextlib import suppress

import numpy as np
import pytest

from lowering.backends.host import HostBackend
from tracegraph import jit
from tracegraph.types import ArrayType

INTERRUPTS = 300


class InterruptError(Exception):
    pass


@pytest.fixture
def timer():
    """Starts a timer, which raises InterruptError at its end."""

    def interrupt(number, frame):
        raise InterruptError

    if not hasattr(signal, "setitimer"):
        pytest.skip("the system has no timers that send signals")
    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.signal(signal.SIGALRM, before)


def test_an_interrupted_call_leaves_the_executable_free(timer):
    plan = jit(lambda x: x + 1, device="host").lower(ArrayType("float64", (8,))).plan
    executable, x = HostBackend().compile(plan), np.ones(8)
    choose = random.Random(0)
    for _ in range(INTERRUPTS):
        with suppress(InterruptError):
            timer(choose.uniform(1e-5, 2e-4))
            while True:
                executable([x])
    assert executable.close_idle()
