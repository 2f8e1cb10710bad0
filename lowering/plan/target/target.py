"""Target: what planning needs to know of the devices of a backend, as data.

Planning, scheduling and fusion read these figures and never the name of a device. Each backend has
its own Target, beside its code in `lowering.backends`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import inf, prod
from typing import Any, Literal

import numpy as np

from lowering.plan.target.rates import Rates
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import ArrayType
from tracegraph.passes.invariants import CERTAIN, Motion


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of a device, in µs unless a unit is given. Each backend's `Target` has its own.

    Args:
        kernel: a further kernel in a chain, with little to do.
        fold: what a reduction adds to it.
        kernel_in_branch: the same in the branch of a node.
        check: what reading its flags adds to a kernel.
        branch: an IF, IF-ELSE or SWITCH node, besides what it runs. Entering a WHILE node is taken
            to cost as much.
        fork: the start of predicated branches that are independent of each other.
        skipped_sibling: a kernel that is skipped, parallel to one that runs.
        loop_iteration: one more run of the body of a WHILE node, besides what it runs.
        update: writing a new address into a kernel node, when a call brings another array.
        updates_libraries: whether library nodes can be given other addresses.
        block: a block of a kernel that is skipped.
        megabyte: reading or writing a megabyte, from 4.2 TB/s.
        gigaflop: a billion operations of a product.
        gigaoperation: a billion operations of a nest, in units of `Elementwise.cost`, of four-byte
            numbers; those of eight bytes count twice.
        collective: an exchange between the devices of a mesh, by a library, of few bytes.
        exchange: the same by a kernel that stores into the memory of other devices; infinite if
            they cannot.
        near_line: reading a line of a near cache for 32 points, in units of `Elementwise.cost` for
            each of them.
        columns: neighbouring results of a reduction that are computed together: what they share is
            computed once.
        full_threads: points that are computed at a time, at most: fewer take as long.
        cached: bytes of an array that stays in a near cache, from which it is read in no time.
        recompute_limit: the most that an op may cost, in units of `Elementwise.cost`, to be
            computed again for each use of its result instead of stored.
        expansion: points of a use for each element of an expensive value, from which it is stored
            rather than computed again.
        gather_penalty: sequential bytes per random access, by the most bytes of the array.
    """

    kernel: float
    fold: float
    kernel_in_branch: float
    check: float
    branch: float
    fork: float
    skipped_sibling: float
    loop_iteration: float
    update: float
    updates_libraries: bool
    block: float
    megabyte: float
    gigaflop: float
    gigaoperation: float
    collective: float
    exchange: float
    near_line: float
    columns: int
    full_threads: int
    cached: int
    recompute_limit: float
    expansion: float
    gather_penalty: tuple[tuple[float, int], ...]

    @property
    def control_is_free(self) -> bool:
        """Whether a loop or branch costs nothing as a node, so that no other schedule is faster."""
        return self.branch == self.loop_iteration == 0

    def reading(self, array: ArrayType, points: int, run: int) -> float:
        """Sequential bytes in the time of `points` random accesses to runs of `run` elements."""
        least = next(cost for most, cost in self.gather_penalty if array.nbytes <= most)
        return points * max(array.dtype.itemsize, least / max(run, 1))


@dataclass(frozen=True, slots=True)
class KernelLimits:
    """What one kernel may have.

    Args:
        kernel_buffers: buffers that the nests of a fused kernel access. The default fits CUDA's
            32764 bytes of kernel parameters, 8 for each buffer.
    """

    kernel_buffers: int = 4000


@dataclass(frozen=True, slots=True)
class FusionPolicy:
    """When nests that could share a kernel do.

    Args:
        strided_bytes: row passes are fused unless that adds this many bytes of strided access. The
            default is what an H200 moves in the time of a further kernel: 0.7 µs at 4.2 TB/s.
        unrolled_positions: the most positions along an axis of sources, as of a stack, that one
            point of a map computes; 0 if each source is an operation of its own in any case. The
            default bounds the code, and the registers of a thread.
        row_passes: the most passes over a row in one nest. Compilers take time that grows with the
            square of a nest's length.
        parts: whether maps of different windows of an array become parts of one nest, whose points
            test to which part they belong: where a kernel costs more than the tests.
    """

    strided_bytes: float = 0.7e6 / 0.24
    unrolled_positions: int = 16
    row_passes: float = inf
    parts: bool = True


