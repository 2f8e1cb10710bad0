"""Programs of `benchmarks.sharded` give the same on one device and on several."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.sharded import programs
from benchmarks.sharded.vocabularies import Vocabulary, tracegraph_on_all, tracegraph_on_one
from tracegraph import tree

RNG = np.random.default_rng(0)


def given(*shapes: tuple[int, ...]) -> list[Any]:
    return [RNG.standard_normal(shape).astype(np.float32) for shape in shapes]


CASES = {
    "heat": (programs.heat, given((8, 6)), (True,), False),
    "gradients": (programs.conjugate_gradients, given((8, 6)), (True,), False),
    "transforms": (programs.transforms, given((8, 8)), (True,), False),
    "clusters": (programs.clusters, given((40, 3), (4, 3)), (True, False), True),
    "training": (
        programs.training,
        given((6, 5), (5, 2), (12, 6), (12, 2)),
        (False, False, True, True),
        True,
    ),
}


def results(vocabulary: Vocabulary, name: str) -> list[Any]:
    found = run(vocabulary, name)
    return [np.asarray(leaf) for leaf in tree.leaves(found)]


def run(vocabulary: Vocabulary, name: str) -> Any:
    program, arguments, divided, same = CASES[name]
    fun = vocabulary.built(program(vocabulary, 3), divided, same)
    placed = [vocabulary.placed(x, d) for x, d in zip(arguments, divided, strict=True)]
    found = fun(*placed)
    vocabulary.wait(found)
    return found


@pytest.mark.parametrize("name", CASES)
def test_one_device_and_two_agree(name: str) -> None:
    one, both = (results(v("host", 2), name) for v in (tracegraph_on_one, tracegraph_on_all))
    for wanted, found in zip(one, both, strict=True):
        np.testing.assert_allclose(found, wanted, 1e-3, 1e-4)


def test_sums_end_by_count_and_by_data() -> None:
    (x,) = given((8,))
    vocabulary = tracegraph_on_all("host", 2)
    mean = (x[:4] + x[4:]) / 2
    counted = vocabulary.built(programs.counted_sums(vocabulary, 2), (True,), False)
    np.testing.assert_allclose(np.asarray(counted(x))[:4], 0.999**2 * mean, 1e-5)
    by_data = vocabulary.built(programs.sums_while(vocabulary, 2), (True,), False)
    expected = x - (1 - 0.999**2) * np.tile(mean, 2)
    np.testing.assert_allclose(np.asarray(by_data(x)), expected, 1e-5)
    for sums in (counted, by_data):
        body = str(sums.lower(x).plan).partition(" while ")[2]
        assert body.count("all-reduce sum") == 1, "the plan sums in each step"


def test_the_words_of_pytorch_mean_the_same(tmp_path: Path) -> None:
    dist = pytest.importorskip("torch.distributed")
    in_torch = import_module("benchmarks.sharded.in_torch")
    dist.init_process_group("gloo", f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        vocabulary = in_torch.torch_on_all("host", 1)
        for name in ("training", "clusters", "transforms"):  # without a message to itself
            (wanted, *_), found = results(tracegraph_on_one("host", 1), name), run(vocabulary, name)
            first = vocabulary.whole(found[0] if isinstance(found, tuple) else found, True)
            np.testing.assert_allclose(first, wanted, 1e-3, 1e-4)
    finally:
        dist.destroy_process_group()
