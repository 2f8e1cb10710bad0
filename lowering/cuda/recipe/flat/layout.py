"""Layout of flat files: the fields of each record, from which Python writes and C reads.

    header      64 bytes
    sections    a table: where the records of each section are
    records     section by section, each from a multiple of 64 bytes on

All numbers are unsigned and little-endian. No record has a pointer: text is an offset into the
section ``text``, where it ends with a zero byte, and everything else a number of a record. So a
file is read where it is, after each number has been compared with what it counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tracegraph.generated.dataclass import dataclass

MAGIC = b"TGRAPH\0\1"

VERSION = 1
"""A change that an older reader would misread counts it up."""

ALIGNMENT = 64
"""Bytes: where sections, and pieces of the data, begin."""

NONE = 0xFFFFFFFF
"""Stands for no record."""


@dataclass(frozen=True, slots=True)
class FlatRecord:
    """Records of one kind: what each is, and the name and the type of each field.

    Fields are in the order in which they lie, each at a multiple of its size, without gaps.
    """

    name: str
    text: str
    fields: tuple[tuple[str, str], ...]

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The same for NumPy."""
        return np.dtype([(name, *_TYPES[type_]) for name, type_ in self.fields])


_TYPES: Mapping[str, tuple[str] | tuple[str, tuple[int]]] = {
    "u8": ("u1",),
    "u32": ("<u4",),
    "u64": ("<u8",),
    "u8[8]": ("u1", (8,)),
    "u32[3]": ("<u4", (3,)),
    "u64[2]": ("<u8", (2,)),
}


def _record(name: str, text: str, /, **fields: str) -> FlatRecord:
    return FlatRecord(name, text, tuple(fields.items()))


HEADER = _record(
    "header",
    "The file: arch is 90 for sm_90; cuda the oldest driver, 13000 for 13.0; checksum the CRC-32 "
    "of all behind the header.",
    magic="u8[8]",
    version="u32",
    arch="u32",
    cuda="u32",
    section_count="u32",
    nbytes="u64",
    sections="u64",
    checksum="u32",
    unused="u32",
    reserved="u64[2]",
)

SECTION = _record(
    "section",
    "Where the records of a section are.",
    offset="u64",
    count="u64",
    record_bytes="u32",
    reserved="u32",
)

SECTIONS: tuple[FlatRecord, ...] = (
    _record(
        "program",
        "The one program: bytes of memory, how many graphs there are, and the node that writes "
        "small inputs.",
        arena_bytes="u64",
        fixed_bytes="u64",
        constant_bytes="u64",
        name="u32",
        per_launch="u32",
        graph_count="u32",
        monitor_count="u32",
        load="u32",
        reserved="u32",
    ),
    _record("code", "A cubin in the data.", data="u64", nbytes="u64"),
    _record("function", "A kernel of a cubin.", code="u32", name="u32"),
    _record("constant", "A constant in the data, and its place.", offset="u64", nbytes="u64",
            data="u64"),
    _record("condition", "A condition, of the graph of its node.", graph="u32"),
    _record(
        "node",
        "A node of a graph; what other kinds of nodes have not is zero.",
        kind="u32",
        graph="u32",
        label="u32",
        first_edge="u32",
        edge_count="u32",
        function="u32",
        first_parameter="u32",
        parameter_count="u32",
        grid="u32[3]",
        block="u32[3]",
        cluster="u32[3]",
        shared_bytes="u32",
        cooperative="u32",
        adapts="u32",
        condition="u32",
        body_count="u32",
    ),
    _record("edge", "A node that another one depends on.", before="u32", programmatic="u32"),
    _record("parameter", "A word that a kernel is passed.", base="u32", index="u32", offset="u64"),
    _record(
        "input",
        "An argument: its type, and the parameters of the load node that have its value.",
        nbytes="u64",
        slot_offset="u64",
        name="u32",
        dtype="u32",
        axis_count="u32",
        first_extent="u32",
        alignment="u32",
        slot_parameter="u32",
        slot_words="u32",
        reserved="u32",
    ),
    _record(
        "output",
        "A result, and the number of the input that it is written over.",
        nbytes="u64",
        name="u32",
        dtype="u32",
        axis_count="u32",
        first_extent="u32",
        over="u32",
        reserved="u32",
    ),
    _record("extent", "An extent of a shape.", extent="u64"),
    _record("failure", "An error that a check reports.", error="u32", message="u32"),
    _record("text", "A byte of text.", byte="u8"),
    _record("data", "A byte of a cubin or a constant.", byte="u8"),
)  # fmt: skip
"""The sections in order."""

NODE_KINDS = ("kernel", "if_else", "while", "switch", "allocate", "free")
"""Kinds of nodes by number."""

BASES = ("number", "input", "output", "arena", "fixed", "constants", "condition", "stop_flag",
         "failure", "steps")  # fmt: skip
"""What the offset of a parameter is added to, by number: as `lowering.cuda.recipe.recipe.Base` has
it, without what has to do with prints."""
