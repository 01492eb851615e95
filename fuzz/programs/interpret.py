"""BMv2 JSON, interpreted: small, slow, and apart from :mod:`ina.switch`.

Written from the format's own document and from what v1model and its reference, simple_switch, do.
It reads nothing of ina's loader, passes or emitter, so that a bug there is not a bug here, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzz.programs.digests import ALGORITHMS, to_bytes
from fuzz.programs.expressions import Expression, compiled
from fuzz.programs.packet_state import Layout, PacketState, ParserStopError, UndefinedError

Json = dict[str, Any]
Step = Callable[[PacketState], None]
Sent = list[tuple[int, bytes]]

DROP_PORT = 511
PORTS = 512
MAX_PARSER_STATES = 4096
REPLICATION = 5
_STANDARD = "standard_metadata"


@dataclass
class Memory:
    """What packets leave: registers, counters, direct counters ([packets, bytes] each)."""

    registers: dict[str, list[int]]
    counters: dict[str, list[tuple[int, int]]]
    direct: dict[str, dict[int, tuple[int, int]]]
    """By table, by the entry's place; -1: the default."""

    def copy(self) -> Memory:
        """As it is now."""
        return Memory(
            {name: list(values) for name, values in self.registers.items()},
            {name: list(values) for name, values in self.counters.items()},
            {name: dict(values) for name, values in self.direct.items()},
        )


@dataclass
class _Table:
    node: Json
    keys: list[tuple[str, str, Expression]]
    entries: list[tuple[int, Json]] = field(default_factory=list)


def _counted(before: tuple[int, int], size: int) -> tuple[int, int]:
    return before[0] + 1, before[1] + size


