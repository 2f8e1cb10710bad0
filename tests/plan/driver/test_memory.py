"""Memory resources: what is freed, when, and in which capture mode."""

from types import SimpleNamespace

import pytest

pytest.importorskip("cuda.bindings")

from lowering.driver import error_checks, foreign_captures, memory_resources
from lowering.driver.error_checks import SUCCESS, CudaMemoryError
from lowering.driver.memory_resources import PinnedMemory, PoolMemory

FAILURE = memory_resources.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY
LOST = memory_resources.driver.CUresult.CUDA_ERROR_DEINITIALIZED


class Driver:
    """Counts what is allocated, and notes what is freed, with the mode of the thread."""

    def __init__(self):
        self.mode, self.is_lost, self.is_full = "global", False, False
        self.allocated, self.freed = [], []

    def cuThreadExchangeStreamCaptureMode(self, mode):
        assert mode is not None
        if self.is_lost:
            return LOST, None
        before, self.mode = self.mode, mode
        return SUCCESS, before

    def cuMemAllocHost(self, size):
        if self.is_full:
            return FAILURE, None
        self.allocated.append(size)
        return SUCCESS, 4096 * len(self.allocated)

    def cuMemFreeHost(self, pointer):
        self.freed.append(pointer)
        return (SUCCESS,)

    def cuMemAllocFromPoolAsync(self, size, pool, stream):
        self.allocated.append((size, pool, stream))
        return SUCCESS, 4096

    def cuMemFreeAsync(self, pointer, stream):
        self.freed.append((pointer, stream, self.mode))
        return (SUCCESS,)

    def cuGetErrorName(self, result):
        return SUCCESS, b"CUDA_ERROR_OUT_OF_MEMORY"

    def cuGetErrorString(self, result):
        return SUCCESS, b"out of memory"


@pytest.fixture
def driver(monkeypatch):
    """In place of the driver; buffers say where they are."""
    fake = Driver()
    for module in (memory_resources, foreign_captures):
        monkeypatch.setattr(module, "driver", fake)
    for name in ("cuGetErrorName", "cuGetErrorString"):
        monkeypatch.setattr(error_checks.driver, name, getattr(fake, name))
    made = SimpleNamespace(
        from_handle=lambda handle, size, resource, stream=None: SimpleNamespace(
            handle=handle, size=size
        )
    )
    monkeypatch.setattr(memory_resources, "Buffer", made)
    return fake


def test_pieces_of_pinned_memory_are_used_again(driver):
    pinned = PinnedMemory()
    piece = pinned.allocate(100)
    assert piece.size == 128
    pinned.deallocate(piece.handle, piece.size)
    assert driver.freed == []  # to free would wait for the device
    assert pinned.allocate(128).handle == piece.handle
    assert pinned.allocate(128).handle != piece.handle
    assert driver.allocated == [128, 128]


@pytest.mark.parametrize(("asked", "given"), [(0, 64), (64, 64), (65, 128), (1 << 20, 1 << 20)])
def test_sizes_are_powers_of_two(asked, given, driver):
    assert PinnedMemory().allocate(asked).size == given


def test_trimming_frees_what_is_not_in_use(driver):
    pinned = PinnedMemory()
    kept, *others = (pinned.allocate(size) for size in (64, 64, 4096))
    for piece in others:
        pinned.deallocate(piece.handle, piece.size)
    pinned.trim()
    assert sorted(driver.freed) == sorted(piece.handle for piece in others)
    pinned.trim()
    assert kept.handle not in driver.freed
    assert len(driver.freed) == 2


def test_pinned_memory_that_is_missing(driver):
    driver.is_full = True
    with pytest.raises(CudaMemoryError, match="cuMemAllocHost"):
        PinnedMemory().allocate(64)


@pytest.mark.parametrize("is_lost", [False, True])
def test_the_pool_frees_in_relaxed_mode_and_stream_order(is_lost, driver):
    device = SimpleNamespace(memory_resource=SimpleNamespace(handle="pool"), device_id=3)
    pool, stream = PoolMemory(device), SimpleNamespace(handle="stream")
    assert pool.device_id == 3
    buffer = pool.allocate(1000, stream=stream)
    assert driver.allocated == [(1000, "pool", "stream")]
    driver.is_lost = is_lost
    pool.deallocate(buffer.handle, buffer.size, stream=stream)
    mode = "global" if is_lost else foreign_captures._RELAXED
    assert driver.freed == [(4096, "stream", mode)]
    assert driver.mode == "global"  # again
