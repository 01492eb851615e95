"""The registers of a soft switch that runs, where they lie in memory, to flip bits there."""

from __future__ import annotations

import ctypes
import random
import subprocess
import time
from pathlib import Path

from ina.switch.c_target import cache
from ina.switch.emit.frame import IN_PLACE
from ina.switch.emit.layout import Layout
from ina.switch.emit_c.memory import StateBlock
from ina.switch.passes.plan import make_plan
from ina.switch.pipeline import Pipeline
from ina.switch.server import SoftSwitch

_COMPILE_TIMEOUT_S = 300.0


def pipeline_of(switch: SoftSwitch) -> Pipeline:
    """The program that it runs now."""
    active = switch._device._active
    assert active is not None
    return active.forwarding.pipeline


class Memory:
    """Cells of the registers that slots index, by the generated program's own structs."""

    def __init__(self, pipeline: Pipeline, workers: int, folder: Path) -> None:
        """``workers``: of its jobs; ``folder``: for the C that says where everything is."""
        self._pipeline, self._full = pipeline, (1 << workers) - 1
        program = pipeline.program
        self._slots = max(register.size for register in program.registers)
        by_slot = [register for register in program.registers if register.size == self._slots]
        self._cell = _locator(pipeline, folder)
        values = [_is_value(r.name) for r in by_slot]
        self._weights = [
            r.width_bits
            / sum(o.width_bits for o, v in zip(by_slot, values, strict=True) if v == is_value)
            for r, is_value in zip(by_slot, values, strict=True)
        ]
        """Half of all flips are of values, and a register is hit as often as it has bits."""
        self._registers = by_slot

    def owned(self, epoch: int) -> list[int]:
        """The slots that an incarnation has taken."""
        name = next(r.name for r in self._registers if r.name.endswith("slot_epoch"))
        return [i for i in range(self._slots) if self._pipeline.register(name, i) == epoch]

    def open(self, slots: list[int], seconds: float) -> list[int]:
        """Those of these slots that hold some workers' values and not all; waits for some."""
        name = next(r.name for r in self._registers if r.name.endswith("bitmap"))
        deadline = time.monotonic() + seconds
        while True:
            held = [(slot, self._pipeline.register(name, slot)) for slot in slots]
            found = [slot for slot, bitmap in held if bitmap not in (0, self._full)]
            if found or time.monotonic() > deadline:
                return found
            time.sleep(0.0005)

    def flip(self, dice: random.Random, slot: int, only: str = "") -> str:
        """One bit of one register of a slot, while the switch may be using it; which.

        ``only``: of those whose names have this in them.
        """
        weights = [
            weight * (only in r.name)
            for r, weight in zip(self._registers, self._weights, strict=True)
        ]
        (register,) = dice.choices(self._registers, weights)
        bit = dice.randrange(register.width_bits)
        address, size = self._cell(register.index, slot)
        cell = (ctypes.c_uint8 * size).from_address(address)
        cell[bit // 8] ^= 1 << bit % 8
        return str(register.name)

    def clear_epochs(self, slots: list[int]) -> None:
        """As at power-on: an epoch that a flip has made large keeps a slot from all later jobs."""
        (epoch,) = (r for r in self._registers if r.name.endswith("slot_epoch"))
        for slot in slots:
            address, size = self._cell(epoch.index, slot)
            ctypes.memset(address, 0, size)


def _is_value(name: str) -> bool:
    return name.rpartition(".")[2].startswith("value_")


class _Locator:
    """Where a cell is, and how many bytes it has."""

    def __init__(self, library: ctypes.CDLL, state: int) -> None:
        self._find = library.ina_cell
        self._find.restype = ctypes.c_void_p
        self._find.argtypes = [
            *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.POINTER(ctypes.c_uint32)),
        ]
        self._state = state

    def __call__(self, register: int, slot: int) -> tuple[int, int]:
        size = ctypes.c_uint32()
        address = self._find(self._state, register, slot, ctypes.byref(size))
        assert address
        return int(address), size.value


_compiled: dict[Path | None, ctypes.CDLL] = {}
"""By the generated program."""


def _locator(pipeline: Pipeline, folder: Path) -> _Locator:
    library = _compiled.get(pipeline.generated)
    if library is None:
        library = _compiled[pipeline.generated] = ctypes.CDLL(str(_compile(pipeline, folder)))
    return _Locator(library, pipeline.native[1])


def _compile(pipeline: Pipeline, folder: Path) -> Path:
    layout = Layout(make_plan(pipeline.program), StateBlock(), IN_PLACE)
    lines = [f'#include "{pipeline.generated}"', "void *ina_cell(state *, uint32_t, uint64_t,"]
    lines += ["uint32_t *); void *ina_cell(state *S, uint32_t r, uint64_t i, uint32_t *bytes) {"]
    lines += ["switch (r) {"]
    for register in pipeline.program.registers:
        group = layout.group(register.name)
        cell = f"S->{group.c_name}[i].{group.members[register.name]}"
        lines += [f"case {register.index}: *bytes = sizeof {cell}; return (void *)&{cell};"]
    lines += ["default: return NULL; } }"]
    source, library = folder / "cells.c", folder / "cells.so"
    source.write_text("\n".join(lines))
    flags = [
        "-std=gnu11",
        "-O0",
        "-march=native",
        "-fPIC",
        "-shared",
        "-pthread",
        *cache.INCLUDES,
    ]
    subprocess.run(
        [cache.find_compiler(None), *flags, str(source), "-o", str(library)],
        check=True,
        timeout=_COMPILE_TIMEOUT_S,
    )
    return library
