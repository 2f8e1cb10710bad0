"""Timeline: launching on a stream, waiting for it, and stopping its loops.

A launch with loops may run for ever. So waiting for it polls, and a signal or a time limit gets
through; then a flag in device memory, which all loops read at each step, ends them. A stopped
launch has no results: reading them raises.

Without loops in flight, waiting is one blocking call of the driver.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Self

import numpy as np

from lowering.cuda.effects.callback_thread import Callbacks, in_callback, require_not_awaited
from lowering.cuda.effects.launch_effects import Effects
from lowering.cuda.effects.print_ring import PrintRing
from lowering.cuda.effects.progress import Watcher
from lowering.cuda.interface import Allocation, Driver, Event
from lowering.cuda.streams.in_flight import InFlightLaunch
from lowering.cuda.streams.launched_together import STOP_SECONDS, abandon, tell, watch
from lowering.cuda.streams.stop_flag import StopFlag
from lowering.plan.calls.rendezvous import place
from tracegraph import limits
from tracegraph.errors import DeviceLostError, MeshMismatchError, PeerLostError

LONGEST_SLEEP = 1e-3
SLEEP_SHARE = 1 / 64
"""A wait sleeps for this share of the time that it has taken so far, so that it is late by no more.
While waking would take longer, it spins."""
WAKING_SECONDS = 60e-6
"""What a sleep takes longer than asked for: Linux adds 50 µs to each, also to one of 0 seconds."""
AWAKE_SECONDS = 0.05
"""How long a wait sleeps for 0 seconds each time. Where the CPU had slept for longer, the next
launch of a mesh took 400 µs, not 100."""

MOST_QUEUED = 16
"""Launches behind a loop, after which the next one waits: a full queue would also block signals.
Driver 580 was seen to block at the 28th graph behind one that runs."""

DRIVER_COPIED_BYTES = 64 << 10
"""Up to this size the driver copies pageable memory aside at once; above it, it waits for the
stream."""


class Timeline:
    """The launches of one stream. Threads may use it concurrently.

    The streams of a device share a stop flag, the lock that guards it, a watcher, and the ring that
    programs print through. All belong to the timeline of the default stream.
    """

    def __init__(self, driver: Driver, default: Self | None = None) -> None:
        self.driver = driver
        self.default_timeline = default or self
        self.watcher: Watcher = default.watcher if default else Watcher(driver)
        self.stopping: StopFlag[Timeline] = default.stopping if default else StopFlag(driver)
        self.in_flight: deque[InFlightLaunch] = deque()
        self._lock = self.stopping.lock
        self._launched = 0
        self._queued = 0
        self._undrained: dict[Effects, None] = {}
        self._undrained_streams: dict[Timeline, None] = {}  # left ones
        self.held: deque[tuple[Event, tuple[Any, ...]]] = deque()
        self._prints: PrintRing | None = None
        self._callbacks: Callbacks | None = None
        with self._lock:
            self.stopping.timelines.add(self)

    @property
    def stop_flag(self) -> Allocation:
        """The word that ends loops while it is not zero."""
        return self.stopping.word

    @property
    def prints(self) -> PrintRing:
        """The ring through which all programs of the device print."""
        with self._lock:
            default = self.default_timeline
            if default._prints is None:
                default._prints = PrintRing.allocate(default.driver)
            return default._prints

    @property
    def callbacks(self) -> Callbacks:
        """What makes the calls of the stream's programs."""
        with self._lock:
            if self._callbacks is None:
                self._callbacks = Callbacks(self.driver)
            return self._callbacks

    @property
    def busy(self) -> bool:
        """Whether loops may be in flight."""
        return bool(self.in_flight)

    @property
    def undrained(self) -> bool:
        """Whether launches may have something to report."""
        return bool(self._undrained)

    @property
    def idle(self) -> bool:
        """Whether all loops have ended, and all events have passed that objects are held for."""
        with self._lock:
            self._complete(list(takewhile(InFlightLaunch.passed, self.in_flight)))
            self._release_held()
            return not self.in_flight and not self.held

    # Launching

    def launch(
        self,
        start: Callable[[], None],
        effects: Effects | None,
        loops: bool,
        source: InFlightLaunch | None,
        flag: Allocation | None = None,
    ) -> InFlightLaunch | None:
        """Launch by `start`; the launch with loops that the results wait for, if any.

        `source` is the one that the arguments wait for. `flag` is the word that ends the loops, if
        that is not the one of the device.
        """
        self.make_room()
        with self._lock:
            try:
                self._complete(list(takewhile(InFlightLaunch.passed, self.in_flight)))
            except DeviceLostError:
                self._end_calls()
                raise
            self.stopping.await_lowered(self.driver)
            if effects is not None:
                self.watcher.expect(effects)
                self._undrained[effects] = None
                self._stay_alive()
            self._queued += bool(self.in_flight)
            if not loops and not (effects is not None and (effects.monitors or effects.waits)):
                start()
                return source
            return self._launch_loops(start, effects, flag)

    def make_room(self) -> None:
        """Wait if many launches are behind loops."""
        if self._queued >= MOST_QUEUED:
            self.settle()

    def _launch_loops(
        self, start: Callable[[], None], effects: Effects | None, flag: Allocation | None
    ) -> InFlightLaunch:
        """It counts as in flight before it starts: an interrupt must not leave loops unknown."""
        pending = self._new_pending(effects, start, flag)
        calls = self.callbacks if effects is not None and effects.waits else None
        try:
            if calls is not None and effects is not None:
                # before the start, which waits for calls where the host drives loops
                calls.follow(effects.asks)
            start()
        except Exception:
            if pending.together is None:  # else what was launched of it may wait for others
                self._complete([pending])
            raise
        finally:
            if calls is not None:
                calls.mark_end()
        self._begun(pending)
        if effects is not None and effects.shows:
            self.watcher.follow(effects, pending.passed, self.default_timeline._prints)
        return pending

    def _new_pending(
        self,
        effects: Effects | None = None,
        start: Callable[[], None] | None = None,
        flag: Allocation | None = None,
    ) -> InFlightLaunch:
        self._launched += 1
        together = place.together
        pending = InFlightLaunch(self._launched, self.driver.record, effects, start, flag, together)
        self.in_flight.append(pending)
        return pending

    def follow(self, event: Event, other: Timeline | None) -> InFlightLaunch | None:
        """Let this stream wait for an event of another one, or of any of the device.

        While loops are in flight there, work here has to be waited for as if it also had loops:
        then a new launch in flight stands for it, and is returned.
        """
        if event():
            return None
        self.driver.wait(event)
        if not any(each.busy for each in (self.stopping.all() if other is None else [other])):
            return None
        with self._lock:
            pending = self._new_pending()
            self._begun(pending)
            return pending

    def _begun(self, pending: InFlightLaunch) -> None:
        """Record the event behind a launch; then its peers may look at it."""
        pending.passed()
        if pending.together is not None:
            pending.together.launches.append((self, pending))

    def hold(self, event: Event, *owners: Any) -> None:
        """Keep objects until an event of this stream has passed."""
        with self._lock:
            self._release_held()
            self.held.append((event, owners))

    def release_held(self) -> None:
        """Release what is held for events that have passed."""
        if self.held:
            with self._lock:
                self._release_held()

    def _release_held(self) -> None:
        while self.held and self.held[0][0]():
            self.held.popleft()

    # Waiting

    def wait(self) -> None:
        """Wait for the stream, show what its launches printed, and raise what they report.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
            Exception: the first failure of a check in a program, or what a callback raised.
        """
        if not self._may_report():
            self.driver.activate()
            self.driver.synchronize()
            self.release_held()
            return
        undrained = self._take_undrained()
        try:
            self.settle()
        except BaseException:
            self._put_back(undrained)
            raise
        self._drain(undrained)
        if self._callbacks is not None:
            self._callbacks.finish(())

    def _may_report(self) -> bool:
        """Whether there is more to wait for than work of the device.

        Callbacks may be behind when another thread has taken the launches that are undrained.
        """
        if self.in_flight or self._undrained or in_callback() is not None:
            return True
        return self._callbacks is not None and self._callbacks.behind

    def settle(self) -> None:
        """Wait for the stream; failures are raised by the next `wait`.

        Raises:
            TimeLimitError: the time of a `time_limit` was up; loops were stopped.
        """
        self.driver.activate()
        if self.in_flight or in_callback() is not None:
            self._poll()
        else:
            self.driver.synchronize()
        self.release_held()

    def loops_in_flight(self) -> bool:
        """Whether loops run on any stream of the device."""
        timelines = self.stopping.all()
        return not all(pending.passed() for t in timelines for pending in list(t.in_flight))

    def settle_loops(self) -> None:
        """Wait for the loops in flight on all streams of the device, as `settle` does.

        Raises:
            CallbackDeadlockError: one of them waits for the callback that this thread runs.
        """
        for timeline in self.stopping.all():
            if timeline.busy:
                require_not_awaited("a graph is built only when no loop or callback is in flight")
                timeline.settle()

    def read(self, target: np.ndarray[Any, Any], pointer: int) -> None:
        """Wait, and copy to a host array. Raises what `wait` does."""
        if self._may_report():
            self.wait()
        self.driver.activate()
        self.driver.copy_to_host(target, pointer)
        self.release_held()

    def write(self, pointer: int, source: np.ndarray[Any, Any]) -> None:
        """Copy a host array, which may change as soon as this returns.

        Raises:
            TimeLimitError: as `settle`, where the copy has to wait.
        """
        if source.nbytes > DRIVER_COPIED_BYTES and self.in_flight:
            self.settle()
        if self.driver.copy_to_device(pointer, source):
            self.settle()

    def check(self) -> None:
        """Raise what ends a wait for what is in flight.

        Raises:
            TimeLimitError: the time of a `time_limit` was up.
            Exception: what a callback raised.
        """
        limits.check()
        if self._callbacks is not None:
            self._callbacks.check()

    def check_within(self) -> None:
        """As `check`, in the midst of a launch, which may wait for other devices.

        Raises:
            PeerLostError, StoppedError: they do not come.
        """
        self.check()
        if place.together is not None:
            place.together.watch_within()

    def _poll(self) -> None:
        """Wait in Python, where signals are handled."""
        with self._lock:
            in_flight, passed = list(self.in_flight), self.driver.record()
        start, waiting = time.perf_counter(), in_callback()
        try:
            while not passed():
                self.check()
                watch(in_flight)
                if self.default_timeline._prints is not None:
                    self.default_timeline._prints.show()
                if waiting is not None:
                    waiting.relieve()
                elapsed = time.perf_counter() - start
                pause = min(elapsed * SLEEP_SHARE, LONGEST_SLEEP) - WAKING_SECONDS
                if pause > 0:  # others may need the GIL
                    time.sleep(pause if elapsed > AWAKE_SECONDS else 0)
                elif self._callbacks is not None:
                    time.sleep(0)  # the thread of callbacks needs it sooner
        except (DeviceLostError, PeerLostError, MeshMismatchError) as reason:
            if isinstance(reason, DeviceLostError):
                self._end_calls()  # nothing is left to stop
            abandon(in_flight, reason)
            raise
        except BaseException as reason:
            self.stop(reason)
            raise
        self._complete(in_flight)

    def _end_calls(self) -> None:
        """The device is lost: no launch of any stream goes on."""
        for timeline in self.stopping.all():
            if timeline._callbacks is not None:
                timeline._callbacks.end_all()

    def _complete(self, in_flight: list[InFlightLaunch]) -> None:
        with self._lock:
            for pending in in_flight:
                if not pending.over:
                    self.in_flight.remove(pending)
                    pending.complete()
            if not self.in_flight:
                self._queued = 0
                if self._callbacks is not None:
                    self._callbacks.end_all()

    # Stopping

    def stop(self, reason: BaseException) -> None:
        """End all loops in flight on the device, and wait for their end.

        Launches on other devices that wait for these end with them. If they do not, or another
        interrupt comes, they are abandoned.
        """
        stopped: list[tuple[Timeline, list[InFlightLaunch], Event | None]] = []
        try:
            peers = self._with_peers()
            tell((p for peer in peers for t in peer.stopping.all() for p in t.in_flight), reason)
            for timeline in peers:
                timeline.driver.activate()
                stopped.append((timeline, *timeline.stopping.stop(reason)))
            self._await_ends(stopped)
        except BaseException as second:
            if not abandon([p for _, in_flight, _ in stopped for p in in_flight], second):
                raise
            if not isinstance(second, PeerLostError):
                raise
        finally:
            for _, in_flight, _ in stopped:
                for pending in in_flight:
                    if pending.effects is not None:
                        pending.effects.ignore_failure()
        for timeline, in_flight, _ in stopped:
            timeline.driver.activate()
            timeline.finish_stop(in_flight)
        self.driver.activate()

    def _with_peers(self) -> list[Timeline]:
        """One timeline of this device, and of each on which launches wait for those of this one."""
        found: dict[StopFlag[Timeline], Timeline] = {self.stopping: self.default_timeline}
        waiting = [self.default_timeline]
        while waiting:
            for timeline in waiting.pop().stopping.all():
                for pending in list(timeline.in_flight):
                    together = pending.together
                    for peer, _ in () if together is None else tuple(together.launches):
                        if peer.stopping not in found:
                            found[peer.stopping] = peer.default_timeline
                            waiting.append(peer.default_timeline)
        return list(found.values())

    def _await_ends(
        self, stopped: Sequence[tuple[Timeline, list[InFlightLaunch], Event | None]]
    ) -> None:
        """Wait for the ends of launches that are stopped.

        Raises:
            PeerLostError: one waits for another device, which does not come.
        """
        launches = [pending for _, in_flight, _ in stopped for pending in in_flight]
        together, start = any(p.together is not None for p in launches), time.monotonic()
        while not all(ended is None or ended() for _, _, ended in stopped):
            watch(launches)
            if together and time.monotonic() - start > STOP_SECONDS:
                raise PeerLostError(f"devices had not agreed on a stop within {STOP_SECONDS:g} s")
            time.sleep(LONGEST_SLEEP)

    def end_at_once(self, reason: BaseException) -> tuple[list[InFlightLaunch], Event | None]:
        """As `StopFlag.stop`: loops end without the agreement of other devices."""
        self.driver.activate()
        return self.stopping.stop(reason, at_once=True)

    def finish_stop(self, in_flight: Sequence[InFlightLaunch]) -> None:
        """Take note that launches which were stopped on the device are over."""
        for timeline in self.stopping.all():
            timeline._complete([pending for pending in in_flight if pending in timeline.in_flight])
            if timeline._callbacks is not None:
                timeline._callbacks.stopped()

    # Draining: what launches report

    def settle_calls(self) -> None:
        """Wait for the stream, and until all callbacks that have arrived are made.

        Raises:
            Exception: as `settle`; errors of callbacks are kept.
        """
        self.settle()
        if self._callbacks is not None:
            self._callbacks.finish(())

    def abandon_calls(self) -> list[str]:
        """Let nobody wait for callbacks any more; the names of those that are not made."""
        return [] if self._callbacks is None else self._callbacks.abandon()

    def drain_errors(self) -> list[BaseException]:
        """Show what finished launches print, and return the errors that they report."""
        errors: list[BaseException] = []
        for effects in self._take_undrained():
            try:
                self._drain({effects: None})
            except BaseException as error:
                errors.append(error)
        return errors

    def _take_undrained(self) -> dict[Effects, None]:
        with self._lock:
            undrained, self._undrained = self._undrained, {}
            self.default_timeline._undrained_streams.pop(self, None)
            return undrained

    def _put_back(self, undrained: dict[Effects, None]) -> None:
        with self._lock:
            self._undrained = undrained | self._undrained
            self._stay_alive()

    def _stay_alive(self) -> None:
        """Keep this timeline alive until it is drained, even if its stream is left."""
        if self._undrained and self is not self.default_timeline:
            self.default_timeline._undrained_streams[self] = None

    def _drain(self, undrained: dict[Effects, None]) -> None:
        """Show what finished launches print, and raise the first error that one reports."""
        if not undrained:
            return
        remaining = dict(undrained)
        try:
            if self.default_timeline._prints is not None:
                self.default_timeline._prints.show()
                self.default_timeline._prints.warn_of_losses()
            for effects in undrained:
                del remaining[effects]
                if effects.calls:
                    self.callbacks.finish(effects.calls)
                self.watcher.finish(effects)
                effects.raise_failure()
        finally:
            self._put_back(remaining)
