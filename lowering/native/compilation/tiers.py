"""The machine code of a module: quick for the first calls, then full.

What a plan's function calls is a global of it. Its first value runs quick code and puts the second
one there, which asks the thread in the background for full code. When that is ready, the thread
puts the full code there, which the next call finds. A call that runs keeps the code that it
began with.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from weakref import ref

from lowering.native.compilation.background import in_background
from lowering.native.compilation.code_files import keep, kept
from lowering.native.compilation.compiler import Level, Loaded, compile, load
from lowering.native.compilation.llvm_turns import first_in_llvm, in_llvm

Entry = Callable[[int], int]
"""The function of loaded code: from the address of a table to 0, or 1 if a call failed."""


class Tiers:
    """The code of a module; `function` makes the entry of loaded code.

    Args:
        text: a module that defines all that it calls.
        name: the function to call.
        first: the level to begin with. If full code is on disk, it begins with that.

    Raises:
        RuntimeError: LLVM does not accept the text.
    """

    def __init__(
        self, text: str, name: str, first: Level, function: Callable[[Loaded], Entry]
    ) -> None:
        self._text, self._name, self._function = text, name, function
        self._lock = Lock()
        self._exchange: Callable[[Entry], None] | None = None
        found = kept(text, "full")
        self.level: Level = "full" if found is not None else first
        with first_in_llvm():
            code = load(found or _made(text, self.level), name)
        entry = function(code)
        self.entry: Entry = entry if self.level == "full" else self._counted(entry, code)
        """What a plan's function calls at first."""

    def exchange_by(self, exchange: Callable[[Entry], None]) -> None:
        """From now on, `exchange` gives the plan's function another entry. Calls follow."""
        self._exchange = exchange

    def finish(self) -> None:
        """Make the full code now, if it is not there."""
        if self.level == "quick":
            with first_in_llvm():
                code = load(kept(self._text, "full") or _made(self._text, "full"), self._name)
            self._take(code)

    def _counted(self, quick: Entry, code: Loaded) -> Entry:
        """The entry that runs quick code, and asks for full code in the second call."""
        reference = ref(self)  # no circle, so that what is dropped is freed at once

        def second_call(table: int) -> int:
            tiers = reference()
            if tiers is not None:
                tiers._put(quick)
                in_background(lambda: _finish_in_background(reference, code))
            return quick(table)

        def first_call(table: int) -> int:
            tiers = reference()
            if tiers is not None:
                tiers._put(second_call)
            return quick(table)

        return first_call

    def _put(self, entry: Entry) -> None:
        """Exchange quick code, unless another thread has put full code there."""
        with self._lock:
            if self._exchange is not None and self.level == "quick":
                self._exchange(entry)

    def _take(self, code: Loaded) -> None:
        entry = self._function(code)
        with self._lock:
            assert self._exchange is not None, "the plan's function is there before it is called"
            self.level = "full"
            self._exchange(entry)


def _made(text: str, level: Level) -> bytes:
    code = kept(text, level)
    if code is None:
        code = compile(text, level)
        keep(text, level, code)
    return code


def _finish_in_background(reference: ref[Tiers], quick: Loaded) -> Loaded:
    """Make full code. The result is the quick one, which a call may still run."""
    tiers = reference()
    if tiers is not None and tiers.level == "quick":
        text, name = tiers._text, tiers._name
        del tiers  # it may be dropped while its code is compiled
        code = compile(text, "full", in_llvm)
        keep(text, "full", code)
        tiers = reference()
        if tiers is not None and tiers.level == "quick":
            with in_llvm():
                loaded = load(code, name)
            tiers._take(loaded)
    return quick
