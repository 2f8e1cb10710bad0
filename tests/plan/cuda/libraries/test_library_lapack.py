"""Factorizations as cuSOLVER and cuBLAS calls, checked by doing in NumPy what these document."""

import ctypes
import enum
from contextlib import contextmanager
from random import Random

import numpy as np
import pytest

import tracegraph
from lowering.algorithms import ALGORITHMS, lapack
from lowering.cuda.libraries.cublas import Cublas
from lowering.cuda.libraries.cusolver import LOWER, PREFIXES, Cusolver, PreparedRoutine
from lowering.cuda.libraries.library_calls import CAPTURED
from lowering.cuda.libraries.pointer_arrays import pointers, pointers_bytes
from lowering.host.executable import HostExecutable
from lowering.lower import lower
from lowering.plan.calls.lapack import LapackRoutine
from lowering.plan.nodes import LibraryNode, walk
from lowering.plan.target.overrides import override
from lowering.testing.recording_backend import RecordingBackend
from lowering.testing.recording_driver import RecordingDriver
from tests.helpers.agreement import check
from tracegraph.arrays.eager import apply
from tracegraph.ir.op import Sample, get
from tracegraph.ops.factorizations.matrices import mixed, positive_definite, well_conditioned

HANDLE, WORK = 3, 7
DTYPES = {prefix: np.dtype(name) for name, prefix in PREFIXES.items()}


def memory(pointer, dtype, *shape, leading=None):
    """Column-major memory at an address."""
    strides = [dtype.itemsize, dtype.itemsize * (leading or shape[0])][: len(shape)]
    nbytes = max(strides[-1] * shape[-1], 1)
    return np.ndarray(shape, dtype, (ctypes.c_char * nbytes).from_address(pointer), 0, strides)


def factor_lu(dtype, m, n, a, leading, pivots, info):
    matrix = memory(a, dtype, m, n, leading=leading)
    found, swaps, _ = get("lu").reference(matrix)
    zero = np.diagonal(found) == 0
    matrix[...] = found
    for column in np.flatnonzero(zero):  # 0 / 0 below a pivot of 0
        matrix[column + 1 :, column] = np.nan
    memory(pivots, np.dtype("i4"), min(m, n))[...] = swaps + 1
    memory(info, np.dtype("i4"), 1)[0] = zero.any()


class Solver:
    """The routines of cuSOLVER by their names, such as ``dpotrf``."""

    def __getattr__(self, name):
        dtype = DTYPES[name[0]]
        if name.endswith("_buffer_size"):
            return lambda handle, *shape: WORK
        return lambda handle, *given: getattr(self, f"_{name[1:]}")(dtype, *given)

    def _potrf_batched(self, dtype, uplo, n, table, leading, info, batch):
        for k, a in enumerate(memory(table, np.dtype("u8"), batch)):
            self._potrf(dtype, uplo, n, int(a), leading, 0, WORK, info + 4 * k)

    def _potrf(self, dtype, uplo, n, a, leading, work, size, info):
        assert (uplo, size) == (LOWER, WORK)
        matrix, status = memory(a, dtype, n, n, leading=leading), memory(info, np.dtype("i4"), 1)
        found = get("cholesky").reference(matrix)
        status[0] = np.isnan(found).any()
        matrix[...] = found + np.triu(matrix, 1)

    def _getrf(self, dtype, m, n, a, leading, work, pivots, info):
        factor_lu(dtype, m, n, a, leading, pivots, info)

    def _laswp(self, dtype, n, a, leading, first, last, pivots, step):
        assert (first, step) == (1, 1)
        matrix = memory(a, dtype, leading, n, leading=leading)
        for row, pivot in enumerate(memory(pivots, np.dtype("i4"), last)):
            matrix[[row, pivot - 1]] = matrix[[pivot - 1, row]]

    def _geqrf(self, dtype, m, n, a, leading, tau, work, size, status):
        assert (size, work - status) == (WORK, 256)
        matrix = memory(a, dtype, m, n, leading=leading)
        reflectors, factors = np.linalg.qr(matrix, mode="raw")
        matrix[...] = reflectors.T
        memory(tau, dtype, min(m, n))[...] = factors

    def _ungqr(self, dtype, m, n, k, a, leading, tau, work, size, status):
        assert (size, work - status) == (WORK, 256)
        matrix = memory(a, dtype, m, n, leading=leading)
        matrix[...] = lapack.ungqr.reference(matrix.T, memory(tau, dtype, k)).T

    _orgqr = _ungqr


