"""p4c's STF files: what is written into a switch, what goes in, and what must come out.

Of the language what the v1model samples use. A line that is not understood is an error.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ina.switch.ir.program import Key, MatchKind
from ina.switch.match import Exact, KeyMatch, Lpm, Range, Ternary
from ina.switch.pipeline import Pipeline


class StfError(Exception):
    """A line is not understood, or names what the program does not have."""


@dataclass(frozen=True)
class Expected:
    """A frame that leaves: digits of hexadecimal, or * for any; ``is_all``: and no more."""

    port: int
    digits: str
    is_all: bool

    def fits(self, data: bytes) -> bool:
        """Whether this is it."""
        found = data.hex()
        if len(found) < len(self.digits) or (self.is_all and len(found) != len(self.digits)):
            return False
        return all(a in ("*", b) for a, b in zip(self.digits, found, strict=False))


@dataclass(frozen=True)
class Entry:
    """Names are whole or begin at a dot; values are as they stand there."""

    table: str
    priority: int
    keys: tuple[tuple[str, str], ...]
    action: str
    params: tuple[tuple[str, str], ...]
    is_default: bool = False


@dataclass
class Script:
    """Of a file."""

    entries: list[Entry] = field(default_factory=list)
    packets: list[tuple[int, bytes]] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    sessions: dict[int, int] = field(default_factory=dict)
    nodes: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """Of multicast: (rid, ports)."""
    groups: dict[int, list[int]] = field(default_factory=dict)
    """Nodes of each."""

    @property
    def shortest_bytes(self) -> int:
        """Of the frames that go in or may come out."""
        sizes = [len(data) for _, data in self.packets]
        sizes += [len(one.digits) // 2 for one in self.expected if one.digits]
        return min(sizes, default=0)

    def padded(self, count: int) -> Script:
        """The same with so many zero bytes behind each frame."""
        return Script(
            self.entries,
            [(port, data + bytes(count)) for port, data in self.packets],
            [
                Expected(it.port, it.digits + ("00" * count if it.is_all else ""), it.is_all)
                for it in self.expected
            ],
            self.sessions,
            self.nodes,
            self.groups,
        )


def read(path: Path) -> Script:
    """Raises :class:`StfError`."""
    script = Script()
    for line in path.read_text().splitlines():
        text = line.partition("#")[0].strip()
        word, _, rest = text.partition(" ")
        if word:
            if word not in _LINES:
                raise StfError(f"{path.name}: {text}")
            _LINES[word](script, rest.strip())
    return script


def _packet(script: Script, rest: str) -> None:
    port, _, digits = rest.partition(" ")
    script.packets.append((int(port), bytes.fromhex(re.sub(r"\s|\$", "", digits))))


def _expect(script: Script, rest: str) -> None:
    port, _, digits = rest.partition(" ")
    shown = re.sub(r"\s|\$", "", digits).lower()
    script.expected.append(Expected(int(port), shown, rest.endswith("$")))


def _add(script: Script, rest: str) -> None:
    found = re.fullmatch(r"(\S+)((?:\s+[^\s(]+)*?)\s+([\w.]+)\(([^)]*)\)(?:\s*=\s*\S+)?", rest)
    if not found:
        raise StfError(rest)
    words = found[2].split()
    priority = int(words.pop(0)) if words and ":" not in words[0] else 0
    keys = tuple((key, value) for key, _, value in (word.rpartition(":") for word in words))
    said = (it.partition(":") for it in found[4].split(",") if it.strip())
    params = tuple((name.strip(), value.strip()) for name, _, value in said)
    script.entries.append(Entry(found[1], priority, keys, found[3], params))


def _set_default(script: Script, rest: str) -> None:
    _add(script, rest)
    entry = script.entries.pop()
    script.entries.append(Entry(entry.table, 0, (), entry.action, entry.params, is_default=True))


def _mirror(script: Script, rest: str) -> None:
    session, port = (int(word) for word in rest.split())
    script.sessions[session] = port


def _node(script: Script, rest: str) -> None:
    rid, *ports = (int(word) for word in rest.split())
    script.nodes.append((rid, tuple(ports)))


def _group(script: Script, rest: str) -> None:
    script.groups[int(rest)] = []


def _associate(script: Script, rest: str) -> None:
    group, node = (int(word) for word in rest.split())
    script.groups[group].append(node)


_LINES: dict[str, Callable[[Script, str], None]] = {
    "packet": _packet,
    "expect": _expect,
    "add": _add,
    "setdefault": _set_default,
    "mirroring_add": _mirror,
    "mc_node_create": _node,
    "mc_mgrp_create": _group,
    "mc_node_associate": _associate,
    "wait": lambda _script, _rest: None,
}


def differences(script: Script, pipeline: Pipeline) -> list[str]:
    """What is wrong, a line each. Raises :class:`StfError`."""
    _write(script, pipeline)
    left: dict[int, list[bytes]] = defaultdict(list)
    for port, data in script.packets:
        for to, copy in pipeline.process(port, data):
            left[to].append(copy)
    wrong = []
    for port in sorted(left.keys() | {it.port for it in script.expected}):
        wanted = [it for it in script.expected if it.port == port]
        if len(wanted) != len(left[port]):
            wrong.append(f"port {port}: {len(left[port])} frames, {len(wanted)} expected")
        for one, data in zip(wanted, left[port], strict=False):
            if not one.fits(data):
                wrong.append(f"port {port}: {data.hex()}, expected {one.digits}")
    return wrong


def _write(script: Script, pipeline: Pipeline) -> None:
    for group, nodes in script.groups.items():
        replicas = [(port, script.nodes[it][0]) for it in nodes for port in script.nodes[it][1]]
        pipeline.set_multicast(group, replicas)
    for session, port in script.sessions.items():
        pipeline.set_clone_session(session, [(port, 0)])
    program = pipeline.program
    for entry in script.entries:
        table = _named(entry.table, program.tables)
        action = _named(entry.action, program.possible_actions(table))
        values = dict(entry.params)
        params = [int(values[param.name], 0) for param in action.params]
        if entry.is_default:
            pipeline.set_default(table.name, action.name, params)
            continue
        matches = [_match(key, entry.keys) for key in table.keys]
        pipeline.insert(table.name, matches, action.name, params, entry.priority)


def _named(name: str, items: Sequence[Any]) -> Any:
    whole = [it for it in items if it.name == name]
    ending = whole or [it for it in items if it.name.endswith(f".{name}")]
    if not ending:
        raise StfError(f"no {name} among {[it.name for it in items]}")
    return ending[0]


def _match(key: Key, said: tuple[tuple[str, str], ...]) -> KeyMatch:
    def plain(name: str) -> str:
        return re.sub(r"\$(\d+)", r"[\1]", name)

    name = plain(key.name)
    its = [
        value
        for other, value in said
        if plain(other) == name
        or name.endswith(f".{plain(other)}")
        or plain(other).endswith(f".{name}")
    ]
    if not its and len(said) == 1:
        its = [said[0][1]]
    if not its:
        if key.kind in (MatchKind.TERNARY, MatchKind.OPTIONAL):
            return Ternary(0, 0)
        raise StfError(f"no value for {key.name} in {said}")
    value = its[0]
    number, mask = _value(value, key.width_bits)
    if key.kind is MatchKind.EXACT:
        return Exact(number)
    if key.kind is MatchKind.LPM:
        return Lpm(number, int(value.partition("/")[2] or key.width_bits))
    if key.kind is MatchKind.RANGE:
        return Range(number, number)
    return Ternary(number & mask, mask)


def _value(text: str, width_bits: int) -> tuple[int, int]:
    """A number, with what counts of it."""
    text = text.partition("/")[0]
    full = (1 << width_bits) - 1
    if "*" not in text:
        return int(text, 0), full
    base = {"0x": 16, "0b": 2}[text[:2].lower()]
    digits, highest = text[2:], "f" if base == 16 else "1"
    mask = int("".join("0" if it == "*" else highest for it in digits), base)
    return int(digits.replace("*", "0"), base), mask & full
