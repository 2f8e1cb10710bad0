"""The order that a recorded device gives to what its streams read and write."""

from collections import defaultdict
from dataclasses import dataclass

from lowering.testing.recorded_objects import RecordedEvent
from lowering.testing.recording_driver import RecordingDriver

LAG = 40
"""Calls of the driver after which an event passes."""


@dataclass(frozen=True, slots=True, eq=False)
class LateEvent(RecordedEvent):
    """An event that passes later, at which the host knows that what is before it is over."""

    def __call__(self):
        calls = self.driver.calls
        passed = len(calls) > self.position + LAG
        if passed:
            self.driver.log_passed(self.position)
        return passed


class LateDriver(RecordingDriver):
    """Notes which memory each launch reads and writes."""

    def __init__(self):
        super().__init__()
        self.executables, self.exported = [], []
        self.accesses = {}

    def log_passed(self, position):
        self._log("passed", position)

    def record(self):
        return LateEvent(self._log("record"), self, False, ())

    def _launch(self, executable):
        with self._logging:
            position = len(self.calls)
            super()._launch(executable)
            self.accesses[position] = self._of_exported(executable) or self._of_call(executable)

    def _of_exported(self, executable):
        """What a launch of an exported graph reads and writes, its scratch included."""
        for given in self.exported:
            if given.definition is executable.graph:
                operands = given.given.operands
                reads = {argument.pointer for argument in operands.arguments}
                owned = {m.pointer for m in given.definition.tied._owners if hasattr(m, "pointer")}
                written = {result.pointer for result in operands.results}
                return reads, written | owned - reads
        return None

    def _of_call(self, executable):
        owner, plan = next(
            (graph, made.plan)
            for made in self.executables
            for graph in list(made._graphs.values())
            if graph.replicas.current.executable is executable
        )
        count = len(plan.inputs)
        bound = owner.replicas.current.bound
        reads, writes = bound[:count], bound[count:]
        writes = writes + [reads[number] for number in plan.aliases.values()]
        writes += [memory.pointer for memory in owner.memory]
        if plan.prints:
            writes.append(owner._device.timeline.prints.memory.pointer)
        return set(reads), set(writes)

    def copy_to_host(self, target, pointer):
        with self._logging:
            self.accesses[len(self.calls)] = ({pointer}, set())
            super().copy_to_host(target, pointer)

    def copy(self, target, source, nbytes):
        with self._logging:
            self.accesses[len(self.calls)] = ({source}, {target})
            super().copy(target, source, nbytes)


def unordered(driver):
    """The first two launches or copies that use one memory, one of them writing, in no order."""
    clocks, host, recorded = defaultdict(dict), {}, {}
    used = defaultdict(list)
    for position, call in enumerate(driver.calls):
        clock = clocks[call.stream]
        merge(clock, host)
        clock[call.stream] = position
        match call.operation:
            case "record":
                recorded[position] = dict(clock)
            case "wait":
                merge(clock, recorded[call.detail[0]])
            case "synchronize":
                merge(host, clock)
            case "passed":
                merge(host, recorded[call.detail[0]])
            case "launch" | "copy" | "copy_to_host":
                reads, writes = driver.accesses[position]
                for memory in reads | writes:
                    for before, stream, wrote in used[memory]:
                        if (wrote or memory in writes) and clock.get(stream, -1) < before:
                            return before, position, memory
                    if memory in writes:
                        used[memory].clear()  # what follows it follows them, too
                    used[memory].append((position, call.stream, memory in writes))
                if call.operation == "copy_to_host":
                    merge(host, clock)  # it is waited for
    return None


def merge(clock, other):
    for stream, position in other.items():
        clock[stream] = max(clock.get(stream, -1), position)
