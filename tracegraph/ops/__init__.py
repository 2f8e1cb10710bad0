"""Op records by family; importing the package registers all of them.

An op is data (`ir/op.py`): its type rule, its NumPy reference, the form of its elements that
lowering reads, and samples for tests. Nothing here traces, runs or lowers an op. May import `ir/`,
and what the references of loops, effects and users' kernels need (`limits`, `progress`, `errors`).

    elementwise        ops that a NumPy ufunc defines: arithmetic, bitwise, comparison, convert,
                       floating, transcendental
    special/           special functions
    random_bits        Threefry
    shape, arrange     views; roll, pad, concatenate, iota, empty
    sliding_windows    windows that slide along an axis
    index, scatter     reading and writing at indices that are data
    reduce, folds, linalg   reductions and scans; matrix products
    fourier            Fourier transforms
    factorizations     Cholesky, LU, QR, eigenvalues, singular values; triangular systems
    sorting            rows in order, and the order
    largest, ranked    the largest of each row; those at places of the order
    control, effects   branches and loops; prints, checks, progress
    custom_kernels     kernels that users write
    events             events of other code
    collectives        what the devices of a mesh do together
    live_lanes         which lanes run for nothing
    batching           how ops apply to many lanes at once, where their form does not say it
    calls, derivatives functions with derivative rules; stop_gradient
    fold_derivatives, scatter_derivatives, cotangents   rules of derivatives, and what they share
    checks, sampling, tricky   what type rules require; arrays and edge cases for samples
"""

from tracegraph.ops import (  # noqa: F401  (they register their ops)
    arithmetic,
    arrange,
    bitwise,
    callbacks,
    calls,
    collectives,
    comparison,
    control,
    convert,
    custom_kernels,
    derivatives,
    effects,
    events,
    factorizations,
    floating,
    folds,
    fourier,
    index,
    largest,
    linalg,
    live_lanes,
    random_bits,
    ranked,
    reduce,
    scatter,
    shape,
    sliding_windows,
    sorting,
    special,
    transcendental,
)
