"""One way to run the programs, in its process: ``python -m benchmarks.sharded.measuring WAY …``.

It prints a line of JSON for each row: microseconds of a step, seconds of the first call, and a part
of the result, by which the ways are compared.
"""

from __future__ import annotations

import faulthandler
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .programs import ROWS, ShardedRow
from .vocabularies import VOCABULARIES, Vocabulary

REPEATS = 5
SHOWN = 4
"""Elements of the result that are compared."""


def _measured(vocabulary: Vocabulary, row: ShardedRow, steps: int) -> dict[str, Any]:
    fun = vocabulary.built(row.program(vocabulary, steps), row.divided, row.same)
    given = row.inputs(np.random.default_rng(0))
    placed = [vocabulary.placed(x, divided) for x, divided in zip(given, row.divided, strict=True)]
    start = time.perf_counter()
    found = fun(*placed)
    vocabulary.wait(found)
    first, times = time.perf_counter() - start, []
    for _ in range(REPEATS):
        start = time.perf_counter()
        vocabulary.wait(fun(*placed))
        times.append(time.perf_counter() - start)
    leaf = vocabulary.whole(found[0] if isinstance(found, tuple) else found, row.same)
    part = leaf.reshape(-1)[:: max(leaf.size // SHOWN, 1)][:SHOWN]
    step = 1e6 * statistics.median(times) / steps
    return {"us": step, "first": first, "part": [float(x) for x in part]}


def _measure(
    shown: bool,
    make: Callable[[str, int], Vocabulary],
    way: str,
    device: str,
    count: int,
    *rest: str,
) -> None:
    """Measure rows, and print them if they are `shown`."""
    shorter, *names = rest
    faulthandler.dump_traceback_later(600, exit=True)
    vocabulary = make(device, count)
    for row in ROWS:
        if row.apart and vocabulary.count == 1:
            continue
        if names and not any(row.name.startswith(name) for name in names):
            continue
        try:
            found = _measured(vocabulary, row, max(row.steps // int(shorter), 2))
        except Exception as error:  # each library has classes of its own; the other rows go on
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
        if shown:
            print(json.dumps({"way": way, "row": row.name, **found}), flush=True)
    sys.stdout.flush()


def main() -> None:
    """Measure the rows that are named, or all."""
    way, device, count, *rest = sys.argv[1:]
    if way.startswith("torch"):
        from .in_torch import in_ranks, torch_on_all

        make = partial(torch_on_all, way=way)
        in_ranks(device, int(count), _measure, make, way, device, int(count), *rest)
        return
    _measure(True, VOCABULARIES[way], way, device, int(count), *rest)
    os._exit(0)  # libraries that have waited for a lost device would wait for it again


if __name__ == "__main__":
    main()
