"""The stages of compilation as values: Traced, Lowered, Compiled.

    jitted.trace(*args) -> Traced -> .lower() -> Lowered -> .compile() -> Compiled -> (*args)

Each can be printed and inspected; only the last call needs the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from tracegraph import errors, tree
from tracegraph.arrays.array import Array
from tracegraph.errors.tracebacks import entry_point, hide_frames
from tracegraph.generated.dataclass import dataclass
from tracegraph.inspection.drawable import Drawable
from tracegraph.ir.argument_ranges import ArgumentRange, argument_ranges
from tracegraph.ir.program import Program
from tracegraph.ir.record import replace as replace_record
from tracegraph.ir.types import ArrayType
from tracegraph.ir.varying import EQUAL
from tracegraph.sharding.sharding import Sharding
from tracegraph.staging import gc_pause
from tracegraph.staging.calls.donated import Donated
from tracegraph.staging.calls.ranges import ranged
from tracegraph.staging.calls.results import Assemble, Results, assembler, results_of
from tracegraph.staging.calls.signature import CallKey, FlatCall, Signature
from tracegraph.staging.exported import ExportedGraph
from tracegraph.staging.fallbacks import warn_of_fallbacks
from tracegraph.staging.graph_view import GraphView
from tracegraph.staging.interfaces import Compiler, Executable
from tracegraph.staging.scratch import Scratch
from tracegraph.tracing.selected import Selected
from tracegraph.tracing.tracer import Tracer

if TYPE_CHECKING:
    from tracegraph.inspection.diagram import Diagram
    from tracegraph.inspection.tables import Report


@dataclass(frozen=True, slots=True, eq=False)
class Traced(Drawable):
    """A function traced for some argument types."""

    program: Program
    """What was traced, before any pass."""
    key: CallKey = field(repr=False)
    out_structure: tree.Structure = field(repr=False)
    signature: Signature = field(repr=False)
    device: str
    scratch: Scratch
    compiler: Callable[[], Compiler] = field(repr=False)
    sharding: Sharding | None = None
    """How arguments and results are divided, if it is a program of each device of a mesh."""

    @property
    def optimized(self) -> Program:
        """The program after the passes: what is lowered."""
        return self._prepared()[0]

    def _prepared(self) -> tuple[Program, Sharding | None]:
        from tracegraph.passes import (  # importing them takes 8 ms
            for_each_device,
            optimize,
            without_marks,
        )

        program, sharding = without_marks(self.program), self.sharding
        if sharding is not None:
            sets = [spec.axes for spec in sharding.in_specs]
            sets += [EQUAL] * (len(program.body.params) - len(sets))
            program, indices = for_each_device(program, sharding.mesh.shape, sets)
            sharding = replace_record(sharding, indices=indices)
        return optimize(program), sharding

    @property
    def out_types(self) -> tuple[ArrayType, ...]:
        """The types of the results, as a whole."""
        return self.program.out_types if self.sharding is None else self.sharding.out_types

    @property
    def ranges(self) -> tuple[ArgumentRange, ...]:
        """Ranges of the Python ints among the arguments, where they are narrower than 64 bits."""
        return argument_ranges(self.program)

    @entry_point
    def lower(self) -> Lowered:
        """Plan the graph: kernels, memory, nodes and edges.

        Raises:
            UnschedulableError: a loop or branch has a `schedule` that is not possible.
        """
        donated = self.signature.donated_leaves(self.key.structure)
        plan_of = self.compiler().plan_of
        with gc_pause.paused(), ranged(f"lower {self.program.name}"):
            program, sharding = self._prepared()
            plan = plan_of(program, self.device, donated, scratch=self.scratch)
        return Lowered(self, plan if sharding is None else replace_record(plan, sharding=sharding))

    def diagram(self) -> Diagram:
        """The operations and values as a picture, to be drawn."""
        return self.program.diagram()

    def drawn(self, plan: Any) -> Diagram:
        """The picture of a plan for it, with the names of the arguments."""
        # imported when something is drawn
        from tracegraph.inspection.named_inputs import named_diagram, renaming

        return named_diagram(plan.diagram(), renaming(self.program.paths()))

    def explained(self, plan: Any, details: bool) -> Report:
        """What `explain` says of a plan for it, with the names of the arguments."""
        from tracegraph.inspection.named_inputs import named_report, renaming

        report = self.compiler().explain(plan, self.device, details)
        return named_report(report, renaming(self.program.paths()), details)

    def __repr__(self) -> str:
        from tracegraph.ir.text import program_line

        return f"<Traced {program_line(self.program)}, for {self.device}>"

    def __str__(self) -> str:
        return str(self.program)


@dataclass(frozen=True, slots=True, eq=False)
class Lowered(Drawable):
    """A function whose graph is planned, and not yet made."""

    traced: Traced = field(repr=False)
    plan: Any
    """Nodes, edges and buffers of the graph, as data."""

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes of the graph, outermost level."""
        return tuple(self.plan.launch_graph.nodes)

    @property
    def edges(self) -> frozenset[tuple[int, int]]:
        """Pairs of positions in `nodes`: the second waits for the first."""
        return frozenset(self.plan.launch_graph.edges)

    @property
    def bytes(self) -> int:
        """All memory that the plan asks for: arguments, outputs, scratch and constants."""
        return sum(self.memory.values())

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes of arguments, outputs, scratch and constants, as planned.

        What a device adds, such as the workspace of a library, is known once it is compiled.
        """
        return self.traced.compiler().memory(self.plan)

    @property
    def source(self) -> str:
        """The CUDA C++ text of the kernels; no GPU is needed for it.

        With native code on the host, the LLVM IR instead.
        """
        return self.traced.compiler().source(self.plan, self.traced.device)

    def explain(self, details: bool = False) -> Report:
        """A table of every loop and branch: the line it comes from, its schedule, its nodes.

        On a GPU, also of nodes that the program does not ask for, such as what loads arguments. A
        second table has the work of each node: bytes, operations, and the least time for these. It
        is a string, which notebooks show as tables. Of a table with more than 40 rows, the text has
        the costliest ones, or with `details` all.
        """
        return self.traced.explained(self.plan, details)

    def dot(self) -> str:
        """The graph in Graphviz's language, bodies of loops and branches as nested clusters."""
        return self.traced.compiler().dot(self.plan)

    @entry_point
    def compile(self) -> Compiled:
        """Make the graph, ready to launch.

        Machine code for the CPU may be made quickly, and better code while calls run, as after
        a first call; `jitted.warm` waits for the better one.

        Warns with a `FallbackWarning`, once for each function, if the device lacks what the plan
        needs and something else is done instead.
        """
        device, function = self.traced.device, self.traced.signature.function
        with ranged(f"compile {self.traced.program.name}"):
            executable = self.traced.compiler().backend(device).compile(self.plan)
        warn_of_fallbacks(function, executable.plan, device)
        return Compiled.of(self, executable)

    def diagram(self) -> Diagram:
        """The nodes and edges of the graph as a picture, to be drawn."""
        return self.traced.drawn(self.plan)

    def made_of(self) -> Diagram:
        """The picture of the program, whose operations stand beside their lines of source."""
        return self.traced.diagram()

    def __repr__(self) -> str:
        return f"<Lowered for {self.traced.device}: {self.plan!r}>"

    def __str__(self) -> str:
        return str(self.plan)