class Interpreter:
    """A program, its tables' entries and its memory."""

    def __init__(self, text: str, groups: Mapping[int, Sequence[tuple[int, int]]]) -> None:
        root = json.loads(text)
        self.root = root
        self.groups = groups
        self.layout = _layout(root)
        self.calculations = {it["name"]: it for it in root["calculations"]}
        self.register_bits = {it["name"]: it["bitwidth"] for it in root["register_arrays"]}
        self.memory = Memory(
            {it["name"]: [0] * it["size"] for it in root["register_arrays"]},
            {it["name"]: [(0, 0)] * it["size"] for it in root["counter_arrays"]
             if not it.get("is_direct")},
            {},
        )  # fmt: skip
        self.actions = {it["id"]: self._action(it) for it in root["actions"]}
        self.names = {it["id"]: it["name"] for it in root["actions"]}
        self.errors: dict[str, int] = dict(root["errors"])
        self.states = self._parser(root["parsers"])
        self.start = root["parsers"][0]["init_state"] if root["parsers"] else None
        self.pipelines = {it["name"]: self._pipeline(it) for it in root["pipelines"]}
        self.checksums = [self._checksum(it) for it in root["checksums"]]
        self.order: list[str] = root["deparsers"][0]["order"]

    # -- a packet --

    def process(self, port: int, data: bytes) -> Sent | None:
        """What it makes leave; None: what it does is not defined, and memory is as before."""
        before = self.memory.copy()
        try:
            return self._process(port, data)
        except UndefinedError:
            self.memory = before
            return None

    def _process(self, port: int, data: bytes) -> Sent:
        s = PacketState(self.layout, data)
        s.put(_STANDARD, "ingress_port", port)
        s.put(_STANDARD, "packet_length", len(data))
        s.put(_STANDARD, "parser_error", self._parse(s))
        wrong = [not right(s) for verify, _, right, _ in self.checksums if verify]
        s.put(_STANDARD, "checksum_error", int(any(wrong)))
        self._run("ingress", s)
        group = s.get(_STANDARD, "mcast_grp")
        if group:
            s.put(_STANDARD, "instance_type", REPLICATION)
            return [
                sent
                for egress_port, rid in self.groups.get(group, ())
                for sent in self._egress(s.copy(), egress_port, rid)
            ]
        egress_port = s.get(_STANDARD, "egress_spec")
        if egress_port == DROP_PORT:
            return []
        return self._egress(s, egress_port, s.get(_STANDARD, "egress_rid"))

    def _egress(self, s: PacketState, port: int, rid: int) -> Sent:
        s.is_over = False
        s.put(_STANDARD, "egress_port", port)
        s.put(_STANDARD, "egress_rid", rid)
        s.put(_STANDARD, "egress_spec", 0)
        s.put(_STANDARD, "packet_length", s.length)
        self._run("egress", s)
        if s.get(_STANDARD, "egress_spec") == DROP_PORT:
            return []
        for _, update, _, do in self.checksums:
            if update:
                do(s)
        return [(port, s.emit(self.order))]

    # -- the parser --

    def _parser(self, parsers: list[Json]) -> dict[str, tuple[list[Step], Expression]]:
        states = parsers[0]["parse_states"] if parsers else []
        return {
            it["name"]: ([self._parser_op(op) for op in it["parser_ops"]], self._transition(it))
            for it in states
        }

    def _parse(self, s: PacketState) -> int:
        name, count = self.start, 0
        try:
            while name is not None:
                count += 1
                if count > MAX_PARSER_STATES:
                    raise ParserStopError("ParserTimeout")
                steps, transition = self.states[name]
                for step in steps:
                    step(s)
                name = transition(s)
        except ParserStopError as stop:
            return stop.error if isinstance(stop.error, int) else self.errors[stop.error]
        return self.errors["NoError"]

    def _parser_op(self, op: Json) -> Step:
        name, args = op["op"], op["parameters"]
        if name == "extract":
            header = args[0]["value"]
            return (lambda s: _extract_next(s, header)) if args[0]["type"] == "stack" else (
                lambda s: s.extract(header)
            )  # fmt: skip
        if name == "set":
            (header, field_name), value = args[0]["value"], compiled(args[1])
            return lambda s: s.put(header, field_name, value(s))
        if name == "verify":
            condition, error = compiled(args[0]), compiled(args[1])
            return lambda s: None if condition(s) else _stop(error(s))
        if name == "advance":
            bits = compiled(args[0])
            return lambda s: s.advance(bits(s))
        return self._primitive(args[0])

    def _transition(self, node: Json) -> Expression:
        keys = [(compiled(key), self._width(key)) for key in node["transition_key"]]
        cases = [
            (None if it["value"] in (None, "default") else int(it["value"], 16),
             None if it.get("mask") is None else int(it["mask"], 16), it["next_state"])
            for it in node["transitions"]
        ]  # fmt: skip

        def go(s: PacketState) -> Any:
            found = 0
            for key, width in keys:
                found = found << (width + 7) // 8 * 8 | key(s) & (1 << width) - 1
            for value, mask, state in cases:
                if value is None:
                    return state
                if (found == value) if mask is None else (found & mask == value & mask):
                    return state
            if cases:
                raise ParserStopError("NoMatch")
            return None

        return go

    def _width(self, key: Json) -> int:
        if key["type"] == "lookahead":
            return int(key["value"][1])
        header, name = key["value"]
        if name == "$valid$":
            return 1
        header = self.layout.stacks[header][0] if key["type"] == "stack_field" else header
        return self.layout.fields[header][name][0]

    # -- actions --

    def _action(self, node: Json) -> Step:
        steps: list[Any] = []
        for op in node["primitives"]:
            if op["op"] == "_jump":
                steps.append((None, int(op["parameters"][0]["value"], 16)))
            elif op["op"] == "_jump_if_zero":
                test, target = op["parameters"]
                steps.append((compiled(test), int(target["value"], 16)))
            else:
                steps.append(self._primitive(op))

        def run(s: PacketState) -> None:
            at = 0
            while at < len(steps):
                step = steps[at]
                at += 1
                if not isinstance(step, tuple):
                    step(s)
                elif step[0] is None or not step[0](s):
                    at = step[1]

        return run

    def _primitive(self, op: Json) -> Step:
        name, args = op["op"], op["parameters"]
        if name in ("register_read", "register_write", "count"):
            return self._stateful(name, args)
        if name == "assign":
            (header, field_name), value = args[0]["value"], compiled(args[1])
            return lambda s: s.put(header, field_name, value(s))
        if name in ("add_header", "remove_header"):
            header, valid = args[0]["value"], name == "add_header"
            return lambda s: s.set_valid(header, valid)
        if name == "assign_header":
            target, source = args[0]["value"], args[1]["value"]
            return lambda s: s.copy_header(target, source)
        if name in ("push", "pop"):
            stack, count = args[0]["value"], int(args[1]["value"], 16)
            return lambda s: s.shift(stack, count if name == "push" else -count)
        if name == "mark_to_drop":
            return _drop
        if name == "truncate":
            length = compiled(args[0])
            return lambda s: setattr(s, "most_bytes", length(s))
        if name == "exit":
            return lambda s: setattr(s, "is_over", True)
        if name == "modify_field_with_hash_based_offset":
            (header, field_name), base = args[0]["value"], compiled(args[1])
            digest, size = self._digest(args[2]["value"]), compiled(args[3])
            return lambda s: s.put(header, field_name, digest(s) % (size(s) or 1) + base(s))
        raise NotImplementedError(f"primitive {name!r}")

    def _stateful(self, name: str, args: list[Json]) -> Step:
        if name == "count":
            counter, index = args[0]["value"], compiled(args[1])
            return lambda s: self._count(counter, index(s), len(s.data))
        if name == "register_read":
            (header, field_name), register = args[0]["value"], args[1]["value"]
            index = compiled(args[2])

            def read(s: PacketState) -> None:
                values, at = self.memory.registers[register], index(s)
                s.put(header, field_name, values[at] if at < len(values) else 0)

            return read
        register, index, value = args[0]["value"], compiled(args[1]), compiled(args[2])
        mask = (1 << self.register_bits[register]) - 1

        def write(s: PacketState) -> None:
            values, at = self.memory.registers[register], index(s)
            if at < len(values):
                values[at] = value(s) & mask

        return write

    def _count(self, counter: str, index: int, size: int) -> None:
        values = self.memory.counters[counter]
        if index < len(values):
            values[index] = _counted(values[index], size)

    def _digest(self, name: str) -> Expression:
        node = self.calculations[name]
        algorithm = ALGORITHMS[node["algo"]]
        inputs = [tuple(it["value"]) for it in node["input"]]

        def digest(s: PacketState) -> int:
            values = [
                (s.values.get((header, name), 0), s.layout.fields[header][name][0])
                for header, name in inputs
                if header in s.valid
            ]
            return algorithm(to_bytes(values))

        return digest

    def _checksum(self, node: Json) -> tuple[bool, bool, Expression, Step]:
        """(verified, updated, is it right?, update it)."""
        (header, name), digest = node["target"], self._digest(node["calculation"])
        condition = compiled(node["if_cond"]) if node.get("if_cond") else (lambda _: True)

        def right(s: PacketState) -> bool:
            if header not in s.valid or not condition(s):
                return True
            return bool(digest(s) == s.values.get((header, name), 0))

        def update(s: PacketState) -> None:
            if condition(s) and header in s.valid:
                s.put(header, name, digest(s))

        return bool(node["verify"]), bool(node["update"]), right, update

    # -- pipelines --

    def _pipeline(self, node: Json) -> tuple[str | None, dict[str, Any]]:
        nodes: dict[str, Any] = {it["name"]: self._table(it) for it in node["tables"]}
        for it in node["conditionals"]:
            test = compiled(it["expression"])
            nodes[it["name"]] = (test, it["true_next"], it["false_next"])
        return node["init_table"], nodes

    def _table(self, node: Json) -> _Table:
        keys = [(key["target"][0], key["target"][1], key["match_type"]) for key in node["key"]]
        if node.get("with_counters"):
            self.memory.direct[node["name"]] = {}
        return _Table(node, keys, list(enumerate(node.get("entries", []))))

    def _run(self, name: str, s: PacketState) -> None:
        at, nodes = self.pipelines[name]
        while at is not None and not s.is_over:
            node = nodes[at]
            if isinstance(node, _Table):
                at = self._apply(node, s)
            else:
                test, then, otherwise = node
                at = then if test(s) else otherwise

    def _apply(self, table: _Table, s: PacketState) -> str | None:
        node = table.node
        found = self._look_up(table, s)
        place, call = found if found is not None else (-1, node["default_entry"])
        if node.get("with_counters"):
            counts = self.memory.direct[node["name"]]
            counts[place] = _counted(counts.get(place, (0, 0)), len(s.data))
        s.args = tuple(int(it, 16) for it in call["action_data"])
        self.actions[call["action_id"]](s)
        nexts = node["next_tables"]
        if "__HIT__" in nexts or "__MISS__" in nexts:
            at: str | None = nexts["__MISS__" if found is None else "__HIT__"]
            return at
        return nexts.get(self.names[call["action_id"]], node["base_default_next"])  # type: ignore[no-any-return]

    def _look_up(self, table: _Table, s: PacketState) -> tuple[int, Json] | None:
        """A field of an invalid header is looked up as 0."""
        values = []
        for header, name, _ in table.keys:
            if name == "$valid$":
                values.append((int(header in s.valid), 1))
                continue
            width = s.layout.fields[header][name][0]
            value = s.values.get((header, name), 0) if header in s.valid else 0
            values.append((value & (1 << width) - 1, width))
        best: tuple[int, int, Json] | None = None
        for place, entry in table.entries:
            pairs = zip(values, entry["match_key"], strict=True)
            if not all(_matches(value, width, key) for (value, width), key in pairs):
                continue
            rank = entry["priority"]
            if table.node["match_type"] == "lpm":
                rank = -sum(key.get("prefix_length", 0) for key in entry["match_key"])
            if best is None or rank < best[0]:
                best = rank, place, entry["action_entry"]
        return None if best is None else (best[1], best[2])


