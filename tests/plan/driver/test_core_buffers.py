"""Allocations of cuda.core's Buffers are kept, with stand-ins for its classes."""

import pytest

pytest.importorskip("cuda.bindings")

from lowering.driver import core_buffers
from tracegraph.errors import RawMemoryError


class Buffer:
    def __init__(self, size=64, is_closed=False):
        self.size, self.is_closed = size, is_closed


class View:
    def __init__(self, exporting_obj):
        self.exporting_obj = exporting_obj


class Definition:
    def __init__(self):
        self.kept = []

    def memset(self, owner, value, width):
        self.kept.append((owner, value, width))


@pytest.fixture
def core(monkeypatch):
    for name, stand_in in (
        ("Buffer", Buffer),
        ("StridedMemoryView", View),
        ("GraphDefinition", Definition),
    ):
        monkeypatch.setattr(core_buffers, name, stand_in)


def test_a_definition_shares_the_allocation_of_a_buffer(core):
    buffer = Buffer()
    for owner in (buffer, View(buffer), View(View(buffer))):
        assert core_buffers.retained(owner).kept == [(buffer, 0, 1)]


def test_other_owners_keep_their_memory_themselves(core):
    for owner in (object(), None, View(object()), Buffer(0)):
        assert core_buffers.retained(owner) is None


def test_a_closed_buffer_is_refused(core):
    for owner in (Buffer(is_closed=True), View(Buffer(is_closed=True))):
        with pytest.raises(RawMemoryError, match="make the array before it is closed"):
            core_buffers.retained(owner)