@dataclass(frozen=True, slots=True)
class ContractionPolicy:
    """When a matrix product is a reduction nest although the library has it; by default, never.

    Of m by n sums of k products, a nest is made if the matrices have at most `reuse` products for
    each of their elements, or else if the product is small.

    Args:
        reuse: products per element of the three matrices. A matrix and a vector have less than 1;
            if the least of m, n and k is 4, it is less than 4.
        most_elements: of all matrices of such a batch, at most.
        small_extent: the k of a small product, at most.
        small_products: or its m * n * k, at most.
        most_products: m * n * k of all small products of a batch, at most.
        narrow: rows, columns or products in a sum up to which tiles compute larger products of
            float32, where they are faster.
        split: whether products of float32 in the precision "bf16x3" are made of bfloat16 parts,
            which tensor cores multiply.
        tiles: whether nests of large products are computed by tiles, so that windows of an array
            need no copy.
    """

    reuse: float = 0
    most_elements: float = inf
    small_extent: int = 0
    small_products: int = 0
    most_products: int = 0
    narrow: int = 0
    split: bool = False
    tiles: bool = False


@dataclass(frozen=True, slots=True)
class PersistentCosts:
    """Costs of what runs inside of a persistent kernel, in µs.

    Args:
        step: a step of a loop, besides its phases.
        phase: a phase of one block, its barrier included.
        fold: what a reduction adds to a phase.
        thread_operation: an operation of one thread, which waits for the one before.
        operations: a million operations of one multiprocessor. An operation is a unit of
            `Elementwise.cost`.
        collision: an update that waits for another of the same element.
        near_megabyte, far_megabyte: access to a megabyte by one multiprocessor, of arrays of at
            most `near_bytes`, which stay in its cache, and of larger ones.
        cluster_barrier, grid_barrier: a barrier of several blocks, with the round trip of what they
            exchange through memory.
        cluster: the most blocks of a cluster.
        grid: the most blocks of a grid.
        exchange: what devices of a mesh exchange by storing into the memory of one another, besides
            barriers. None if they cannot.
        link_megabyte: a megabyte to another device.
        round: a further point of each thread of all blocks, which waits for its loads.
    """

    step: float
    phase: float
    fold: float
    thread_operation: float
    operations: float
    collision: float
    near_megabyte: float
    far_megabyte: float
    near_bytes: int
    cluster_barrier: float
    grid_barrier: float
    cluster: int
    grid: int
    exchange: float | None
    link_megabyte: float
    round: float


@dataclass(frozen=True, slots=True)
class ProgramPolicy:
    """When factorizations are programs although the backend has library calls for them.

    Args:
        most: by op, the rows or columns, whichever are fewer, at most.
        elements: of all matrices of a batch, at most. A program passes over all of them in turn.
    """

    most: Mapping[str, int]
    elements: int

    def prefers(self, op: str, matrix: ArrayType) -> bool:
        """Whether the matrices of this type are to be factored by a program."""
        return min(matrix.shape[-2:]) <= self.most.get(op, 0) and matrix.size <= self.elements


@dataclass(frozen=True, slots=True)
class LapackPolicy:
    """When factorizations are calls of LAPACK's routines, or kernels for small matrices.

    Otherwise they are the programs of `lowering.algorithms`, which are planned like any other.

    Args:
        least: by op, the rows or columns, whichever are fewer, from which the library factors them.
        most_matrices: by op, of a batch, which the library factors one after the other.
        at_once: by op, the rows of square matrices, at least and at most, of which the library
            factors a larger batch at once.
        many: by op, how many small matrices, or right-hand sides, get a kernel of their own in a
            body, where fewer of less than `rows` are a part of what is around them. At the top, any
            number gets one. So do matrices in a body that the library would factor otherwise.
        rows: those of a matrix whose kernel is faster than a program, even in a loop that is one
            kernel.
        kernel_rows: up to which a kernel is faster than the library, for what the library factors.
        tridiagonal_rows: of all tridiagonal systems together, from which these have kernels in a
            body. At the top, all have.
    """

    least: Mapping[str, int]
    most_matrices: Mapping[str, int]
    at_once: Mapping[str, tuple[int, int]]
    many: Mapping[str, int]
    rows: int
    kernel_rows: int
    tridiagonal_rows: int

    def has_kernel(self, op: str, types: Sequence[ArrayType], in_body: bool) -> bool:
        """Whether matrices of these types, if they are small, have a kernel of their own."""
        if op not in self.many:
            return False
        matrix = types[0]
        if self.prefers(op, matrix):
            return matrix.shape[-1] <= self.kernel_rows
        if not in_body or matrix.shape[-1] >= self.rows:
            return True
        columns = types[1].shape[-1] if op == "triangular_solve" else 1
        return prod(matrix.shape[:-2]) * columns >= self.many[op]

    def are_few(self, op: str, matrix: ArrayType) -> bool:
        """Whether a batch is small enough to be factored one matrix after the other."""
        return prod(matrix.shape[:-2]) <= self.most_matrices.get(op, 0)

    def prefers(self, op: str, matrix: ArrayType) -> bool:
        """Whether the library is to factor the matrices of this type."""
        m, n = matrix.shape[-2:]
        if self.are_few(op, matrix):
            return min(m, n) >= self.least.get(op, inf)
        low, high = self.at_once.get(op, (inf, 0))
        return m == n and low <= n <= high


