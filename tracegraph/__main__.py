"""``python -m tracegraph inspect FILE``: what a file of a saved function holds."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tracegraph.errors import ExportFormatError
from tracegraph.saving.files import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tracegraph", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    inspect = commands.add_parser("inspect", help="print the programs of a file")
    inspect.add_argument("file", help="a file that tracegraph.save has written")
    inspect.add_argument("--brief", action="store_true", help="leave out the texts of programs")
    given = parser.parse_args(arguments)
    try:
        text = str(load(given.file))
    except (OSError, ExportFormatError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 1
    print(text.partition("\n\n")[0] if given.brief else text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
