"""The machine code of modules: quick for the first calls, then full.

What a plan's function calls is a global of it. Its first value runs quick code and puts the second
one there, which asks the thread in the background for full code. When that is ready, the thread
puts the full code there, which the next call finds. A call that runs keeps the code that it
began with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import Lock
from weakref import ref

from lowering.native.compilation.background import in_background
from lowering.native.compilation.code_files import keep, kept
from lowering.native.compilation.compiler import Level, Loaded, Phase, compile, load
from lowering.native.compilation.llvm_turns import first_in_llvm, in_llvm
from lowering.native.library.load import ModuleText

Entry = Callable[[int], int]
"""The function of loaded code: from the address of a table to 0, or 1 if a call failed."""


class Tiers:
    """The code of modules; `function` makes the entry of loaded code.

    Args:
        modules: their texts.
        name: the function to call.
        first: the level to begin with. If full code is on disk, it begins with that.

    Raises:
        RuntimeError: LLVM does not accept the text.
    """

    def __init__(
        self,
        modules: Sequence[ModuleText],
        name: str,
        first: Level,
        function: Callable[[Loaded], Entry],
    ) -> None:
        self._modules, self._name, self._function = modules, name, function
        self._lock = Lock()
        self._exchange: Callable[[Entry], None] | None = None
        found = self._found("full")
        self.level: Level = first if None in found else "full"
        code = self._made(self.level, found if self.level == "full" else self._found(first))
        entry = function(code)
        self.entry: Entry = entry if self.level == "full" else self._counted(entry, code)
        """What a plan's function calls at first."""

    def exchange_by(self, exchange: Callable[[Entry], None]) -> None:
        """From now on, `exchange` gives the plan's function another entry. Calls follow."""
        self._exchange = exchange

    def finish(self) -> None:
        """Make the full code now, if it is not there."""
        if self.level == "quick":
            self._take(self._made("full", self._found("full")))

    def _found(self, level: Level) -> list[bytes | None]:
        """The object files of a level that are on disk."""
        return [kept(module, level) for module in self._modules]

    def _made(self, level: Level, found: Sequence[bytes | None]) -> Loaded:
        """The code of a level, while a caller waits; only what was not `found` is compiled."""
        with first_in_llvm():
            pairs = zip(self._modules, found, strict=True)
            codes = [code or _compiled(module, level) for module, code in pairs]
            return load(codes, self._name)

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


def _compiled(module: ModuleText, level: Level, phase: Phase = nullcontext) -> bytes:
    """The code of a module, which is kept."""
    code = compile(module.joined(), level, phase)
    keep(module, level, code)
    return code


def _finish_in_background(reference: ref[Tiers], quick: Loaded) -> Loaded:
    """Make full code. The result is the quick one, which a call may still run."""
    with in_llvm():  # who has the last reference frees code, which must not be so at a fork
        tiers = reference()
        is_wanted = tiers is not None and tiers.level == "quick"
        modules: Sequence[ModuleText] = ()
        name = ""
        if tiers is not None and is_wanted:
            modules, name = tiers._modules, tiers._name
        del tiers  # it may be dropped while its code is compiled
    codes = []
    for module in modules:
        codes.append(kept(module, "full") or _compiled(module, "full", in_llvm))
        if reference() is None:
            return quick
    if codes:
        with in_llvm():
            tiers = reference()
            if tiers is not None and tiers.level == "quick":
                tiers._take(load(codes, name))
            del tiers
    return quick
