"""Many programs in one shared object: compiling is what costs, and mostly what all have alike.

Each program's C, as the soft switch emits it, gets names of its own, so that a file holds some tens
of them and the compiler reads ina's headers once. Functions of ina's headers that are always
inlined in what ships are not here: without optimisation each place would have all of their code.
Beside the pipeline there is another that sends each packet by the general path.
"""

from __future__ import annotations

import _ctypes
import ctypes
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ina.errors import InaError
from ina.switch.c_target.cache import INCLUDES, find_compiler
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import Program, load_program
from ina.switch.native_abi import PipelineStruct
from ina.switch.passes.plan import make_plan

NOT_INLINED = "-DINA_INLINE=static inline __attribute__((unused))"
QUICK = ("-std=gnu11", "-O0", "-w", "-fPIC", "-shared", "-pthread", NOT_INLINED)
"""Flags with which compiling takes least."""
_DEFINED = re.compile(
    r"^(?:static|INA_INLINE|INA_APART|const)\b[^;={]*?\b(\w+)\s*[(\[={]|^\} (\w+);|^#define (\w+)",
    re.MULTILINE,
)
"""Names at the level of the file."""
_GENERAL = """
static size_t process_generally(void *const opaque, const ina_packet_in *const in,
                                const size_t count, ina_output *const out) {
    state *const S = opaque;
    size_t done = 0;
    for (; done < count; done++) {
        const size_t room = ina_room(out, S->most_replicas, INA_MOST_HEADER_BYTES);
        if (ina_length(in + done) >= room) break;
        ina_packet_in storage;
        const ina_packet_in *const one = ina_gather(in + done, &storage, S->gathered);
        if (one) process_one(S, one, out);
    }
    return done;
}
const ina_pipeline *general_pipeline_get(void);
const ina_pipeline *general_pipeline_get(void) {
    static ina_pipeline general;
    general = pipeline;
    general.process = process_generally;
    return &general;
}
"""
_TIMEOUT_S = 300.0


class BatchError(InaError):
    """What was emitted does not compile."""


@dataclass(frozen=True)
class Source:
    """A program as ina plans it, and its C."""

    program: Program
    split_bytes: int
    """What is before the part that the main path can read elsewhere; 0: there is none."""
    c: str


class Pipelines:
    """A program's two pipelines."""

    def __init__(self, library: ctypes.CDLL, prefix: str, source: Source) -> None:
        self.program = source.program
        self.split_bytes = source.split_bytes
        self.main = self._get(library, f"{prefix}ina_pipeline_get")
        self.general = self._get(library, f"{prefix}general_pipeline_get")

    @staticmethod
    def _get(library: ctypes.CDLL, name: str) -> PipelineStruct:
        get = library[name]
        get.restype = ctypes.POINTER(PipelineStruct)
        found: PipelineStruct = get().contents
        return found


def emitted(text: str) -> Source:
    """Of BMv2 JSON."""
    plan = make_plan(load_program(text))
    main = plan.main
    split = main.headers_bytes if main is not None and main.tail_header is not None else 0
    return Source(plan.program, split, emit_c(plan, "fuzz") + _GENERAL)


@contextmanager
def compiled(
    sources: Sequence[Source], *, flags: Sequence[str] = QUICK
) -> Iterator[list[Pipelines]]:
    """Their pipelines, for as long as the ``with`` lasts."""
    parts = [with_prefix(source.c, f"q{at}_") for at, source in enumerate(sources)]
    with tempfile.TemporaryDirectory(prefix="ina-programs-") as folder:
        target = Path(folder, "batch.so")
        command = [
            find_compiler(None), *flags, *INCLUDES, "-o", str(target), "-x", "c", "-",
        ]  # fmt: skip
        done = subprocess.run(
            command, input="\n".join(parts), capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            wrong = next((it for it in done.stderr.splitlines() if "error" in it), done.stderr)
            raise BatchError(f"what is emitted does not compile: {wrong}")
        library = ctypes.CDLL(str(target))
    try:
        yield [Pipelines(library, f"q{at}_", it) for at, it in enumerate(sources)]
    finally:
        _ctypes.dlclose(library._handle)


def with_prefix(source: str, prefix: str) -> str:
    """Emitted C, to stand in one file beside other programs': all that it defines is called so."""
    names = {name for found in _DEFINED.findall(source) for name in found if name}
    pattern = re.compile(rf"(?<![.>])\b(?:{'|'.join(sorted(names))})\b")
    return pattern.sub(lambda found: prefix + found[0], source)
