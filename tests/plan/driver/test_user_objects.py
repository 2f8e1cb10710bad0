"""Owners live until the driver has called the destructor of their user object, by its thread."""

import ctypes
import gc
import threading
import weakref
from functools import partial
from types import SimpleNamespace

import pytest

pytest.importorskip("cuda.bindings")

from lowering.driver import error_checks, foreign_captures, handles, user_objects
from lowering.driver.error_checks import SUCCESS, CudaMemoryError
from lowering.driver.handles import CudaExecutableGraph
from lowering.driver.user_objects import UserObjects
from tests.helpers.threads import in_threads

FAILURE = user_objects.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY


class Owner:
    """Something that may be referred to weakly."""


class Definition:
    """A graph that is destroyed when it is collected."""

    def __init__(self, driver, handle):
        self.handle = handle
        weakref.finalize(self, driver.destroy_graph, handle)


class Driver:
    """Counts references to user objects as the driver does; the destructor is called for real."""

    CUhostFn = staticmethod(user_objects.driver.CUhostFn)

    def __init__(self):
        self.modes = threading.local()
        self.fails = None
        self.references = {}
        self.graphs = {}
        self.destroyed = []

    def cuThreadExchangeStreamCaptureMode(self, mode):
        before = getattr(self.modes, "mode", "global")
        self.modes.mode = mode
        return SUCCESS, before

    def cuGraphExecDestroy(self, executable):
        """In a capture of global mode this would be refused."""
        assert self.modes.mode == foreign_captures._RELAXED
        self.destroyed.append(executable)
        return (SUCCESS,)

    def cuUserObjectCreate(self, pointer, destroy, count, flags):
        if self.fails == "create":
            return FAILURE, None
        self.references[pointer] = count
        self.destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(destroy))
        return SUCCESS, pointer

    def cuGraphRetainUserObject(self, graph, user_object, count, flags):
        if self.fails == "retain":
            return (FAILURE,)
        assert (count, flags) == (1, 0)  # nothing is moved
        self.graphs[graph] = user_object
        self.references[user_object] += 1
        return (SUCCESS,)

    def cuGraphReleaseUserObject(self, graph, user_object, count):
        assert self.graphs.pop(graph) == user_object
        return self.cuUserObjectRelease(user_object, count)

    def cuUserObjectRelease(self, user_object, count):
        self.references[user_object] -= count
        if not self.references[user_object]:
            thread = threading.Thread(target=self.destroy, args=[user_object])
            thread.start()
            thread.join()
        return (SUCCESS,)

    def copy(self, graph, copy):
        if graph in self.graphs:
            self.graphs[copy] = self.graphs[graph]
            self.references[self.graphs[copy]] += 1

    def destroy_graph(self, graph):
        if graph in self.graphs:
            self.cuUserObjectRelease(self.graphs.pop(graph), 1)


@pytest.fixture
def driver(monkeypatch):
    """Only the tests look at semaphores, unless one shortens the time between two looks."""
    fake = Driver()
    for module in (user_objects, handles, foreign_captures):
        monkeypatch.setattr(module, "driver", fake)
    started = SimpleNamespace(
        start_new_thread=lambda function, args: None, allocate_lock=threading.Lock
    )
    monkeypatch.setattr(user_objects, "_thread", started)
    return fake


@pytest.fixture
def watchers(driver, monkeypatch):
    """The threads that look, without a pause."""
    threads = []

    def start(function, args):
        threads.append(threading.Thread(target=function, args=args, daemon=True))
        threads[-1].start()

    monkeypatch.setattr(
        user_objects,
        "_thread",
        SimpleNamespace(start_new_thread=start, allocate_lock=threading.Lock),
    )
    monkeypatch.setattr(user_objects, "LOOK_SECONDS", 0)
    return threads


@pytest.fixture
def tie(driver):
    """Ties a graph by its name to an owner: what Python has of it, and the owner, weakly."""

    def tied(objects, graph):
        owner = Owner()
        return objects.tie(Definition(driver, graph), owner), weakref.ref(owner)

    return tied


def alive(owner):
    gc.collect()
    return owner() is not None


def test_owners_of_a_graph_that_never_left_go_with_it_at_once(driver, tie):
    graph, owner = tie(UserObjects(), "graph")
    assert alive(owner)
    del graph
    assert not alive(owner)


def test_owners_live_until_the_last_graph_is_gone_and_somebody_looks(driver, tie):
    objects = UserObjects()
    graph, owner = tie(objects, "graph")
    driver.copy("graph", "executable")
    del graph
    objects.release()
    assert alive(owner)
    driver.destroy_graph("executable")
    assert alive(owner)  # no Python ran for it
    objects.release()
    assert not alive(owner)


def test_a_graph_that_was_given_away_keeps_its_owners(driver, tie):
    objects = UserObjects()
    graph, owner = tie(objects, "graph")
    given = graph.definition
    del graph
    objects.release()
    assert alive(owner)
    del given
    objects.release()
    assert not alive(owner)


