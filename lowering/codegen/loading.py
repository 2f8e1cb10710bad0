"""Vectors of several parts of a thread's work, loaded before the first of them is used.

Off alignment each vector lies in two aligned ones, which are all on their way before the first is
waited for: a thread that waited for each would have too little in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from lowering.buffer import Buffer
from lowering.codegen.body import Body
from lowering.codegen.expressions import compute
from lowering.codegen.vectors import address, load_text, pack
from lowering.contiguity import VECTOR_BYTES
from lowering.preamble import c_type
from tracegraph.scalar import Load

WORD = 4  # bytes of a register

EachPart = Callable[[], AbstractContextManager[None]]
"""Text that runs for each `part`, with what the indices of loads are made of bound."""


def load_parts(
    body: Body,
    widths: Mapping[Load, int],
    parts: int,
    each_part: EachPart,
    aligned: Mapping[Buffer, str],
) -> dict[Load, str]:
    """Load vectors of as many elements as `widths` says of each first element, whose index is flat;
    returns the names of the arrays in which those of all parts are. `aligned` comes from
    `declare_aligned`.
    """
    names = {load: body.fresh() for load in widths}
    for load, name in names.items():
        body.line(f"{pack(load, widths[load])} {name}[{parts}];")
    split = [load for load, n in widths.items() if load.buffer in aligned and _is_split(load, n)]
    if split:
        words = _load_words(body, {load: widths[load] for load in split}, parts, each_part, aligned)
        with each_part():
            for load, name in words.items():
                kind = c_type(load.buffer.type.dtype)
                elements = f"tg_elements<{widths[load]}, {kind}>({name}[part])"
                body.line(f"{names[load]}[part] = {elements};")
    whole = [load for load in widths if load not in split]
    if whole:
        with each_part():
            compute(body, [load.indices[0] for load in whole])
            for load in whole:
                text = load_text(body, load, widths[load], aligned)
                body.line(f"{names[load]}[part] = {text};")
    return names


def _load_words(
    body: Body,
    widths: Mapping[Load, int],
    parts: int,
    each_part: EachPart,
    aligned: Mapping[Buffer, str],
) -> dict[Load, str]:
    """Load the words of vectors that may be off alignment."""
    indices = [load.indices[0] for load in widths]
    sizes = {load: _nbytes(load, width) // WORD for load, width in widths.items()}
    words = {load: body.fresh() for load in widths}
    for load, name in words.items():
        body.line(f"tg_block<{sizes[load]}> {name}[{parts}];")
    (test,) = {aligned[load.buffer] for load in widths}
    with body.block(f"if ({test})"), each_part():
        compute(body, indices)
        for load, name in words.items():
            block = f"reinterpret_cast<const tg_block<{sizes[load]}>*>({address(body, load)})"
            body.line(f"{name}[part] = *{block};")
    with body.block("else"):
        both = {load: body.fresh() for load in widths}
        for load, name in both.items():
            body.line(f"tg_straddle<{sizes[load]}> {name}[{parts}];")
        with each_part():
            compute(body, indices)
            for load, name in both.items():
                text = f"tg_load_straddle<{sizes[load]}>({address(body, load)})"
                body.line(f"{name}[part] = {text};")
        with each_part():
            compute(body, indices)
            for load, name in both.items():
                body.line(f"{words[load]}[part] = tg_within({name}[part], {address(body, load)});")
    return words


def _is_split(load: Load, width: int) -> bool:
    """Whether a vector off alignment is loaded as the two aligned ones that it lies in; else its
    elements are loaded one by one.
    """
    nbytes = _nbytes(load, width)
    return nbytes >= WORD and (width > 2 or nbytes == VECTOR_BYTES)


def _nbytes(load: Load, width: int) -> int:
    nbytes: int = width * load.buffer.type.dtype.itemsize
    return nbytes
