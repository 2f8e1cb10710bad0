"""Keys of Plans: all that planning reads, as a digest of each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

from lowering.disk_cache.versions import installation
from lowering.plan.plan import Origin
from lowering.plan.target.overrides import declared
from lowering.plan.target.target import Target
from tracegraph.errors import UnsavableError
from tracegraph.ir.program import Program
from tracegraph.ir.stored.writing import program_key

MOST_CONSTANTS = 1 << 28
"""Bytes of constants up to which a program is looked for: a digest of more takes long."""

Parts = dict[str, str]
"""What a key is made of, by what messages call it."""


def origin_of(
    program: Program, target: Target, donated: Sequence[int], scratch: str
) -> tuple[Origin, Parts] | None:
    """What a Plan would be made from; None if the program holds what is no data.

    The name of the program, and those of lines, are not part of the key.
    """
    if sum(constant.nbytes for constant in program.constants) > MOST_CONSTANTS:
        return None
    try:
        digest, sources = program_key(program)
    except (UnsavableError, RecursionError):
        return None
    parts = {
        "the operations, types or constants": digest.hex(),
        "the device": _text_of(target),
        "the donated arguments": repr(tuple(donated)),
        "scratch=": scratch,
        "the schedules": repr(declared()),
        "the installation": installation(),
    }
    key = sha256(repr(sorted(parts.items())).encode()).digest()
    return Origin(key, program.name, sources, program.constants), parts


_texts: dict[int, tuple[Target, str]] = {}


def _text_of(target: Target) -> str:
    """The text of a target, written once: a backend has the same one for all programs."""
    known = _texts.get(id(target))
    if known is None or known[0] is not target:
        known = _texts[id(target)] = (target, canonical_text(target))
    return known[1]


def canonical_text(value: Any) -> str:
    """The text of data, the same in every process: sets are sorted.

    >>> canonical_text(frozenset({"b", "a"}))
    "{'a', 'b'}"
    """
    if is_dataclass(value) and not isinstance(value, type):
        inner = (f"{f.name}={canonical_text(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({', '.join(inner)})"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(canonical_text, value)))}}}"
    if isinstance(value, Mapping):
        pairs = sorted((canonical_text(k), canonical_text(v)) for k, v in value.items())
        return f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(map(canonical_text, value))})"
    return repr(value)
