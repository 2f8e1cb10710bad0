"""The ways of running a traced function. All must give what the eager run gives.

Beside the plug in staging, only this file and `races` know lowering: ways differ in how a program
is lowered, and in what a device is said to lack.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

import numpy as np

from lowering.host.executable import HostExecutable
from lowering.legalization.legalize import legalize
from lowering.lower import lower
from lowering.plan.plan import Plan
from lowering.plan.target import features, overrides
from lowering.plan.target.features import Features
from lowering.plan.target.overrides import Choices
from lowering.plan.target.scope import Scope
from lowering.scheduling.branch_schedules import BRANCH_SCHEDULES
from lowering.scheduling.loop_schedules import LOOP_SCHEDULES
from tracegraph.errors import value_text
from tracegraph.generated.dataclass import dataclass
from tracegraph.ir import interpret
from tracegraph.ir.program import Program
from tracegraph.ir.verify import verify
from tracegraph.staging.compiler import default_device
from tracegraph.streams import Stream
from tracegraph.streams import stream as on_stream
from tracegraph.testing.races import assert_no_races
from tracegraph.testing.trials import Trial

Run = Callable[[], Any]
"""Runs once, and returns the function's result."""

LOOPS = ("while_loop", "scan")
BRANCHES = ("cond", "switch")


def always(_: Trial) -> bool:
    """Whether a way is possible that always is."""
    return True


@dataclass(frozen=True, slots=True)
class Way:
    """A way of running a trial, maybe several times; all runs on the host must give the same bits.

    `about` completes the sentence "it runs …". `setting` is the environment variable that makes a
    program run this way, if there is one.
    """

    name: str
    about: str
    runs: Callable[[Trial], Sequence[Run]]
    possible: Callable[[Trial], bool] = always
    setting: str = ""
    on_gpu: bool = False


@dataclass(frozen=True, slots=True)
class Lowering:
    """How the loops and branches of a program are made nodes, and what the device has."""

    about: str
    chosen: Choices
    ops: tuple[str, ...]
    """The program must have one of these ops; else it is the same Plan as without a choice."""
    missing: Mapping[str, bool] | None = None

    @property
    def setting(self) -> str:
        """The environment variable that makes a program run this way, if there is one."""
        return features.setting(self.missing) if self.missing else self.chosen.setting

    @contextmanager
    def on(self) -> Iterator[None]:
        """Within the context, programs are lowered this way."""
        with using(self.chosen), features.override(**(self.missing or {})):
            yield

    def plan(self, trial: Trial) -> Plan:
        """The Plan as for a GPU."""
        with using(self.chosen):
            plan = lower(trial.optimized, "cuda", trial.donated)
        return legalize(plan, Features(**self.missing)) if self.missing else plan


CONDITIONAL = Choices(branches=BRANCH_SCHEDULES[0].name, loops=LOOP_SCHEDULES[0].name)
"""A node for each loop and branch."""


def _lowerings() -> Iterator[tuple[str, Lowering]]:
    about = "with a conditional node for each loop and branch"
    yield "conditional", Lowering(about, CONDITIONAL, (*LOOPS, *BRANCHES))
    for branches in BRANCH_SCHEDULES[1:]:
        chosen = replace(CONDITIONAL, branches=branches.name)
        yield branches.name, Lowering(branches.about, chosen, BRANCHES)
    for loops in LOOP_SCHEDULES[1:]:
        chosen = replace(CONDITIONAL, loops=loops.name, unroll=loops.tried_steps)
        yield loops.name, Lowering(loops.about, chosen, LOOPS)
    yield (
        "both",
        Lowering(
            "with loops that make 3 steps an iteration, and all branches launched",
            Choices(branches="predicated", loops="unrolled", unroll=3),
            LOOPS,
        ),
    )
    for name, extents, scope in (
        ("cluster", "a cluster of 4 blocks", Scope(4, 64, clustered=True)),
        ("grid", "8 blocks", Scope(8, 32)),
    ):
        chosen = replace(CONDITIONAL, loops="one_kernel", scope=scope)
        yield name, Lowering(f"with each loop in one kernel, of {extents}", chosen, LOOPS)
    yield (
        "no_body_updates",
        Lowering(
            "as on a device that cannot update nodes inside loops and branches",
            CONDITIONAL,
            (*LOOPS, *BRANCHES),
            {"body_updates": False},
        ),
    )
    yield (
        "host_driven",
        Lowering(
            "with loops and branches driven by the host",
            CONDITIONAL,
            (*LOOPS, *BRANCHES),
            {"conditional_nodes": False},
        ),
    )


LOWERINGS: Mapping[str, Lowering] = dict(_lowerings())
"""What a Plan for a GPU may look like, apart from what the cost model chooses."""

using = overrides.override
"""Within the context, loops and branches run in the ways chosen."""


def _interpreted(choose: Callable[[Trial], Program], trial: Trial) -> Sequence[Run]:
    program = verify(choose(trial))

    def run() -> Any:
        return trial.result(interpret.run(program, *map(np.asarray, trial.leaves())))

    return [run]


