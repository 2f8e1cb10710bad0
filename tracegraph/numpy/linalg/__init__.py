"""`numpy.linalg`: each file has what its name says; `chains` has products of several matrices."""

from tracegraph.numpy.axes import matrix_transpose as matrix_transpose
from tracegraph.numpy.contractions import matmul as matmul
from tracegraph.numpy.contractions import tensordot as tensordot
from tracegraph.numpy.contractions import vecdot as vecdot
from tracegraph.numpy.linalg.chains import *
from tracegraph.numpy.linalg.determinants import *
from tracegraph.numpy.linalg.factorizations import *
from tracegraph.numpy.linalg.least_squares import *
from tracegraph.numpy.linalg.norms import *
from tracegraph.numpy.linalg.products import *
from tracegraph.numpy.linalg.spectra import *
from tracegraph.numpy.linalg.systems import *
from tracegraph.public_names import set_all as _set_all

_set_all(__name__)
