"""The kernel emulator: runs generated CUDA C++ on the CPU, compiled with g++.

Blocks, or clusters of them, run sequentially, in any order that is asked for. Their threads are
fibers that switch at barriers and shuffles. So a run is deterministic, and a barrier or shuffle
that some threads never reach is an error, not a hang.
"""

from __future__ import annotations

import atexit
import copy
import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from lowering.codegen import ConditionHandle, KernelCode, Unit, WorkspaceAddress
from lowering.codegen.kernel_parameters import Channel, Number, StopFlagAddress, TableEntry
from lowering.plan.nests.buffer import Buffer
from lowering.plan.nodes import KernelNode, Node
from tests.emulation.host_functions import HOST_FUNCTIONS

COMPILER = shutil.which("g++")
MARGIN = 64  # bytes on each side of a buffer that no kernel may touch
FILL = 0xA5
MOST_BLOCKS = 8
"""Blocks that run at the same time: those of a cluster, or some of a cooperative launch."""

SHIM = r"""
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
using namespace std;
#define __device__
#define __global__
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct index3 { unsigned x, y, z; };
static index3 threadIdx, blockIdx, gridDim;
static const int MOST_BLOCKS = 8, MOST_THREADS = 1024, MOST = MOST_BLOCKS * MOST_THREADS;
static const int STACK = 64 << 10;
alignas(256) static unsigned char memories[MOST_BLOCKS][96 << 10];  // shared, of each block
static int current, block_size;  // the fiber that runs: a thread of the cluster
static unsigned char* own_memory() { return memories[current / block_size]; }

extern "C" unsigned conditions[1024];
unsigned conditions[1024];
static void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  conditions[handle] = value;
}
template <class T> static T atomicAdd(T* address, T value) {
  T old = *address;
  *address += value;
  return old;
}
template <class T> static T tg_current(const T* place) { return *place; }
template <class T> static T atomicMin(T* address, T value) {
  T old = *address;
  *address = value < old ? value : old;
  return old;
}
template <class T> static T atomicMax(T* address, T value) {
  T old = *address;
  *address = value > old ? value : old;
  return old;
}
template <class T> static T atomicCAS(T* address, T expected, T value) {
  T old = *address;
  if (old == expected) *address = value;
  return old;
}
static void tg_store_word(unsigned long long* place, unsigned long long word) { *place = word; }
static void tg_store_word(unsigned long long* place, unsigned long long a, unsigned long long b) {
  place[0] = a;
  place[1] = b;
}
extern "C" unsigned unevenness;
unsigned unevenness;  // unless it is 0, blocks are held up at random: the state of a generator
static void tg_between_polls();
static void tg_load_word(const unsigned long long* place, unsigned long long& a) {
  if (unevenness) tg_between_polls();  // the block that writes it may be held up
  a = *place;
}
static void tg_load_word(
    const unsigned long long* place, unsigned long long& a, unsigned long long& b) {
  if (unevenness) tg_between_polls();
  a = place[0];
  b = place[1];
}
static void __threadfence() {}
template <class T> static T __ldcg(const T* place) { return *place; }
static void __threadfence_system() {}
static void __nanosleep(unsigned) {}
static unsigned tg_clock() {  // a look at the stop flag every time
  static unsigned now;
  return now += 1 << 20;
}

extern "C" int backwards;
int backwards;  // the last thread of a block goes first
static void (*task)(void**);
static void** task_arguments;

// Fibers: contexts begin them, and jumps switch between them, without the system calls of
// swapcontext. Each runs one thread of a cluster after another, until a cluster fails.
static jmp_buf scheduler, fibers[MOST];
static char* stacks[MOST];
static bool begun[MOST], finished[MOST];
static void __attribute__((noinline)) pause_fiber() {
  if (!_setjmp(fibers[current])) _longjmp(scheduler, 1);
}
static void run_fiber() {
  for (;;) {
    task(task_arguments);
    finished[current] = true;
    pause_fiber();
  }
}
static void begin_fiber() {
  begun[current] = true;
  if (!stacks[current]) stacks[current] = (char*)malloc(STACK);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stacks[current];
  context.uc_stack.ss_size = STACK;
  makecontext(&context, run_fiber, 0);
  setcontext(&context);
}
static void __attribute__((noinline)) resume_fiber() {
  if (_setjmp(scheduler)) return;
  if (begun[current]) _longjmp(fibers[current], 1);
  begin_fiber();
}

static bool at_barrier[MOST], at_cluster_barrier[MOST];
static void __syncthreads() {
  at_barrier[current] = true;
  pause_fiber();
}
static void __syncwarp() { __syncthreads(); }
static long long tg_nanoseconds() {  // each reading is later than the one before
  static long long now;
  return now += 1000;
}
static int __syncthreads_count(int wanted) {
  static bool votes[MOST];
  votes[current] = wanted;
  __syncthreads();
  int count = 0;
  const int first = current / block_size * block_size;
  for (int i = first; i < first + block_size; ++i) count += votes[i];
  __syncthreads();
  return count;
}

// Exchanges with other devices, whose threads run at the same time, each with its own scheduler.
static void tg_post_word(unsigned long long* place, unsigned long long word) {
  __atomic_store_n(place, word, __ATOMIC_RELEASE);
}
static unsigned long long tg_posted_word(const unsigned long long* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static void tg_post_words(
    unsigned long long* place, unsigned long long word, unsigned long long next) {
  tg_post_word(place + 1, next);
  tg_post_word(place, word);
}
static void tg_posted_words(
    const unsigned long long* place, unsigned long long& word, unsigned long long& next) {
  word = tg_posted_word(place);
  next = tg_posted_word(place + 1);
}
static void tg_post_turn(unsigned* place, unsigned turn) {
  __atomic_store_n(place, turn, __ATOMIC_RELEASE);
}
static unsigned tg_posted_turn(const unsigned* place) {
  return __atomic_load_n(place, __ATOMIC_ACQUIRE);
}
static bool polled;
static void tg_between_polls() {
  polled = true;
  pause_fiber();
}
static int held_up[MOST_BLOCKS];  // for how many rounds
static bool is_held_up(int block) {
  if (!unevenness) return false;
  if (held_up[block]) return --held_up[block], true;
  unevenness ^= unevenness << 13, unevenness ^= unevenness >> 17, unevenness ^= unevenness << 5;
  if (unevenness % 8 == 0) held_up[block] = unevenness / 8 % 16;
  return held_up[block];
}
static const double MOST_SECONDS = 20;  // that all threads may wait for other devices
static double seconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

static unsigned long long tg_arrivals_before(const unsigned long long*) { return 0; }
static void tg_grid_barrier(unsigned long long*, unsigned long long&) {
  at_cluster_barrier[current] = true;
  pause_fiber();
}
static unsigned long long tg_arrivals_of(const unsigned long long*, unsigned) { return 0; }
static void tg_await_blocks(unsigned long long* place, unsigned long long& arrivals, unsigned) {
  tg_grid_barrier(place, arrivals);
}
static void tg_cluster_arrive() {}
static void tg_cluster_wait() {
  at_cluster_barrier[current] = true;
  pause_fiber();
}
template <class T> static T tg_of_peer(const T* place, int rank) {
  return *(const T*)((const unsigned char*)place - own_memory() + memories[rank]);
}

// Shuffles: the lanes of a warp in a mask exchange words as soon as all have arrived.
static struct { unsigned mask, word, lane; } meetings[MOST];
static unsigned waiting[MOST / 32];  // the lanes of each warp that have arrived at a shuffle
static bool in_shuffle(int thread) { return waiting[thread / 32] >> thread % 32 & 1; }
static unsigned __shfl_sync(unsigned mask, unsigned word, int lane) {
  const int me = current, first = me & ~31;
  unsigned& arrived = waiting[me / 32];
  meetings[me] = {mask, word, (unsigned)lane & 31};
  arrived |= 1u << (me & 31);
  bool all = mask >> (me & 31) & 1 && (arrived & mask) == mask;
  for (int i = 0; all && i < 32; ++i)
    if (mask >> i & 1) all = meetings[first + i].mask == mask;
  if (all) {
    unsigned given[32];
    for (int i = 0; i < 32; ++i) given[i] = meetings[first + i].word;
    for (int i = 0; i < 32; ++i)
      if (mask >> i & 1) {
        const unsigned from = meetings[first + i].lane;
        meetings[first + i].word = mask >> from & 1 ? given[from] : 0xA5A5A5A5;
      }
    arrived &= ~mask;
  }
  while (in_shuffle(me)) pause_fiber();
  return meetings[me].word;
}
static unsigned __shfl_xor_sync(unsigned mask, unsigned word, int apart) {
  return __shfl_sync(mask, word, current ^ apart);
}
static unsigned tg_peers(unsigned digit) {  // the lanes with the same digit, all lanes taking part
  static unsigned digits[MOST];
  digits[current] = digit;
  __shfl_sync(~0u, 0, 0);
  unsigned peers = 0;
  for (int i = 0; i < 32; ++i) peers |= (unsigned)(digits[(current & ~31) + i] == digit) << i;
  __shfl_sync(~0u, 0, 0);
  return peers;
}
static void __syncwarp(unsigned mask) { __shfl_sync(mask, 0, 0); }
static bool all(const bool* flags, int from, int count) {
  for (int i = from; i < from + count; ++i) if (!flags[i]) return false;
  return true;
}
static int run_cluster(unsigned first, int blocks, int threads) {
  const int count = blocks * threads;
  block_size = threads;
  memset(memories, 0xA5, blocks * sizeof memories[0]);
  memset(finished, 0, count);
  double waiting_since = 0;
  while (!all(finished, 0, count)) {
    bool moved = false, waits = false, held[MOST_BLOCKS];
    for (int i = 0; i < blocks; ++i) held[i] = is_held_up(i);
    for (int i = 0; i < count; ++i) {
      current = backwards ? count - 1 - i : i;
      if (held[current / threads]) {
        waits = true;
        continue;
      }
      if (finished[current] || at_barrier[current] || at_cluster_barrier[current]) continue;
      if (in_shuffle(current)) continue;
      blockIdx = {first + current / threads, 0, 0};
      threadIdx = {(unsigned)(current % threads), 0, 0};
      polled = false;
      resume_fiber();
      if (polled) waits = true;
      else moved = true;
    }
    for (int start = 0; start < count; start += threads) {
      if (!all(at_barrier, start, threads)) continue;
      memset(at_barrier + start, 0, threads);
      moved = true;
    }
    if (all(at_cluster_barrier, 0, count)) {
      memset(at_cluster_barrier, 0, count);
      moved = true;
    }
    if (moved) {
      waiting_since = 0;
      continue;
    }
    if (waits) {
      if (!waiting_since) waiting_since = seconds();
      usleep(10);  // others go on
      if (seconds() - waiting_since < MOST_SECONDS) continue;
    }
    memset(begun, 0, count);
    memset(at_barrier, 0, count);
    memset(at_cluster_barrier, 0, count);
    memset(waiting, 0, sizeof waiting);
    return 1;  // deadlock: some wait for others that have ended or wait elsewhere
  }
  return 0;
}
extern "C" int launch(void (*wrapper)(void**), void** arguments, const unsigned* clusters,
                      int count, int blocks, int threads, int together) {
  task = wrapper;
  task_arguments = arguments;
  gridDim = {(unsigned)(count * blocks), 1, 1};
  if (together && run_cluster(0, together, threads)) return 1;
  for (int i = 0; i < count; ++i)
    if (run_cluster(clusters[i] * blocks, blocks, threads)) return 1;
  return 0;
}
"""


