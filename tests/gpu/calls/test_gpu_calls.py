"""One graph for any call: addresses move, scalars change, memory is neither lost nor shared."""

import gc

import numpy as np
import pytest

import tracegraph
from lowering.plan.target import overrides as choices
from tests.fakes.foreign_arrays import View
from tests.helpers.compiled import on_device
from tests.helpers.threads import in_threads
from tracegraph.errors import UpdateError


def test_one_build_for_arrays_that_move():
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda")
    arrays = [on_device(np.full(1000, float(i))) for i in range(6)]
    for i in range(5):
        np.testing.assert_array_equal(np.asarray(f(arrays[i], arrays[i + 1])), 3.0 * i + 1)
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (1, 1, 5)
    assert stats["bytes_copied"] == 0


def test_one_build_for_an_array_passed_twice_and_for_two():
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda")
    x, y = on_device(np.arange(1000.0)), on_device(np.full(1000, 5.0))
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(x, x)), 3 * np.arange(1000.0))
        np.testing.assert_array_equal(np.asarray(f(x, y)), 2 * np.arange(1000.0) + 5)
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (1, 1, 6)
    assert stats["bytes_copied"] == 0


def test_one_build_for_views_that_overlap():
    f = tracegraph.jit(lambda x, y: x * 2 + y, device="cuda")
    base = np.arange(4000.0)
    owner = on_device(base)
    for starts in [(0, 1), (1, 0), (7, 7), (500, 0), (3, 1002), (3, 2500)]:
        views = [View(owner, start, (1000,)) for start in starts]
        x, y = (base[start : start + 1000] for start in starts)
        np.testing.assert_array_equal(np.asarray(f(*views)), x * 2 + y)
    stats = f.stats()
    assert (stats["traces"], stats["builds"], stats["launches"]) == (1, 1, 6)
    assert stats["bytes_copied"] == 0


def test_results_are_fed_back():
    f = tracegraph.jit(lambda x: x + 1, device="cuda")
    x = on_device(np.zeros(5000))
    for _ in range(100):
        x = f(x)
    np.testing.assert_array_equal(np.asarray(x), 100.0)
    assert f.stats()["builds"] == 1
    assert f.stats()["bytes_copied"] == 0


