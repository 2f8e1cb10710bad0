"""The public names of tracegraph, and the pages of the reference that have them.

A module says what is public in it by `__all__`, or else by defining it under a name without an
underscore. Modules among the public names of a public module are public, too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType

BESIDE = ("tracegraph.testing",)
"""Public modules that their package does not import."""

OF_TRACEGRAPH: Mapping[str, tuple[str, ...]] = {
    "Tracing and running": ("jit", "make_program", "eval_shape", "show"),
    "Arrays": ("Array", "ArrayType", "asarray", "from_dlpack", "owned", "register_dataclass"),
    "Loops and branches": (
        *("cond", "switch", "while_loop", "fori_loop", "scan", "map", "associative_scan"),
        *("dynamic_slice", "dynamic_update_slice"),
    ),
    "Many at once": ("vmap",),
    "Derivatives": (
        *("grad", "value_and_grad", "jvp", "vjp", "linearize", "linear_transpose"),
        *("jacfwd", "jacrev", "hessian", "stop_gradient", "checkpoint"),
        *("custom_jvp", "custom_vjp", "custom_root", "custom_linear_solve"),
    ),
    "Several devices": (
        *("Mesh", "PartitionSpec", "shard", "shard_map", "halo", "axis_index", "axis_size"),
        *("psum", "pmean", "pmax", "pmin", "ppermute", "all_gather", "all_to_all"),
        *("psum_scatter", "make_array_from_local", "all_gather_to_host"),
        *("process_count", "process_index"),
    ),
    "Saved functions": ("export", "save", "load", "Exported"),
    "Your own CUDA code": ("kernel", "elementwise", "reduction", "capture", "embed"),
    "Calls of the host": ("pure_callback", "host_call"),
    "Modes and limits": ("check_indices", "deterministic", "matmul_precision", "time_limit"),
    "Devices, streams and memory": (
        *("features", "DeviceFeatures", "device_put", "device_get", "block_until_ready"),
        *("Stream", "stream", "get_threads", "set_threads", "memory_stats", "reset"),
    ),
}
"""The names of the package itself, by subject."""

MIRRORS = {"tracegraph.array_api": "tracegraph.numpy"}
"""Modules with the names of another one, whose entries serve for both."""

NOT_SHOWN: Mapping[str, tuple[str, ...]] = {
    "tracegraph.Array": (
        *("placed", "placed_text", "data", "memory", "placement", "invalidate"),
        *("put", "sort", "partition", "fill", "resize"),
    ),
    "tracegraph.Mesh": ("place", "kind", "ordinals"),
}
"""Members of classes that the package itself needs, or that only raise an error."""

MADE_BY_OTHERS = {"tracegraph.Array", "tracegraph.Exported"}
"""Classes that users do not call."""

ELSEWHERE = {"__version__"}
"""Public names that need no entry."""

OF_NUMPY = {
    *("__array_api_version__", "bfloat16", "bool", "c_", "complex128", "complex64", "e"),
    *("euler_gamma", "float16", "float32", "float64", "index_exp", "inf", "int16", "int32"),
    *("int64", "int8", "isdtype", "issubdtype", "mgrid", "nan", "newaxis", "ogrid", "pi", "r_"),
    *("s_", "uint16", "uint32", "uint64", "uint8"),
}
"""Constants, types and index objects of `tracegraph.numpy`: `reference/numpy_constants.md`."""


RETURNED: Mapping[str, tuple[str, ...]] = {
    "tracegraph.staging.jitted.Jitted": (
        *("trace", "lower", "warm", "launch", "programs", "last_call", "stats", "timings"),
        *("profile", "on_device", "forget"),
    ),
    "tracegraph.staging.stages.Traced": ("program", "optimized", "out_types", "lower"),
    "tracegraph.staging.stages.Lowered": (
        *("plan", "nodes", "edges", "bytes", "memory", "source", "explain", "dot", "compile"),
    ),
    "tracegraph.staging.stages.Compiled": (
        *("plan", "graph", "memory", "bytes_held", "explain", "dot", "stats", "timings"),
        *("profile", "slots", "export_graph", "close"),
    ),
    "tracegraph.staging.exported.ExportedGraph": ("nodes", "instantiate", "update"),
}
"""Classes that users meet as results, with what they use of them: `reference/returned`."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the reference: a part of the public names of a module."""

    file: str
    title: str
    intro: str
    module: str
    names: tuple[str, ...]


def modules() -> Iterator[str]:
    """The public modules, each before those inside of it."""
    waiting = ["tracegraph", *BESIDE]
    while waiting:
        module = waiting.pop(0)
        yield module
        if module in MIRRORS:
            continue
        for name in names(module):
            value = getattr(importlib.import_module(module), name)
            if isinstance(value, ModuleType):
                waiting.append(f"{module}.{name}")


def names(module: str) -> list[str]:
    """The public names of a module.

    >>> names("tracegraph.debug")
    ['callback', 'print', 'timed']
    """
    of = importlib.import_module(module)
    if hasattr(of, "__all__"):
        return list(of.__all__)
    here = {
        name
        for name, value in vars(of).items()
        if f"{getattr(value, '__module__', '')}.".startswith(f"{module}.")
    }
    return sorted(name for name in here | set(_exported(of)) if not name.startswith("_"))


def _exported(module: ModuleType) -> Iterator[str]:
    """The names that a module imports as themselves, `import X as X`, which makes them public."""
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ImportFrom):
            yield from (alias.name for alias in statement.names if alias.asname == alias.name)


def documented(module: str) -> list[str]:
    """The public names of a module that have an entry of their own: no modules, no constants."""
    if module in MIRRORS:
        return []
    of = importlib.import_module(module)
    without = ELSEWHERE | (OF_NUMPY if module == "tracegraph.numpy" else set())
    found = [name for name in names(module) if name not in without]
    return [name for name in found if not isinstance(getattr(of, name), ModuleType)]


def doc_of(module: str) -> str:
    """The first paragraph of a module's docstring, as one line."""
    text = inspect.getdoc(importlib.import_module(module)) or ""
    return " ".join(text.partition("\n\n")[0].split())


def by_file(module: str) -> Mapping[str, list[str]]:
    """The names of a module by the name of the file that defines them."""
    of = importlib.import_module(module)
    parts: dict[str, list[str]] = {}
    for name in documented(module):
        parts.setdefault(getattr(of, name).__module__.rpartition(".")[2], []).append(name)
    return dict(sorted(parts.items()))


def pages() -> Iterator[Page]:
    """All pages of names, in the order of the navigation."""
    for title, of in OF_TRACEGRAPH.items():
        yield Page(f"tracegraph.{_slug(title)}", title, "", "tracegraph", of)
    for module in modules():
        short = module.removeprefix("tracegraph.")
        if module in MIRRORS:
            yield Page(
                short,
                module,
                f"{doc_of(module)} Its names are those of {MIRRORS[module]}.",
                module,
                (),
            )
        if module in ("tracegraph", "tracegraph.errors") or not documented(module):
            continue
        if module != "tracegraph.numpy":
            yield Page(short, module, doc_of(module), module, tuple(documented(module)))
            continue
        for file, of in by_file(module).items():
            title = file.replace("_", " ").capitalize()
            intro = doc_of(getattr(importlib.import_module(module), of[-1]).__module__)
            yield Page(f"{short}.{file}", title, intro, module, tuple(of))


def _slug(title: str) -> str:
    return title.lower().replace(",", "").replace(" ", "_")