_SHARED = "extern __shared__ __align__(16) unsigned char shared[];"


def for_host(source: str, clusters: bool) -> str:
    """The text of a unit for g++: as for a device that has clusters, or for one that has none."""
    assert "__shared__" not in source.replace(_SHARED, "")
    text = source.replace(_SHARED, "unsigned char* const shared = own_memory();")
    clustered = "#define TG_CLUSTERS\n#define TG_CLUSTER(blocks)\n" if clusters else ""
    return clustered + text


class BarrierError(AssertionError):
    """Some threads of a block ended while others waited at a barrier."""


def kernel_wrapper(name: str, count: int) -> str:
    """A function of one type for every kernel, so that Python can call it."""
    arguments = ", ".join(f"tg_argument{{arguments[{i}]}}" for i in range(count))
    return f'extern "C" void run_{name}(void** arguments) {{ {name}({arguments}); }}\n'


ARGUMENT = """
struct tg_argument {
  void* value;
  template <class T> operator T*() const { return static_cast<T*>(value); }
  operator long long() const { return reinterpret_cast<long long>(value); }
  operator unsigned long long() const { return reinterpret_cast<unsigned long long>(value); }
};
"""


OPTIONS = (
    "-std=c++17",
    "-O0",
    "-shared",
    "-fPIC",
    "-w",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
)
"""Compiling takes longer than running, so nothing is optimized."""


