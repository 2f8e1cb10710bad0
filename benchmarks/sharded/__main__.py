"""The command: each way in a process of its own, then a table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

BUFFERS = (
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUDNN,COLLECTIVES,CONDITIONAL,WHILE,"
    "CUSTOM_CALL,DYNAMIC_SLICE_FUSION --xla_gpu_graph_min_graph_size=1"
)
WAYS = ("one", "all", "jax", "jax-buffers")
OF_TORCH = ("torch", "torch-graphs", "torch-compile")
PEERS = {"JAX": "jax", "PyTorch": "torch"}
"""Other libraries, and what the names of their ways begin with."""
DIFFERENCE = 2e-2
"""Part of the largest element by which results may differ after all steps, in float32."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharded", description=__doc__)
    parser.add_argument("--devices", type=int, default=2)
    parser.add_argument("--device", choices=("cuda", "host"), default="cuda")
    parser.add_argument("--ways", default=",".join(WAYS), help="of " + ", ".join(WAYS + OF_TORCH))
    parser.add_argument("--rows", default="", help="the beginnings of their names, by commas")
    parser.add_argument("--shorter", type=int, default=1, help="divides the steps of all programs")
    parser.add_argument("--seconds", type=float, default=600, help="the most that a way may take")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser


def _run(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """The figures of a way, by the names of rows."""
    settings = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    flags = [BUFFERS] if way == "jax-buffers" else []
    if options.device == "host":
        settings["JAX_PLATFORMS"] = "cpu"
        flags = [f"--xla_force_host_platform_device_count={options.devices}"]
    settings["XLA_FLAGS"] = " ".join(flags)
    names = list(filter(None, options.rows.split(",")))
    told = [way, options.device, str(options.devices), str(options.shorter), *names]
    command = [sys.executable, "-m", "benchmarks.sharded.measuring", *told]
    rows: dict[str, Any] = {}
    with tempfile.TemporaryFile("w+") as problems:
        process = subprocess.Popen(
            command,
            env={**os.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=problems,
            text=True,
        )
        assert process.stdout is not None
        limit = Timer(options.seconds, process.kill)
        limit.start()
        try:
            for line in process.stdout:
                if line.startswith("{"):
                    row = json.loads(line)
                    rows[row["row"]] = row
                    print(f"{way}: {row['row']}: {_cell(row)}", flush=True)
            process.wait()
        finally:
            limit.cancel()
            process.kill()
        if process.wait():
            problems.seek(0)
            print(f"{way} ended early: {problems.read()[-600:]}", flush=True)
    return rows


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{found['us']:.1f}" if "us" in found else found["error"].partition(":")[0]


def _agree(found: list[dict[str, Any]]) -> str:
    parts = [np.array(each["part"]) for each in found if "part" in each]
    scale = max((np.abs(part).max() for part in parts), default=0)
    apart = max((np.abs(part - parts[0]).max() for part in parts), default=0)
    return "" if apart <= DIFFERENCE * scale + 1e-30 else f"results differ by {apart / scale:.1e}"


def _faster(us: dict[str, float], begins: str) -> str:
    """How many times as long the fastest way of a library takes as tracegraph on all devices."""
    times = [time for way, time in us.items() if way.startswith(begins)]
    return f"{min(times) / us['all']:.1f}" if times and "all" in us else "-"


def main() -> int:
    """Run all ways, and print the table; 1 if results differ."""
    options = _parser().parse_args()
    ways = options.ways.split(",")
    figures = {way: _run(way, options) for way in ways}
    names = list(dict.fromkeys(name for rows in figures.values() for name in rows))
    head = ("µs of a step", *ways, "one / all", *[f"{name} / all" for name in PEERS], "")
    table, differ = [head], False
    for name in names:
        found = {way: figures[way].get(name) for way in ways}
        us = {way: row["us"] for way, row in found.items() if row is not None and "us" in row}
        gain = f"{us['one'] / us['all']:.2f}" if {"one", "all"} <= us.keys() else "-"
        faster = [_faster(us, begins) for begins in PEERS.values()]
        note = _agree([row for row in found.values() if row is not None])
        differ |= bool(note)
        table.append((name, *(_cell(found[way]) for way in ways), gain, *faster, note))
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")
    return int(differ)


if __name__ == "__main__":
    raise SystemExit(main())
