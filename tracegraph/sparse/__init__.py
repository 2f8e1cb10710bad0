"""Sparse matrices, and folds of elements by the segment that they belong to.

>>> import numpy as np
>>> a = CSR.from_dense(np.array([[0.0, 2.0], [3.0, 0.0]]))
>>> a @ np.array([1.0, 10.0])
array([20.,  3.])

    rows         CSR, a matrix by the elements of its rows
    segments     segment_sum, segment_prod, segment_min, segment_max
"""

from tracegraph.sparse.rows import CSR
from tracegraph.sparse.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["CSR", "segment_max", "segment_min", "segment_prod", "segment_sum"]
