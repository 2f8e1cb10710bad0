"""What processes say to one another; here they are threads, each with a channel."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest

import tracegraph
from tracegraph import errors
from tracegraph.concurrency.each_in_a_thread import each_in_a_thread
from tracegraph.distributed import tickets
from tracegraph.distributed.channel import Channel
from tracegraph.distributed.joining import joined
from tracegraph.distributed.launchers import ProcessPlace


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def channels(count: int) -> Sequence[Channel]:
    address = "127.0.0.1", free_port()
    places = [ProcessPlace("test", i, count, i, address) for i in range(count)]
    return each_in_a_thread([partial(joined, place, None, 20) for place in places])


def close(all_: Sequence[Channel]) -> None:
    each_in_a_thread([each.close for each in all_])


def failures(*functions: Callable[[], Any]) -> list[BaseException | None]:
    def run(function: Callable[[], Any]) -> BaseException | None:
        try:
            function()
        except Exception as failure:
            return failure
        return None

    return each_in_a_thread([partial(run, function) for function in functions])


def test_all_get_the_bytes_of_all() -> None:
    members = channels(3)
    for text in (b"", b"x" * 300_000):
        found = each_in_a_thread(
            [partial(each.exchange, text + b"%d" % each.index, "a", "a") for each in members]
        )
        assert [list(each) for each in found] == [[text + b"%d" % i for i in range(3)]] * 3
    close(members)


def test_waits_that_cannot_end_are_ended() -> None:
    first, second = members = channels(2)
    for found in failures(
        lambda: first.exchange(b"", "one", "one thing"),
        lambda: second.exchange(b"", "two", "another"),
    ):
        assert isinstance(found, errors.DeadlockError)
        assert "process 0: waits in one thing" in str(found)
        assert "process 1: waits in another" in str(found)
    lonely = partial(first.meet, "device", 0, (0, 1), (0, 1), b"", "a", "a sum", launch=0)
    found, _ = failures(lonely, lambda: second.exchange(b"", "two", "another"))
    assert isinstance(found, errors.DeadlockError)
    assert "process 0, device 0: waits in a sum" in str(found)
    assert first.new_launch() == second.new_launch() == 1
    close(members)


def test_who_waits_for_one_that_leaves_is_told() -> None:
    first, second = channels(2)
    first.new_launch(), first.new_launch(), second.new_launch()
    leaving = Thread(target=second.close)
    found, _ = failures(lambda: first.exchange(b"", "one", "one thing"), leaving.start)
    assert isinstance(found, errors.PeerLostError)
    assert (found.process, "process 1 has ended" in str(found)) == (1, True)
    first.check(0, "a launch that both have made")
    with pytest.raises(errors.PeerLostError, match="process 1 has ended"):
        first.check(1, "a later one")
    first.close()
    with pytest.raises(errors.ProcessGroupError, match="shutdown"):
        first.exchange(b"", "one", "one thing")


def test_a_wait_obeys_a_time_limit_and_may_be_repeated() -> None:
    members = channels(2)
    with pytest.raises(errors.TimeLimitError), tracegraph.time_limit(0.01):
        members[0].exchange(b"early", "one", "one thing")
    found = each_in_a_thread(
        [partial(each.exchange, b"%d" % each.index, "one", "one thing") for each in members]
    )
    assert [list(each) for each in found] == [[b"0", b"1"]] * 2
    close(members)


def test_who_waits_for_long_is_told_what_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = members = channels(2)
    told, seen = Event(), list[str]()

    def tell(text: str, rows: Sequence[str]) -> None:
        seen.extend([text, *rows])
        told.set()

    def come_late() -> None:
        told.wait(20)
        second.exchange(b"", "one", "one thing")

    monkeypatch.setattr(tickets, "PATIENCE", 0.0)
    monkeypatch.setattr(tickets, "_warn", tell)
    late = Thread(target=come_late)
    late.start()
    first.exchange(b"", "one", "one thing")
    late.join()
    assert seen == ["one thing", "process 0: waits in one thing", "process 1: runs"]
    close(members)


def test_who_does_not_come_in_time_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEGRAPH_PEER_TIMEOUT", "0.05")
    first, _ = members = channels(2)
    with pytest.raises(errors.PeerLostError, match=r"waited 0.05 s .* in a sum .*process 1: runs"):
        first.exchange(b"", "one", "a sum")
    monkeypatch.undo()
    found = each_in_a_thread([partial(each.exchange, b"a", "one", "a sum") for each in members])
    assert [list(each) for each in found] == [[b"a", b"a"]] * 2
    close(members)


def test_who_waits_in_a_build_does_not_come_to_a_launch() -> None:
    first, second = members = channels(2)
    first.new_launch("a")
    failing = partial(second.exchange, b"", "one", "the build of 'b'")

    def compare() -> None:
        while second.lost is None:
            first.compare()
            time.sleep(0.01)

    _, found = failures(compare, failing)
    assert isinstance(found, errors.MeshMismatchError)
    assert "launch 0 of process 0: a\n  launch 0 of process 1: not made, as it" in str(found)
    assert first.behind(0) == [1]
    close(members)


def test_a_failed_launch_ends_in_all() -> None:
    first, second = members = channels(2)
    device = partial(first.meet, "device", 0, (0, 1), (0, 1), b"", "a", "a sum", launch=0)
    found, _ = failures(device, lambda: second.fail(0, 1))
    assert isinstance(found, errors.PeerFailedError)
    with pytest.raises(errors.PeerFailedError):
        first.check(0, "a loop")
    first.check(1, "a loop")
    device = partial(first.meet, "device", 0, (0, 1), (0, 0), b"", "a", "a sum", launch=1)

    def fail() -> None:
        while not first._tickets:
            time.sleep(0.001)
        first.fail(1, 1)

    found, _ = failures(device, fail)
    assert isinstance(found, errors.PeerFailedError), "also of the same process"
    close(members)


def test_all_have_noted_a_stop_before_it_is_made() -> None:
    first, *others = members = channels(3)
    first.stop([4, 5], "TimeLimitError")
    for each in others:
        assert each.stopped == {4: "TimeLimitError", 5: "TimeLimitError"}
    others[0].close()
    first.stop([6], "KeyboardInterrupt")
    assert others[1].stopped[6] == "KeyboardInterrupt"
    close(members)


def test_processes_that_launch_different_programs_find_out() -> None:
    first, second = members = channels(2)
    for each, programs in ((first, "abc"), (second, "ab")):
        for program in programs:
            each.new_launch(program)
    first.compare()
    second.new_launch("d")
    second.compare()
    for each in members:
        while each.lost is None:
            time.sleep(0.001)
        with pytest.raises(errors.MeshMismatchError) as found:
            each.check(2, "a launch")
        assert "launch 2 of process 0: c\n  launch 2 of process 1: d" in str(found.value)
        assert found.value.processes == (1,)
    close(members)


def test_an_address_may_be_told_by_a_function() -> None:
    told: list[Any] = []

    def broadcast(value: Any) -> Any:
        if value is not None:
            told.append(value)
        while not told:
            time.sleep(0.001)
        return told[0]

    places = [ProcessPlace("test", i, 2, i, None) for i in range(2)]
    members = each_in_a_thread([partial(joined, place, broadcast, 20) for place in places])
    close(members)


def test_problems_of_joining_are_told() -> None:
    address = "127.0.0.1", free_port()
    first, other = (ProcessPlace("test", i, 2, i, address) for i in range(2))
    with pytest.raises(errors.ProcessGroupError, match="these have not come: 1"):
        joined(first, None, 0.01)
    with pytest.raises(errors.ProcessGroupError, match="process 1 does not reach process 0"):
        joined(other, None, 0.01)
    with pytest.raises(errors.ProcessGroupError, match="does not say where process 0 is"):
        joined(ProcessPlace("mpirun", 1, 2, 1, None), None, 1)
    unheard = pytest.raises(errors.ProcessGroupError, match="process 0 cannot listen")
    with socket.create_server(address), unheard:
        joined(first, None, 1)
    for found in failures(
        lambda: joined(first, None, 20),
        lambda: joined(ProcessPlace("test", 1, 3, 1, address), None, 20),
    ):
        assert isinstance(found, errors.ProcessGroupError)
        assert "process 1 was started as one of 3 processes, the first one as one of 2" in str(
            found
        )


def test_what_does_not_belong_to_the_job_is_turned_away() -> None:
    address = "127.0.0.1", free_port()

    def stranger() -> bytes:
        while True:
            try:
                with socket.create_connection(address) as connected:
                    connected.sendall(b"\0\0\0\5hello")
                    return connected.recv(1)
            except OSError:
                time.sleep(0.001)

    def late() -> Channel:
        assert stranger() == b""
        return joined(ProcessPlace("test", 1, 2, 1, address), None, 20)

    close(
        each_in_a_thread([lambda: joined(ProcessPlace("test", 0, 2, 0, address), None, 20), late])
    )
