"""Running: the calls of a Plan's function, one at a time, with what each does before and after."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextvars import Context
from threading import Lock, get_ident
from typing import Any

import numpy as np

from lowering.host.arena import Array
from lowering.host.plan_function import Body, Copied
from lowering.host.result_pool import is_all_of_memory
from lowering.locks import holding
from lowering.plan.nodes import WhileNode, walk
from lowering.plan.plan import Plan
from tracegraph import limits
from tracegraph.errors import ClosedError
from tracegraph.staging.donated import Donated
from tracegraph.staging.interfaces import Executable

Call = Callable[..., Sequence[Array]]
"""Takes the arguments, and what is donated if anything; returns the results."""


class Running:
    """Runs `body`, the function of a Plan, in the context `quiet`.

    After each call, the functions in `give_back` are called. `another` makes an executable with
    memory of its own, for calls by a function that a running call tells of its progress.
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
        self._written = tuple(plan.aliases.values())  # inputs that outputs are written over
        self._limited = any(isinstance(node, WhileNode) for node in walk(plan.graph))
        self._tells = bool(plan.monitors)
        self._checks = bool(plan.failures)
        self._caller: int | None = None  # the thread of a call that tells its user of progress

    def quickest(self) -> Call:
        """What runs it: `run`, or for most functions one that takes 0.2 µs less."""
        special = self._written or self._limited or self._tells or self._checks or self._give_back
        return self.run if special else self._plain()

    def _plain(self) -> Call:
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
            if self._tells:
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
        """Whether this is called by a function that a running call tells of its progress."""
        return self._tells and self._caller == get_ident()

    def _run_inside(self, arguments: Sequence[Any], donated: Donated | None) -> Sequence[Array]:
        """Run in other memory."""
        if self.closed:
            raise ClosedError(self._name)
        if self.inner is None:
            self.inner = self._another()
        results = self.inner.launch(arguments, donated)
        self.launches += 1
        return results

    def _writable(self, arguments: Sequence[Any], donated: Donated | None) -> list[Array]:
        """The arguments, those that are written over as copies unless their own memory may be."""
        found, spent = list(arguments), False
        for number in self._written:
            argument = arguments[number]
            if donated is not None and number in donated.owned and _is_plain(argument):
                spent = True
            else:
                found[number] = self._copied.contiguous(argument, self._dtypes[number])
        for number in self._written:
            found[number].flags.writeable = True
        if donated is not None:
            donated.spent = spent
        return found

    def close(self) -> None:
        """Let go of the function; whoever calls holds the lock, or is called by the function."""
        name = self._name

        def refuse(arguments: Sequence[Any], check_time: Callable[[], None] | None) -> Any:
            raise ClosedError(name)

        self.closed, self.body, self.inner, self._give_back = True, refuse, None, ()


def _is_plain(argument: Any) -> bool:
    """Whether it is an array of memory of its own, in row-major order."""
    if type(argument) is not np.ndarray:
        return False
    flags = argument.flags
    return (flags.owndata or is_all_of_memory(argument)) and flags.c_contiguous and flags.aligned


def _time_check() -> Callable[[], None] | None:
    """What loops call at every step: the caller's time limit, which the plan does not see."""
    deadline = limits.deadline()
    if deadline is None:
        return None
    exceeded = limits.exceeded()

    def check() -> None:
        if time.monotonic() >= deadline:
            raise exceeded

    return check
