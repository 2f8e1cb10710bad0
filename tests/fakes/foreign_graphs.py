"""Graphs by the driver's own calls, and waiting for what they let go of."""

import gc
import time

import tracegraph

WAIT_SECONDS = 20.0


def comes(condition):
    """Whether a condition holds after a while: the driver calls destructors when it likes."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition() and time.monotonic() < deadline:
        gc.collect()
        tracegraph.memory_stats()
        time.sleep(0.001)
    return condition()


def checked(answer):
    """What a call of the driver returns, which must succeed."""
    assert answer[0].name == "CUDA_SUCCESS", answer[0]
    return answer[1] if len(answer) == 2 else answer[1:]
