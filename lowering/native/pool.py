"""The pool of threads of the process, which share the chunks of large nests.

Workers are daemon threads of Python that spend their life in native code, without the GIL: see
`library/pool.h`. They start at the first call of code that has chunks. What waits and wakes is the
system's; native code gets the addresses.

A child process made by fork has none of the threads: the pool's memory is made anew there, and the
next call starts workers. At exit, workers end before their code goes.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import platform
import sys
import threading
from typing import Any

from lowering.native.compilation.code_files import keep, kept
from lowering.native.compilation.compiler import Loaded, compile, load
from lowering.native.compilation.llvm_turns import first_in_llvm
from lowering.native.library.load import POOL, ModuleText
from tracegraph.concurrency.threads import get_threads
from tracegraph.generated.dataclass import dataclass

_BYTES = 512
"""The size of `tgp_pool`."""

_MUTEX, _CONDITION = _BYTES, _BYTES + 128
"""Where the system's own objects are, behind it: none is larger than 128 bytes."""

_LINE = 64

_POSIX = (
    *("pthread_mutex_lock", "pthread_mutex_unlock", "pthread_cond_wait", "pthread_cond_signal"),
    "sched_yield",
)
_WINDOWS = (
    *("AcquireSRWLockExclusive", "ReleaseSRWLockExclusive", "SleepConditionVariableSRW"),
    *("WakeConditionVariable", "SwitchToThread"),
)
"""The functions lock, unlock, wait, wake and give_way."""

_PAUSES = {
    "x86_64": ("@llvm.x86.sse2.pause()", "@llvm.x86.sse2.pause()"),
    "arm64": ("@llvm.aarch64.isb(i32)", "@llvm.aarch64.isb(i32 15)"),
}
"""Instructions that take a little time and leave a processor's units to its other thread."""

_ALIASES = {"amd64": "x86_64", "aarch64": "arm64"}


@dataclass(frozen=True)
class _Functions:
    """The pool's machine code, and its functions."""

    code: Loaded
    pause: int
    run: int
    want: Any
    work: Any


class _Pool:
    """The memory of the pool, at one place for the life of the process, and its threads."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(_BYTES + 256 + _LINE)
        start = ctypes.addressof(self._memory)
        self.address = start + -start % _LINE
        self._functions: _Functions | None = None
        self._is_closed = False
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.RLock()
        self._threads: list[threading.Thread] = []
        self._size = 1

    def prepared(self) -> _Functions:
        """The functions of the pool, whose memory is ready."""
        with self._lock:
            if self._functions is None:
                self._functions = _compiled()
                self._fill(self._functions)
            return self._functions

    def _fill(self, functions: _Functions) -> None:
        """Make the memory anew, for a pool without workers."""
        ctypes.memset(self.address, 0, _BYTES + 256)
        mutex, condition = self.address + _MUTEX, self.address + _CONDITION
        system: Any
        if sys.platform == "win32":  # there, both are zeros at first
            system, names = ctypes.WinDLL("kernel32"), _WINDOWS
        else:
            system, names = ctypes.CDLL(None), _POSIX
            system.pthread_mutex_init(ctypes.c_void_p(mutex), None)
            system.pthread_cond_init(ctypes.c_void_p(condition), None)
        entries = [ctypes.cast(getattr(system, name), ctypes.c_void_p).value for name in names]
        words: list[ctypes.c_void_p | int | None]
        words = [*entries, functions.pause, mutex, condition]
        (ctypes.c_void_p * len(words)).from_address(self.address)[:] = words

    def after_fork(self) -> None:
        """In a child process: its threads are those of the parent, and the memory is as it was in
        the middle of something.
        """
        self._forget()
        if self._functions is not None:
            self._fill(self._functions)

    def ready(self) -> None:
        """Have as many threads as the limit allows, the caller included."""
        limit = get_threads()
        if limit != self._size and not self._is_closed:
            self.resize(limit)

    def resize(self, size: int) -> None:
        """Have `size` threads, the caller included."""
        functions = self.prepared()
        with self._lock:
            functions.want(self.address, size - 1)
            for thread in self._threads[size - 1 :]:
                thread.join()  # it ends after the chunk that it has
            del self._threads[size - 1 :]
            for number in range(len(self._threads), size - 1):
                thread = threading.Thread(
                    target=functions.work,
                    args=(self.address, number),
                    name=f"tracegraph-{number + 1}",
                    daemon=True,
                )
                try:
                    thread.start()
                except RuntimeError:  # the system has no more threads: there are fewer
                    break
                self._threads.append(thread)
            self._size = size

    def close(self) -> None:
        """End the workers for good: their code goes."""
        self._is_closed = True
        if self._threads:
            self.resize(1)


def _compiled() -> _Functions:
    machine = platform.machine().lower()
    declared, call = _PAUSES.get(_ALIASES.get(machine, machine), ("", ""))
    passed = "ptr %pool, ptr %task, ptr %table, ptr %arena, ptr %frame, i64 %first, i64 %end"
    text = f"""
define void @run({passed}) {{
  call void @tgp_run({passed})
  ret void
}}
define void @want(ptr %p, i64 %workers) {{
  call void @tgp_want(ptr %p, i64 %workers)
  ret void
}}
define void @work(ptr %p, i64 %number) {{
  call void @tgp_work(ptr %p, i64 %number)
  ret void
}}
define void @pause() {{
  {call and f"call void {call}"}
  ret void
}}
{declared and f"declare void {declared}"}
"""
    module = ModuleText(text, frozenset(POOL))
    with first_in_llvm():
        found = kept(module, "full")
        made = compile(module.joined()) if found is None else found
        code = load([made], "run", "pause", "want", "work")
    if found is None:
        keep(module, "full", made)
    run, pause, want, work = code.addresses.values()
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    return _Functions(code, pause, run, prototype(want), prototype(work))


_POOL = _Pool()

atexit.register(_POOL.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOL.after_fork)


def addresses() -> tuple[int, int]:
    """The addresses of the pool and of the function that runs chunks."""
    run = _POOL.prepared().run
    return _POOL.address, run


ready = _POOL.ready
"""Has as many threads as the limit allows: before each call of code with chunks."""
