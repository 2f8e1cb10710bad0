"""Loop blocking on the host: which nests run in blocks, along which axis, how long."""

from __future__ import annotations

import numpy as np
import pytest

from lowering.host.tuning.instructions.blocking import GATHERED_BYTES, HUGE_BYTES, STRIP, WIDE_STRIP
from tests.cases.host_nests import block_length, ones, programs_of


def centred(x):
    y = np.tanh(x)
    return y - np.mean(y, axis=0, keepdims=True)


def test_blocks_have_whole_lines():
    (columns,) = programs_of(centred, ones(512, 20_000))
    assert block_length(columns) is None
    (rows,) = programs_of(lambda x: 2 * x - x.mean(axis=1, keepdims=True), ones(512, 20_000))
    assert block_length(rows) < 512
    (line,) = programs_of(lambda x: np.sin(x) + x, ones(1 << 20))
    assert block_length(line) < 1 << 20


def test_few_blocks_along_the_innermost_axis_do_not_pay():
    """Of few, the last would be short runs."""
    (run,) = programs_of(centred, ones(512, 2500))
    assert block_length(run) is None


def test_blocks_do_not_split_cache_lines_that_are_read_across_memory_order():
    """Each of them would read all of these lines."""
    (run,) = programs_of(lambda x, y: np.max(y * x.T, axis=1), ones(36_000, 10), ones(10, 36_000))
    assert block_length(run) is None


def test_blocks_need_a_large_intermediate_or_an_array_larger_than_caches():
    """To go through an array once for several calls saves little while it is in a cache."""

    def apart_from_each_other(x):
        return x + 1, x * 2

    (few,) = programs_of(apart_from_each_other, ones(1 << 20))
    assert block_length(few) is None
    (many,) = programs_of(apart_from_each_other, ones(HUGE_BYTES // 4))
    assert block_length(many) < HUGE_BYTES // 4
    (handed_on,) = programs_of(lambda x: (x + 1, np.sin(x) * x), ones(1 << 20))
    assert block_length(handed_on) < 1 << 20


def strip_of(function, *arguments):
    (program,) = programs_of(function, *arguments)
    return block_length(program)


@pytest.mark.parametrize(
    ("function", "shape", "expected"),
    [
        (lambda x: x.T + 1, (1024, 1024), STRIP),  # one of 64 lines in a page: 256 of them are kept
        (lambda x: x.T + x, (1024, 1024), STRIP),
        (lambda x: x.T + 1, (1800, 300), 450),  # all 1,800 are kept: as many strips as blocks
        (lambda x: x.T + 1, (500, 2000), WIDE_STRIP),
        (lambda x: x.T + x, (600, 600), None),  # and what is read in order is read so
        (lambda x: x.T * x + x.T, (600, 600), None),  # by whatever call
        (lambda x: x.T + 1, (40_000, 25), 2048),  # 16,384 are
        (lambda x: x.T + 1, (300_000, 4), None),  # a line of memory has all of some rows
        (lambda x: x[:, ::64].T * 2, (4096, 64 * 128), 256),  # what is stored turned is a copy
        (lambda x: x[::64] * 2, (64 << 18,), None),  # nothing is read across
    ],
)
def test_strips_are_as_wide_as_their_lines_stay_in_the_cache(function, shape, expected):
    assert strip_of(function, ones(*shape)) == expected


@pytest.mark.parametrize("arrays", [1, 2])
def test_blocks_do_not_alternate_gathers_from_several_large_arrays(arrays):
    """In blocks, each would have to come into the cache again for every one of them."""

    def function(i, x, y):
        found = [source[i] for source in (x, y)[:arrays]]
        return [np.sin(each * 2) + 1 for each in found]

    size = GATHERED_BYTES // 8
    arguments = np.zeros(size, np.int64), ones(size), ones(size)
    (program,) = programs_of(function, *arguments)
    assert (block_length(program) is None) == (arrays == 2)