class Blas:
    """Triangular solves of cuBLAS, and LU factorizations of batches."""

    SideMode = enum.IntEnum("SideMode", ["LEFT", "RIGHT"], start=0)
    FillMode = enum.IntEnum("FillMode", ["LOWER", "UPPER"], start=0)
    Operation = enum.IntEnum("Operation", ["N", "T", "C"], start=0)
    DiagType = enum.IntEnum("DiagType", ["NON_UNIT", "UNIT"], start=0)

    def __getattr__(self, name):
        routine = getattr(type(self), f"_{name[1:]}")
        return lambda handle, *given: routine(self, DTYPES[name[0]], *given)

    def _getrf_batched(self, dtype, n, table, leading, pivots, info, batch):
        for k, a in enumerate(memory(table, np.dtype("u8"), batch)):
            factor_lu(dtype, n, n, int(a), leading, pivots + 4 * n * k, info + 4 * k)

    def _trsm_batched(self, dtype, *given):
        *options, alpha, a, lda, b, ldb, batch = given
        sides = (memory(table, np.dtype("u8"), batch) for table in (a, b))
        for left, right in zip(*sides, strict=True):
            self._trsm(dtype, *options, alpha, int(left), lda, int(right), ldb)

    def _trsm(self, dtype, side, uplo, operation, diagonal, m, n, alpha, a, lda, b, ldb):
        assert (side, operation) == (1, 0)
        assert memory(alpha, dtype, 1)[0] == 1
        right = memory(b, dtype, m, n, leading=ldb)
        matrix = memory(a, dtype, n, n, leading=lda)
        attrs = {"lower": uplo == 1, "unit": diagonal == 1}  # those of the transpose
        right[...] = get("triangular_solve").reference(matrix.T, right.T, **attrs).T

    def _trsv(self, dtype, uplo, operation, diagonal, n, a, lda, x, step):
        assert (operation, step) == (1, 1)
        matrix, vector = memory(a, dtype, n, n, leading=lda), memory(x, dtype, n, 1)
        attrs = {"lower": uplo == 1, "unit": diagonal == 1}  # those of the transpose
        vector[...] = get("triangular_solve").reference(matrix.T, vector, **attrs)


def by_routines(call):
    def run(*operands):
        arrays = dict(zip((*call.inputs, *call.outputs), operands, strict=True))
        starts = {
            array.buffer: view.ctypes.data - array.offset * view.itemsize
            for array, view in arrays.items()
        }
        assert all(view.flags.c_contiguous for view in operands)
        how, given = CAPTURED[type(call)], [starts.__getitem__]
        if call.batches:
            table = pointers(call, starts.__getitem__)
            assert table.nbytes == pointers_bytes(call)
            given.append(table.ctypes.data)
        if how.library is Cublas:
            blas = Cublas.__new__(Cublas)
            blas._cublas, blas._handle = Blas(), HANDLE
            how.issue(call, *given)(blas)
            return
        if how.workspace_bytes is not None:
            solver = Cusolver.__new__(Cusolver)
            solver._library, solver._handle = Solver(), HANDLE
            how.issue(call, *given)(solver)
            return
        routine = PreparedRoutine(Solver(), HANDLE, call)
        assert routine.workspace_bytes == 256 + WORK * call.dtype.itemsize
        routine.use_workspace(1 << 20, routine.workspace_bytes)
        how.issue(call, *given)(routine)

    return run


@contextmanager
def by_library():
    with override(factorizations="library"):
        yield


def run(op, operands, attrs):
    def function(*xs):
        return apply(op, *xs, **attrs)

    program = tracegraph.jit(function, device="host").lower(*operands).traced.optimized
    with by_library():
        plan = lower(program, "cuda")
    found = HostExecutable(plan, poison=True, order=Random(0))(list(operands))
    return tuple(found) if len(found) > 1 else found[0]


@pytest.fixture
def routines(monkeypatch):
    monkeypatch.setattr(LapackRoutine, "run_host", property(by_routines))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_calls_compute_what_the_ops_do(name, routines):
    for sample in get(name).samples()[::2]:
        check(get(name), sample, run)


