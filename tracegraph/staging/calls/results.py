"""Results: what an executable returns becomes Arrays, in the tree that the function returns.

It is part of every call, so `Array.placed` is inlined for each result in a generated function. Its
text depends only on the number of results and the form of the tree, so few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

from tracegraph import tree
from tracegraph.arrays.array import PLACED_SCOPE, Array, Placement, placement
from tracegraph.generated.dataclass import dataclass
from tracegraph.generated.functions import define, each
from tracegraph.ir.types import ArrayType

Assemble = Callable[[Sequence[Any]], Any]
"""Takes the results of an executable; returns that of the function."""

MOST_RESULTS = 64
"""Results up to which the function is generated: compiling takes 20 µs a result."""


class ResultsForm(NamedTuple):
    """What the text depends on: the number of results, their container, and their device."""

    number: int
    container: Literal["none", "tuple", "tree"]
    on_host: bool

    @property
    def written_out(self) -> bool:
        """Whether there are few enough results."""
        return self.number <= MOST_RESULTS

    @property
    def head(self) -> str:
        """The line that unpacks `kinds`."""
        return f"[{each('(t{i}, p{i}), ', range(self.number))}] = kinds"

    @property
    def results(self) -> str:
        """What the results of an executable are assigned to."""
        return f"[{each('r{i}, ', range(self.number))}]"

    @property
    def lines(self) -> list[str]:
        """The lines that return what the function does."""
        lines = []
        for i in range(self.number):
            if self.on_host:
                lines.append(f"r{i}.setflags(False)")
            lines += Array.placed_text(f"y{i}", f"r{i}", f"t{i}", f"p{i}")
        arrays = each("y{i}, ", range(self.number))
        result = {"none": "y0", "tuple": f"({arrays})", "tree": f"unflatten([{arrays}])"}
        return [*lines, f"return {result[self.container]}"]


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """The results of a function: their form, their types, and how to build the tree."""

    form: ResultsForm
    kinds: list[tuple[ArrayType, Placement]]
    unflatten: Callable[[Sequence[Any]], Any]


def results_of(
    structure: tree.Structure,
    types: Sequence[ArrayType],
    device: str,
    places: Sequence[str] | None = None,
) -> Results:
    """Results of these types on a device, in a tree; `places` has those of arrays in blocks."""
    where = [device] * len(types) if places is None else places
    kinds = [(t, placement(t, place)) for t, place in zip(types, where, strict=True)]
    container: Literal["none", "tuple", "tree"] = "tree"
    if structure == tree.structure(0):
        container = "none"
    elif structure == tree.structure((0,) * len(kinds)):
        container = "tuple"
    form = ResultsForm(len(kinds), container, device == "host")
    return Results(form, kinds, partial(tree.unflatten, structure))


def assembler(results: Results) -> Assemble:
    """A function from the results of an executable to the result of the user's function."""
    form, kinds, unflatten = results.form, results.kinds, results.unflatten
    if form.written_out:
        return _factory(form)(kinds, unflatten)

    def assemble(results: Sequence[Any]) -> Any:
        arrays = []
        for result, (type_, where) in zip(results, kinds, strict=True):
            if form.on_host:
                result.setflags(False)
            arrays.append(Array.placed(result, type_, where))
        return unflatten(arrays)

    return assemble


@lru_cache(256)
def _factory(form: ResultsForm) -> Callable[..., Assemble]:
    """A function (kinds, unflatten) -> the assembler of results of a form."""
    returned = "\n        ".join(form.lines)
    text = f"""
def factory(kinds, unflatten):
    {form.head}
    def assemble(results):
        {form.results} = results
        {returned}
    return assemble
"""
    return define(text, "factory", "results of a jitted function", PLACED_SCOPE)
