"""A check of each access to memory by emulated kernels: whether it is in range, and in order.

g++ makes a call of each access, for its ThreadSanitizer. Here the calls are answered by functions
that know what is a kernel's: its arrays, as much shared memory as its launch asks for, and what its
threads have of their own. Shared memory has a history, too. Two accesses of different threads, one
of which writes, need a barrier between them: one of the block, or one of the warp if both are in
it. A shuffle is none: lanes may have read, or not, what another writes after it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.emulation.emulator import (
    ARGUMENT,
    SHIM,
    BarrierError,
    compile_on_host,
    kernel_wrapper,
)
from tests.emulation.host_functions import HOST_FUNCTIONS

_HOOKS = r"""
#include <vector>
#define UNCHECKED __attribute__((no_sanitize("thread")))
extern "C" char __ehdr_start __attribute__((visibility("hidden")));
extern "C" char _end __attribute__((visibility("hidden")));
struct range { const char *start, *end; };
static range ranges[16];  // the arrays of the kernel, and its arguments
static int range_count;
static long long shared_bytes;
static char fault[400];  // the first

// What a thread had done when it made an access: barriers of its block and of its warp that it had
// passed.
struct moment { int thread; unsigned block, of_block, of_warp; };
static unsigned barriers_of_block[MOST], barriers_of_warp[MOST];
struct history { moment write; bool is_written; std::vector<moment> reads; };
static history words[sizeof memories[0] / 4];

extern "C" UNCHECKED void begin_check(
    void** starts, const long long* sizes, int count, long long shared) {
  for (int i = 0; i < count; ++i) ranges[i] = {(char*)starts[i], (char*)starts[i] + sizes[i]};
  range_count = count;
  shared_bytes = shared;
  fault[0] = 0;
  memset(barriers_of_block, 0, sizeof barriers_of_block);
  memset(barriers_of_warp, 0, sizeof barriers_of_warp);
  for (history& each : words) {
    each.is_written = false;
    each.reads.clear();
  }
}
extern "C" UNCHECKED const char* first_fault() { return fault; }
// `other` is the thread of the access before, or the array that is nearest.
UNCHECKED static void blame(const char* what, bool writes, long long place, int other) {
  if (fault[0]) return;
  snprintf(fault, sizeof fault, "thread %u of block %u %s %s %lld (%d)", threadIdx.x, blockIdx.x,
           writes ? "writes" : "reads", what, place, other);
}
UNCHECKED static bool is_unordered(const moment& before, const moment& now) {
  if (before.thread == now.thread || before.block != now.block) return false;
  if (before.of_block != now.of_block) return false;
  return before.thread / 32 != now.thread / 32 || before.of_warp == now.of_warp;
}
UNCHECKED static void follow(long long word, bool writes) {
  const moment now = {current, blockIdx.x, barriers_of_block[current], barriers_of_warp[current]};
  history& past = words[word];
  if (past.is_written && is_unordered(past.write, now))
    blame("without a barrier after a write the shared byte", writes, 4 * word, past.write.thread);
  if (!writes) {
    if (past.reads.size() && past.reads.back().of_block != now.of_block) past.reads.clear();
    past.reads.push_back(now);
    return;
  }
  for (const moment& each : past.reads)
    if (is_unordered(each, now))
      blame("without a barrier after a read the shared byte", writes, 4 * word, each.thread);
  past.reads.clear();
  past.is_written = true;
  past.write = now;
}
UNCHECKED static void check_place(const void* place, long long size, bool writes) {
  const char* const at = (const char*)place;
  const char* const stack = stacks[current];
  const char* const here = (const char*)__builtin_frame_address(0);
  if (!stack || here < stack || here >= stack + STACK) return;  // not a thread of a kernel
  if (at >= stack && at + size <= stack + STACK) return;
  const char* const memory = (const char*)memories;
  if (at >= memory && at < memory + sizeof memories) {
    const long long first = at - (const char*)own_memory();
    if (first < 0 || first + size > shared_bytes) {
      blame("out of range the shared byte", writes, first, 0);
      return;
    }
    for (long long word = first / 4; word <= (first + size - 1) / 4; ++word) follow(word, writes);
    return;
  }
  if (at >= &__ehdr_start && at < &_end) return;
  for (int i = 0; i < range_count; ++i)
    if (at >= ranges[i].start && at + size <= ranges[i].end) return;
  long long apart = 1ll << 62;  // from the array that is nearest
  int nearest = 0;
  for (int i = 0; i < range_count; ++i) {
    const long long off = at - ranges[i].start;
    if (llabs(off) < llabs(apart)) apart = off, nearest = i;
  }
  blame("out of range a byte of an array", writes, apart, nearest);
}
UNCHECKED static void check_access(const void* place, long long size, bool writes) {
  static bool is_busy;  // functions of vectors are checked, too
  if (is_busy) return;
  is_busy = true;
  check_place(place, size, writes);
  is_busy = false;
}
#define ANSWERS(size) \
  extern "C" UNCHECKED void __tsan_read##size(void* p) { check_access(p, size, false); } \
  extern "C" UNCHECKED void __tsan_write##size(void* p) { check_access(p, size, true); } \
  extern "C" UNCHECKED void __tsan_unaligned_read##size(void* p) { check_access(p, size, false); } \
  extern "C" UNCHECKED void __tsan_unaligned_write##size(void* p) { check_access(p, size, true); }
