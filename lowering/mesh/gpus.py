"""GPUs of a mesh: their graphs are launched together, and end together.

GPUs run by themselves, once the graph of each is launched. One thread launches all: several would
only wait for one another. What a launch waits for are launches before, which all devices have. If
the host drives loops, a launch ends with them, and each device has a thread.

A stop is agreed upon by all in their loops. If that cannot be, as one of them does not come any
more, all are abandoned, in the order that NCCL needs: stop words end loops, aborted communicators
end what waits in them, and an abort returns when no graph refers to its communicator any more.
Later calls make all anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Lock
from typing import Any

from lowering.cuda.calls.executable import CudaExecutable
from lowering.cuda.libraries.nccl import Communicators
from lowering.cuda.streams.launched_together import LaunchedTogether
from lowering.cuda.streams.timeline import Timeline
from lowering.mesh.building import GRACE_SECONDS, each_built
from lowering.mesh.launching import each_driven, launchers
from lowering.mesh.together import Arguments, Results
from lowering.plan.calls.rendezvous import place
from tracegraph.concurrency.hold_ups import alone_in_driver, exclude_launches, free_now
from tracegraph.concurrency.interrupts import interrupts_held_back
from tracegraph.concurrency.locks import held
from tracegraph.concurrency.weak_set import ConcurrentWeakSet
from tracegraph.errors import DeviceLostError, MeshMismatchError, PeerLostError, StoppedError
from tracegraph.sharding.mesh import Mesh
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.interfaces import Executable

ABANDON_SECONDS = 10.0
"""How long to wait for the ends of launches whose communicators are aborted, and for the aborts."""


class MeshOfGpus:
    """The GPUs of a mesh, with the communicators and the executables that refer to these."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh
        self._communicators: Communicators | None = None
        self._timelines: Sequence[Timeline] = ()
        self._executables: ConcurrentWeakSet[CudaExecutable] = ConcurrentWeakSet()
        exclude_launches()
        self._launchers = launchers(mesh.ordinals)
        self._abandoning = Lock()
        self.abandoned = False
        self._channel = None if mesh.processes == 1 else self.communicators.channel

    @property
    def communicators(self) -> Communicators:
        """The communicators, made where they are first needed."""
        if self._communicators is None:
            self._communicators = Communicators(self._mesh)
        return self._communicators

    def add(self, executables: Sequence[CudaExecutable]) -> None:
        """Note the executables of a Plan, one for each device, which refer to the communicators."""
        self._timelines = [executable.timeline for executable in executables]
        for executable in executables:
            self._executables.add(executable)

    # Building

    def built(self, make: Callable[[int], Executable], count: int) -> list[Any]:
        """What `make` gives for each device of this process, while none of them is launched.

        Raises:
            BaseException: as `each_built`. If others wait for what has failed, all are abandoned.
        """
        with self.to_itself():
            return each_built(make, count, self._look, self._meets, self._end_build)

    def _look(self) -> None:
        """Look whether all processes are there, and come in time.

        Raises:
            PeerLostError: one of them is not, or does not.
        """
        if self._communicators is not None:
            self._communicators.check(None)
            self._communicators.check_meetings()

    def _meets(self) -> bool:
        """Whether a device waits for others inside of the library, for longer than is usual."""
        made = self._communicators
        return made is not None and made.longest_meeting() > GRACE_SECONDS

    def _end_build(self, failure: BaseException) -> None:
        """Devices of other processes may wait for those of a build that has failed here."""
        made = self._communicators
        if self._channel is not None or (made is not None and made.meeting):
            self.abandon(failure)

    # Launching

    def launched(
        self,
        devices: Sequence[Executable],
        mesh: Mesh,
        given: Arguments,
        donated: Sequence[Donated | None],
        *,
        program: str,
        driven: bool,
    ) -> Results:
        """Launch the graph of each device. Waits, if it has to, are before the first launch.

        `program` is the same in all processes of the mesh. With `driven`, the host drives loops in
        the launch, which may be interrupted. Another thread launches on these devices before or
        after all of it.

        Raises:
            BaseException: why a device was not launched. If others were, these are abandoned.
            StoppedError: in another process it was not launched.
        """
        with self.to_itself():
            number = None if self._channel is None else self._channel.new_launch(program)
            launch = _Launch(LaunchedTogether(self, number), mesh, devices, given, donated)
            try:
                self._require_peers(number)
                for timeline in self._timelines:
                    timeline.driver.activate()
                    timeline.make_room()
            except BaseException as failure:
                self._end_launch(launch, failure)
                raise
            with alone_in_driver():
                try:
                    return launch.run(driven)
                except BaseException as failure:
                    self._end_launch(launch, failure)
                    raise

    def to_itself(self) -> AbstractContextManager[bool]:
        """Wait until no other thread launches on the GPUs; within the block, none does."""
        return held(self._launchers)

    def _end_launch(self, launch: _Launch, failure: BaseException) -> None:
        """End what was launched, as some devices were not.

        Raises:
            StoppedError: another process has stopped the launch.
        """
        number, over, count = launch.together.number, len(launch.over), len(launch.given)
        if over == count:
            return  # an interrupt that has waited
        if number is not None:  # other processes have launched theirs, or will
            told = self.told(number)
            if told is None:
                self.tell([number], type(failure).__name__)
            self.abandon(failure)
            if told is not None:
                raise StoppedError(told) from failure
        elif over or launch.together.failed:
            self.abandon(failure)
            failure.add_note(
                f"{over} of the {count} devices of {launch.mesh} had been launched, and were "
                "ended; results of its programs that were not computed yet are lost"
            )

    def _require_peers(self, number: int | None) -> None:
        """Look whether another process has ended, is lost or has abandoned its devices.

        Raises:
            PeerLostError: one is or has, and those of this process are abandoned now.
            MeshMismatchError: the same, for one that has launched something else.
        """
        if self._communicators is None:
            return
        try:
            self._communicators.check(number)
        except (PeerLostError, MeshMismatchError) as reason:
            self.abandon(reason)
            raise

    def settle(self) -> None:
        """Wait for all that was launched on the devices of this process.

        Raises:
            TimeLimitError: as `Timeline.settle`.
        """
        for timeline in self._timelines:
            timeline.settle()

    # Ends

    def watch(self, number: int | None) -> None:
        """Look whether all devices are there for the launch of a number.

        Raises:
            PeerLostError: one is not.
        """
        if self._communicators is not None:
            self._communicators.watch(number)

    def compare(self) -> None:
        """Let other processes see what this one has launched."""
        if self._channel is not None:
            self._channel.compare()

    def behind(self, number: int) -> Sequence[int]:
        """The processes that had not launched this number when they were last compared."""
        return [] if self._channel is None else self._channel.behind(number)

    def tell(self, numbers: Sequence[int], name: str) -> None:
        """Let all other processes know, before it is done, that an exception of this name stops the
        launches of these numbers.
        """
        if self._channel is not None:
            self._channel.stop(numbers, name)

    def told(self, number: int) -> str | None:
        """The name of the exception that has stopped a launch in another process, if one has."""
        return None if self._channel is None else self._channel.stopped.get(number)

    def abandon(self, reason: BaseException) -> None:
        """End all launches, whatever they wait for; executables and communicators are gone then.

        Other processes are told, and do the same.
        """
        with self._abandoning:
            if self.abandoned:
                return
            self.abandoned = True
            if self._communicators is not None:
                self._communicators.leave()
            stopped = []
            for timeline in self._timelines:
                with suppress(DeviceLostError, RuntimeError):  # there is nothing left to end
                    stopped.append((timeline, *timeline.end_at_once(reason)))
            aborts = [] if self._communicators is None else self._communicators.abort()
            deadline = time.monotonic() + ABANDON_SECONDS
            for timeline, launches, ended in stopped:
                with suppress(DeviceLostError):
                    while ended is not None and not ended() and time.monotonic() < deadline:
                        time.sleep(1e-3)
                for launch in launches:
                    if launch.effects is not None:
                        launch.effects.ignore_failure()
                timeline.finish_stop(launches)
            if time.monotonic() < deadline:
                self._close_idle()
                free_now()
            for abort in aborts:
                abort.join(max(0.0, deadline - time.monotonic()))

    def _close_idle(self) -> None:
        """Close the executables that no call uses. One that waits in a call may be why all are
        abandoned; its graph goes with it.
        """
        for executable in list(self._executables):
            with suppress(DeviceLostError):
                executable.close_idle()


class _Launch:
    """A launch of all devices; `over` are those that are launched."""

    def __init__(
        self,
        together: LaunchedTogether,
        mesh: Mesh,
        devices: Sequence[Executable],
        given: Arguments,
        donated: Sequence[Donated | None],
    ) -> None:
        self.together, self.mesh, self.given = together, mesh, given
        self.over: list[int] = []
        self._devices, self._donated = devices, donated

    def run(self, driven: bool) -> Results:
        """The results of each device."""
        if driven and len(self.given) > 1:
            results, failure = each_driven(self._one, len(self.given), self.together)
            if failure is not None:
                raise failure
            return results
        with nullcontext() if driven else interrupts_held_back():
            return [self._one(device) for device in range(len(self.given))]

    def _one(self, device: int) -> Sequence[Any]:
        place.together = self.together
        try:
            results = self._devices[device](self.given[device], self._donated[device])
        finally:
            place.together = None
        self.over.append(device)
        return results
