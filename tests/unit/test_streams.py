"""The current stream: how it is chosen, by whom it is seen, and what DLPack consumers say."""

import asyncio
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import tracegraph
from tracegraph.arrays.dlpack import consumer_stream
from tracegraph.current_stream import current_stream


class Foreign:
    """A stream of another library."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle


@pytest.mark.parametrize(
    ("given", "handle"),
    [
        (Foreign(7), 7),
        (Foreign(0), 1),
        (9, 9),
        (0, 1),
        (SimpleNamespace(cuda_stream=11), 11),
        (SimpleNamespace(ptr=0), 1),
    ],
)
def test_chosen(given: object, handle: int) -> None:
    assert current_stream() is None
    with tracegraph.stream(given):
        chosen = current_stream()
        assert chosen is not None
        assert chosen.handle == handle
        assert chosen.owner is (None if isinstance(given, int) else given)
    assert current_stream() is None


@pytest.mark.parametrize("given", [None, "s", 1.0, True, object()])
def test_what_is_no_stream(given: object) -> None:
    with (
        pytest.raises(TypeError, match=f"__cuda_stream__.*got {type(given).__name__}"),
        tracegraph.stream(given),
    ):
        pass


@pytest.mark.parametrize(("handle", "reason"), [(-1, "not negative"), (2, "in each thread")])
def test_refused_handles(handle: int, reason: str) -> None:
    for given in (handle, Foreign(handle)):
        with pytest.raises(ValueError, match=reason), tracegraph.stream(given):
            pass


def test_blocks_nest_and_end_with_an_exception() -> None:
    with tracegraph.stream(5):
        with pytest.raises(KeyError), tracegraph.stream(6):
            raise KeyError
        assert current_stream().handle == 5  # type: ignore[union-attr]


def test_a_thread_has_its_own() -> None:
    seen = []

    def work() -> None:
        seen.append(current_stream())
        with tracegraph.stream(6):
            pass

    with tracegraph.stream(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        around = current_stream()
    inherits = getattr(sys.flags, "thread_inherit_context", False)
    assert seen == [around if inherits else None]


def test_a_task_has_its_own() -> None:
    async def work(handle: int) -> list[int]:
        seen = []
        with tracegraph.stream(handle):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(current_stream().handle)  # type: ignore[union-attr]
        return seen

    async def both() -> list[list[int]]:
        return await asyncio.gather(work(5), work(6))

    assert asyncio.run(both()) == [[5] * 3, [6] * 3]


def test_streams_of_the_host() -> None:
    stream = tracegraph.Stream("host")
    stream.synchronize()
    with tracegraph.stream(5), tracegraph.stream(stream):
        assert current_stream() is None
        result = tracegraph.jit(lambda x: x * 2, device="host")(np.arange(3))
    assert result.tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="no CUDA stream"):
        stream.__cuda_stream__()


def test_consumers() -> None:
    assert [consumer_stream(s) for s in (None, -1, 1, 2, 77)] == [1, None, 1, 2, 77]
    for given in (0, -2):
        with pytest.raises(ValueError, match=str(given)):
            consumer_stream(given)
    with pytest.raises(TypeError, match="str"):
        consumer_stream("1")


def test_a_stream_of_the_host_takes_a_priority_that_has_no_effect() -> None:
    stream = tracegraph.Stream("host", priority=-2)
    assert stream.priority == 0
    with tracegraph.stream(stream):
        assert tracegraph.jit(lambda x: x + 1, device="host")(1) == 2
    for wrong in (1.5, True, "high"):
        with pytest.raises(TypeError, match="the priority of a stream is an int"):
            tracegraph.Stream("host", priority=wrong)  # type: ignore[arg-type]
