"""The front end of NVRTC: it parses a unit, instantiates templates and checks types.

To optimize, select instructions and assemble takes twenty times as long, and refuses little else:
`asm` that an architecture lacks. So tests of many units make machine code of some.
"""

from __future__ import annotations

from cuda.core import Program, ProgramOptions

from lowering.cuda.compilation.compile import OPTIONS


def assert_front_end_accepts(source: str, arch: str = "sm_90") -> None:
    """Translate CUDA C++ to the intermediate code that is linked later."""
    options = ProgramOptions(arch=arch, link_time_optimization=True, **OPTIONS)
    program = Program(source, "c++", options)
    try:
        assert program.compile("ltoir").code
    finally:
        program.close()
