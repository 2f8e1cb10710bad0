"""What planning knows of NVIDIA GPUs: the target of the backend "cuda"."""

from __future__ import annotations

from math import inf

from lowering.plan.target.rates import H100
from lowering.plan.target.target import (
    ContractionPolicy,
    Costs,
    LapackPolicy,
    OperandPolicy,
    PersistentCosts,
    RecurrencePolicy,
    Target,
)
from tracegraph.passes import Motion

TARGET = Target(
    Costs(
        kernel=0.7,
        fold=0.6,
        kernel_in_branch=0.9,
        check=0.08,
        branch=7.7,
        fork=0.24,
        skipped_sibling=0.31,
        loop_iteration=3.5,
        update=0.4,
        updates_libraries=False,
        block=0.0006,
        megabyte=0.24,
        gigaflop=20.0,
        gigaoperation=50.0,
        collective=4.6,
        exchange=1.5,
        near_line=0.5,
        columns=3,
        full_threads=1 << 16,
        cached=1 << 14,
        recompute_limit=1,
        expansion=4,
        gather_penalty=((128 << 10, 0), (24 << 20, 40), (inf, 112)),
    ),
    contractions=ContractionPolicy(
        reuse=4,
        small_extent=8,
        small_products=48**3,
        most_products=1 << 22,
        narrow=16,
        split=True,
        tiles=True,
    ),
    persistent=PersistentCosts(
        step=0.13,
        phase=0.1,
        fold=0.2,
        thread_operation=0.0023,
        operations=60,
        collision=0.03,
        near_megabyte=15,
        far_megabyte=40,
        near_bytes=192 << 10,
        cluster_barrier=0.9,
        grid_barrier=1.2,
        cluster=8,
        grid=128,
        exchange=1.0,
        link_megabyte=5.0,
        round=0.45,
    ),
    lapack=LapackPolicy(
        least={"cholesky": 32, "lu": 48, "qr": 32, "triangular_solve": 33},
        most_matrices={"cholesky": 8, "lu": 8, "qr": 4, "triangular_solve": 2},
        at_once={"cholesky": (33, 128), "lu": (33, 128), "triangular_solve": (33, 1024)},
        many={
            "cholesky": 64,
            "eigh": 1,
            "lu": 64,
            "pinv": 1,
            "qr": 1,
            "svd": 1,
            "triangular_solve": 64,
        },
        rows=5,
        kernel_rows=64,
        tridiagonal_rows=64,
    ),
    operands=OperandPolicy(
        once={
            "float16": inf,
            "bfloat16": inf,
            "float32": inf,
            "float64": 100,
            "complex64": inf,
            "complex128": inf,
        },
        repeated={
            "float16": 300,
            "bfloat16": 300,
            "float32": 480,
            "float64": 280,
            "complex64": 120,
            "complex128": 140,
        },
        split={
            "float16": ((1 << 12, 768), (1 << 17, 2048)),
            "bfloat16": ((1 << 12, 768), (1 << 17, 2048)),
            "float32": ((1 << 17, 384), (1 << 20, 640)),
            "float64": ((1 << 17, 768), (1 << 19, 1024)),
            "complex64": ((1 << 17, 192), (1 << 19, 1024)),
            "complex128": ((1 << 15, 768), (1 << 19, 4096)),
        },
        most_matrices=4096,
        transformed=8 << 20,
    ),
    overwrites_spectra=True,
    sorted_updates=2048,
    graphs=True,
    motion=Motion(in_vain=1 << 18, guards=True, kept=1 << 26),
    recurrences=RecurrencePolicy(steps=128, lanes=1 << 19),
    rates=H100,
)
"""Fitted to medians on one H200 (driver 580.159, CUDA 13.0), in µs.

- A graph of one kernel, launch and wait included: 5.9. Each further kernel: 0.6 to 0.7 with up to 8
  blocks, 0.8 to 0.9 with 64 to 512.
- A call with an IF node and 1, 3, 8 running sums in each branch: 17.6, 20.2, 27.4. Predicated:
  10.5, 13.6, 23.1.
- A step of a WHILE loop of two running sums, 1, 2, 4, 8, 16 steps to an iteration: 5.4, 3.6, 2.8,
  2.5, 2.3.
- An update: 0.4 on the CPU.
- A billion times each of these in registers, on an H100, in float32 and float64: fma 50, 70; where
  117, 204; quotients 530, 785; square roots 380, 900; exp 340, 1260; log 830, 3030; sin 820, 1700.
- A billion operations of a matrix product: 19 to 26 in float32, 16 to 19 in float64, 1 to 7 in
  float16.
- A library call in a loop costs 4 to 10 µs however small it is, with copies of operands. A nest
  costs 3 and reads both factors of each product from a cache. On an H100, library and nest in
  float32 (float64): a matrix of 1024² and a vector 5.3, 3.9 (13, 4.3); 48³ 7.4, 3.8 (4.9, 4.1); 96³
  8.6, 8.9 (5.2, 8.4); 4096 x 8 x 64 5.0, 4.7 (5.5, 5.3); 4096 x 16 x 64 5.1, 6.8 (5.7, 9.3).
  `benchmarks.contractions` times both forms.
- On an H100, a Cholesky factorization of our own and of cuSOLVER in float32: 16 rows 39, 23; 64
  rows 106, 46; 1024 rows 7000, 750; 8 and 16 matrices of 64 rows 353, 266 and 342, 517, one after
  the other. LU: 16 rows 41, 47; 48 rows 113, 99; 1024 rows 13,100, 2180. Calls with 10,000 matrices
  of 16 rows, by a kernel and by cuSOLVER and cuBLAS: Cholesky 49, 157; a system 66, 167. QR: 32
  rows 122, 93; 64 rows 276, 193; 1024 rows 17,700, 4280; 4 and 8 matrices of 64 rows 689, 724 and
  685, 1482. A triangular system: 48 rows 65, 29; 1024 rows 869, 358; 2 and 4 matrices of 256 rows
  208, 179 and 214, 145, the latter at once. In loops, operands are copied for a library, so that
  the smallest matrices stay kernels of our own. `benchmarks.factorizations` times all forms.
- On an H100, a step of a loop in float32, by a kernel with a block for each matrix, and otherwise:
  eigenvalues of one and 128 matrices of 16 rows 46 and 114, 98 and 239 (a warp for each); 32 rows
  127 and 130, 808 and 719; 64 rows 291 and 327, 2300 for one by a program; 128 rows 1170 and 2270.
  QR: 64 rows 80 and 84, 198 and 24,000 (cuSOLVER); 128 rows 381, 518. In float64, eigenvalues of
  one matrix of 32, 64 and 128 rows 174, 450 and 2200. These kernels have less to do since.
- On an H100, products at fixed addresses, with copies of all three matrices, by pointer: float32
  512³ 13, 17, 16; 1024³ 55, 63, 56; 4096³ 2660, 2810, 2660; 64 x 64 x 2048 10, 14, 40; on an H200,
  256 x 64 x 512 7, 11, 13; 256 x 1024 x 1024 20, 24, 166. float64 512³
  9, 14, 12; 1024³ 41, 60, 45; 2048³ 302, 373, 392. float16 1024³ 6, 11, 7; 4096³ 206, 282, 210.
  complex64 1024³ 166, 185, 167. The kernel that writes pointers takes 1.4 of that, once for all
  steps of a loop. Limits of products in loops are estimated.
  `benchmarks.operands` times both forms.
- Fourier transforms in two dimensions of complex64, on copies and in place, with the same argument,
  with arguments in turn, and with addresses that are new in each call: 512² 22, 18; 25, 26; 26,
  106. 1024² 33, 23; 39, 32; 37, 109. 2048² 95, 62; 100, 72; 101, 146. New addresses take 80 more.
  `benchmarks.fourier_operands` times both forms.
- From how many updates sorting pays is estimated: an update in order takes 0.06, a sort of 8192
  keys some 20. `benchmarks.updates` times both forms.
- On an H100, a scan h = a h + b in chunks and one step after the other: 64 steps of one element
  43, 37; 128 steps 34, 44; of 4096 elements 42, 68; 1000 steps of one element 34, 156, of 8192 148,
  584, of 65,536 656, 800; a million steps of one element 83, 130,000.
- On two H100s, a step of a loop over devices in one kernel of all blocks: a barrier 1.0, a sum of
  one float 2.1 with the barrier before it, of 1024 2.8; rows of 4 to 32 KB stored, with both
  barriers, 4.5, of 1 MB 8. By NCCL and a WHILE node: a sum 10 to 15, two rows 15. Heat on 1024²,
  2048², 4096², 8192² in one kernel 9.5, 14, 80, 216, by NCCL 17, 25, 67, 164; conjugate gradients
  on 256², 1024², 2048², 4096² 17, 35, 82, 317 and 32, 40, 71, 224.
- A million random accesses of 4 to 32 bytes: 9.5 in arrays of 1 to 16 MB, 27 of 64 to 256 MB.
"""
