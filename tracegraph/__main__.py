"""Commands for files of saved functions.

``python -m tracegraph inspect FILE`` prints what a file holds.
``python -m tracegraph add-target FILE sm_90`` compiles its programs for the GPUs of an
architecture, into the same file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tracegraph.errors import ExportFormatError, UnsavableError
from tracegraph.saving.files import load, save


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tracegraph", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="print the programs of a file")
    inspect.add_argument("file", help="a file that tracegraph.save has written")
    inspect.add_argument("--brief", action="store_true", help="leave out the texts of programs")
    add = commands.add_parser("add-target", help="compile the programs of a file for some GPUs")
    add.add_argument("file", help="a file that tracegraph.save has written; it is replaced")
    add.add_argument("arch", nargs="+", help="the architecture of the GPUs, such as sm_90")
    given = parser.parse_args(arguments)
    try:
        exported = load(given.file)
        if given.command == "add-target":
            for arch in given.arch:
                exported.add_target(arch)
            save(exported, given.file)
        text = str(exported)
    except (OSError, ExportFormatError, UnsavableError, ValueError, RuntimeError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    brief = given.command == "add-target" or given.brief
    print(text.partition("\n\n")[0] if brief else text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