def test_an_executable_of_an_untied_graph_has_no_part_in_it(driver, tie):
    objects = UserObjects()
    graph, owner = tie(objects, "graph")
    with graph.untied() as handle:
        driver.copy(handle, "executable")
        objects.release()
        assert alive(owner)
    assert "executable" not in driver.graphs
    driver.copy("graph", "another")
    del graph
    assert alive(owner)
    driver.destroy_graph("another")
    objects.release()
    assert not alive(owner)


def test_a_graph_is_tied_again_when_instantiating_fails(driver, tie):
    graph, owner = tie(UserObjects(), "graph")
    with pytest.raises(KeyError), graph.untied():
        raise KeyError
    assert "graph" in driver.graphs
    del graph
    assert not alive(owner)


def test_what_cannot_be_tied_again_keeps_its_owners(driver, tie, monkeypatch):
    monkeypatch.setattr(error_checks, "message_of", str)
    graph, owner = tie(UserObjects(), "graph")
    with pytest.raises(CudaMemoryError), graph.untied():
        driver.fails = "retain"
    assert alive(owner)  # executables made before point to it
    del graph
    assert not alive(owner)


def test_the_destructor_is_a_function_of_the_c_library(driver, tie):
    graph, _ = tie(UserObjects(), "graph")
    expected = ctypes.cast(ctypes.CDLL(None).sem_post, ctypes.c_void_p).value
    assert ctypes.cast(driver.destroy, ctypes.c_void_p).value == expected
    del graph


def test_semaphores_are_used_again_and_tell_their_owners_apart(driver, tie):
    objects = UserObjects()
    for _ in range(3):
        made = [tie(objects, name) for name in range(4)]
        owners = [owner for _, owner in made]
        for name in range(4):
            driver.copy(name, ("copy", name))
        del made
        driver.destroy_graph(("copy", 2))
        objects.release()
        assert [alive(owner) for owner in owners] == [True, True, False, True]
        for name in (0, 1, 3):
            driver.destroy_graph(("copy", name))
        objects.release()
        assert not any(map(alive, owners))
    assert len(driver.references) == 4


def test_a_look_may_be_at_a_few_in_turns(driver, tie):
    objects = UserObjects()
    made = [tie(objects, name) for name in range(20)]
    living, owners = tie(objects, "living"), [owner for _, owner in made]
    for name in range(20):
        driver.copy(name, ("copy", name))
    del made
    for name in range(20):
        driver.destroy_graph(("copy", name))
    left = []
    for _ in range(4):
        objects.release(6)
        left.append(sum(map(alive, owners)))
    assert left == [14, 8, 2, 0]  # no turn was that of a graph which Python has
    del living


def test_threads_may_look_at_a_semaphore_that_is_used_again_meanwhile(driver, tie, monkeypatch):
    """One thread is about to look at a semaphore; another finds it first, and ties the next graph
    to it. The first goes on when the driver has called the destructor of that one.
    """
    objects = UserObjects()
    graph, first = tie(objects, "first")
    driver.copy("first", "copy")
    del graph
    driver.destroy_graph("copy")

    about_to_look, may_look = threading.Event(), threading.Event()
    trywait = ctypes.CDLL(None).sem_trywait

    def slow_trywait(semaphore):
        if threading.current_thread() is slow:
            about_to_look.set()
            assert may_look.wait(10)
        return trywait(semaphore)

    libc = user_objects._libc()
    monkeypatch.setattr(libc, "sem_trywait", slow_trywait)
    failures = []

    def look():
        try:
            objects.release()
        except Exception as failure:
            failures.append(failure)

    slow = threading.Thread(target=look)
    slow.start()
    assert about_to_look.wait(10)
    objects.release()
    assert not alive(first)
    graph, second = tie(objects, "second")
    assert len(driver.references) == 1, "the semaphore is used again"
    release = driver.cuUserObjectRelease

    def release_and_let_look(user_object, count):
        result = release(user_object, count)
        if not driver.references[user_object]:
            may_look.set()
            slow.join()
        return result

    monkeypatch.setattr(driver, "cuUserObjectRelease", release_and_let_look)
    del graph
    gc.collect()
    objects.release()
    assert not failures
    assert not alive(second)


def test_a_thread_releases_the_owners_of_graphs_that_were_given_away(driver, tie, watchers):
    """Also those of graphs that are given away later: there is one thread as long as any lives."""
    activated = []
    objects = UserObjects(lambda: activated.append(threading.current_thread()))
    made = [tie(objects, name) for name in range(3)]
    owners = [owner for _, owner in made]
    for name in range(3):
        driver.copy(name, ("copy", name))
    for name in range(3):
        made[name] = None
    assert len(watchers) == 1
    assert all(map(alive, owners))
    for name in range(3):
        driver.destroy_graph(("copy", name))
    watchers[0].join(10)
    assert not watchers[0].is_alive()
    assert not any(map(alive, owners))
    assert activated == watchers

    graph, owner = tie(objects, "later")
    driver.copy("later", "its copy")
    del graph
    assert len(watchers) == 2, "the first thread has ended"
    driver.destroy_graph("its copy")
    watchers[1].join(10)
    assert not alive(owner)


