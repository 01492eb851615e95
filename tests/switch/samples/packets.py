"""Packets for any program: walks of its parser, its STF packets, both mutated, and noise."""

from __future__ import annotations

import random
import re
from pathlib import Path

from ina.switch.ir import Program
from ina.switch.ir.expr import Expr, FieldRef, Lookahead, StackFieldRef
from ina.switch.ir.program import ParserState, SelectCase
from ina.switch.ir.stmt import Extract

INGRESS_PORTS = 4
MAX_STATES = 24
MAX_BYTES = 1500

Packet = tuple[int, bytes]
"""(ingress port, bytes)"""


def packets(program: Program, stf: Path, count: int, random_: random.Random) -> list[Packet]:
    """``count`` packets, the STF file's own first."""
    own = stf_packets(stf)
    found = own[:count]
    while len(found) < count:
        kind = random_.random()
        if own and kind < 0.3:
            port, data = random_.choice(own)
            data = mutated(data, random_)
        elif kind < 0.9:
            port, data = random_.randrange(INGRESS_PORTS), walk(program, random_)
            if random_.random() < 0.3:
                data = mutated(data, random_)
        else:
            port = random_.randrange(INGRESS_PORTS)
            data = random_.randbytes(random_.randint(1, 100))
        if data:
            found.append((port, data[:MAX_BYTES]))
    return found


def stf_packets(path: Path) -> list[Packet]:
    """What an STF file sends, to ports that the switch has."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        match = re.fullmatch(r"packet\s+(\d+)\s+([0-9a-fA-F\s]+)\$?\s*(#.*)?", line.strip())
        digits = re.sub(r"\s", "", match[2]) if match else ""
        if match and digits and len(digits) % 2 == 0:
            found.append((int(match[1]) % INGRESS_PORTS, bytes.fromhex(digits)))
    return found


def mutated(data: bytes, random_: random.Random) -> bytes:
    """Some bits and bytes changed; cut, or longer."""
    changed = bytearray(data)
    for _ in range(random_.randint(0, 4)):
        if changed:
            at = random_.randrange(len(changed))
            changed[at] = random_.choice(
                [0, 0xFF, random_.getrandbits(8), changed[at] ^ 1 << random_.randrange(8)]
            )
    length = random_.random()
    if length < 0.2:
        del changed[random_.randint(0, len(changed)) :]
    elif length < 0.3:
        changed += random_.randbytes(random_.randint(1, 40))
    return bytes(changed)


class _Bits:
    """A packet that grows; what is looked at before it is extracted is fixed already."""

    def __init__(self, random_: random.Random) -> None:
        self.text = ""  # of 0 and 1
        self._random = random_

    def fill(self, until: int) -> None:
        while len(self.text) < until:
            byte = self._random.choice([0, 1, 2, 0xFF, self._random.getrandbits(8)])
            self.text += f"{byte:08b}"

    def put(self, at: int, width: int, value: int) -> None:
        self.fill(at + width)
        self.text = self.text[:at] + f"{value:0{width}b}" + self.text[at + width :]

    def to_bytes(self) -> bytes:
        return int("1" + self.text, 2).to_bytes(len(self.text) // 8 + 1, "big")[1:]


def walk(program: Program, random_: random.Random) -> bytes:
    """A packet that takes a random way through the parser."""
    bits, at = _Bits(random_), 0
    places: dict[str, int] = {}  # of the last header extracted under a name
    name = program.start_state
    for _ in range(MAX_STATES):
        if name is None:
            break
        state = program.states[name]
        for stmt in state.body:
            if isinstance(stmt, Extract):
                type_ = (program.stacks if stmt.stack else program.headers)[stmt.name].type
                bits.fill(at + type_.width_bits)
                places[stmt.name] = at
                at += type_.width_bits
        case = random_.choice(state.cases) if state.cases else SelectCase((), None)
        _take(program, state, case, bits, places, at)
        name = case.next_state
    bits.fill((len(bits.text) + 7) // 8 * 8)
    return bits.to_bytes() + random_.randbytes(random_.choice([0, 0, 1, 10, 40]))


def _take(
    program: Program,
    state: ParserState,
    case: SelectCase,
    bits: _Bits,
    places: dict[str, int],
    at: int,
) -> None:
    """Sets the fields that the state selects on, where they stand in the packet."""
    for key, (value, mask) in zip(state.keys, case.values, strict=False):
        place = _place(program, key, places, at)
        if place is not None:
            start, width = place
            bits.fill(start + width)
            before = int(bits.text[start : start + width], 2)
            bits.put(start, width, (before & ~mask | value & mask) & ((1 << width) - 1))


def _place(program: Program, key: Expr, places: dict[str, int], at: int) -> tuple[int, int] | None:
    if isinstance(key, Lookahead):
        return at + key.offset_bits, key.width_bits
    if isinstance(key, FieldRef) and key.header in places:
        field = program.headers[key.header].type.by_name[key.field]
    elif isinstance(key, StackFieldRef) and key.stack in places:
        field = program.stacks[key.stack].type.by_name[key.field]
    else:
        return None
    header = key.header if isinstance(key, FieldRef) else key.stack
    return places[header] + field.offset_bits, field.width_bits
