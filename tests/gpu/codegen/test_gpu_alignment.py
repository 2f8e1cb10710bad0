"""Kernels whose arguments begin anywhere, those that are stored to as well, on the device.

The cases are those of the emulator, which runs the threads of a warp one after the other.
"""

import pytest

from lowering.codegen import geometry, unit_source
from lowering.codegen import geometry_records as records
from lowering.codegen.maps import transpose_tiles
from lowering.cuda.interface import Launch
from tests.cases.kernels.by_hand import plan
from tests.codegen.maps.test_tiles_emulated import CASES as TILES
from tests.codegen.maps.test_vectors_emulated import ALL as MAPS
from tests.codegen.rows.test_groups_emulated import ALL as ROWS
from tests.codegen.test_kernels_emulated import assert_case

STORED_BY_LANES = ("softmax_float16_", "centred_int8_", "reread_int16_")
CASES = {
    **{f"tiles {name}": case for name, case in TILES.items()},
    **{f"map {n}": c for n, c in MAPS.items() if n.endswith(("_several", "_5003", "_in_place"))},
    **{f"rows {name}": case for name, case in ROWS.items() if name.startswith(STORED_BY_LANES)},
}
MAP_CASES = [name for name in CASES if name.startswith("map ")]
ALIGNMENT = 256  # of what the device allocates


class Kernels:
    """The kernels of a unit on the device, called as the emulator's are."""

    def __init__(self, unit):
        from lowering.cuda.open_devices import open_device

        device = open_device(0)
        device.driver.activate()
        self.unit, self.driver = unit, device.driver
        self.module = self.driver.load(device.compile(unit.source))

    def run(self, node, memory):
        """Launch a node on copies of what is in the host's memory, and return what they hold."""
        code, driver = self.unit.kernels[node], self.driver
        allocations, places, arguments = [], {}, []
        for buffer in code.parameters:
            start, block = memory.address(buffer), memory.blocks[buffer]
            allocations.append(driver.allocate(block.nbytes + ALIGNMENT))
            places[buffer] = allocations[-1].pointer + block.ctypes.data % ALIGNMENT
            arguments.append(places[buffer] + start - block.ctypes.data)
            driver.copy_to_device(places[buffer], block)
        kernel = driver.kernel(self.module, code.name)
        driver.launch_kernel(Launch(kernel, code.grid, code.block, code.shared_bytes), arguments)
        for buffer, place in places.items():
            driver.copy_to_host(memory.blocks[buffer], place)
        return {buffer: memory.get(buffer) for buffer in places}


def unit_of(names, vectors):
    """A unit of kernels whose threads have as many vectors of a map each, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "LARGE_ROWS", 2)
        patch.setattr(records, "MANY_THREADS", 2)
        patch.setattr(geometry, "VECTORS_PER_THREAD", vectors)
        patch.setattr(transpose_tiles, "MIN_POINTS", 1)
        patch.setattr(transpose_tiles, "LARGE_POINTS", 1)
        patch.setattr(transpose_tiles, "LARGEST_POINTS", 1)
        return unit_source(plan(*(CASES[name].node for name in names)))


UNITS = {"all": (CASES, 2), "maps": (MAP_CASES, 1)}


@pytest.fixture(scope="module")
def kernels():
    return Kernels(unit_of(*UNITS["all"]))


@pytest.fixture(scope="module")
def maps_of_one_vector():
    return Kernels(unit_of(*UNITS["maps"]))


SHIFTS = pytest.mark.parametrize(
    ("shift", "apart"), [(0, 0), (1, 0), (2, 1), (3, 2), (15, 14), (4, 8)]
)


@SHIFTS
@pytest.mark.parametrize("name", CASES)
def test_kernels_give_what_numpy_gives(name, shift, apart, kernels):
    assert_case(CASES[name], kernels, shift, apart)


@SHIFTS
@pytest.mark.parametrize("name", MAP_CASES)
def test_maps_of_one_vector_a_thread_give_what_numpy_gives(name, shift, apart, maps_of_one_vector):
    assert_case(CASES[name], maps_of_one_vector, shift, apart)
