"""How a wait for loops spends its time, on a clock that only moves when it is told to."""

import pytest

from lowering.cuda.streams import timeline
from lowering.cuda.streams.timeline import SLEEP_SHARE, WAKING_SECONDS, Timeline
from lowering.testing.recording_driver import RecordingDriver
from tracegraph.errors import DeviceLostError

POLL = 1e-6


class Clock:
    """Stands for the module `time`: asking costs nothing, sleeping longer than it should."""

    def __init__(self):
        self.now = 0.0
        self.sleeps = []

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        assert seconds >= 0
        self.sleeps.append(seconds)
        self.now += seconds + WAKING_SECONDS


class Driver(RecordingDriver):
    """One whose work ends at a time of the clock."""

    def __init__(self, clock, end):
        super().__init__()
        self.clock, self.end = clock, end

    def record(self):
        def passed():
            self.clock.now += POLL
            return self.clock.now >= self.end

        return passed


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(timeline, "time", clock)
    return clock


def wait(clock, end):
    waiting = Timeline(Driver(clock, end))
    waiting.launch(lambda: None, None, True, None)
    waiting.settle()
    assert not waiting.in_flight


class LostDriver(RecordingDriver):
    """One whose device fails in the first launch."""

    def record(self):
        super().record()
        return self._fail

    def _fail(self):
        raise DeviceLostError("CUDA_ERROR_LAUNCH_FAILED")


def test_nothing_is_stopped_on_a_device_that_is_lost():
    waiting = Timeline(LostDriver())
    waiting._new_pending()
    for wait in (waiting.settle, waiting.wait):
        with pytest.raises(DeviceLostError, match="CUDA_ERROR_LAUNCH_FAILED") as caught:
            wait()
        assert caught.value.__context__ is None
    assert waiting.driver.count("raise_flag") == 0


@pytest.mark.parametrize("end", [5e-5, 3e-3, 5e-3, 0.02, 0.06, 0.3])
def test_a_wait_is_late_by_no_more_than_its_share(clock, end):
    wait(clock, end)
    assert clock.now - end <= end * SLEEP_SHARE + 2 * POLL


def test_a_short_wait_does_not_sleep(clock):
    wait(clock, 3e-3)
    assert not clock.sleeps


def test_the_cpu_stays_awake(clock):
    wait(clock, 0.04)
    assert set(clock.sleeps) == {0}


def test_a_long_wait_sleeps_most_of_the_time(clock):
    wait(clock, 0.6)
    assert sum(clock.sleeps) > 0.8 * clock.now