ANSWERS(1)
ANSWERS(2)
ANSWERS(4)
ANSWERS(8)
ANSWERS(16)
extern "C" UNCHECKED void __tsan_read_range(void* p, long size) { check_access(p, size, false); }
extern "C" UNCHECKED void __tsan_write_range(void* p, long size) { check_access(p, size, true); }
#define ATOMIC(bits, type) \
  extern "C" UNCHECKED void __tsan_atomic##bits##_store(volatile type* p, type value, int) { \
    *p = value; \
  } \
  extern "C" UNCHECKED type __tsan_atomic##bits##_load(const volatile type* p, int) { return *p; }
ATOMIC(32, unsigned)  // words for other devices, which these kernels do not exchange
ATOMIC(64, unsigned long)
extern "C" UNCHECKED void __tsan_func_entry(void*) {}
extern "C" UNCHECKED void __tsan_func_exit(void*) {}
extern "C" UNCHECKED void __tsan_init() {}
static void checked_syncthreads() {
  __syncthreads();
  ++barriers_of_block[current];
  ++barriers_of_warp[current];
}
static void checked_syncwarp(unsigned mask = ~0u) {
  __syncwarp(mask);
  if (mask == ~0u) ++barriers_of_warp[current];
}
#define __syncthreads checked_syncthreads
#define __syncwarp checked_syncwarp
"""


class CheckedKernels:
    """Kernels whose accesses are checked.

    Args:
        parts: the text of each for the host, and the number of its arguments; its name is
            ``kernel_<number>``, in a namespace of its own.
        folder: where files are written.
    """

    def __init__(self, parts: Sequence[tuple[str, int]], folder: Path) -> None:
        text = [_HOOKS, ARGUMENT]
        for number, (source, count) in enumerate(parts):
            wrapper = kernel_wrapper(f"kernel_{number}", count)
            text.append(f"namespace n{number} {{\n{source}{wrapper}}}\n")
        source_file, unit, library = (folder / name for name in ("unit.cpp", "unit.o", "unit.so"))
        source_file.write_text(SHIM + HOST_FUNCTIONS + "".join(text))
        compile_on_host("-fsanitize=thread", "-c", source_file, "-o", unit)
        compile_on_host(unit, "-o", library)  # without the library of the ThreadSanitizer
        self._library = ctypes.CDLL(str(library))
        self._library.first_fault.restype = ctypes.c_char_p

    def fault(
        self,
        number: int,
        arguments: Sequence[np.ndarray[Any, Any] | int],
        blocks: int,
        threads: int,
        shared_bytes: int,
    ) -> str:
        """Launch a kernel; the first access that is out of range or out of order, or nothing.

        Raises:
            BarrierError: some threads wait for others that have ended.
        """
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        words = [each if isinstance(each, int) else each.ctypes.data for each in arguments]
        passed = (ctypes.c_void_p * len(words))(*words)
        starts = [*(each.ctypes.data for each in arrays), ctypes.addressof(passed)]
        sizes = [*(each.nbytes for each in arrays), ctypes.sizeof(passed)]
        self._library.begin_check(
            (ctypes.c_void_p * len(starts))(*starts),
            (ctypes.c_longlong * len(sizes))(*sizes),
            len(starts),
            ctypes.c_longlong(shared_bytes),
        )
        kernel = ctypes.cast(getattr(self._library, f"run_kernel_{number}"), ctypes.c_void_p)
        every = (ctypes.c_uint * blocks)(*range(blocks))
        if self._library.launch(kernel, passed, every, blocks, 1, threads, 0):
            raise BarrierError(f"kernel {number}")
        return str(self._library.first_fault().decode())
