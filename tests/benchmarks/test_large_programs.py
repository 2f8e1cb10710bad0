"""The large programs of the benchmarks: traced, they compute what they do with eager arrays."""

import dataclasses

import numpy as np
import pytest

from benchmarks.harness.library import leaves
from benchmarks.harness.row import Draw
from benchmarks.large_programs import LARGE_PROGRAMS
from benchmarks.programs import language
from benchmarks.rows import GROUPS

SMALL = {program.name: program for program in reversed(LARGE_PROGRAMS)}
EXTENTS = {"decoder": 64, "sphere_tracer": 12, "evolution": 6, "convolutional": 3}
"""Of the programs whose eager form takes longest."""


def results(run):
    return [np.asarray(x) for x in leaves(run)]


@pytest.mark.parametrize("name", SMALL)
def test_programs_compute_what_eager_arrays_do(name, monkeypatch):
    monkeypatch.setenv("TRACEGRAPH_DEVICE", "host")
    program = dataclasses.replace(SMALL[name], sizes=(EXTENTS.get(name, 20),))
    row = program.row(program.sizes[0], "float64")
    inputs = row.inputs(Draw.of(row.name, 0, "host", "fixed"))
    wanted = results(program.write(language.traced())(*inputs))
    found = results(row.contestants["tracegraph"](*inputs)())
    assert row.agrees(found, wanted) is None
    assert all(np.isfinite(x).all() for x in wanted)
    if "numpy" in row.contestants:
        assert row.agrees(results(row.contestants["numpy"](*inputs)()), wanted) is None


def test_each_has_both_sizes_and_dtypes():
    names = [row.name for row in GROUPS["large_programs"]]
    assert len({*names}) == len(names) == 4 * len(SMALL)
    assert [row.name for row in GROUPS["maxwell"]] == [
        *("maxwell_128_f32", "maxwell_128_f64"),
        *("maxwell_1024_f32", "maxwell_1024_f64"),
    ]
    assert all("numpy" not in program.libraries for program in LARGE_PROGRAMS[1::2])
