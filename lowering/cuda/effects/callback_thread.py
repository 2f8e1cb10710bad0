"""Callbacks: the thread that makes the calls of one stream's programs.

Each stream has a thread of its own, which makes calls in the order of the stream. It runs while
launches that call back are in flight, looks into the ring more often the shorter ago the last call
was, and ends when there is nothing to do for a while. It waits for no lock that launches hold, and
between calls it asks the driver for nothing: some calls of other threads, such as those that free
memory or unload code, wait for the device and hold up all threads in the driver meanwhile. A kernel
that waits for an answer would then wait for ever. That a launch has ended is seen in the ring. For
the same reason no garbage is collected while a launch is in flight that asks for answers; and if
garbage holds up the thread nevertheless, another one takes over.

A function may launch work and wait for it. What it launches goes to a stream of the thread, whose
callbacks have another thread. While it waits, calls that arrive are taken out of the ring, so that
a device with a full ring goes on, and those that a kernel waits for are answered.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Collection
from contextlib import ExitStack, nullcontext
from contextvars import Context
from typing import Any

from lowering.cuda.effects.call_ring import WORD_NUMBERS, ArrivedCall, CallRing, CallSite
from lowering.cuda.interface import Driver
from tracegraph import limits
from tracegraph.current_stream import chosen_stream, on_stream
from tracegraph.errors import CallbackDeadlockError, CallbackTimeoutError
from tracegraph.staging import gc_pause

LONGEST_SLEEP = 1e-3
SLEEP_SHARE = 1 / 64
"""The thread sleeps for this share of the time since the last call."""
SPIN_SECONDS = 200e-6
"""It does not sleep for this long after an answer, for a sleep takes at least 60 µs."""
IDLE_SECONDS = 1.0
"""How long the thread stays when no launch is in flight, so that the next need not start one."""
HELD_UP_SECONDS = 0.2
"""After so long without taking a call that has arrived, another thread is started."""


class _Current(threading.local):
    callbacks: Callbacks | None = None
    answering: ArrivedCall | None = None


_current = _Current()
"""The owner of the callbacks that a thread makes, and the call that a kernel waits for, if any."""


class Callbacks:
    """The callbacks of one stream. An error is kept until the program is waited for."""

    def __init__(self, driver: Driver) -> None:
        from tracegraph.ops.callbacks import answer  # who calls back has all operations

        self._answer = answer
        self._driver = driver
        self.ring = CallRing.allocate(driver)
        self._changed = threading.Condition()
        self._launches = 0
        self._pauses = False
        self._behind_since = (0, 0.0)  # bytes that have been taken, and when that was seen
        self._ready = threading.Event()
        self._queue: deque[ArrivedCall] = deque()
        self._made = 0  # bytes of the ring whose calls have been made
        self._errors: deque[tuple[CallSite, BaseException]] = deque()
        # sites that have failed: their calls up to this position are not made, None: all
        self._failed: dict[CallSite, int | None] = {}
        self._running: tuple[ArrivedCall, float] | None = None
        self._thread: threading.Thread | None = None
        # made before there are launches, which a driver call might wait for
        self._stream: Any = driver.create_stream()
        self._abandoned = False
        self._spins = False

    # Launches

    def follow(self, asks: bool) -> None:
        """Make the calls of a launch that is about to start, until its end is marked.

        It `asks` if its kernels may wait for answers.
        """
        with self._changed:
            self._start()
            self._launches += 1
            if asks and not self._pauses:
                self._pauses = True
                gc_pause.begin()
            self._changed.notify_all()
        self._ready.wait()

    def mark_end(self) -> None:
        """Let the device mark the end of the launch that was followed last, in stream order."""
        try:
            self._driver.write_word(self.ring.ended_address, self._launches % WORD_NUMBERS)
        except Exception:
            self.end_all()  # nothing else would mark it; calls that come are made nevertheless
            raise

    def end_all(self) -> None:
        """Mark the end of all launches: the device has made them, or is lost."""
        self.ring.ended = self._launches % WORD_NUMBERS

    def finish(self, sites: Collection[CallSite]) -> None:
        """Wait until the calls that have arrived are made, and raise what one of `sites` raised.

        A callback that waits for its own stream does not wait for itself.

        Raises:
            TimeLimitError: the time of a `time_limit` was up.
        """
        if _current.callbacks is not self:
            self._wait_for(self.ring.head)
        with self._changed:
            found = [error for site, error in self._errors if site in sites]
            self._errors = deque(pair for pair in self._errors if pair[0] not in sites)
            for site in sites:
                self._failed.pop(site, None)
        if found:
            raise found[0]

    def _wait_for(self, position: int) -> None:
        deadline, waiting = limits.deadline(), _current.callbacks
        while True:
            with self._changed:
                if self._made >= position or self._abandoned:
                    return
                self._start()
                self._changed.notify_all()  # wakes the thread if it has nothing to follow
                if deadline is not None and time.monotonic() >= deadline:
                    raise limits.exceeded()
                self._changed.wait(0.05 if waiting is None else LONGEST_SLEEP)
            if waiting is not None:
                waiting.relieve()

    @property
    def behind(self) -> bool:
        """Whether calls have arrived that are not made yet."""
        return self._made < self.ring.head

    def check(self) -> None:
        """Raise what a call has raised, or that a kernel has waited too long for an answer.

        For those who wait for a launch, which they then stop.

        Raises:
            CallbackTimeoutError: that is so; the thread that still computes is left to itself.
        """
        with self._changed:
            if self._errors:
                raise self._errors.popleft()[1]
            if self._running is None:
                self._replace_if_held_up()
                return
            call, since = self._running
            limit = call.site.callback.time_limit
            if call.site.answer is None or limit is None or time.monotonic() - since < limit:
                return
            self._made = max(self._made, call.end)
            self._running = self._thread = None
            self._start()  # another thread makes the calls that follow
        callback = call.site.callback
        raise CallbackTimeoutError(callback.name, limit, callback.source)

    def _replace_if_held_up(self) -> None:
        """Start another thread if this one takes no call: it may free garbage, and wait for the
        kernel that waits for it. Needs the lock.
        """
        taken, now = self.ring.tail, time.monotonic()
        seen, since = self._behind_since
        if taken == self.ring.head or taken != seen:
            self._behind_since = (taken, now)
        elif now - since > HELD_UP_SECONDS:
            self._behind_since = (taken, now)
            self._thread = None
            self._start()

    def stopped(self) -> None:
        """After an error: make the calls of launches that follow those that have been stopped."""
        with self._changed:
            end = self.ring.head
            self._failed = {s: end if until is None else until for s, until in self._failed.items()}

    def abandon(self) -> list[str]:
        """Let nobody wait for calls any more; the names of functions whose calls are not made."""
        with self._changed:
            pending = self._made < self.ring.head
            self._abandoned = True
            running = [] if self._running is None else [self._running[0]]
            self._changed.notify_all()
            return [c.site.callback.name for c in (*running, *self._queue)] if pending else []

    # The thread

    def _start(self) -> None:
        """Start the thread unless it runs. Needs the lock."""
        if self._thread is None:
            self._ready.clear()
            self._thread = threading.Thread(
                target=Context().run, args=(self._run,), name="tracegraph-callbacks", daemon=True
            )
            try:
                self._thread.start()
            except BaseException:
                self._thread = None
                self._ready.set()
                raise

    def _run(self) -> None:
        _current.callbacks = self
        with ExitStack() as stack:
            try:
                self._driver.activate()
                stack.enter_context(self._driver.beside_captures())
            except BaseException:
                self._leave()
                raise
            finally:
                self._ready.set()
            stack.enter_context(on_stream(chosen_stream(self._stream)))
            last = time.monotonic()
            while self._is_mine():
                if self.make_calls():
                    last = time.monotonic()
                elif not self._stay(time.monotonic() - last):
                    return

    def _is_mine(self) -> bool:
        return self._thread is threading.current_thread()

    def _leave(self) -> None:
        """Be no longer the thread that makes the calls, if this one is."""
        with self._changed:
            if self._is_mine():
                self._thread = None

    def _stay(self, idle: float) -> bool:
        """Sleep; whether there is a reason to go on after that."""
        if not self._end_pause():
            return False
        with self._changed:
            if self._at_rest():
                told = self._changed.wait(IDLE_SECONDS)
                if told or self._pauses or not self._at_rest() or not self._is_mine():
                    return True
                self._thread = None
                return False
        time.sleep(
            0 if self._spins and idle < SPIN_SECONDS else min(idle * SLEEP_SHARE, LONGEST_SLEEP)
        )
        return True

    def _end_pause(self) -> bool:
        """Let garbage be collected when no launch is in flight; whether this thread is to go on.

        What is due may be collected right here, which takes as long as the driver likes. So a
        launch meanwhile gets another thread.
        """
        with self._changed:
            if not (self._pauses and self._at_rest() and self._is_mine()):
                return True
            self._pauses, self._thread = False, None
        gc_pause.end()
        with self._changed:
            if self._thread is None:
                self._thread = threading.current_thread()
            return self._is_mine()

    def _at_rest(self) -> bool:
        """Whether no launch is in flight, and no call has arrived."""
        return self.ring.ended == self._launches % WORD_NUMBERS and self.ring.head == self.ring.tail

    def make_calls(self) -> bool:
        """Make the calls that have arrived, one by one; whether there were any."""
        self._queue.extend(self._take())
        any_call = bool(self._queue)
        while self._queue and self._is_mine():
            self._make(self._queue.popleft())
        with self._changed:
            if self._is_mine():
                self._made = self.ring.tail
            self._changed.notify_all()
        return any_call

    def _take(self) -> list[ArrivedCall]:
        with self._changed:
            return self.ring.take() if self._is_mine() else []

    def _make(self, call: ArrivedCall) -> None:
        """Make one call, and answer it if a kernel waits.

        After an error none of its site is made, until launches in flight have ended.
        """
        site, results = call.site, None
        around, asked = self._running, _current.answering
        self._spins = site.answer is not None
        until = self._failed.get(site, -1)
        if until is not None and until < call.end:
            try:
                with self._changed:
                    self._running = (call, time.monotonic())
                _current.answering = call if site.answer is not None else asked
                # where kernels ask, the launch has begun a pause
                with gc_pause.paused() if site.answer is None else nullcontext():
                    results = self._answer(site.callback, call.arrays)
            except BaseException as error:
                with self._changed:
                    if self._is_mine():
                        self._errors.append((site, error))
                        self._failed[site] = None
        with self._changed:
            if not self._is_mine():
                return  # it took too long, and was given up
            self._running, _current.answering = around, asked
            if site.answer is not None:
                site.answer.give(call.number, results)

    def relieve(self) -> None:
        """Let the device go on while the call that this thread makes waits for it.

        Calls are taken out of the ring. Those that a kernel waits for are answered now: pure
        functions have no order.
        """
        for call in self._take():
            if call.site.answer is None:
                self._queue.append(call)
            else:
                self._make(call)


def in_callback() -> Callbacks | None:
    """The callbacks whose thread this is, if it is one."""
    return _current.callbacks


def require_not_awaited(why: str) -> None:
    """Check that no kernel waits for what this thread does next, before it waits for the device.

    Raises:
        CallbackDeadlockError: one does.
    """
    if _current.answering is not None:
        raise CallbackDeadlockError(_current.answering.site.callback.name, why)
