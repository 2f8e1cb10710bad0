"""Assembling: what an executable returns becomes the Arrays, in a tree, that the function returns.

Each call comes by here, so that what `Array.placed` does is written out for each result. The text
depends on the number of results and the form of the tree only, so that few are ever compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Literal

from tracegraph import tree
from tracegraph.array import Array, placement
from tracegraph.types import ArrayType

Assemble = Callable[[Sequence[Any]], Any]
"""Takes the results of an executable; returns that of the function."""

MOST_RESULTS = 64
"""Results up to which all is written out: the compiler takes 20 µs for each."""

_Form = Literal["one", "tuple", "tree"]


def assembler(structure: tree.Structure, types: Sequence[ArrayType], device: str) -> Assemble:
    """How results of these types become Arrays on a device, in a tree."""
    kinds = [(type_, placement(type_, device)) for type_ in types]
    form: _Form = "tree"
    if structure == tree.structure(0):
        form = "one"
    elif structure == tree.structure((0,) * len(kinds)):
        form = "tuple"
    unflatten = partial(tree.unflatten, structure)
    if len(kinds) <= MOST_RESULTS:
        return _factory(len(kinds), form, device == "host")(kinds, unflatten)

    def assemble(results: Sequence[Any]) -> Any:
        arrays = []
        for result, (type_, where) in zip(results, kinds, strict=True):
            if device == "host":
                result.setflags(False)
            arrays.append(Array.placed(result, type_, where))
        return unflatten(arrays)

    return assemble


@lru_cache(256)
def _factory(count: int, form: _Form, on_host: bool) -> Callable[..., Assemble]:
    """A function (kinds, unflatten) -> the assembler of so many results."""
    arrays = "".join(f"x{i}, " for i in range(count))
    text = f"""
def factory(kinds, unflatten):
    [{"".join(f"(t{i}, p{i}), " for i in range(count))}] = kinds
    def assemble(results):
        [{"".join(f"r{i}, " for i in range(count))}] = results
"""
    for i in range(count):
        if on_host:
            text += f"        r{i}.setflags(False)\n"
        text += f"""\
        x{i} = new(Array)
        x{i}.memory = r{i}
        x{i}._type = t{i}
        x{i}.placement = p{i}
"""
    result = {"one": "x0", "tuple": f"({arrays})", "tree": f"unflatten([{arrays}])"}[form]
    text += f"        return {result}\n    return assemble\n"
    scope: dict[str, Any] = {"Array": Array, "new": Array.__new__}
    exec(compile(text, "<results of a jitted function>", "exec"), scope)
    factory: Callable[..., Assemble] = scope["factory"]
    return factory
