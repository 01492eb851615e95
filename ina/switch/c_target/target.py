"""Builds: a program's C, by way of its plan, as a shared object in the cache."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from ina.switch.c_target.cache import cache_trouble, load_library
from ina.switch.c_target.pipeline import CPipeline
from ina.switch.emit_c.emit import VERSION, emit_c
from ina.switch.ir import Program
from ina.switch.native_ports import NativePorts
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import Port
from ina.switch.target import Image, ReadProgram, Target


class CImage(Image):
    """A library that is loaded into this process."""

    def __init__(self, program: Program, library: ctypes.CDLL, generated: Path) -> None:
        super().__init__(program)
        self._library, self._generated = library, generated

    def power_on(self) -> CPipeline:
        """See :meth:`Image.power_on`."""
        return CPipeline(self.program, self._library, self._generated)


class CTarget(Target):
    """This machine's compiler and processor."""

    def __init__(self, cache_dir: Path | None = None, cc: str | None = None) -> None:
        """``cache_dir``: None: ``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``; ``cc``: None: what
        INA_CC names, else ``cc``."""
        self._cache_dir = cache_dir
        self._cc = cc

    def build(self, program: ReadProgram) -> CImage:
        """Plans, writes and compiles nothing if the cache has it.

        Raises UnsupportedProgramError, CompilerMissingError, CompilationError, CacheError.
        """
        generator = VERSION if program.has_main_path else f"{VERSION}, general"
        library, source = load_library(
            program.text,
            generator,
            lambda digest: emit_c(program.plan, digest),
            self._cache_dir,
            self._cc,
        )
        return CImage(program.program, library, source)

    def ports(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> PortSet:
        """See :meth:`Target.ports`."""
        return NativePorts(specs, cpu_port, impairment)

    def trouble(self) -> str:
        """Of the cache."""
        return cache_trouble()