def on_host(trial: Trial, plan: Plan, orders: Sequence[Random | None]) -> Sequence[Run]:
    """Runs of a Plan on the host, in memory that nobody has written: one for each order of nodes.

    None is the order of the Plan.

    Raises:
        AssertionError: nodes race that the edges of the Plan do not order.
    """
    assert_no_races(plan)

    def run(executable: HostExecutable) -> Any:
        return trial.result(executable(trial.leaves()))

    return [partial(run, HostExecutable(plan, poison=True, order=order)) for order in orders]


def _compiled(trial: Trial) -> Sequence[Run]:
    compiled = trial.jitted("host")
    return [lambda: trial.call(compiled)] * 2


def _poisoned(trial: Trial) -> Sequence[Run]:
    return [*on_host(trial, trial.lowered.plan, [None])] * 2


def _any_order(trial: Trial) -> Sequence[Run]:
    return on_host(trial, trial.lowered.plan, [None, Random(0), Random(1)])


def _unfused(trial: Trial) -> Sequence[Run]:
    plan = lower(trial.optimized, donated=trial.donated, fusion=False)
    return on_host(trial, plan, [None])


def _planned_for_cuda(trial: Trial) -> Sequence[Run]:
    return on_host(trial, lower(trial.optimized, "cuda", trial.donated), [None, Random(0)])


def _lowered(lowering: Lowering, trial: Trial) -> Sequence[Run]:
    return on_host(trial, lowering.plan(trial), [None, Random(0)])


def _on_gpu(lowering: Lowering | None, trial: Trial) -> Sequence[Run]:
    jitted, stream = trial.jitted("cuda"), Stream("cuda")

    def run() -> Any:
        with lowering.on() if lowering else nullcontext(), on_stream(stream):
            result = trial.call(jitted)
        stream.synchronize()  # a function may print, or fail, and return nothing
        return result

    return [run]


def _has_gpu(_: Trial) -> bool:
    return default_device() != "host"


def _has(lowering: Lowering, trial: Trial) -> bool:
    return trial.has(*lowering.ops)


def _has_on_gpu(lowering: Lowering, trial: Trial) -> bool:
    return _has_gpu(trial) and _has(lowering, trial)


def _ways() -> Iterator[Way]:
    yield Way(
        "interpreted",
        "as traced, op by op",
        partial(_interpreted, lambda trial: trial.traced.program),
    )
    yield Way(
        "optimized",
        "op by op, after the passes",
        partial(_interpreted, lambda trial: trial.optimized),
    )
    yield Way("host", "jitted for the host, twice", _compiled)
    yield Way("poisoned", "on the host in scratch filled with noise", _poisoned)
    yield Way("any_order", "on the host with independent nodes in random orders", _any_order)
    yield Way("unfused", "on the host with a kernel for each operation", _unfused)
    yield Way("planned_for_cuda", "on the host by the plan of a GPU", _planned_for_cuda)
    for name, way in LOWERINGS.items():
        about = f"on the host by the plan of a GPU {way.about}"
        yield Way(name, about, partial(_lowered, way), partial(_has, way), way.setting)
    yield Way("cuda", "on the GPU", partial(_on_gpu, None), _has_gpu, on_gpu=True)
    for name, way in LOWERINGS.items():
        runs, possible = partial(_on_gpu, way), partial(_has_on_gpu, way)
        yield Way(f"cuda_{name}", f"on the GPU {way.about}", runs, possible, way.setting, True)


WAYS: Mapping[str, Way] = {way.name: way for way in _ways()}
"""Every way by its name, those that stop closest to the user's code first."""


def own_way(name: str, run: Callable[..., Any]) -> Way:
    """A way of the caller's, which runs `run(function, *args, **kwargs)`."""

    def runs(trial: Trial) -> Sequence[Run]:
        return [lambda: run(trial.function, *trial.args, **trial.kwargs)]

    return Way(name, "in a way of the test's own", runs)


def chosen_ways(ways: Any) -> Sequence[Way]:
    """The ways of a name, names, or a mapping from names to functions; for ``"all"``, every one.

    Raises:
        TypeError: `ways` is not a name, sequence of names or mapping from names to functions.
        ValueError: there is no such way, or none is named.
    """
    if isinstance(ways, Mapping):
        for name, run in ways.items():
            if not callable(run):
                raise TypeError(f"the way {name!r} is no function, but {value_text(run)}")
        found = [own_way(name, run) for name, run in ways.items()]
    elif ways == "all":
        found = list(WAYS.values())
    else:
        if not isinstance(ways, Iterable):
            kind = type(ways).__qualname__
            raise TypeError(f"ways is a name, a sequence of names or a mapping, not {kind}")
        names = [ways] if isinstance(ways, str) else list(ways)
        unknown = [name for name in names if name not in WAYS]
        if unknown:
            raise ValueError(
                f"ways has {', '.join(map(repr, unknown))}; it is 'all', or some of "
                f"{', '.join(WAYS)}"
            )
        found = [WAYS[name] for name in names]
    if not found:
        raise ValueError(f"ways names no way; it is 'all', or some of {', '.join(WAYS)}")
    return found
