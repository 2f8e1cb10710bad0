"""NumPy-style functions as functions of PyTorch's tensors: `tracegraph.torch.wrap`.

It imports PyTorch, which tracegraph by itself does not.

    wrapping           `wrap`: trees of tensors and numbers in, tensors out
    tensors            calls with tensors, without a copy
    prepared_calls     those like an earlier call
    differentiated     a call as an autograd function
    in_graph           a call as an operator, for torch.compile
"""

from tracegraph.public_names import set_all as _set_all
from tracegraph.torch.wrapping import *

_set_all(__name__)
