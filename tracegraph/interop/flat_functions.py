"""A function of flat arguments, with its derivatives and batches: each is one graph.

It is what `wrap` of PyTorch and of JAX give to these libraries. A derived function is a
`FlatFunction` again, so derivatives have derivatives of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from tracegraph import tree
from tracegraph.errors import UnsupportedArgumentError
from tracegraph.interop.halves import SecondHalf, first_half
from tracegraph.ir.types import ArrayType, type_of
from tracegraph.staging.calls.signature import Signature
from tracegraph.staging.jit import eval_shape, jit
from tracegraph.staging.jitted import Jitted
from tracegraph.transforms import jvp, vjp, vmap
from tracegraph.transforms.derivatives.activity import is_inexact

Values = tuple[Any, ...]
"""Arrays or numbers; for types, also those of another library."""

Mask = tuple[bool, ...]

_numbers = count()
_by_number: WeakValueDictionary[int, FlatFunction] = WeakValueDictionary()


MOST = 512
"""What is known of a function at most; beyond that, it is found out again."""


class _Known(dict[Hashable, Any]):
    """A cache of at most `MOST` entries."""

    def __setitem__(self, key: Hashable, value: Any) -> None:
        if len(self) >= MOST:
            self.clear()
        super().__setitem__(key, value)


class FlatFunction:
    """A function of arrays and numbers that returns a tree of arrays.

    Functions that are derived of it take and return the leaves of its results. `number` is another
    one for each function, by which graphs of other libraries name it.
    """

    def __init__(self, function: Callable[..., Any], device: str | None = None) -> None:
        self.function = function
        self.device = device
        self.number = next(_numbers)
        self._jitted: dict[str, Jitted[..., Any]] = {}
        self._derived: dict[Hashable, FlatFunction] = {}
        self.known = _Known()  # what calls have found out about it, by what that is and a key
        _by_number[self.number] = self

    def on(self, device: str) -> Jitted[..., Any]:
        """The jitted function that runs on a device."""
        found = self._jitted.get(device)
        if found is None:
            found = self._jitted.setdefault(device, jit(self.function, device=device))
        return found

    def results(self, types: Sequence[ArrayType]) -> tuple[tuple[ArrayType, ...], tree.Structure]:
        """The types of the leaves of the results for arguments of these types, and the structure of
        the results. Nothing runs.
        """
        key = ("results", *types)
        found: tuple[tuple[ArrayType, ...], tree.Structure] | None = self.known.get(key)
        if found is None:
            leaves, structure = tree.flatten(eval_shape(self.function, *types))
            found = self.known[key] = tuple(leaves), structure
        return found

    def with_numbers(self, numbers: Sequence[tuple[int, Any]]) -> FlatFunction:
        """The function of the other arguments, if those at these positions are numbers."""
        if not numbers:
            return self

        def bound(*arrays: Any) -> Any:
            values = list(arrays)
            for position, number in numbers:  # in ascending order
                values.insert(position, number)
            return self.function(*values)

        key = ("numbers", tuple((position, type(n), n) for position, n in numbers))
        return self._derive(key, bound)

    def pullback(
        self, needed: Mask, differentiable: Mask, *, conjugates: bool = False
    ) -> FlatFunction:
        """The function of all arguments, and of the cotangents of the differentiable results, that
        returns the cotangents of the needed arguments. With `conjugates`, complex cotangents are
        the conjugates of those of `tracegraph.vjp`.
        """

        def pulled(*values: Any) -> Values:
            primals, cotangents = values[: len(needed)], values[len(needed) :]
            of_needed = self._of(primals, needed, differentiable)
            _, pull = vjp(of_needed, *_chosen(primals, needed))
            if not conjugates:
                return tuple(pull(tuple(cotangents)))
            return tuple(map(_conjugate, pull(tuple(map(_conjugate, cotangents)))))

        return self._derive(("pullback", needed, differentiable, conjugates), pulled)

    def keeping(self, needed: Mask) -> FlatFunction:
        """The function of all arguments that returns its results and, as a `Kept`, what the
        cotangents of the needed ones are computed of by `second_half`; or the results and None.
        """

        def kept(*values: Any) -> Any:
            structures = []

            def of_needed(*free: Any) -> Any:
                found, structure = tree.flatten(self._with(values, needed, free))
                structures.append(structure)
                return tuple([x for x in found if is_inexact(type_of(x))]), tuple(found)

            found = first_half(of_needed, _chosen(values, needed), values)
            if found is None:
                return self.function(*values), None
            return tree.unflatten(structures[-1], found[0]), found[1]

        return self._derive(("keeping", needed), kept)

    def second_half(self, half: SecondHalf, *, is_lasting: bool) -> FlatFunction:
        """The function of the values at the places of a half, and of the cotangents of all inexact
        results, that returns the conjugate cotangents of the needed arguments.

        One that is lasting is there as long as this one, for graphs that name it by its number.
        """

        def pulled(*values: Any) -> Values:
            count = len(half.places)
            cotangents = half(values[:count], tuple(map(_conjugate, values[count:])))
            return tuple(map(_conjugate, cotangents))

        return self._derive(half, pulled) if is_lasting else self._named(pulled)

    def pushforward(self, moving: Mask, differentiable: Mask) -> FlatFunction:
        """The function of all arguments, and of tangents of the moving ones, that returns the
        tangents of the differentiable results.
        """

        def pushed(*values: Any) -> Values:
            primals, tangents = values[: len(moving)], values[len(moving) :]
            of_moving = self._of(primals, moving, differentiable)
            return tuple(jvp(of_moving, tuple(_chosen(primals, moving)), tuple(tangents))[1])

        return self._derive(("pushforward", moving, differentiable), pushed)

    def batched(self, in_axes: tuple[int | None, ...]) -> FlatFunction:
        """The function of batches along these axes; the lanes of results are their first axis."""
        return self._derive(("batched", in_axes), vmap(self.function, in_axes=in_axes))

    def _of(self, primals: Values, free: Mask, kept: Mask) -> Callable[..., Values]:
        """The kept results as a function of the arguments that are free."""

        def of_free(*values: Any) -> Values:
            return tuple(_chosen(tree.leaves(self._with(primals, free, values)), kept))

        return of_free

    def _with(self, primals: Values, free: Mask, values: Values) -> Any:
        """The results for these arguments, with the values in place of those that are free."""
        left = iter(values)
        return self.function(*[next(left) if f else p for p, f in zip(primals, free, strict=True)])

    def _derive(self, key: Hashable, function: Callable[..., Any]) -> FlatFunction:
        found = self._derived.get(key)
        if found is None:
            found = self._derived.setdefault(key, self._named(function))
        return found

    def _named(self, function: Callable[..., Any]) -> FlatFunction:
        function.__name__ = getattr(self.function, "__name__", "function")
        return FlatFunction(function, self.device)


def by_number(number: int) -> FlatFunction:
    """The function of a number, as operators name it.

    Raises:
        RuntimeError: it is no longer there.
    """
    found = _by_number.get(number)
    if found is None:
        raise RuntimeError(
            "a compiled graph calls a function of tracegraph.torch.wrap that is gone; keep the "
            "function as long as the graph"
        )
    return found


def flat_of_tree(
    body: Callable[..., Any], structure: tree.Structure, device: str | None
) -> FlatFunction:
    """The function of the leaves of arguments of a structure."""

    def flat(*leaves: Any) -> Any:
        args, kwargs = tree.unflatten(structure, leaves)
        return body(*args, **kwargs)

    flat.__name__ = getattr(body, "__name__", "function")
    return FlatFunction(flat, device)


def by_its_name(
    error: UnsupportedArgumentError, body: Callable[..., Any], args: Values, kwargs: dict[str, Any]
) -> UnsupportedArgumentError:
    """The error of a leaf among the arguments, by the name that the caller of `body` knows.

    Arrays of another library may be given as numbers.
    """
    try:
        Signature.of(body).bind(args, kwargs)
    except UnsupportedArgumentError as named:
        return named.with_traceback(None)
    return error


def _chosen(values: Sequence[Any], mask: Mask) -> list[Any]:
    return [x for x, chosen in zip(values, mask, strict=True) if chosen]


def _conjugate(x: Any) -> Any:
    return x.conj() if x.dtype.kind == "c" else x
