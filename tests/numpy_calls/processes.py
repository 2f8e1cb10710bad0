"""Replays in several processes, which a call may end."""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from .calls import Call
from .replaying import RAW, Outcome, replay

MOST_MEMORY = 6 << 30
"""Bytes of addresses that a replaying process may use."""

_CHUNK = 100


def replay_all(chosen: Sequence[Call], jobs: int, eagerly: bool) -> list[Outcome]:
    """The outcomes of calls, in their order; calls that end the process are `RAW`."""
    if jobs < 2 or len(chosen) < 2 * _CHUNK:
        return _replay_each(chosen, eagerly)
    chunks = [chosen[k : k + _CHUNK] for k in range(0, len(chosen), _CHUNK)]
    found: dict[int, list[Outcome]] = {}
    while len(found) < len(chunks):
        missing = [k for k in range(len(chunks)) if k not in found]
        _replay_chunks({k: chunks[k] for k in missing}, jobs, eagerly, found)
        suspects = [k for k in missing if k not in found][: jobs + 1]  # those that were running
        for k in suspects:
            found[k] = _replay_one_by_one(chunks[k], eagerly)
    return [outcome for k in range(len(chunks)) for outcome in found[k]]


def _replay_chunks(
    chunks: dict[int, Sequence[Call]], jobs: int, eagerly: bool, found: dict[int, list[Outcome]]
) -> None:
    """Add the outcomes of chunks to those found, until a process ends."""
    with _pool(jobs) as pool:
        running = {k: pool.submit(_replay_each, calls, eagerly) for k, calls in chunks.items()}
        for k, future in running.items():
            try:
                found[k] = future.result()
            except BrokenProcessPool:
                continue
            if k % 50 == 49:
                print(f"{(k + 1) * _CHUNK} calls", file=sys.stderr, flush=True)


def _replay_each(calls: Sequence[Call], eagerly: bool) -> list[Outcome]:
    return [*map(partial(replay, eagerly=eagerly), calls)]


def _replay_one_by_one(calls: Sequence[Call], eagerly: bool) -> list[Outcome]:
    """The outcomes of calls, one of which ends the process that runs it."""
    found: list[Outcome] = []
    while len(found) < len(calls):
        with _pool(1) as pool:
            for call in calls[len(found) :]:
                try:
                    found.append(pool.submit(replay, call, eagerly).result())
                except BrokenProcessPool:
                    found.append(Outcome(RAW, "it ends the process"))
                    break
    return found


def _pool(jobs: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(jobs, context, initializer=_limit_memory)


def _limit_memory() -> None:
    """Make calls that would fill the memory fail instead, in NumPy as in ours."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
