"""Owners live until the driver has called the destructor of their user object, by its thread."""

import ctypes
import gc
import threading
import weakref

import pytest

pytest.importorskip("cuda.bindings")

from lowering.driver import checks, user_objects
from lowering.driver.checks import SUCCESS, CudaMemoryError
from lowering.driver.user_objects import UserObjects

FAILURE = user_objects.driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY


class Owner:
    """Something that may be referred to weakly."""


class Driver:
    """Counts references to user objects as the driver does; the destructor is called for real."""

    CUhostFn = staticmethod(user_objects.driver.CUhostFn)

    def __init__(self):
        self.fails = None
        self.references = {}
        self.graphs = {}

    def cuUserObjectCreate(self, pointer, destroy, count, flags):
        if self.fails == "create":
            return FAILURE, None
        self.references[pointer] = count
        self.destroy = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(destroy))
        return SUCCESS, pointer

    def cuGraphRetainUserObject(self, graph, user_object, count, flags):
        if self.fails == "retain":
            return (FAILURE,)
        self.graphs[graph] = user_object  # the reference is moved
        return (SUCCESS,)

    def cuUserObjectRelease(self, user_object, count):
        self.references[user_object] -= count
        if not self.references[user_object]:
            thread = threading.Thread(target=self.destroy, args=[user_object])
            thread.start()
            thread.join()
        return (SUCCESS,)

    def copy(self, graph, copy):
        self.graphs[copy] = self.graphs[graph]
        self.references[self.graphs[copy]] += 1

    def drop(self, graph):
        self.cuUserObjectRelease(self.graphs.pop(graph), 1)


@pytest.fixture
def driver(monkeypatch):
    fake = Driver()
    monkeypatch.setattr(user_objects, "driver", fake)
    return fake


def tied(objects, graph):
    owner = Owner()
    objects.tie(graph, owner)
    return weakref.ref(owner)


def alive(owner):
    gc.collect()
    return owner() is not None


def test_owners_live_until_the_last_graph_is_gone_and_somebody_looks(driver):
    objects = UserObjects()
    owner = tied(objects, "graph")
    driver.copy("graph", "executable")
    driver.drop("graph")
    objects.release()
    assert alive(owner)
    driver.drop("executable")
    assert alive(owner)  # no Python ran for it
    objects.release()
    assert not alive(owner)


def test_the_destructor_is_a_function_of_the_c_library(driver):
    tied(UserObjects(), "graph")
    expected = ctypes.cast(ctypes.CDLL(None).sem_post, ctypes.c_void_p).value
    assert ctypes.cast(driver.destroy, ctypes.c_void_p).value == expected


def test_semaphores_are_used_again_and_tell_their_owners_apart(driver):
    objects = UserObjects()
    for _ in range(3):
        owners = [tied(objects, graph) for graph in range(4)]
        driver.drop(2)
        objects.release()
        assert [alive(owner) for owner in owners] == [True, True, False, True]
        for graph in (0, 1, 3):
            driver.drop(graph)
        objects.release()
        assert not any(map(alive, owners))
    assert len(driver.references) == 4


def test_a_look_may_be_at_a_few_in_turns(driver, monkeypatch):
    objects = UserObjects()
    owners = [tied(objects, graph) for graph in range(20)]
    for graph in range(20):
        driver.drop(graph)
    left = []
    for _ in range(4):
        objects.release(6)
        left.append(sum(map(alive, owners)))
    assert left == [14, 8, 2, 0]


@pytest.mark.parametrize("call", ["create", "retain"])
def test_a_failure_leaves_no_user_object_and_no_owner(driver, call, monkeypatch):
    objects = UserObjects()
    monkeypatch.setattr(checks, "_message", str)  # the driver's own would be asked
    driver.fails, owner = call, Owner()
    left = weakref.ref(owner)
    with pytest.raises(CudaMemoryError, match="failed with CUDA_ERROR_OUT_OF_MEMORY"):
        objects.tie("graph", owner)
    del owner
    objects.release()
    assert not alive(left)
    assert not driver.graphs
    assert not any(driver.references.values())
    driver.fails = None
    later = tied(objects, "graph")
    driver.drop("graph")
    objects.release()
    assert not alive(later)
