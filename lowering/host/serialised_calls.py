"""Serialised calls of a plan's function, with the work before and after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import Context
from threading import Lock, get_ident
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.code import Body, Copied
from lowering.host.result_pool import is_all_of_memory
from lowering.plan.calls.rendezvous import place
from lowering.plan.conditional_nodes import WhileNode
from lowering.plan.nodes import walk
from lowering.plan.plan import Plan
from tracegraph import limits
from tracegraph.concurrency.locks import holding
from tracegraph.errors import ClosedError
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.interfaces import Executable

PlanCall = Callable[..., Sequence[Array]]
"""Takes the arguments, and what is donated if anything; returns the results."""


class Running:
    """Runs `body`, the function of a plan, in the context `quiet`, one call at a time.

    After each call it calls the functions in `give_back`. A callback of a running call may call
    the function again: `another` makes an executable with its own memory for that.
    """

    def __init__(
        self,
        plan: Plan,
        body: Body,
        quiet: Context,
        copied: Copied,
        give_back: Sequence[Callable[[], None]],
        another: Callable[[], Executable],
    ) -> None:
        self.lock = Lock()
        self.closed = False
        self.launches = 0
        self.inner: Executable | None = None
        self.body = body
        self._holding = holding(self.lock)
        self._name, self._quiet, self._copied = plan.name, quiet, copied
        self._give_back, self._another = give_back, another
        self._dtypes = [t.dtype for t in plan.in_types]
        self._written = tuple(plan.aliases.values())  # inputs whose memory outputs take
        self._limited = any(isinstance(node, WhileNode) for node in walk(plan.graph))
        self._calls_users = bool(plan.monitors or plan.callbacks)
        self._checks = bool(plan.failures)
        self._caller: int | None = None  # the thread of a call that calls users' functions

    def quickest(self) -> PlanCall:
        """`run`, or for most functions a closure that takes 0.2 µs less."""
        special = (
            self._written or self._limited or self._calls_users or self._checks or self._give_back
        )
        return self.run if special else self._plain()

    def _plain(self) -> PlanCall:
        held, run = self._holding, self._quiet.run

        def launch(arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Array]:
            with held:
                results: Sequence[Array] = run(self.body, arguments, None)
                self.launches += 1
                return results

        return launch

    def run(self, arguments: Sequence[Any], donated: Donated | None = None) -> Sequence[Array]:
        """Run once. Raises what `HostExecutable.launch` does."""
        if self.is_caller:
            return self._run_inside(arguments, donated)
        check_time = _time_check() if self._limited else None
        with self._holding:
            if self.closed:
                raise ClosedError(self._name)
            self.launches += 1
            if self._written:
                arguments = self._writable(arguments, donated)
            if self._calls_users:
                self._caller = get_ident()
            try:
                results: Sequence[Array] = self._quiet.run(self.body, arguments, check_time)
            finally:
                self._caller = None
                for give_back in self._give_back:
                    give_back()
            return results

    @property
    def is_caller(self) -> bool:
        """Whether a callback of a running call calls this."""
        return self._calls_users and self._caller == get_ident()

    def _run_inside(self, arguments: Sequence[Any], donated: Donated | None) -> Sequence[Array]:
        """Run in the memory of another executable."""
        if self.closed:
            raise ClosedError(self._name)
        if self.inner is None:
            self.inner = self._another()
        results = self.inner.launch(arguments, donated)
        self.launches += 1
        return results

    def _writable(self, arguments: Sequence[Any], donated: Donated | None) -> list[Array]:
        """The arguments; one that is overwritten is a copy, unless it is donated."""
        found, spent = list(arguments), False
        for number in self._written:
            argument = arguments[number]
            if donated is not None and number in donated.owned and _is_plain(argument):
                spent = True
            else:
                found[number] = self._copied.contiguous(number, argument, self._dtypes[number])
        for number in self._written:
            found[number].flags.writeable = True
        if donated is not None:
            donated.spent = spent
        return found

    def close(self) -> None:
        """Drop the function. The caller holds the lock, or runs inside the function."""
        name = self._name

        def refuse(arguments: Sequence[Any], check_time: Callable[[], None] | None) -> Any:
            raise ClosedError(name)

        self.closed, self.body, self.inner, self._give_back = True, refuse, None, ()


def _is_plain(argument: Any) -> bool:
    """Whether it is a row-major array that owns its memory."""
    if type(argument) is not np.ndarray:
        return False
    flags = argument.flags
    return (flags.owndata or is_all_of_memory(argument)) and flags.c_contiguous and flags.aligned


def _time_check() -> Callable[[], None] | None:
    """The function that loops call at every step: it raises after the caller's time limit, and on a
    device of a mesh when another one has failed.
    """
    deadline, rendezvous = limits.deadline(), place.rendezvous
    if deadline is None:
        return None if rendezvous is None else rendezvous.check
    exceeded = limits.exceeded()

    def check() -> None:
        if time.monotonic() >= deadline:
            raise exceeded
        if rendezvous is not None:
            rendezvous.check()

    return check
