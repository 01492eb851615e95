"""From what p4c wrote to a program that runs: a target builds an image, which is powered on.

An image is a value: the same program gives the same one, it may be kept in a cache, and nothing of
it runs. Each power-on gives a pipeline with memory of its own.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ina.switch.ir import Program, load_program
from ina.switch.ir.load import read_json
from ina.switch.keeper import Keeper
from ina.switch.passes.plan import Plan, make_plan
from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import Port


@dataclass(frozen=True)
class ReadProgram:
    """A P4 program: what p4c wrote, what that says, and, when it is asked for, its plan."""

    text: bytes
    """BMv2 JSON."""
    program: Program
    has_main_path: bool
    """False: all packets take the general code, to compare."""

    @functools.cached_property
    def plan(self) -> Plan:
        """Takes seconds for large programs. Raises UnsupportedProgramError."""
        return make_plan(self.program, main_path=self.has_main_path)


class Image(ABC):
    """A program, built for one target."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @abstractmethod
    def power_on(self) -> Pipeline:
        """A pipeline as at power-on, independent of all others of this image.

        Raises MemoryError.
        """

    def take_over(self) -> Pipeline:
        """The pipeline that a former process has left to the target's keeper, which goes on. Its
        groups and entries are inserted again: those that are there stay as they are. See
        :meth:`Pipeline.settle`.

        Raises UnavailableError: it is none of this image.
        """
        raise NotImplementedError


class Target(ABC):
    """What runs programs. Stateless, but for a cache."""

    @abstractmethod
    def build(self, program: ReadProgram) -> Image:
        """Raises UnsupportedProgramError (construct and P4 line); further errors are a target's."""

    @abstractmethod
    def ports(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> PortSet:
        """Ports for its pipelines, of which one at a time is installed; not open yet."""

    @property
    def keeper(self) -> Keeper | None:
        """What remembers a pipeline that outlives its process; None: none does."""
        return None

    def trouble(self) -> str:
        """Why it can build nothing on this machine, and what to do; empty: nothing is known.

        Changes nothing.
        """
        return ""

    def load(self, bmv2_json: bytes | str | Path, *, main_path: bool = True) -> Pipeline:
        """Build a program and power it on; ``main_path`` as in :class:`ReadProgram`.

        Raises InvalidProgramError, and what :meth:`build` does.
        """
        return self.read_and_build(bmv2_json, main_path=main_path).power_on()

    def read_and_build(self, bmv2_json: bytes | str | Path, *, main_path: bool = True) -> Image:
        """As :meth:`load`, without power."""
        text = read_json(bmv2_json)
        return self.build(ReadProgram(text, _program(text), main_path))


_program = functools.lru_cache(maxsize=4)(load_program)  # a client may set the same program again
