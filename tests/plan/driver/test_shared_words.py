"""Parameters of kernel nodes that are words of others, as the driver reads them."""

import ctypes
import gc

import pytest

pytest.importorskip("cuda.core")

from lowering.driver.graph_nodes import DriverKernelNode, parameter_cells


def test_a_shared_parameter_is_read_where_it_is_and_the_others_are_the_nodes_own():
    cells, addresses = parameter_cells([1, 2, 3])
    first = DriverKernelNode("first", cells, addresses, None)
    second = DriverKernelNode("second", *parameter_cells([4]), None)
    words = (ctypes.c_uint64 * 2)(5, 6)
    first.share(1, words, 1)
    first.share(2, words, 0)
    second.share(0, words, 1)
    assert passed(first) == [1, 6, 5]
    words[:] = [7, 2**64 - 1]
    first.values[0] = 9
    assert passed(first) == [9, 2**64 - 1, 7]
    assert passed(second) == [2**64 - 1]


def test_shared_words_live_as_long_as_a_node_that_reads_them():
    node = DriverKernelNode("node", *parameter_cells([0]), None)
    words = (ctypes.c_uint64 * 1)(11)
    node.share(0, words, 0)
    del words
    gc.collect()
    spare = [(ctypes.c_uint64 * 1)(12) for _ in range(64)]
    assert passed(node) == [11]
    del spare


def passed(node):
    """What the driver would read."""
    return [ctypes.c_uint64.from_address(address).value for address in node.addresses]
