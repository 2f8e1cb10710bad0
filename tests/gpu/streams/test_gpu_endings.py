"""A hundred processes end, each in another way: the exit code is the script's, stderr is empty."""

import subprocess
import sys
from contextlib import closing

import pytest

from tests.helpers.processes import SECONDS, environment

PRELUDE = """
import ctypes, sys, threading, time
import numpy as np, tracegraph
from tracegraph import debug, fori_loop, pure_callback, while_loop
import lowering.driver
input()
x = tracegraph.asarray(np.ones(1000), device="cuda")
jit = lambda f: tracegraph.jit(f, device="cuda")
"""
"""All that takes time and needs no device is done before the line that it reads."""

WORK = {
    "live_graphs": """
runs = [jit(lambda x, k=k: x + k) for k in range(3)]
ys = [run(x) for run in runs]
""",
    "running_launch": """
y = jit(lambda x: fori_loop(0, 20_000, lambda i, x: x + 1, x, schedule="one_kernel"))(x)
""",
    "endless_loop": """
endless = jit(lambda x: while_loop(lambda x: (x > -1).all(), lambda x: x + 1, x))
y = endless(x)
""",
    "endless_loop_dropped": """
jit(lambda x: while_loop(lambda x: x[0] > -1, lambda x: x + 1, x))(x)
del x
""",
    "pending_destructors": """
for k in range(4):
    run = jit(lambda x: fori_loop(0, 500, lambda i, x: x + 1, x))
    y = run(x)
    del run
""",
    "streams": """
run = jit(lambda x: fori_loop(0, 20_000, lambda i, x: x + 1, x, schedule="one_kernel"))
for k in range(4):
    stream = tracegraph.Stream()
    with tracegraph.stream(stream):
        y = run(x)
    if k % 2:
        del stream
""",
    "cycle": """
class Owner:
    pass

owner = Owner()
owner.table, owner.run = np.ones(1000), jit(lambda x: x + owner.table)
owner.result = owner.run(x)
""",
    "cycle_of_an_exported_graph": """
class Owner:
    pass

owner = Owner()
owner.exported = jit(lambda x: x + 1).lower(x).compile().export_graph(x)
owner.executable, owner.itself = owner.exported.definition.instantiate(), owner
del owner
""",
    "product": """
m = tracegraph.asarray(np.eye(64), device="cuda")
y = jit(lambda m: m @ m)(m)
""",
    "exported_graph": """
from cuda.core import Device
count = jit(lambda x: while_loop(lambda x: x[0] < 5000, lambda x: x + 1, x))
exported = count.lower(x).compile().export_graph(x)
executable = exported.definition.instantiate()
stream = Device(0).create_stream()
executable.launch(stream)
""",
    "thread": """
run = jit(lambda x: x * 2)
thread = threading.Thread(target=lambda: run(x))
thread.start()
thread.join()
""",
    "daemon_threads": """
run = jit(lambda x: x * 2 + 1)
started = threading.Barrier(3)

def launch():
    run(x)
    started.wait()
    while True:
        run(x)

for k in range(2):
    threading.Thread(target=launch, daemon=True).start()
started.wait()
""",
    "thread_that_ends_with_the_interpreter": """
run, ran = jit(lambda x: x * 2), threading.Event()

def launch():
    run(x)
    ran.set()
    time.sleep(0.3)

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.6)

sys.slow = Slow()  # freed when threads are ended already
threading.Thread(target=launch, daemon=True).start()
ran.wait()
""",
    "callbacks": """
calls = []
run = jit(lambda x: (debug.callback(calls.append, x[0]), pure_callback(np.sin, x, x))[1])
for k in range(20):
    x = run(x)
""",
    "callback_in_a_loop": """
def step(x):
    debug.callback(lambda x: None, x[0])
    return pure_callback(lambda x: x + 1, x, x)

y = jit(lambda x: while_loop(lambda x: x[0] < 50, step, x))(x)
""",
    "c_function": """
libc = ctypes.CDLL(None)

def calls(x):
    tracegraph.host_call(libc.free, 0)
    return x + 1

y = jit(calls)(x)
""",
    "scratch_of_each_launch": """
run = tracegraph.jit(lambda x: np.cumsum(x)[::-1] * 2, device="cuda", scratch="per_launch")
ys = [run(x) for k in range(20)]
""",
    "own_kernel_and_graph": """
@tracegraph.kernel(
    source='extern "C" __global__ void twice(const double* x, double* y) {'
    "y[threadIdx.x] = 2 * x[threadIdx.x]; }",
    out=lambda x: x, grid=1, block=lambda x: x.size, derivative="reference",
)
def twice(x):
    return 2 * x

exported = jit(twice).lower(x).compile().export_graph(x)
embedded = lambda y: tracegraph.embed(exported.definition, reads=y, at=x, out=exported.results)
y = jit(lambda y: fori_loop(0, 100, lambda i, y: embedded(y) / 2, y, schedule="conditional"))(x)
""",
}
"""What a script leaves behind: much of it is still running when it ends."""

