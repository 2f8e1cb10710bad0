"""Makes functions.ll: `python -m lowering.native.library.build`, with clang 19 and its opt.

The text is that of LLVM 19, which all later versions read. It names no system and no processor, and
leaves out what would bind it to one: triple, layout, attributes of targets and comdats, on which
Mach-O fails. Each constant, declaration and definition is a block: a line ``@NAME:``, and its text.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from lowering.native.library.load import POOL
from lowering.native.library.source import functions, source

VERSION = 19
"""The version of LLVM: at most that of the oldest llvmlite allowed, which has 20."""

TARGET = Path(__file__).with_name("functions.ll")

FLAGS = (
    *("-target", "x86_64-unknown-linux-gnu", "-std=c++17", "-O2", "-nostdinc", "-w"),
    *("-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm", "-x", "c++"),
    *("-fno-math-errno", "-ffp-contract=off", "-fno-exceptions", "-fno-rtti", "-fno-ident"),
    *("-fno-stack-protector", "-fno-strict-aliasing", "-fno-asynchronous-unwind-tables"),
    # conversions to integers saturate, as on a GPU, instead of being undefined
    "-fno-strict-float-cast-overflow",
)

_CLEAN = "early-cse,instcombine<no-verify-fixpoint>,simplifycfg"
PASSES = (
    f"function(sroa,{_CLEAN}),cgscc(inline),function(sroa,{_CLEAN},sroa),function-attrs,globaldce"
)

KEPT_ATTRIBUTES = re.compile(r"\b(?:willreturn|norecurse|memory\([^)]*\))")
"""Attributes of functions that hold everywhere; `nounwind` does, since nothing throws."""

UNUSED_WORDS = re.compile(
    r" ?\b(?:dso_local|linkonce_odr|weak_odr|local_unnamed_addr|unnamed_addr|noundef|immarg"
    r"|nocapture|noalias|writeonly|readonly|readnone|returned|tail(?= call)|comdat)\b"
)
"""Words that say nothing of a value: linkage, and facts that inlining finds by itself."""

MOST_LINES = 600
"""Longer functions are not inlined into every caller."""


def tool(name: str) -> str | None:
    """The path of clang or opt of `VERSION`. None where it is not installed."""
    return shutil.which(f"{name}-{VERSION}") or shutil.which(f"/usr/lib/llvm-{VERSION}/bin/{name}")


def build() -> str:
    """The text of functions.ll.

    Raises:
        FileNotFoundError: clang or opt is not installed.
        RuntimeError: one of them refuses its input.
    """
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "library.cpp")
        written.write_text(source(), encoding="utf-8")
        first, second = Path(folder, "first.ll"), Path(folder, "second.ll")
        _run("clang", *FLAGS, str(written), "-o", str(first))
        _run("opt", "-S", f"-passes={PASSES}", str(first), "-o", str(second))
        return stripped(second.read_text(encoding="utf-8"))


def stripped(module: str) -> str:
    """The definitions of a module without what names a system."""
    attributes = dict(re.findall(r"^attributes (#\d+) = \{(.*)\}$", module, re.MULTILINE))
    for name, fields in re.findall(r"^(%[\w.\"]+) = type (.*)$", module, re.MULTILINE):
        module = re.sub(re.escape(name) + r"(?![\w.\"])", fields, module)
    blocks = dict(_blocks(module, attributes))
    used: set[str] = set()
    waiting = [name for function in functions() for name in (function.name, *(function.fast or ()))]
    waiting += POOL
    while waiting:
        name = waiting.pop()
        if name not in used:
            used.add(name)
            waiting += re.findall(r"@([\w.$]+)", blocks[name])
    return "\n\n".join(f"@{name}:\n{blocks[name]}" for name in sorted(used)) + "\n"


def _run(name: str, *arguments: str) -> None:
    path = tool(name)
    if path is None:
        raise FileNotFoundError(
            f"{name} {VERSION} is not installed; on Debian: apt-get install clang-19 llvm-19"
        )
    done = subprocess.run([path, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[:4000]}")


def _blocks(module: str, attributes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Names and texts of constants, declarations and definitions."""
    for line in re.findall(r"^@.*$", module, re.MULTILINE):
        name = line[1:].split(" ", 1)[0]
        text = re.sub(r", comdat(?:\([^)]*\))?", "", line)
        yield name, re.sub(r" = .*?\bconstant\b", " = internal unnamed_addr constant", text)
    for line in re.findall(r"^declare .*$", module, re.MULTILINE):
        text = UNUSED_WORDS.sub("", re.sub(r" #\d+$", "", line))
        yield _name(text), text
    for text in re.findall(r"^define .*?^\}$", module, re.MULTILINE | re.DOTALL):
        yield _name(text), _definition(text, attributes)


def _name(text: str) -> str:
    found = re.search(r"@([\w.$]+)\(", text)
    assert found is not None, text
    return found.group(1)


def _definition(text: str, attributes: Mapping[str, str]) -> str:
    head, body = text.split("\n", 1)
    found = re.match(r"define (.*?@[\w.$]+\((?:[^()]|\([^()]*\))*\))(.*)", head)
    assert found is not None, head
    signature, rest = found.groups()
    own = " ".join(attributes[group] for group in re.findall(r"#\d+", rest))
    kept = ["nounwind", *KEPT_ATTRIBUTES.findall(own)]
    body = re.sub(r"^.*@llvm\.lifetime\..*\n", "", body, flags=re.MULTILINE)
    body = UNUSED_WORDS.sub("", re.sub(r"(?:,? ![a-z.]+ !\d+| #\d+)\b", "", body))
    body = re.sub(r"[ \t]*;.*$", "", body, flags=re.MULTILINE)
    if "noinline" in own and "tgm_far" in signature:
        kept.append("noinline")
    elif not _has_loop(body) and body.count("\n") < MOST_LINES:
        kept.append("alwaysinline")
    signature = UNUSED_WORDS.sub("", signature).lstrip()
    return f"define internal {signature} {' '.join(kept)} {{\n{body}"


def _has_loop(body: str) -> bool:
    """Whether a branch goes to a label before it."""
    seen: set[str] = set()
    for line in body.split("\n"):
        label = re.match(r"([\w.]+):", line)
        if label:
            seen.add(label.group(1))
        elif seen.intersection(re.findall(r"label %([\w.]+)", line)):
            return True
    return False


if __name__ == "__main__":
    if sys.argv[1:]:
        raise SystemExit("usage: python -m lowering.native.library.build")
    text = build()
    TARGET.write_text(text, encoding="utf-8", newline="\n")
    print(f"{TARGET}: {len(functions())} functions, {len(text)} bytes")