_made: dict[tuple[str, str], bytes] = {}
"""Libraries by what they were made of: a third of all texts are those of other tests."""


def host_library(shim: str, text: str, source: Path) -> ctypes.CDLL:
    """The library that g++ makes of a text after a shim; the text is written to a file first.

    Each has memory of its own, also if it was made for another test.
    """
    source.write_text(text)
    library = source.with_suffix(".so")
    made = _made.get((shim, text))
    if made is None:
        compile_on_host("-include", _compiled_ahead(shim), source, "-o", library)
        _made[shim, text] = library.read_bytes()
    else:
        library.write_bytes(made)
    return ctypes.CDLL(str(library))


@cache
def _compiled_ahead(shim: str) -> Path:
    """A precompiled header: what all units begin with takes a third of the time of a small one."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    header = Path(folder, "shim.hpp")
    header.write_text(shim + HOST_FUNCTIONS)
    compile_on_host("-x", "c++-header", header, "-o", header.with_suffix(".hpp.gch"))
    return header


def compile_on_host(*arguments: str | Path) -> None:
    """Run the compiler; what it says is the failure."""
    command = [COMPILER or "g++", *OPTIONS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


Orders = Callable[[int], Iterable[int]]
"""The order in which a number of blocks run."""


class Addresses(Protocol):
    """Where buffers are."""

    def address(self, buffer: Buffer) -> int:
        """The address of the first element."""


@dataclass
class Memory:
    """The memory of buffers, each between margins that must not be written.

    Arguments begin `shift` elements after a multiple of 16 bytes, each by `apart` more than the one
    before it.
    """

    shift: int = 0
    apart: int = 0
    blocks: dict[Buffer, np.ndarray[Any, Any]] = field(default_factory=dict)

    def put(self, buffer: Buffer, array: Any) -> None:
        """Place an array in the memory of a buffer."""
        given = np.asarray(array, buffer.type.dtype)
        assert given.shape == buffer.type.shape, f"{buffer}: {given.shape} is not {buffer.type}"
        start = self.address(buffer) - self.blocks[buffer].ctypes.data
        self.blocks[buffer][start : start + given.nbytes] = np.frombuffer(given.tobytes(), np.uint8)

    def address(self, buffer: Buffer) -> int:
        """The address of the first element; memory is filled with a pattern first."""
        if buffer not in self.blocks:
            self.blocks[buffer] = np.full(2 * MARGIN + buffer.type.nbytes, FILL, np.uint8)
        aligned = -(-self.blocks[buffer].ctypes.data // 16) * 16 + MARGIN // 2
        if buffer.space != "input":
            return aligned
        shift = self.shift + self.apart * list(self.blocks).index(buffer)
        return aligned + shift * buffer.type.dtype.itemsize % 16

    def get(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        """A copy of what a buffer holds."""
        block = self.blocks[buffer]
        start = self.address(buffer) - block.ctypes.data
        end = start + buffer.type.nbytes
        assert (block[:start] == FILL).all(), f"{buffer} was written before its start"
        assert (block[end:] == FILL).all(), f"{buffer} was written past its end"
        inside = block[start:end].tobytes()
        return np.frombuffer(inside, buffer.type.dtype).reshape(buffer.type.shape).copy()


class Emulator:
    """The kernels of a unit, ready to run on the CPU, in clusters of blocks or without any."""

    def __init__(self, unit: Unit, folder: Path, clusters: bool = True) -> None:
        codes = {code.name: code for code in unit.launches}
        wrappers = "".join(kernel_wrapper(c.name, len(c.parameters)) for c in codes.values())
        text = for_host(unit.source, clusters) + ARGUMENT + wrappers
        self._library = host_library(SHIM, text, folder / "unit.cpp")
        self._unit = unit
        self._workspaces: dict[Any, np.ndarray[Any, Any]] = {}
        self._table: list[np.ndarray[Any, Any]] = []
        self.stop = np.zeros(1, np.uint32)
        self.channels: Mapping[Channel, int] = {}

    @property
    def conditions(self) -> list[int]:
        """The values last set, by handle; handles are the conditions' numbers."""
        return list((ctypes.c_uint * 1024).in_dll(self._library, "conditions"))

    def code(self, node: Node) -> KernelCode:
        """How a node is launched."""
        return self._unit.kernels[node]

    def of_another_device(self, folder: Path) -> Emulator:
        """The same kernels, with memory and a scheduler of their own."""
        other = copy.copy(self)
        library = shutil.copy(self._library._name, folder)
        other._library = ctypes.CDLL(str(library))
        other._workspaces, other._table = {}, []
        other.stop = np.zeros(1, np.uint32)
        return other

    def hold_up(self, seed: int) -> None:
        """Hold blocks up at random from now on; not, if the seed is 0."""
        ctypes.c_uint.in_dll(self._library, "unevenness").value = seed

    def workspace(self, node: Node) -> np.ndarray[Any, Any]:
        """The workspace of a node."""
        (parameter,) = [p for p in self.code(node).parameters if isinstance(p, WorkspaceAddress)]
        self._argument(node, parameter, Memory())
        return self._workspaces[self.code(node).workspace_key(node)]

    def run(
        self,
        node: KernelNode,
        memory: Memory,
        order: Iterable[int] | None = None,
        backwards: bool = False,
    ) -> Mapping[Buffer, np.ndarray[Any, Any]]:
        """Launch a node and return what its buffers hold.

        `order` is that of the blocks; `backwards`, that of the threads of each.
        """
        ctypes.c_int.in_dll(self._library, "backwards").value = backwards
        self.launch(node, memory, order)
        parameters = self.code(node).parameters
        return {p: memory.get(p) for p in parameters if isinstance(p, Buffer)}

    def launch(
        self, node: KernelNode, memory: Addresses, order: Iterable[int] | None = None
    ) -> None:
        """Launch a node."""
        self.launch_code(node, self.code(node), memory, order)

    def has_sequence(self, node: Node) -> bool:
        """Whether a node is launched as kernels one after the other."""
        return node in self._unit.sequences

    def launch_sequence(self, node: Node, memory: Addresses, orders: Orders) -> None:
        """Launch the kernels of a node one after the other, the blocks of each in some order."""
        for code in self._unit.sequences[node]:
            self.launch_code(node, code, memory, orders(code.grid[0]))

    def launch_code(
        self, node: Node, code: KernelCode, memory: Addresses, order: Iterable[int] | None = None
    ) -> None:
        """Launch a kernel of a node."""
        arguments = [self._argument(node, p, memory) for p in code.parameters]
        together = min(code.grid[0], MOST_BLOCKS) if code.cooperative else code.cluster
        clusters = range(1 if code.cooperative else code.grid[0] // code.cluster)
        if order is not None:
            clusters = dict.fromkeys(block // code.cluster for block in order)
            if code.cooperative:
                clusters = range(1)
        if code.together:  # other blocks wait for none
            assert code.together <= MOST_BLOCKS
            clusters = [block for block in clusters if block >= code.together]
        failed = self._library.launch(
            ctypes.cast(getattr(self._library, f"run_{code.name}"), ctypes.c_void_p),
            (ctypes.c_void_p * len(arguments))(*arguments),
            (ctypes.c_uint * len(clusters))(*clusters),
            len(clusters),
            together,
            code.block[0],
            code.together,
        )
        if failed:
            raise BarrierError(code.name)
        self._check_workspace(node, code)

    def _argument(self, node: Node, parameter: Any, memory: Addresses) -> int:
        match parameter:
            case ConditionHandle(condition=condition):
                return condition
            case WorkspaceAddress(nbytes=nbytes):
                key = self.code(node).workspace_key(node)
                if key not in self._workspaces:
                    self._workspaces[key] = np.zeros(nbytes + MARGIN, np.uint8)
                    self._workspaces[key][nbytes:] = FILL
                return int(self._workspaces[key].ctypes.data)
            case Number(value=value):
                return value
            case StopFlagAddress():
                return int(self.stop.ctypes.data)
            case TableEntry(buffer=buffer):
                entry = np.full(1, memory.address(buffer), np.uint64)
                self._table.append(entry)
                return int(entry.ctypes.data)
            case _ if parameter in self.channels:
                return self.channels[parameter]
        return memory.address(parameter)

    def _check_workspace(self, node: Node, code: KernelCode) -> None:
        if code.workspace_bytes:
            margin = self._workspaces[code.workspace_key(node)][code.workspace_bytes :]
            assert (margin == FILL).all(), f"{code.name} wrote past its workspace"
