"""Programs that a function drops beyond its limit hold nothing on the device."""

import gc

import numpy as np

import tracegraph


def test_programs_beyond_the_limit_hold_nothing_on_the_device(backend):
    driver = backend.device.driver
    table = np.arange(500.0)
    f = tracegraph.jit(lambda x: x[:, None] * table, device="cuda:0", max_builds=3)
    for n in range(1, 9):
        f(np.ones(n))
    driver.graphs.clear()
    gc.collect()
    assert len(driver.live_executables) == 3
    backend.device.trim()
    held = sum(memory.nbytes for memory in driver.live_memory)
    for n in range(9, 20):
        f(np.ones(n))
    driver.graphs.clear()
    gc.collect()
    backend.device.trim()
    assert len(driver.live_executables) == 3
    assert sum(memory.nbytes for memory in driver.live_memory) < 2 * held
    assert f.stats()["dropped"] == 16
