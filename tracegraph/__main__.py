"""Commands for files of saved functions.

    python -m tracegraph inspect FILE             what it holds
    python -m tracegraph flatten FILE ARCH OUT    a program of it as a file that C runs
    python -m tracegraph include                  the folder of the header that runs it
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tracegraph.errors import ExportFormatError, UnsavableError
from tracegraph.saving.exported import Exported
from tracegraph.saving.files import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tracegraph", formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="print the programs of a file")
    inspect.add_argument("file", help="a file that tracegraph.save has written")
    inspect.add_argument("--brief", action="store_true", help="leave out the texts of programs")
    flatten = commands.add_parser("flatten", help="write a program of a file for C")
    flatten.add_argument("file", help="a file that tracegraph.save has written")
    flatten.add_argument("arch", help="the architecture of the GPU, such as sm_90")
    flatten.add_argument("out", help="the file to write")
    flatten.add_argument("--program", type=int, help="its number, if the file has several")
    flatten.add_argument(
        "--no-libraries",
        action="store_true",
        help="compute by kernels what a library would be faster for",
    )
    commands.add_parser("include", help="print the folder of the C header")
    given = parser.parse_args(arguments)
    if given.command == "include":
        print(Exported.c_loader().parent)
        return 0
    try:
        exported = load(given.file)
        if given.command == "inspect":
            print(str(exported).partition("\n\n")[0] if given.brief else exported)
        else:
            libraries = not given.no_libraries
            exported.save_flat(given.out, given.arch, program=given.program, libraries=libraries)
    except (OSError, ValueError, RuntimeError, ExportFormatError, UnsavableError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