@pytest.mark.parametrize("dtype", PREFIXES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_one_right_hand_side_is_solved_as_a_vector(dtype, lower, unit, routines, monkeypatch):
    monkeypatch.delattr(Blas, "_trsm")
    for batch in ((), (2,)):
        operands = well_conditioned(40, dtype, batch), mixed((*batch, 40, 1), dtype)
        sample = Sample(operands, {"lower": lower, "unit": unit})
        check(get("triangular_solve"), sample, run)


@pytest.mark.parametrize("dtype", PREFIXES)
def test_tall_wide_and_several_matrices(dtype, routines):
    for shape in ((9, 4), (4, 9), (2, 5, 3), (2, 2, 3, 5)):
        for name in ("lu", "qr"):
            check(get(name), Sample((mixed(shape, dtype),)), run)
    check(get("cholesky"), Sample((positive_definite(20, dtype, (3,)),)), run)


@pytest.mark.parametrize("dtype", PREFIXES)
@pytest.mark.parametrize("batch", [(9,), (2, 3)])
def test_batches_are_factored_at_once(dtype, batch, routines):
    a = well_conditioned(5, dtype, batch)
    a[1] = 0
    b = mixed((*batch, 5, 2), dtype)
    check(get("lu"), Sample((a,)), run)
    check(get("cholesky"), Sample((positive_definite(5, dtype, batch) - a,)), run)
    check(get("cholesky"), Sample((positive_definite(5, dtype, batch),)), run)
    for is_lower in (True, False):
        triangle = np.tril(a) + 3 * np.eye(5) if is_lower else np.triu(a) + 3 * np.eye(5)
        operands = triangle.astype(dtype), b
        check(get("triangular_solve"), Sample(operands, {"lower": is_lower}), run)


def test_a_part_of_an_array_is_solved_for(routines):
    a, b = positive_definite(6) * 2, mixed((6, 4))

    def function(a, b):
        return apply(get("triangular_solve"), (a + 1)[1:][:5, :5], b[1:, 1:], lower=True)

    program = tracegraph.jit(function, device="host").lower(a, b).traced.optimized
    with by_library():
        plan = lower(program, "cuda")
    (found,) = HostExecutable(plan)([a, b])
    expected = get("triangular_solve").reference((a + 1)[1:, :5], b[1:, 1:], lower=True)
    np.testing.assert_allclose(found, expected, 1e-12, 1e-12)


def program_of_all(a):
    spd = a @ a.T + np.eye(8)
    return np.linalg.cholesky(spd), np.linalg.solve(a, a[0]), np.linalg.qr(a)


def test_they_are_emitted_into_graphs_and_their_bodies():
    a = mixed((8, 8))

    def function(a):
        steps = a[0, 0].astype(int)
        solved = tracegraph.fori_loop(0, steps, lambda i, x: np.linalg.solve(a, x), a)
        return program_of_all(a), solved

    with by_library():
        plan = tracegraph.jit(function, device="cuda").lower(a).plan
    backend = RecordingBackend()
    executable = backend.compile(plan)
    calls = [n.call for n in walk(plan.graph) if isinstance(n, LibraryNode)]
    names = [call.op.name for call in calls if isinstance(call, LapackRoutine)]
    assert {*names} == {"potrf", "getrf", "geqrf", "ungqr", "trsm"}
    inside = [n for node in plan.graph.nodes for body in node.bodies for n in walk(body)]
    assert sum(isinstance(n, LibraryNode) for n in inside) >= 3
    logged = [call.operation for call in backend.device.driver.calls]
    assert logged.count("prepare") == sum(name != "trsm" for name in names)
    assert logged.count("factor") == 2 * logged.count("prepare")
    assert logged.count("solve_triangle") == 2 * names.count("trsm")
    reported = {node.name for node in executable.slots.nodes}
    assert {call.name for call in calls} <= reported


def test_the_addresses_of_a_batch_are_in_memory_of_the_graph():
    a = np.zeros((9, 4, 4))
    plan = tracegraph.jit(lambda a: np.linalg.inv(a + 1) + 1, device="cuda")
    with by_library():
        plan = plan.lower(a).plan
    calls = [n.call for n in walk(plan.graph) if isinstance(n, LibraryNode)]
    assert [call.op.name for call in calls] == ["getrf_batched", "trsm_batched", "trsm_batched"]
    driver = RecordingDriver()
    executable = RecordingBackend(driver).compile(plan)
    (made,) = driver.live_executables
    start = [call.operation for call in driver.calls].index("new_graph")  # behind constants
    written = [c.detail for c in driver.calls[start:] if c.operation == "copy_to_device"]
    assert [nbytes for _, nbytes in written] == [72, 72, 144, 144, 144, 144]
    owned = [range(m.pointer, m.pointer + m.nbytes) for m in driver.live_memory if m in made.slots]
    assert all(any(pointer in memory for memory in owned) for pointer, _ in written)
    assert len({pointer for pointer, _ in written}) == 3, "each call has a table of its own"
    tables = [c.detail for c in driver.calls if c.operation == "eliminate_batch"]
    assert len(tables) == 2
    assert {detail[2] for detail in tables} == {written[0][0]}
    kept = [[slot.what for slot in n.slots] for n in executable.slots.nodes if n.kind == "library"]
    assert len(kept) == 3
    assert all("pointer arrays" in whats for whats in kept)
