"""Many threads that call one function, and functions of their own, on the host."""

import threading

import numpy as np

import tracegraph

THREADS, CALLS = 16, 1000


def run_in_threads(work) -> None:
    """Run work(number) in all threads at once, and raise what the first to fail raises."""
    failures: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(number: int) -> None:
        start.wait()
        try:
            work(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_shared_and_own_functions() -> None:
    def three_times(x, y):
        return tracegraph.fori_loop(0, 3, lambda i, total: total + x * i, y)

    shared = tracegraph.jit(three_times, device="host")
    streams = [tracegraph.Stream("host") for _ in range(2)]

    def work(number: int) -> None:
        own = tracegraph.jit(lambda x: x * number - 1, device="host")
        x = np.arange(4.0) + number
        with tracegraph.stream(streams[number % 2]):
            for call in range(CALLS // 2):
                np.testing.assert_array_equal(own(x), x * number - 1)
                np.testing.assert_array_equal(shared(x, np.full(4, float(call))), 3 * x + call)

    run_in_threads(work)
    stats = shared.stats()
    assert (stats["traces"], stats["builds"]) == (1, 1)
    assert stats["launches"] == THREADS * CALLS // 2
