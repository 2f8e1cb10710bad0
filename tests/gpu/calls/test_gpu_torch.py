"""Tensors of PyTorch as arguments, and functions of tensors: their streams, memory, gradients."""

import threading
from importlib import import_module

import numpy as np
import pytest

import tracegraph
from tracegraph import errors

torch = pytest.importorskip("torch")
N = 1 << 20


def increased(x):
    return x + 1


def jitted():
    function = tracegraph.jit(increased, device="cuda")
    return lambda x: torch.from_dlpack(function(x))


def wrapped():
    return import_module("tracegraph.torch").wrap(increased)


@pytest.mark.parametrize("make", [jitted, wrapped])
@pytest.mark.parametrize("own_stream", [False, True])
def test_a_call_is_in_order_with_the_stream_of_pytorch(make, own_stream):
    """It comes behind what is there, and memory that is freed after it is used again behind it."""
    call = make()
    with torch.cuda.stream(torch.cuda.Stream() if own_stream else torch.cuda.default_stream()):
        call(torch.zeros(N, device="cuda"))
        torch.cuda.synchronize()
        for i in range(20):
            x = torch.zeros(N, device="cuda")
            torch.cuda._sleep(1_000_000)
            x += i
            y = call(x)
            del x
            again = torch.full((N,), 1e9, device="cuda")
            assert bool((y * 2 == 2 * (i + 1)).all())
            del y, again


def test_layouts_are_read_as_they_are():
    double = tracegraph.jit(lambda x: x * 2, device="cuda")
    x = torch.arange(24.0, device="cuda").reshape(4, 6)
    for view, copied in ((x, 0), (x.T, 96), (x[1:], 0), (x[:, ::2], 48), (x[:0], 0)):
        before = double.stats()["bytes_copied"]
        for _ in range(2):
            torch.testing.assert_close(torch.from_dlpack(double(view)), view * 2)
        assert double.stats()["bytes_copied"] == before + 2 * copied
    z = torch.tensor([1 + 2j], device="cuda").conj()
    torch.testing.assert_close(torch.from_dlpack(double(z)), 2 * z)
    with pytest.raises(errors.UnsupportedArgumentError):
        double(x.requires_grad_())


def test_arrays_of_cupy_are_read_where_they_are():
    """Written by calls of the runtime: CuPy takes seconds to compile kernels of its own."""
    cupy = pytest.importorskip("cupy")
    double = tracegraph.jit(lambda x: x * 2, device="cuda")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for i in range(10):
            x = cupy.empty(64 * N, np.uint8)
            cupy.cuda.runtime.memsetAsync(x.data.ptr, i, x.nbytes, stream.ptr)
            y = double(x)
            del x
            assert bool((np.asarray(y) == 2 * i).all())
        rows = cupy.asarray(np.arange(12.0).reshape(3, 4))
        for view in (rows[1:], rows.T):
            np.testing.assert_array_equal(np.asarray(double(view)), 2 * cupy.asnumpy(view))
    assert double.stats()["bytes_copied"] == 96


def test_gradients_of_what_is_kept_in_two_threads():
    ours = import_module("tracegraph.torch").wrap(lambda x, w: np.tanh(np.tanh(x @ w) @ w))
    of_torch = lambda x, w: torch.tanh(torch.tanh(x @ w) @ w)  # noqa: E731
    found = {}

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            g = torch.Generator("cuda").manual_seed(number)
            x, w = (torch.randn(64, 64, device="cuda", generator=g) for _ in range(2))
            x, w = ((t / 8).requires_grad_() for t in (x, w))
            for _ in range(20):
                pair = [torch.autograd.grad(f(x, w).sum(), (x, w)) for f in (ours, of_torch)]
            torch.cuda.current_stream().synchronize()
            found[number] = pair

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for pair in found.values():
        torch.testing.assert_close(*pair, rtol=1e-4, atol=1e-4)
    assert len(found) == 2
