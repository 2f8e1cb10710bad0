"""`wrap`: a NumPy-style function as a function of tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any

import torch
from torch.utils._python_dispatch import is_in_torch_dispatch_mode

from tracegraph import tree
from tracegraph.devices import canonical_device
from tracegraph.errors import UnsupportedArgumentError
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.interop.flat_functions import FlatFunction, by_its_name, flat_of_tree
from tracegraph.torch.differentiated import apply
from tracegraph.torch.in_graph import call_in_graph

__all__ = ["wrap"]


@entry_point
def wrap(body: Callable[..., Any], *, device: str | None = None) -> Callable[..., Any]:
    """A NumPy-style function as a function of PyTorch's tensors: a call is one graph.

    So is its backward pass, and each further derivative: `backward`, `torch.autograd.grad`,
    `torch.func` and `torch.compile(fullgraph=True)` take it as they take functions of PyTorch. On
    a GPU, it runs on PyTorch's current stream. Tensors are read where they are, and results are
    given away without a copy. Where a gradient is asked for, a call keeps what the backward pass is
    made of: its arguments, results, and of other values those that are not cheap to compute of
    these. Derivatives of the backward pass, and those of `torch.func`, run the function again.

    Args:
        body: takes and returns trees of arrays and numbers. It is traced, as by `tracegraph.jit`.
        device: where it runs; without it, where the first tensor on a GPU is, or else on the host.

    Returns:
        A function of trees of tensors and numbers. A new number, as a new shape, is no new program
        unless the program depends on it. The tensors of the results are new.

    Raises:
        TypeError: `body` is not callable.
        UnsupportedArgumentError: when it is called, an argument is not a tensor or a number.

    Source: for complex tensors, gradients are conjugate to those of `tracegraph.grad`, as in
    https://docs.pytorch.org/docs/stable/notes/autograd.html#autograd-for-complex-numbers

    >>> import torch
    >>> f = wrap(lambda x: (x**2).sum())
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if not callable(body):
        raise TypeError(f"wrap takes a function, got {body!r}")
    device = None if device is None else canonical_device(device)
    known: dict[Hashable, FlatFunction] = {}

    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            leaves, structure = tree.flatten((args, kwargs))
            function = known.get(structure)
            if function is None:
                function = known.setdefault(structure, flat_of_tree(body, structure, device))
            if torch.compiler.is_compiling() or is_in_torch_dispatch_mode():
                results, structure = call_in_graph(function, leaves)
            else:
                results, structure = apply(function, leaves)
            return tree.unflatten(structure, results)
        except UnsupportedArgumentError as error:
            given = tree.map(lambda x: 0.0 if isinstance(x, torch.Tensor) else x, (args, kwargs))
            raise by_its_name(error, body, *given) from None
        except BaseException as error:
            hide_frames(error)
            raise

    torch.compiler.allow_in_graph(called)

    @wraps(body)
    def wrapped(*args: Any, **kwargs: Any) -> Any:  # which torch.compile may be given
        return called(*args, **kwargs)

    return wrapped