@dataclass(frozen=True, slots=True, eq=False)
class Compiled(Drawable):
    """A function ready to run, for the argument types it was compiled for."""

    lowered: Lowered = field(repr=False)
    executable: Executable = field(repr=False)
    out_structure: tree.Structure
    out_types: tuple[ArrayType, ...] = field(repr=False)
    donated: tuple[int, ...] = field(repr=False)
    results: Results = field(repr=False)
    assemble: Assemble = field(repr=False)
    """Makes the function's result from what the executable returns."""
    ranges: tuple[ArgumentRange, ...] = field(repr=False)
    """Ranges of the Python ints among the arguments, where they are narrower than 64 bits."""

    @classmethod
    def of(cls, lowered: Lowered, executable: Executable) -> Compiled:
        """The callable form of an executable."""
        traced = lowered.traced
        types, sharding = traced.out_types, traced.sharding
        places = None if sharding is None else sharding.places
        results = results_of(traced.out_structure, types, traced.device, places)
        return cls(
            lowered,
            executable,
            traced.out_structure,
            types,
            traced.signature.donated_leaves(traced.key.structure),
            results,
            assembler(results),
            traced.ranges,
        )

    @property
    def plan(self) -> Any:
        """Nodes, edges and buffers of the graph that runs, after legalization for the device."""
        return self.executable.plan

    @property
    def graph(self) -> GraphView:
        """The CUDA graph that calls on the current stream launch, as data: nodes and edges.

        It prints as a table, and ``graph.dot()`` draws it. It is a copy, which cannot be edited:
        calls go on to launch their graph. For one of your own, to edit and to launch, see
        `export_graph`. If the function was not called on this stream, it is the graph for the
        device's own.

        Raises:
            NoGraphError: it runs on the host, or the host drives its loops.
            ClosedError: it was closed.
        """
        return self.executable.view()

    @property
    def memory(self) -> Mapping[str, int]:
        """Bytes of arguments, outputs, scratch, constants, and of the graph's code and parameters.

        Scratch includes workspaces, such as that of a library; constants, what else the nodes point
        to, such as small arguments. What the driver adds to a graph is not known.
        """
        return {**self.lowered.traced.compiler().memory(self.plan), **self.executable.memory()}

    @property
    def bytes_held(self) -> int:
        """Bytes of constants, and of scratch if that is kept between calls."""
        return self.executable.bytes_held

    def explain(self, details: bool = False) -> Report:
        """What `Lowered.explain` says, of the plan that runs."""
        return self.lowered.traced.explained(self.plan, details)

    def dot(self) -> str:
        """The graph in Graphviz's language, bodies of loops and branches as nested clusters."""
        return self.lowered.traced.compiler().dot(self.plan)

    def stats(self) -> Mapping[str, int]:
        """Counts since compilation: launches, updates of moved addresses, bytes copied."""
        return self.executable.stats()

    def timings(self) -> Mapping[str, float]:
        """Milliseconds of each section of `debug.timed` in the last call, which is waited for.

        On a device that is the last call on the current stream. Empty before the first call.
        """
        return self.executable.timings()

    @entry_point
    def profile(self, *args: Any, **kwargs: Any) -> Any:
        """The time of each node in calls with these arguments, beside the least that it could take.

        The plan is compiled once more, with a kernel after each node that reads the time, and so
        that nodes run one after the other; it runs a dozen times. What clocks take is subtracted.
        The result prints as a table, with the part of the device's limits that each node reaches;
        it is data, too: `profile.nodes` has `title`, `line`, `runs`, `seconds`, `work`, `least` and
        `part` of each. On the host, each nest of a kernel is measured by itself. `tracegraph.show`
        draws a profile, `profile.write_trace(path)` is for Perfetto, and `profile.plot()` draws
        with matplotlib. Donated arguments stay as they are.

        >>> import numpy as np
        >>> from tracegraph import jit
        >>> compiled = jit(lambda x: np.sort(x) + 1, device="host").lower(np.ones(9)).compile()
        >>> [node.runs for node in compiled.profile(np.ones(9)).nodes]
        [1.0, 1.0]

        Raises:
            ArgumentTypesError: the types are not those it was compiled for.
            OutOfMemoryError: the device has not enough memory to run the plan a second time.
        """
        call = self._fitting(args, kwargs)
        self.require_ranges(call.leaves)
        traced = self.lowered.traced
        leaves = self._host_leaves(call) if traced.device == "host" else call.leaves
        compiler = traced.compiler()
        return compiler.profile(
            self.lowered.plan, traced.device, leaves, self.executable, _PROFILED_LAUNCHES
        )

    def diagram(self) -> Diagram:
        """The nodes and edges of the graph that runs as a picture, to be drawn."""
        return self.lowered.traced.drawn(self.plan)

    def made_of(self) -> Diagram:
        """As `Lowered.made_of`."""
        return self.lowered.made_of()

    def __repr__(self) -> str:
        if self.executable.closed:
            return f"<Compiled {self.lowered.traced.program.name}, closed>"
        return f"<Compiled for {self.lowered.traced.device}: {self.plan!r}>"

    def __str__(self) -> str:
        return repr(self) if self.executable.closed else str(self.plan)

    @property
    def slots(self) -> Any:
        """What each node of the graph keeps alive, with bytes and the line that it comes from.

        It prints as a table, and is data: `slots.nodes`, and their `kind`, `name`, `lines` and
        `slots`. Looking at it keeps nothing alive. On the host, it names the arrays held.

        >>> import numpy as np
        >>> from tracegraph import ArrayType, jit
        >>> table = np.arange(3.0)
        >>> scale = jit(lambda x: x * table, device="host").lower(ArrayType(float, (3,))).compile()
        >>> [str(slot) for node in scale.slots.nodes for slot in node.slots]
        ['constant 0 f64[3] (24 B)']
        """
        return self.executable.slots

    def close(self) -> None:
        """Free the graph and its memory now; a later call raises."""
        self.executable.close()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with arguments of the types that it was compiled for.

        Raises:
            ArgumentTypesError: the types differ; the message lists how.
            IntegerRangeError: a Python int does not fit the dtype that it meets.
            OutOfMemoryError: the device has not enough memory.
        """
        try:
            return self.run(self._fitting(args, kwargs))
        except BaseException as error:
            if isinstance(error, errors.OutOfMemoryError):
                error.function = self.lowered.traced.signature.function
            hide_frames(error)
            raise

    @entry_point
    def export_graph(
        self, *args: Any, programmatic_edges: bool = True, **kwargs: Any
    ) -> ExportedGraph:
        """The CUDA graph with these arguments, for others to launch or to put into their graphs.

        A launch reads the arguments where they are, and writes the results to the same memory;
        the caller chooses the stream, and waits. Arguments from the host, and arrays that are not
        contiguous, are copied now. So are donated ones: launches overwrite the copies, and each
        starts from what the one before has left. One launch may be in flight at a time.

        Where the device has them, edges between kernels are programmatic: a kernel may start before
        those that it depends on have ended. With ``programmatic_edges=False``, all edges are plain,
        as what lists or changes them may need. (An argument of the function that has this name is
        passed by position.)

        The graph owns all that it points to. By CUDA's rules, a graph with loops or branches, or
        with scratch that each launch allocates, cannot become a child of another graph, and has one
        executable at a time.

        >>> import numpy as np
        >>> from tracegraph import jit
        >>> compiled = jit(lambda x: 2 * x, device="host").lower(np.ones(3)).compile()
        >>> compiled.export_graph(np.ones(3))
        Traceback (most recent call last):
        ...
        tracegraph.errors.ExportError: 'lambda' cannot be exported as a CUDA graph: it runs on the \