def test_sixteen_threads_tie_give_away_and_look(driver, tie, watchers):
    """All owners go, none before its graph, and one thread at a time looks."""
    objects, looking, most = UserObjects(), [0], [0]
    release = objects.release

    def counted(*arguments):
        if threading.current_thread() in watchers:
            looking[0] += 1
            most[0] = max(most[0], looking[0])
            release(*arguments)
            looking[0] -= 1
        else:
            release(*arguments)

    objects.release = counted
    references = []

    def work(number):
        for step in range(60):
            name = (number, step)
            graph, owner = tie(objects, name)
            references.append(owner)
            if step % 3:
                driver.copy(name, ("copy", name))
                del graph
                assert owner() is not None, "its copy lives"
                driver.destroy_graph(("copy", name))
            else:
                del graph
            objects.release(3)

    in_threads(16, work)
    for watcher in watchers:
        watcher.join(10)
        assert not watcher.is_alive()
    objects.release()
    assert len(references) == 16 * 60
    assert not any(map(alive, references[:16]))
    assert not any(reference() for reference in references)
    assert most[0] <= 1
    assert not objects._owners
    assert not objects._left


def test_a_process_that_ends_starts_no_thread_and_may_start_one_later(driver, tie, monkeypatch):
    objects, started = UserObjects(), []

    def refused(function, args):
        raise RuntimeError("can't start new thread at interpreter shutdown")

    fake = SimpleNamespace(start_new_thread=refused)
    monkeypatch.setattr(user_objects, "_thread", fake)
    graph, owner = tie(objects, "graph")
    driver.copy("graph", "copy")
    del graph
    assert alive(owner)
    monkeypatch.setattr(fake, "start_new_thread", lambda function, args: started.append(function))
    other, _ = tie(objects, "other")
    driver.copy("other", "its copy")
    del other
    assert len(started) == 1


def test_nothing_is_released_in_a_thread_once_the_process_ends(driver, tie, watchers, monkeypatch):
    """What C++ code frees in a thread that the interpreter ends there would end the process."""
    ends, activated = [], []
    register = lambda function, **options: ends.append(partial(function, **options))  # noqa: E731
    monkeypatch.setattr(user_objects, "atexit", SimpleNamespace(register=register))
    objects = UserObjects(lambda: activated.append(threading.current_thread()))
    graph, owner = tie(objects, "graph")
    driver.copy("graph", "copy")
    assert [end() for end in ends] == [True]
    del graph
    driver.destroy_graph("copy")
    watchers[0].join(0.1)
    assert watchers[0].is_alive()
    assert not activated
    assert alive(owner)
    objects._looking.release()  # so that the thread of this test ends
    watchers[0].join(10)
    assert not alive(owner)


def test_no_thread_looks_where_no_graph_was_given_away(driver, tie, watchers):
    graph, owner = tie(UserObjects(), "graph")
    del graph
    assert not alive(owner)
    assert not watchers


def test_windows_is_told_why_there_is_no_cuda_backend(monkeypatch):
    user_objects._libc.cache_clear()
    monkeypatch.setattr(user_objects, "sys", SimpleNamespace(platform="win32"))
    with pytest.raises(RuntimeError, match="needs a POSIX system"):
        UserObjects()


@pytest.mark.parametrize("call", ["create", "retain"])
def test_a_failure_leaves_no_user_object_and_no_owner(driver, tie, call, monkeypatch):
    objects = UserObjects()
    monkeypatch.setattr(error_checks, "message_of", str)  # the driver's own would be asked
    driver.fails, owner = call, Owner()
    left = weakref.ref(owner)
    with pytest.raises(CudaMemoryError, match="failed with CUDA_ERROR_OUT_OF_MEMORY"):
        objects.tie(Definition(driver, "graph"), owner)
    del owner
    objects.release()
    assert not alive(left)
    assert not driver.graphs
    assert not any(driver.references.values())
    driver.fails = None
    graph, later = tie(objects, "graph")
    del graph
    assert not alive(later)


def test_executables_go_before_what_they_point_to(driver, tie):
    """Also where all are found at once to be garbage: nothing is said of the order in a cycle."""
    gone = driver.destroyed
    objects = UserObjects()
    for number in range(20):
        graph, owner = tie(objects, number)
        weakref.finalize(owner(), gone.append, f"owner of {number}")
        executable = CudaExecutableGraph(number, graph)
        cycle = [executable, graph]
        cycle.append(cycle)
    del graph, executable, cycle
    gc.collect()
    assert sorted(map(str, gone)) == sorted(
        [*map(str, range(20)), *(f"owner of {i}" for i in range(20))]
    )
    assert all(gone.index(i) < gone.index(f"owner of {i}") for i in range(20))
