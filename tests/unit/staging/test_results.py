"""Results become Arrays in the tree of the function, however many there are."""

import numpy as np
import pytest

from tracegraph import Array, ArrayType, tree
from tracegraph.staging.calls.results import MOST_RESULTS, assembler, results_of

TYPES = [ArrayType("float64", (i + 1,), weak=i % 2 == 1) for i in range(MOST_RESULTS + 3)]


def assembled(example, count):
    types = TYPES[:count]
    made = assembler(results_of(tree.structure(example), types, "host"))
    return made([np.full(t.shape, float(i)) for i, t in enumerate(types)])


@pytest.mark.parametrize("count", [0, 1, 2, MOST_RESULTS, MOST_RESULTS + 3])
def test_a_tuple(count):
    found = assembled((0,) * count, count)
    assert type(found) is tuple
    assert [x.type for x in found] == TYPES[:count]
    for number, x in enumerate(found):
        assert type(x) is Array
        assert (np.asarray(x) == number).all()
        assert x.placement == (x.dtype, x.shape, x.weak, "host")
        assert not x.data.flags.writeable


def test_one_array_and_trees():
    assert assembled(0, 1).shape == (1,)
    found = assembled({"a": [0, (0,)], "b": 0}, 3)
    assert tree.structure(found) == tree.structure({"a": [0, (0,)], "b": 0})
    assert [x.shape for x in (*found["a"][:1], found["a"][1][0], found["b"])] == [(1,), (2,), (3,)]


def test_another_number_of_results_is_refused():
    for count in (2, MOST_RESULTS + 3):
        made = assembler(results_of(tree.structure((0,) * count), TYPES[:count], "host"))
        with pytest.raises(ValueError, match=r"values|argument"):
            made([np.zeros(1)])
