"""P4 programs as p4c compiles them (BMv2 JSON), up to the C that is made of them."""

from __future__ import annotations

import hashlib
import subprocess

from fuzz.doors.promise import promise, refusals
from ina.switch.c_target.cache import FLAGS, INCLUDES, find_compiler
from ina.switch.emit_c.emit import emit_c
from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.passes.plan import make_plan

COMPILED_SHARE = 64
"""Of the programs that are taken, one in so many is compiled: chosen by its bytes."""
_TIMEOUT_S = 60.0


def enter(data: bytes) -> None:
    """Reads it, plans it, writes the C."""
    source = None
    with refusals(InvalidProgramError, UnsupportedProgramError):
        source = emit_c(make_plan(load_program(data)), "fuzz")
    if source is not None and hashlib.sha256(data).digest()[0] % COMPILED_SHARE == 0:
        compile_c(source)


def compile_c(source: str) -> None:
    """Whether a compiler takes it; no code is made."""
    flags = [flag for flag in FLAGS if not flag.startswith(("-O", "-march"))]
    command = [find_compiler(None), *flags, "-fsyntax-only", *INCLUDES, "-x", "c", "-"]
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    promise(done.returncode == 0, f"what is emitted compiles: {done.stderr[:500]}")