@pytest.mark.parametrize("size", [64, 5000])
def test_arrays_that_take_turns_need_no_updates_after_a_while(size):
    def step(x, v, k):
        y = v @ turn  # a library node, between kernels
        return x * 0.5 + y.mean() * k + 1, y * 0.9 - x

    turn = np.roll(np.eye(size // 8), 1, 0)
    f = tracegraph.jit(step, device="cuda")
    with choices.override(products="library"):
        f(on_device(np.zeros(size // 8)), on_device(np.zeros(size // 8)), 0.0)
    x, v = np.linspace(0, 1, size // 8), np.linspace(1, 2, size // 8)
    x_there, v_there, updates = on_device(x), on_device(v), []
    for k in range(400):
        x_there, v_there = f(x_there, v_there, 0.01 if k < 300 else 0.001 * (k % 3))
        x, v = step(x, v, 0.01 if k < 300 else 0.001 * (k % 3))
        np.testing.assert_allclose(np.asarray(x_there), x, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(np.asarray(v_there), v, rtol=1e-9, atol=1e-9)
        updates.append(f.stats()["updates"])
    assert updates[299] == updates[200] < updates[399] <= updates[299] + 100  # the number alone
    assert f.stats()["builds"] == 1


def test_results_never_alias_arguments_or_each_other():
    f = tracegraph.jit(lambda x: (x, x, x + 0), device="cuda")
    x = on_device(np.arange(1000.0))
    kept = [x, *f(x), *f(x)]
    addresses = {a.__cuda_array_interface__["data"][0] for a in kept}
    assert len(addresses) == len(kept)
    for array in kept:
        np.testing.assert_array_equal(np.asarray(array), np.arange(1000.0))


def test_scalars_change_without_a_build_or_a_copy():
    f = tracegraph.jit(lambda x, s, k: x * s + k, device="cuda")
    x = on_device(np.ones(10))
    for s, k in [(2.0, 3), (-1.5, 0), (0.0, -(2**40))]:
        np.testing.assert_array_equal(np.asarray(f(x, s, k)), s + k)
    assert f.stats()["builds"] == 1
    assert f.stats()["bytes_copied"] == 0


def test_a_value_written_before_the_next_argument_is_refused_reaches_the_next_call():
    array = np.ones(1000, np.float32)
    compiled = tracegraph.jit(lambda a, x: a * x, device="cuda").lower(array[0], array).compile()
    for number in np.float32([2, 3]):
        with pytest.raises(TypeError, match="float64"):
            compiled.executable([number, array.astype(np.float64)])
        (result,) = compiled.executable([number, array])
        np.testing.assert_array_equal(result.to_host(), number * array)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "complex128"])
def test_small_arrays_of_any_dtype_by_value_and_on_the_device(dtype):
    f = tracegraph.jit(lambda x: np.stack([x, x]), device="cuda")
    for x in (np.array([1, 0, 3], dtype), np.array([0, 1, 1], dtype)):
        np.testing.assert_array_equal(np.asarray(f(x)), [x, x])
        np.testing.assert_array_equal(np.asarray(f(on_device(x))), [x, x])
        np.testing.assert_array_equal(np.asarray(f(x)), [x, x])
    assert f.stats()["builds"] == 1


def test_large_host_arrays_are_copied_and_may_change_afterwards():
    f = tracegraph.jit(lambda x: x + 1, device="cuda")
    x = np.zeros(1 << 20)
    results = []
    for i in range(4):
        x[:] = i
        results.append(f(x))
    for i, result in enumerate(results):
        np.testing.assert_array_equal(np.asarray(result), i + 1.0)
    assert f.stats()["bytes_copied"] == 4 * x.nbytes
    assert f.stats()["builds"] == 1


def test_views_at_an_offset_are_read_in_place_and_strided_ones_packed():
    f = tracegraph.jit(lambda x: x * 2, device="cuda")
    base = np.arange(4000.0)
    owner = on_device(base)
    np.testing.assert_array_equal(np.asarray(f(View(owner, 3, (1000,)))), 2 * base[3:1003])
    assert f.stats()["bytes_copied"] == 0
    strided = View(owner, 1, (1000,), (24,))
    np.testing.assert_array_equal(np.asarray(f(strided)), 2 * base[1:3001:3])
    reversed_ = View(owner, 999, (1000,), (-8,))
    np.testing.assert_array_equal(np.asarray(f(reversed_)), 2 * base[999::-1])
    assert f.stats()["bytes_copied"] == 16000
    assert f.stats()["builds"] == 1


def test_a_transposed_view_is_packed():
    f = tracegraph.jit(lambda x: x + 0, device="cuda")
    base = np.arange(3000.0).reshape(60, 50)
    view = View(on_device(base), 0, (50, 60), (8, 400))
    np.testing.assert_array_equal(np.asarray(f(view)), base.T)


def test_the_cuda_array_interface_shares_memory():
    x = tracegraph.jit(lambda x: x + 1, device="cuda")(np.arange(1000.0))
    described = x.__cuda_array_interface__
    assert described["version"] == 3
    assert described["stream"] not in (None, 0)
    from cuda.core.utils import StridedMemoryView

    view = StridedMemoryView.from_cuda_array_interface(x, stream_ptr=-1)
    assert view.ptr == described["data"][0]
    assert tuple(view.shape) == (1000,)


def test_dlpack_shares_memory_both_ways():
    f = tracegraph.jit(lambda x: x + 1, device="cuda")
    x = f(np.arange(1000.0))

    class OnlyDlpack:
        dtype, shape = x.dtype, x.shape

        def __dlpack__(self, **options):
            return x.__dlpack__(**options)

        def __dlpack_device__(self):
            return x.__dlpack_device__()

    np.testing.assert_array_equal(np.asarray(f(OnlyDlpack())), np.arange(1000.0) + 2)
    assert f.stats()["bytes_copied"] == 8000  # the first call's host array alone


def test_cupy_views_and_results():
    cupy = pytest.importorskip("cupy")
    f = tracegraph.jit(lambda x: x * 3, device="cuda")
    x = cupy.arange(5000, dtype=cupy.float64)
    for view in (x[:1000], x[7:1007], x[::5]):
        np.testing.assert_array_equal(np.asarray(f(view)), 3 * cupy.asnumpy(view))
    result = cupy.asarray(f(x[:1000])) + 1
    np.testing.assert_array_equal(cupy.asnumpy(result), 3 * np.arange(1000.0) + 1)
    assert f.stats()["builds"] == 1


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16", "int32"])
def test_torch_tensors_and_results(name):
    torch = pytest.importorskip("torch")
    f = tracegraph.jit(lambda x: x + x, device="cuda")
    x = torch.arange(2000, device="cuda").to(getattr(torch, name))
    for view in (x[:500], x[3:503], x[::4]):
        result = torch.from_dlpack(f(view))
        assert torch.equal(result, view + view)
    assert f.stats()["builds"] == 1


def test_closed_over_constants_survive_their_python_objects():
    def make(n):
        large, small = np.arange(float(n)), np.array([2.0])
        f = tracegraph.jit(lambda x: (x + large) * small, device="cuda")
        f(np.zeros(n))
        large[:] = small[:] = -1
        return f

    n = 100_000
    f = make(n)
    gc.collect()
    poison = [on_device(np.full(n, np.nan)) for _ in range(8)]
    for i in range(3):
        got = np.asarray(f(np.full(n, float(i))))
        np.testing.assert_array_equal(got, (np.arange(float(n)) + i) * 2)
    del poison


def test_an_argument_that_is_dropped_after_the_call_was_read_first():
    f = tracegraph.jit(lambda x: np.sin(x).sum(), device="cuda")
    results = []
    for i in range(50):
        results.append(f(on_device(np.full(200_000, float(i)))))
    for i, result in enumerate(results):
        np.testing.assert_allclose(float(result), 200_000 * np.sin(float(i)), rtol=1e-9, atol=1e-6)


def test_memory_does_not_grow_over_calls():
    from lowering.cuda.open_devices import open_device

    f = tracegraph.jit(lambda x, s: x * s, device="cuda")
    x = np.ones(100_000)
    for i in range(5):
        f(x, float(i)).synchronize()
    gc.collect()
    pool = open_device(0).pool
    before = pool.free_bytes
    for i in range(200):
        f(x, float(i))
    gc.collect()
    assert pool.free_bytes <= before


def test_threads_get_their_own_results():
    f = tracegraph.jit(lambda x, s: x * s + 1, device="cuda")
    f(np.ones(1000), 0.0)

    def work(number):
        for i in range(50):
            s = float(100 * number + i)
            got = np.asarray(f(np.full(1000, 2.0), s))
            assert (got == 2 * s + 1).all(), (s, got[0])

    in_threads(4, work)
    assert f.stats()["builds"] == 1


def test_a_closed_executable_raises_and_the_others_go_on():
    x = np.arange(10.0)
    compiled = tracegraph.jit(lambda x: x + 1, device="cuda").lower(x).compile()
    kept = compiled(x)
    compiled.close()
    np.testing.assert_array_equal(np.asarray(kept), x + 1)
    with pytest.raises(RuntimeError, match="closed"):
        compiled(x)


def looped(x):
    return tracegraph.while_loop(lambda y: y[0] < 100, lambda y: y * 2, x)


@pytest.mark.parametrize("function", [lambda x: x + 1, looped], ids=["straight", "in a body"])
def test_an_update_that_the_driver_refuses_is_told_and_the_next_call_works(function):
    x, y = on_device(np.full(1000, 2.0)), on_device(np.full(1000, 5.0))
    with choices.override(loops="conditional"):
        compiled = tracegraph.jit(function, device="cuda").lower(x).compile()
    np.testing.assert_array_equal(np.asarray(compiled(x)), np.asarray(function(np.full(1000, 2.0))))
    definition = compiled.executable._default_graph.definition
    kernels = [kernel for kernel, node in definition._kernels.items() if node.name]
    grids = [kernel.params.gridDimX for kernel in kernels]
    for kernel in kernels:
        kernel.params.gridDimX = 0  # no kernel can be launched so
    with pytest.raises(
        UpdateError, match=r"kernel node \w+ at .*test_gpu_calls\.py.*INVALID_VALUE"
    ):
        compiled(y)
    for kernel, grid in zip(kernels, grids, strict=True):
        kernel.params.gridDimX = grid
    for array, value in ((x, 2.0), (y, 5.0), (x, 2.0)):
        want = np.asarray(function(np.full(1000, value)))
        np.testing.assert_array_equal(np.asarray(compiled(array)), want)


def test_dropping_a_function_frees_its_memory_later_calls_are_right():
    for i in range(5):
        f = tracegraph.jit(lambda x, i=i: np.cumsum(x) * i, device="cuda")
        result = f(np.ones(1000))
        del f
        gc.collect()
        np.testing.assert_array_equal(np.asarray(result), np.arange(1, 1001) * float(i))
