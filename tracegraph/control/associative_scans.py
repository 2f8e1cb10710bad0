"""associative_scan: running results of an associative function along an axis, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy.lib.array_utils import normalize_axis_index

from tracegraph import errors, tree
from tracegraph.control import slices
from tracegraph.control.regions import current_for, flatten_checked, join, require_callable
from tracegraph.errors.keywords import required_bool
from tracegraph.errors.tracebacks import entry_point
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir.types import type_of

__all__ = ["associative_scan"]

Function = Callable[[Any, Any], Any]
Leaves = tuple[Any, ...]

_BLOCK = 8
"""Elements that are combined one after the other. Longer blocks have fewer levels, each of which is
two kernels, and more calls of the function in all."""


@entry_point
def associative_scan(fn: Function, elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """``elems[0], fn(elems[0], elems[1]), fn(fn(elems[0], elems[1]), elems[2]), …`` along an axis.

    Since `fn` is associative, elements are combined in another order, by which floating-point
    results differ in rounding from those one after the other: blocks of 8 elements, then the totals
    of blocks in the same manner, then each block with the total before it (Blelloch, Prefix sums
    and their applications, 1990). That is 2 calls of `fn` for each element, in log₈ n steps.

    Args:
        fn: an associative function of two pytrees such as `elems`, which it combines element by
            element along `axis`, for any extent of that axis. It returns their like.
        elems: a pytree of arrays with one extent along `axis`.
        reverse: go from the last element to the first: ``fn(elems[-1], elems[-2])`` is the last
            but one.
        axis: that of each array; a negative one counts from the end.

    Returns:
        A pytree such as `elems`, of the same shapes and dtypes.

    Raises:
        ScanLengthError: the extents along the axis differ, or `elems` has no arrays.
        AxisError: an array has no such axis.
        StructureError: `fn` returned another structure than that of its arguments.
        LeafMismatchError: it returned arrays of other types.
        NotCallableError, ParametersError: `fn` is no function of two arguments.
        LeafTypeError: a leaf is not a number or an array of a supported dtype.

    >>> import numpy as np
    >>> associative_scan(np.add, np.arange(1, 6))
    array([ 1,  3,  6, 10, 15])

    A linear recurrence h = a h + b. Each step is a function of h, and so are two steps together:

    >>> def then(first, second):
    ...     (a, b), (c, d) = first, second
    ...     return a * c, b * c + d
    >>> a, b = np.array([2.0, 2.0, 0.5]), np.array([1.0, 1.0, 4.0])
    >>> associative_scan(then, (a, b))[1]
    array([1. , 3. , 5.5])
    """
    require_callable("associative_scan", {"fn": fn}, ["a", "b"])
    required_bool("reverse", reverse)
    given = flatten_checked(elems, "associative_scan", "elems")
    axes = [normalize_axis_index(axis, type_.ndim) for type_ in given.types]
    extents = {type_.shape[i] for type_, i in zip(given.types, axes, strict=True)}
    if len(extents) != 1:
        rows = list(zip(tree.paths(given.structure, "elems"), given.types, strict=True))
        problem = f"arrays must have one extent along axis {axis}" if rows else "elems has no array"
        raise errors.ScanLengthError("associative_scan", problem, rows)
    current_for(given.leaves)
    (count,) = extents
    scanned = _Scan(fn, given.structure, axes)
    leaves: Leaves = given.leaves
    if reverse:
        leaves = scanned.part(leaves, count - 1, count, -1)
    leaves = scanned.running(leaves)
    if reverse:
        leaves = scanned.part(leaves, count - 1, count, -1)
    return tree.unflatten(given.structure, leaves)


@dataclass(frozen=True, slots=True)
class _Scan:
    """A scan by `fn` of pytrees of one structure, along an axis of each leaf."""

    fn: Function
    structure: tree.Structure
    axes: Sequence[int]

    def running(self, leaves: Leaves) -> Leaves:
        """The running results."""
        count = self.count(leaves)
        if count < 2:
            return leaves
        size = min(_BLOCK, count)
        blocks, rest = divmod(count, size)
        places = [self.part(leaves, i, blocks, size) for i in range(size)]
        for i in range(1, size):
            places[i] = self.combined(places[i - 1], places[i])
        pieces = [self._interleaved([self.part(place, 0, 1) for place in places])]
        totals = self.running(places[-1])
        if blocks > 1:
            before = self.part(totals, 0, blocks - 1)
            later = [self.combined(before, self.part(x, 1, blocks - 1)) for x in places[:-1]]
            pieces.append(self._interleaved([*later, self.part(totals, 1, blocks - 1)]))
        last = self.part(totals, blocks - 1, 1)
        for i in range(count - rest, count):
            last = self.combined(last, self.part(leaves, i, 1))
            pieces.append(last)
        return self._joined(pieces)

    def combined(self, a: Leaves, b: Leaves) -> Leaves:
        """What the function gives for two trees.

        Raises:
            StructureError, LeafMismatchError: it returned no such tree.
        """
        fn, construct = self.fn, "associative_scan"
        returned = fn(tree.unflatten(self.structure, a), tree.unflatten(self.structure, b))
        found = flatten_checked(returned, construct, "result", fn)
        wanted = f"{errors.function_text(fn)} must return"
        if found.structure != self.structure:
            labelled = [("given", self.structure), ("returned", found.structure)]
            problem = f"{wanted} a pytree of the structure it was given"
            raise errors.StructureError(construct, problem, labelled, "result")
        paths = tree.paths(self.structure, "result")
        pairs = list(zip(paths, map(type_of, b), found.types, strict=True))
        rows = [
            (path, [("given", have), ("returned", got)])
            for path, have, got in pairs
            if join(have, got) != have
        ]
        if rows:
            problem = f"{wanted} arrays of the types it was given"
            raise errors.LeafMismatchError(construct, problem, [], rows)
        return found.leaves

    def count(self, leaves: Leaves) -> int:
        """The extent along the axes."""
        return type_of(leaves[0]).shape[self.axes[0]]

    def part(self, leaves: Leaves, start: int, size: int, step: int = 1) -> Leaves:
        """`size` elements along the axes."""
        if (start, size, step) == (0, self.count(leaves), 1):
            return leaves
        found = []
        for leaf, axis in zip(leaves, self.axes, strict=True):
            shape = type_of(leaf).shape
            starts, steps, sizes = [0] * len(shape), [1] * len(shape), list(shape)
            starts[axis], steps[axis], sizes[axis] = start, step, size
            attrs = {"starts": tuple(starts), "steps": tuple(steps), "sizes": tuple(sizes)}
            found.append(slices.apply_op("slice", leaf, **attrs))
        return tuple(found)

    def _interleaved(self, places: Sequence[Leaves]) -> Leaves:
        """The elements of blocks, from those at each place of a block."""
        found = []
        for column, axis in zip(zip(*places, strict=True), self.axes, strict=True):
            shape = type_of(column[0]).shape
            apart = (*shape[: axis + 1], 1, *shape[axis + 1 :])
            rows = [slices.apply_op("reshape", leaf, shape=apart) for leaf in column]
            blocks = slices.apply_op("concatenate", *rows, axis=axis + 1)
            together = (*shape[:axis], shape[axis] * len(places), *shape[axis + 1 :])
            found.append(slices.apply_op("reshape", blocks, shape=together))
        return tuple(found)

    def _joined(self, parts: Sequence[Leaves]) -> Leaves:
        """The elements of all parts, one after another."""
        if len(parts) == 1:
            return parts[0]
        columns = zip(zip(*parts, strict=True), self.axes, strict=True)
        return tuple([slices.apply_op("concatenate", *column, axis=i) for column, i in columns])
