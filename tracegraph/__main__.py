"""Commands for files of saved functions.

``python -m tracegraph inspect FILE`` prints what a file holds.
``python -m tracegraph add-target FILE sm_90`` compiles its programs for the GPUs of an
architecture, into the same file.
``python -m tracegraph flatten FILE sm_90 OUT`` writes a program of it to a file that C runs.
``python -m tracegraph include`` prints the folder of the C header that runs it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tracegraph.errors import UnsavableError
from tracegraph.saving.exported import Exported
from tracegraph.saving.files import load, save


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    given = _parser().parse_args(arguments)
    if given.command == "include":
        print(Exported.c_loader().parent)
        return 0
    try:
        exported = load(given.file)
        if given.command == "flatten":
            libraries = not given.no_libraries
            exported.save_flat(given.out, given.arch, program=given.program, libraries=libraries)
            return 0
        if given.command == "add-target":
            for arch in given.arch:
                exported.add_target(arch)
            save(exported, given.file)
        text = str(exported)
    except (OSError, UnsavableError, ValueError, RuntimeError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    brief = given.command == "add-target" or given.brief
    print(text.partition("\n\n")[0] if brief else text)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tracegraph", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="print the programs of a file")
    inspect.add_argument("file", help="a file that tracegraph.save has written")
    inspect.add_argument("--brief", action="store_true", help="leave out the texts of programs")
    add = commands.add_parser("add-target", help="compile the programs of a file for some GPUs")
    add.add_argument("file", help="a file that tracegraph.save has written; it is replaced")
    add.add_argument("arch", nargs="+", help="the architecture of the GPUs, such as sm_90")
    flatten = commands.add_parser("flatten", help="write a program of a file for C")
    flatten.add_argument("file", help="a file that tracegraph.save has written")
    flatten.add_argument("arch", help="the architecture of the GPUs, such as sm_90")
    flatten.add_argument("out", help="the file to write")
    flatten.add_argument("--program", type=int, help="its number, if the file has several")
    slower = "compute by kernels what a library would be faster for"
    flatten.add_argument("--no-libraries", action="store_true", help=slower)
    commands.add_parser("include", help="print the folder of the C header")
    return parser


if __name__ == "__main__":
    sys.exit(main())