@dataclass(frozen=True, slots=True)
class RecurrencePolicy:
    """When a scan that is a linear recurrence runs in parallel over chunks of its steps.

    Args:
        steps: at least. Chunks take some kernels more, and make each step twice.
        lanes: of all chunks together, at most: elements of the carry times chunks. A carry that has
            many elements is parallel as it is.
    """

    steps: int
    lanes: int

    def prefers(self, steps: int, elements: int) -> bool:
        """Whether a scan runs in chunks, given its steps and the elements of its carry."""
        return steps >= self.steps and 0 < 16 * elements <= self.lanes

    def chunk(self, steps: int, elements: int) -> int:
        """The steps of a chunk, from 4 on: those that wait for one another are the fewest. Kernels
        of chunks of chunks take as long as 32 steps.
        """

        def waiting(size: int) -> float:
            chunks, rest = divmod(steps, size)
            among = chunks if chunks < self.steps else 32 + 4 * chunks**0.5
            return 2 * size + among + rest

        least = max(4, -(-steps * elements // self.lanes))
        return min(range(least, max(least + 1, min(steps // 4, 1024))), key=waiting)


OperandForm = Literal["copied", "in_place"]
"""Arrays of products and Fourier transforms that move from call to call: copied to scratch and
back, or in place."""


@dataclass(frozen=True, slots=True)
class OperandPolicy:
    """When library calls have arguments and results in place.

    Otherwise these are copied, in a time that grows with their bytes. A product finds its matrices
    by pointer, for which the library may have slower kernels: what that costs grows with the
    operations. A Fourier transform is captured again at new addresses, which takes the same time
    for all sizes.

    Args:
        once: by dtype, the operations for each byte of the three matrices, at most, of a product
            that a launch makes once.
        repeated: the same of one in a loop, for all of its steps.
        split: by dtype, numbers of results, each with a number of products in a sum. Sums of more
            products, for fewer results, are split among blocks where the library is given the
            addresses.
        most_matrices: of a batch, each of which needs three pointers, written by each launch.
        transformed: the bytes of both arrays of a Fourier transform, at least, for which it is
            captured again. Only at the top of a Plan: nodes in bodies keep their addresses.
    """

    once: Mapping[str, float]
    repeated: Mapping[str, float]
    split: Mapping[str, Sequence[tuple[int, int]]]
    most_matrices: int
    transformed: float

    def prefers(self, dtype: np.dtype[Any], batch: int, m: int, n: int, k: int, runs: int) -> bool:
        """Whether `batch` products of (m, k) by (k, n) are to be by pointer.

        What a launch copies is copied once, before all `runs`.
        """
        if self.splits(dtype, batch, m, n, k):
            return False
        most = self.repeated if runs > 1 else self.once
        operations = 2 * m * n * k * max(runs, 1)
        nbytes = dtype.itemsize * (m * k + k * n + m * n)
        return operations <= most.get(str(dtype), 0) * nbytes

    def splits(self, dtype: np.dtype[Any], batch: int, m: int, n: int, k: int) -> bool:
        """Whether the sums are long and the results few."""
        bounds = self.split.get(str(dtype), ())
        return any(batch * m * n < results and k > length for results, length in bounds)


@dataclass(frozen=True, slots=True)
class Target:
    """The devices of one backend, as planning sees them.

    Where `persistent` is None, a loop is one kernel only if the user asks for it. `factorizations`
    are the ops of matrices that the backend has library calls for; of others, it runs the programs
    in `lowering.algorithms`: with LAPACK's routines where it has these, and the policy `lapack`
    says so. `programs` says for which matrices a program is faster than the library call. The
    policy `operands` says which products and Fourier transforms have arguments in place. Without
    `transforms`, the latter are programs, too. Where it `overwrites_spectra`, an inverse transform
    to real numbers needs frequencies of its own, whose imaginary parts are 0 where they must be.
    With `sort_scratch`, sorting takes scratch memory of the Plan. From `sorted_updates` on, updates
    that need an order are sorted by element. With `graphs`, Plans are launched as CUDA graphs,
    which have nodes for arguments and memory besides the work. `motion` says what leaves loops, and
    `recurrences` which scans run in chunks. `rates` are the limits that reports compare a Plan's
    work with, where they are known.
    """

    costs: Costs
    limits: KernelLimits = field(default_factory=KernelLimits)
    fusion: FusionPolicy = field(default_factory=FusionPolicy)
    contractions: ContractionPolicy = field(default_factory=ContractionPolicy)
    persistent: PersistentCosts | None = None
    factorizations: frozenset[str] = frozenset()
    programs: ProgramPolicy = field(default_factory=lambda: ProgramPolicy({}, 0))
    lapack: LapackPolicy | None = None
    operands: OperandPolicy | None = None
    transforms: bool = True
    overwrites_spectra: bool = False
    sort_scratch: bool = True
    sorted_updates: float = inf
    graphs: bool = False
    motion: Motion = CERTAIN
    recurrences: RecurrencePolicy | None = None
    rates: Rates | None = None
