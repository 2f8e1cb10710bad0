"""Looks at the clock while native code runs, so that signals and time limits end it.

Code adds up what it does, by an estimate made when it is written. About every 50 µs it reads the
system's clock, and every `INTERVAL` it calls the host, which handles signals and raises when the
time is up. More calls would cost more than their 100 ns: each waits for the GIL, up to 5 ms where
other threads run Python.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable

from lowering.native.table import TRAMPOLINE, Table
from lowering.native.writer import Writer

INTERVAL = 30_000_000
"""Nanoseconds between two calls of the host."""

POLLED_WORK = 1 << 16
"""Work between two looks at the clock: a step of a loop with eight instructions is 1."""

CLOCK = "clock"
"""The entry of the system's function that reads the clock."""

POLL = 0
"""The site of the host that handles signals and looks at the time limit."""

_EFFECTS = "memory(argmem: readwrite, inaccessiblemem: readwrite) nounwind cold"
"""A poll changes no array: values may stay in registers."""


class Polls:
    """Writes polls. `fails(value)` ends the run unless an `i64` is 0.

    `words` is the place of two integers in the memory %conditions, which all functions of a plan
    share: the work since the last look at the clock, and when to call the host. `limited()` is the
    address of an integer: 1 if the call has a time limit, else 0. With a limit the first step of a
    loop calls the host, as the time may be up before. A part of a plan has the polls of the
    `whole`, whose function sets the integers when the run begins.
    """

    def __init__(
        self,
        writer: Writer,
        table: Table,
        words: int,
        fails: Callable[[str], None],
        limited: Callable[[], str],
        whole: Polls | None = None,
    ) -> None:
        self._writer, self._table, self._words = writer, table, words
        self._fails, self._limited, self._whole = fails, limited, whole
        self._spent = self._due = ""
        self.functions: list[str] = []
        """The text of the function that polls, once one is written."""

    def after(self, work: int) -> None:
        """Write a poll behind code that does so much work each time that it runs."""
        writer = self._writer
        if not self.functions:
            self.begin()
            self.functions.append(self._function())
        before = writer.assign(f"load i64, ptr {self._spent}")
        spent = writer.assign(f"add i64 {before}, {min(work, POLLED_WORK)}")
        writer.line(f"store i64 {spent}, ptr {self._spent}")

        def poll() -> None:
            writer.line(f"store i64 0, ptr {self._spent}")
            arguments = f"ptr %table, ptr {self._due}"
            self._fails(writer.assign(f"call i64 @poll({arguments}) {_EFFECTS}"))

        writer.if_(writer.assign(f"icmp uge i64 {spent}, {POLLED_WORK}"), poll)

    def begin(self) -> None:
        """Take the addresses of the integers, which are set when the run begins."""
        if self._spent:
            return
        frame = self._writer.in_frame
        self._spent, self._due = (
            frame(f"getelementptr inbounds i64, ptr %conditions, i64 {self._words + number}")
            for number in range(2)
        )
        if self._whole is not None:
            self._whole.begin()
            return
        limited = frame(f"load i64, ptr {self._limited()}")
        spent = frame(f"mul i64 {limited}, {POLLED_WORK}")
        for value, variable in ((spent, self._spent), (limited, self._due)):
            self._writer.frame.append(f"  store i64 {value}, ptr {variable}")

    def _function(self) -> str:
        """The function that reads the clock, and calls the host if that is due."""
        clock, host = (self._table.place(entry) * 8 for entry in (CLOCK, TRAMPOLINE))
        quiet = "memory(argmem: readwrite, inaccessiblemem: readwrite) nounwind"
        if sys.platform == "win32":
            read = [f"  %now = call i64 %clock() {quiet}"]
        else:
            read = [
                "  %time = alloca [2 x i64]",
                f"  %status = call i32 %clock(i32 {time.CLOCK_MONOTONIC}, ptr %time) {quiet}",
                "  %seconds = load i64, ptr %time",
                "  %place = getelementptr i8, ptr %time, i64 8",
                "  %rest = load i64, ptr %place",
                "  %whole = mul i64 %seconds, 1000000000",
                "  %now = add i64 %whole, %rest",
            ]
        interval = INTERVAL // 1_000_000 if sys.platform == "win32" else INTERVAL
        lines = [
            f"define internal i64 @poll(ptr %table, ptr %due) noinline {_EFFECTS} {{",
            f"  %clock.place = getelementptr i8, ptr %table, i64 {clock}",
            "  %clock = load ptr, ptr %clock.place",
            *read,
            "  %then = load i64, ptr %due",
            "  %first = icmp eq i64 %then, 0",
            "  %early = icmp slt i64 %now, %then",
            f"  %next = add i64 %now, {interval}",
            "  %waits = or i1 %first, %early",
            "  %later = select i1 %early, i64 %then, i64 %next",
            "  store i64 %later, ptr %due",
            "  br i1 %waits, label %end, label %call",
            "call:",
            f"  %host.place = getelementptr i8, ptr %table, i64 {host}",
            "  %host = load ptr, ptr %host.place",
            f"  %failed = call i64 %host(i64 {POLL}, ptr null) memory(inaccessiblemem: readwrite)",
            "  ret i64 %failed",
            "end:",
            "  ret i64 0",
            "}",
        ]
        return "\n".join(lines)


def clock_address() -> int:
    """The address of the system's function that reads the clock.

    That is ``clock_gettime``, or on Windows ``GetTickCount64``, which counts milliseconds.
    """
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.GetTickCount64
    else:
        function = ctypes.CDLL(None).clock_gettime
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None, "every supported system has a clock"
    return address
