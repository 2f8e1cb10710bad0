"""Sparse matrices, and folds of elements by the segment that they belong to.

>>> import numpy as np
>>> a = CSR.from_dense(np.array([[0.0, 2.0], [3.0, 0.0]]))
>>> a @ np.array([1.0, 10.0])
array([20.,  3.])

    rows         CSR, a matrix by the elements of its rows
    segments     segment_sum, segment_prod, segment_min, segment_max
"""

from tracegraph.public_names import set_all as _set_all
from tracegraph.sparse.rows import *
from tracegraph.sparse.segments import *

_set_all(__name__)
