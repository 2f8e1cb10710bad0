"""The layout of flat files in C, as it stands in the loader's header.

``python -m lowering.cuda.recipe.flat.c_declarations`` writes it there anew.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from lowering.cuda.recipe.flat.flat_file import c_loader
from lowering.cuda.recipe.flat.layout import (
    ALIGNMENT,
    BASES,
    HEADER,
    MAGIC,
    NODE_KINDS,
    NONE,
    SECTION,
    SECTIONS,
    VERSION,
    FlatRecord,
)

_START = "/* The layout of files: generated, as lowering/cuda/recipe/flat/layout.py has it. */\n"
_END = "/* End of what is generated. */\n"


def c_declarations() -> str:
    """The constants, structs and tables."""
    parts = [
        f"#define TG_VERSION {VERSION}u",
        f"#define TG_ALIGNMENT {ALIGNMENT}u",
        f"#define TG_NONE {NONE:#x}u",
        *map(_struct, (HEADER, SECTION, *SECTIONS)),
        _enum("SECTION", [record.name for record in SECTIONS]),
        _enum("NODE", NODE_KINDS),
        _enum("BASE", BASES),
        _table("unsigned char tg_magic[8]", map(str, MAGIC)),
        _table(
            "uint32_t tg_record_bytes[TG_SECTION_COUNT]",
            [str(record.dtype.itemsize) for record in SECTIONS],
        ),
        _table(
            "char *const tg_section_names[TG_SECTION_COUNT]",
            [f'"{record.name}"' for record in SECTIONS],
        ),
    ]
    return "\n".join(parts) + "\n"


def _struct(record: FlatRecord) -> str:
    comment = textwrap.fill(record.text, 94, subsequent_indent="   ")
    name = f"struct tg_{record.name}_record"
    lines = [f"/* {comment} */", f"{name} {{"]
    for field, type_ in record.fields:
        base, bracket, count = type_.partition("[")
        lines.append(f"  uint{base[1:]}_t {field}{bracket}{count};")
    size = record.dtype.itemsize
    return "\n".join([*lines, "};", f'_Static_assert(sizeof({name}) == {size}, "{record.name}");'])


def _enum(prefix: str, words: Sequence[str]) -> str:
    return _listed("enum {", [f"TG_{prefix}_{word.upper()}" for word in (*words, "count")], "};")


def _table(declared: str, values: Iterable[str]) -> str:
    return _listed(f"static const {declared} = {{", list(values), "};")


def _listed(start: str, words: Sequence[str], end: str) -> str:
    listed = textwrap.fill(", ".join(words), 96, initial_indent="  ", subsequent_indent="  ")
    return f"{start}\n{listed}\n{end}"


def with_declarations(header: str) -> str:
    """The header with the layout of today."""
    before, _, rest = header.partition(_START)
    _, _, after = rest.partition(_END)
    return f"{before}{_START}{c_declarations()}{_END}{after}"


if __name__ == "__main__":
    header = c_loader()
    header.write_text(with_declarations(header.read_text("utf-8")), "utf-8")