ENDS = {
    "end": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise ValueError('of the script')", 1),
}
"""How the script ends, and its exit code."""

STREAMS = {"default": "{}", "other": "with tracegraph.stream(tracegraph.Stream()):\n{}"}

AHEAD = 4
"""Processes that import while another one has the GPU."""

WAYS = [(work, end, stream) for stream in STREAMS for end in ENDS for work in WORK][:100]


def script_of(work, end, stream):
    lines = WORK[work] if stream == "default" else WORK[work].replace("\n", "\n    ")
    return f"{PRELUDE}{STREAMS[stream].format(lines)}\n{ENDS[end][0]}\n"


def started(script):
    """A process that imports what it needs, and then waits for its turn."""
    return subprocess.Popen(
        [sys.executable, "-c", script],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def fault_of(process, code):
    """What is wrong with how a process ends; it has the GPU for itself until then.

    With driver 580, one in some thirty processes ended in CUDA_ERROR_LAUNCH_FAILED when a dozen of
    them ran WHILE nodes at once, tracegraph or not.
    """
    with process:
        printed, errors = process.communicate("\n", SECONDS)
    # lines of a traceback are indented, but for the first and the last one
    said = [line for line in errors.splitlines() if not line.startswith(" ")]
    expected = ["Traceback (most recent call last):", "ValueError: of the script"]
    if (process.returncode, printed, said) == (code, "", expected if code == 1 else []):
        return None
    return process.returncode, printed, errors


class Queue:
    """Processes of some ways, the next of which are started before they are asked for."""

    def __init__(self, ways):
        self.later, self.waiting = list(ways), {}

    def fault_of(self, way):
        """What is wrong with how the process of a way ends; each one ends once."""
        while self.later and (len(self.waiting) <= AHEAD or way not in self.waiting):
            following = self.later.pop(0)
            self.waiting[following] = started(script_of(*following))
        return fault_of(self.waiting.pop(way), ENDS[way[1]][1])

    def close(self):
        for process in self.waiting.values():
            with process:
                process.kill()


SOME = [(work, [*ENDS][k % len(ENDS)], [*STREAMS][k % 2]) for k, work in enumerate(WORK)]


@pytest.fixture(scope="module")
def some():
    with closing(Queue(SOME)) as queue:
        yield queue


@pytest.mark.parametrize(("work", "end", "stream"), SOME)
def test_a_process_ends_cleanly(work, end, stream, some):
    assert some.fault_of((work, end, stream)) is None


@pytest.mark.soak
def test_a_hundred_processes_end_cleanly():
    assert len(WAYS) == 100
    with closing(Queue(WAYS)) as queue:
        faults = {way: queue.fault_of(way) for way in WAYS}
    assert not any(faults.values()), {way: fault for way, fault in faults.items() if fault}