def _matches(value: int, width: int, key: Json) -> bool:
    kind = key["match_type"]
    if kind == "range":
        return int(key["start"], 16) <= value <= int(key["end"], 16)
    wanted = int(key["key"], 16)
    if kind == "exact":
        return value == wanted
    if kind == "lpm":
        below = width - int(key["prefix_length"])
        return value >> below == wanted >> below
    mask = int(key["mask"], 16)
    return bool(value & mask == wanted & mask)


def _extract_next(s: PacketState, stack: str) -> None:
    members = s.layout.stacks[stack]
    if s.next[stack] >= len(members):
        raise ParserStopError("StackOutOfBounds")
    s.extract(members[s.next[stack]])
    s.next[stack] += 1


def _stop(error: int) -> None:
    raise ParserStopError(error)


def _drop(s: PacketState) -> None:
    s.put(_STANDARD, "egress_spec", DROP_PORT)
    s.put(_STANDARD, "mcast_grp", 0)


def _layout(root: Json) -> Layout:
    types = {
        it["name"]: {f[0]: (f[1], len(f) > 2 and bool(f[2])) for f in it["fields"]}
        for it in root["header_types"]
    }
    by_id = {it["id"]: it["name"] for it in root["headers"]}
    return Layout(
        fields={it["name"]: types[it["header_type"]] for it in root["headers"]},
        metadata=frozenset(it["name"] for it in root["headers"] if it["metadata"]),
        stacks={
            it["name"]: tuple(by_id[number] for number in it["header_ids"])
            for it in root["header_stacks"]
        },
    )