host; compile it for device="cuda"

        Raises:
            ExportError: there is no such graph, or its launches need the host, as prints do.
            ArgumentTypesError: the types are not those it was compiled for.
            IntegerRangeError: a Python int does not fit the dtype that it meets.
            OutOfMemoryError: the device has not enough memory.
        """
        call = self._fitting(args, kwargs)
        self.require_ranges(call.leaves)
        try:
            exported = self.executable.export_graph(
                call.leaves, programmatic_edges=programmatic_edges
            )
        except errors.OutOfMemoryError as error:
            error.function = self.lowered.traced.signature.function
            raise
        return replace(exported, results=self.assemble(exported.results))

    def _fitting(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> FlatCall:
        traced = self.lowered.traced
        call = traced.signature.bind(args, kwargs)
        if call.key != traced.key:
            differences = traced.signature.differences(traced.key, call.key)
            raise errors.ArgumentTypesError(traced.signature.function, differences)
        return call

    def run(self, call: FlatCall) -> Any:
        """Run a call whose key is known to fit.

        Raises:
            IntegerRangeError: a Python int does not fit the dtype that it meets.
        """
        self.require_ranges(call.leaves)
        on_host = self.lowered.traced.device == "host"
        return self.run_leaves(call.passed, self._host_leaves(call) if on_host else call.leaves)

    def require_ranges(self, leaves: Sequence[Any]) -> None:
        """Check that the Python ints among the arguments fit the dtypes that they meet.

        Raises:
            IntegerRangeError: one does not.
        """
        for each in self.ranges:
            value = leaves[each.position]
            if type(value) is int and value not in each.values:
                traced = self.lowered.traced
                path = traced.signature.paths(traced.key.structure)[each.position]
                what = f"argument {path} of {traced.signature.function}"
                raise errors.IntegerRangeError(value, each.dtype, what, each.source)

    def run_leaves(self, passed: Sequence[Any], leaves: list[Any]) -> Any:
        """Run with these leaves, as they were passed and as the executable takes them."""
        if not self.donated:
            return self.assemble(self.executable(leaves))
        donated = Donated()
        try:
            donated.take(self.donated, passed, leaves, self.lowered.traced.signature.function)
            results = self.executable(leaves, donated)
        except BaseException:
            donated.give_back()
            raise
        donated.let_go()
        return self.assemble(results)

    def accepts(self, call: FlatCall) -> bool:
        """Whether the executable takes the leaves as they were passed, without conversion."""
        passed = (x.memory if type(x) is Array else x for x in call.passed)
        if not all(map(is_, passed, call.leaves)):
            return False
        on_host = self.lowered.traced.device == "host"
        return not on_host or all(isinstance(leaf, _HOST_CLASSES) for leaf in call.leaves)

    def _host_leaves(self, call: FlatCall) -> list[Any]:
        leaves = call.leaves
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, _HOST_CLASSES):
                continue
            if not hasattr(leaf, "to_host"):
                signature = self.lowered.traced.signature
                path = signature.paths(call.key.structure)[i]
                where = "is in device memory, but the function was compiled for the host"
                raise errors.UnsupportedArgumentError(signature.function, path, where)
            leaves[i] = leaf.to_host()
        return leaves


_PROFILED_LAUNCHES = 10

_HOST_CLASSES = (np.ndarray, bool, int, float, complex)


def flat_results(function: str, tree_: Any) -> tuple[list[Any], tree.Structure]:
    """The leaves and structure of what a traced function returned.

    Raises:
        UnsupportedResultError: a leaf is not an array or a number.
        BooleanMaskError: a leaf is what a traced mask selects.
    """
    leaves, structure = tree.flatten(tree_)
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, (Tracer, Array)) and not _is_host_value(leaf):
            path = tree.paths(structure, "result")[i]
            if isinstance(leaf, Selected):
                leaf.refuse("{read} as " + path.replace("{", "{{").replace("}", "}}"))
            raise errors.UnsupportedResultError(function, path, leaf)
    return leaves, structure


def _is_host_value(leaf: Any) -> bool:
    """Whether it is a number or a NumPy array of a supported dtype."""
    if not isinstance(leaf, (np.ndarray, np.generic, bool, int, float, complex)):
        return False
    dtype = getattr(leaf, "dtype", None)
    if dtype is None:
        return True
    try:
        ArrayType(dtype)
    except TypeError:
        return False
    return True
