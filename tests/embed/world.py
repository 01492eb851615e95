"""Hosts with embeddings, in virtual time: the shipped cores, a network that loses, and an oracle.

Values are small integers, so every sum is the same in any order, and what a look-up must give is
known before the run: a host's gradients do not depend on what it read.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ina.embed.bags import Bags
from ina.extension.embed import (
    ClientConfig,
    GroupConfig,
    Node,
    Optimizer,
    Placement,
    Rule,
    TableSpec,
)

KEY = 0x1234_5678_9ABC_DEF0
MS = 1_000_000
Floats = NDArray[np.float32]


@dataclass
class Faults:
    """Of the network, each a share of the packets; and of hosts."""

    loss: float = 0.0
    copies: float = 0.0
    flips: float = 0.0
    late: float = 0.0
    dies: tuple[int, int] | None = None
    """A host, and the step that it does not begin."""


@dataclass
class Plan:
    """A run: everything in it follows from its seed."""

    seed: int
    hosts: int
    tables: list[TableSpec]
    steps: int
    faults: Faults
    optimizer: Optimizer
    part_bytes: int = 256
    patience_ns: int = 30_000 * MS
    looks_ahead: bool = False
    refresh_steps: int = 0
    """After so many steps other rows are hot; 0: none ever is."""
    cache_bytes: int = 0


def draw(seed: int) -> Plan:
    """A small run of any kind, by its seed."""
    random = np.random.default_rng(seed)
    hosts = int(random.integers(1, 6))
    tables = []
    for _ in range(int(random.integers(1, 4))):
        owners = int(random.integers(1, hosts + 1))
        tables.append(
            TableSpec(
                rows=int(random.integers(max(owners, 2), 60)),
                dim=int(random.choice([1, 3, 16, 64])),
                first_owner=int(random.integers(hosts)),
                owners=owners,
            )
        )
    rough = bool(random.integers(4))
    faults = Faults(
        loss=float(random.choice([0.0, 0.02, 0.1, 0.3])) * rough,
        copies=float(random.choice([0.0, 0.1])) * rough,
        flips=float(random.choice([0.0, 0.05])) * rough,
        late=float(random.choice([0.0, 0.1])) * rough,
    )
    steps = int(random.integers(1, 6))
    if hosts > 1 and random.integers(8) == 0:
        faults.dies = (int(random.integers(hosts)), int(random.integers(steps)))
    return Plan(
        seed,
        hosts,
        tables,
        steps,
        faults,
        Optimizer(rule=Rule.SGD),
        looks_ahead=bool(random.integers(2)),
        refresh_steps=0 if faults.dies else int(random.integers(3)),
        cache_bytes=int(random.choice([0, 300, 5000])),
    )


@dataclass
class Part:
    """What a host does in a step with a table."""

    bags: Bags
    vectors: Floats
    asks: bool


def parts_of(plan: Plan, host: int, step: int) -> list[Part]:
    """Bags with repeated rows and empty ones, and integer gradients."""
    random = np.random.default_rng([plan.seed, host, step])
    parts = []
    for spec in plan.tables:
        bags = int(random.integers(0, 12))
        counts = random.integers(0, 6, bags) if random.integers(2) else np.ones(bags, np.int64)
        if bags and random.integers(10) == 0:
            counts[0] = 300  # longer than fits one packet
        rows = random.zipf(1.3, int(counts.sum())) % spec.rows
        weights = (
            random.integers(1, 4, rows.size).astype(np.float32) if random.integers(2) else None
        )
        made = Bags.of(rows, np.cumsum(counts) - counts, weights, limit=spec.rows)
        vectors = random.integers(-3, 4, (bags, spec.dim)).astype(np.float32)
        parts.append(Part(made, vectors, bool(random.integers(4))))
    return parts


def first_rows(plan: Plan) -> list[Floats]:
    random = np.random.default_rng([plan.seed, 999])
    return [
        random.integers(-50, 50, (spec.rows, spec.dim)).astype(np.float32) for spec in plan.tables
    ]


def pooled(rows: Floats, bags: Bags) -> Floats:
    """The oracle's sums."""
    out = np.zeros((bags.count, rows.shape[1]), np.float32)
    for bag in range(bags.count):
        for i in range(bags.offsets[bag], bags.offsets[bag + 1]):
            weight = 1.0 if bags.weights is None else bags.weights[i]
            out[bag] += np.float32(weight) * rows[bags.rows[i]]
    return out


def versions(plan: Plan) -> list[list[Floats]]:
    """What the tables must be before each step, and after the last; learning rate 1."""
    all_versions = [first_rows(plan)]
    for step in range(plan.steps):
        tables = [table.copy() for table in all_versions[-1]]
        for host in range(plan.hosts):
            for table, part in zip(tables, parts_of(plan, host, step), strict=True):
                for bag in range(part.bags.count):
                    for i in range(part.bags.offsets[bag], part.bags.offsets[bag + 1]):
                        weight = 1.0 if part.bags.weights is None else part.bags.weights[i]
                        table[part.bags.rows[i]] -= np.float32(weight) * part.vectors[bag]
        all_versions.append(tables)
    return all_versions


def hot_at(plan: Plan, step: int) -> list[list[int]]:
    """Of each table the rows that are hot from a step on; the same on all hosts."""
    random = np.random.default_rng([plan.seed, step, 1])
    return [
        sorted({int(row) for row in random.zipf(1.5, random.integers(8)) % spec.rows})
        for spec in plan.tables
    ]


@dataclass(order=True)
class _Event:
    at_ns: int
    number: int
    host: int = field(compare=False)
    sender: int = field(compare=False, default=-1)
    packet: bytes = field(compare=False, default=b"")


class World:
    """A run of a plan; :attr:`wrong` says what was seen that must not be."""

    def __init__(self, plan: Plan, rate: float = 1.0) -> None:
        self.plan = plan
        self.rate = rate
        self.random = np.random.default_rng([plan.seed, 7])
        self.expected = versions(plan) if plan.optimizer.rule == Rule.SGD else None
        self.wrong: list[str] = []
        self.now_ns = 0
        self.lost: dict[int, str] = {}
        self._events: list[_Event] = []
        self._number = 0
        self._armed = [2**63] * plan.hosts
        self.nodes = [self._node(host) for host in range(plan.hosts)]
        self._programs = [self._program(host) for host in range(plan.hosts)]
        self._ended = [False] * plan.hosts
        self._died: set[int] = set()
        self._sum_ends_ns: dict[tuple[int, int], int] = {}  # by step and host
        self._summed: dict[int, dict[int, Floats]] = {}  # hot gradients by step and host
        self.read: list[tuple[int, int, int, bytes]] = []
        """Host, step, table, and what it read."""

    def _node(self, host: int) -> Node:
        plan = self.plan
        config = GroupConfig(
            key=KEY,
            host=host,
            hosts=plan.hosts,
            tables=plan.tables,
            optimizer=plan.optimizer,
            part_bytes=plan.part_bytes,
        )
        node = Node(config, ClientConfig(patience_ns=plan.patience_ns))
        if plan.refresh_steps:
            node.open_before(0)
        node.resize_cache(plan.cache_bytes)
        for table, (spec, rows) in enumerate(zip(plan.tables, first_rows(plan), strict=True)):
            own = rows_owned(spec, plan.hosts, host)
            values = np.ascontiguousarray(rows[own])
            node.copy_rows(table, 0, len(own), values.ctypes.data, 0, True)
        return node

    def _program(self, host: int) -> Generator[None]:
        """What the host's process does; it yields where it waits."""
        plan, node = self.plan, self.nodes[host]
        ahead: dict[int, list[tuple[int, int, Bags]]] = {}
        for step in range(plan.steps):
            if self._refreshes(step):
                yield from self._refresh(host, step)
            if plan.faults.dies == (host, step):
                self._died.add(host)
                return
            parts = parts_of(plan, host, step)
            for _ in range(2 if plan.cache_bytes else 1):
                for table, ticket, bags in ahead.pop(step, None) or self._ask(host, step):
                    while not node.is_done(ticket):
                        yield
                    self._take(host, step, table, ticket, bags)
            for table, part in enumerate(parts):
                node.add_gradients(step, table, *part.bags.address, part.vectors.ctypes.data)
            if plan.looks_ahead and step + 1 < plan.steps and not self._refreshes(step + 1):
                ahead[step + 1] = self._ask(host, step + 1)
            node.end_step(step, self.rate)
            yield from self._sum_hot(host, step)
        while not node.are_gradients_received() or node.version < plan.steps:
            yield
        self._ended[host] = True

    def _refreshes(self, step: int) -> bool:
        return self.plan.refresh_steps > 0 and step % self.plan.refresh_steps == 0

    def _refresh(self, host: int, step: int) -> Generator[None]:
        """Other rows are hot from now on: values come from their owners, or are here already."""
        node, plan = self.nodes[host], self.plan
        node.settle_hot()
        wanted = hot_at(plan, step)
        asked = []
        for table, (spec, rows) in enumerate(zip(plan.tables, wanted, strict=True)):
            fresh = Bags.of(np.setdiff1d(rows, node.hot_rows(table)).astype(int), limit=spec.rows)
            asked.append((fresh, node.look_up(step, table, *fresh.address, True)))
        for table, (fresh, ticket) in enumerate(asked):
            while not node.is_done(ticket):
                yield
            self._set_hot(node, table, wanted[table], fresh, ticket)
        node.open_before(step + plan.refresh_steps)

    def _set_hot(self, node: Node, table: int, rows: list[int], fresh: Bags, ticket: int) -> None:
        dim = self.plan.tables[table].dim
        state = self.plan.optimizer.state_values(dim)
        had = node.hot_rows(table)
        values = np.zeros((len(had), dim), np.float32)
        states = np.zeros((len(had), state), np.float32)
        node.read_hot(table, values.ctypes.data, states.ctypes.data)
        came = np.zeros((fresh.count, dim + state), np.float32)
        node.take(ticket, came.ctypes.data)
        known = dict(zip(had, np.hstack([values, states]), strict=True))
        known.update(zip(fresh.rows.tolist(), came, strict=True))
        both = np.array([known[row] for row in rows], np.float32).reshape(len(rows), dim + state)
        own_values = np.ascontiguousarray(both[:, :dim])
        own_states = np.ascontiguousarray(both[:, dim:])
        numbers = np.array(rows, np.uint32)
        node.set_hot(
            table,
            len(rows),
            numbers.ctypes.data,
            own_values.ctypes.data,
            own_states.ctypes.data,
        )

    def _sum_hot(self, host: int, step: int) -> Generator[None]:
        """What an all-reduce does: it waits for the slowest host, and ends on each at another time.

        So a host may ask for rows of the next step while their owner has still to settle them.
        """
        node = self.nodes[host]
        own = np.zeros(node.hot_values(), np.float32)
        if own.size == 0:
            return
        node.read_hot_gradients(own.ctypes.data)
        of_all = self._summed.setdefault(step, {})
        of_all[host] = own
        if len(of_all) == self.plan.hosts:
            random = np.random.default_rng([self.plan.seed, step, 5])
            for other in range(self.plan.hosts):
                at_ns = self.now_ns + int(random.integers(30_000, 5 * MS))
                self._sum_ends_ns[step, other] = at_ns
                self._push(at_ns, other)
        while self.now_ns < self._sum_ends_ns.get((step, host), self.now_ns + 1):
            yield
        total = np.zeros_like(own)
        for one in range(self.plan.hosts):
            total += of_all[one]
        node.apply_hot(total.ctypes.data, self.rate)

    def _ask(self, host: int, step: int) -> list[tuple[int, int, Bags]]:
        asked = []
        for table, part in enumerate(parts_of(self.plan, host, step)):
            if part.asks:
                ticket = self.nodes[host].look_up(step, table, *part.bags.address, False)
                asked.append((table, ticket, part.bags))
        return asked

    def _take(self, host: int, step: int, table: int, ticket: int, bags: Bags) -> None:
        vectors = np.full((bags.count, self.plan.tables[table].dim), np.nan, np.float32)
        self.nodes[host].take(ticket, vectors.ctypes.data)
        self.read.append((host, step, table, vectors.tobytes()))
        if self.expected is not None:
            want = pooled(self.expected[step][table], bags)
            if not np.array_equal(vectors, want):
                self.wrong.append(f"host {host} read wrong sums of table {table} in step {step}")

    def _push(self, at_ns: int, host: int, sender: int = -1, packet: bytes = b"") -> None:
        self._number += 1
        heapq.heappush(self._events, _Event(at_ns, self._number, host, sender, packet))

    def _send(self, sender: int, to: int, packet: bytes) -> None:
        faults = self.plan.faults
        chances = self.random.random(4)
        for _ in range(1 + (chances[0] < faults.copies)):
            if self.random.random() < faults.loss:
                continue
            if chances[1] < faults.flips:
                at = int(self.random.integers(8 * len(packet)))
                flipped = bytearray(packet)
                flipped[at // 8] ^= 1 << at % 8
                packet = bytes(flipped)
            delay_ns = int(self.random.integers(20_000, 60_000))
            if chances[2] < faults.late:
                delay_ns += int(self.random.integers(300 * MS))
            self._push(self.now_ns + delay_ns, to, sender, packet)

    def _attend(self, host: int) -> None:
        """The program goes on as far as it can, and what its node has to say is sent."""
        node = self.nodes[host]
        before = None
        while before != (before := (len(self.read), node.version, node.owner.lookups)):
            # What it asked of itself may be done at once.
            next(self._programs[host], None)
            node.poll(self.now_ns)
            for to, packet in node.take_packets(self.now_ns):
                self._send(host, to, packet)
        failure = node.failure
        if failure is not None and host not in self.lost:
            self.lost[host] = f"host {failure.host} {failure.what}"
        deadline_ns = node.next_deadline_ns()
        if deadline_ns < self._armed[host] or self._armed[host] <= self.now_ns:
            self._armed[host] = deadline_ns
            if deadline_ns < 2**63 - 1:
                self._push(max(deadline_ns, self.now_ns + 1), host)

    def run(self, most_s: float = 600.0) -> World:
        """Until all have ended, or have said who is lost; or it is too late."""
        for host in range(self.plan.hosts):
            self._push(int(self.random.integers(2 * MS)), host)
        while self._events and not self._is_over():
            event = heapq.heappop(self._events)
            self.now_ns = event.at_ns
            if self.now_ns > most_s * 1e9:
                break
            if self._is_dead(event.host):
                continue
            if event.sender >= 0:
                self.nodes[event.host].receive(event.sender, event.packet, self.now_ns)
            self._attend(event.host)
        self._judge()
        return self

    def _is_dead(self, host: int) -> bool:
        return host in self._died

    def _is_over(self) -> bool:
        return all(
            self._ended[host] or host in self.lost or self._is_dead(host)
            for host in range(self.plan.hosts)
        )

    def _judge(self) -> None:
        plan = self.plan
        dies = plan.faults.dies
        for host, node in enumerate(self.nodes):
            if self._is_dead(host):
                continue
            if node.fault:
                self.wrong.append(f"host {host}: {node.fault}")
            if dies is None and not self._ended[host]:
                self.wrong.append(f"host {host} has not ended: {self.lost.get(host, 'hangs')}")
            if dies is not None and host in self.lost and f"host {dies[0]} " not in self.lost[host]:
                self.wrong.append(f"host {host} blames another: {self.lost[host]}")
            if dies is not None and host not in self.lost and not self._ended[host]:
                self.wrong.append(f"host {host} hangs without a word")
            node.settle_hot()
            if dies is None and self.expected is not None:
                self._judge_rows(host, self.expected[-1])

    def _judge_rows(self, host: int, want: list[Floats]) -> None:
        for table in range(len(self.plan.tables)):
            if not np.array_equal(self.rows(host, table), want[table][self.owned(host, table)]):
                self.wrong.append(f"host {host}: rows of table {table} are wrong at the end")

    def owned(self, host: int, table: int) -> list[int]:
        return rows_owned(self.plan.tables[table], self.plan.hosts, host)

    def rows(self, host: int, table: int) -> Floats:
        own = self.owned(host, table)
        values = np.empty((len(own), self.plan.tables[table].dim), np.float32)
        self.nodes[host].copy_rows(table, 0, len(own), values.ctypes.data, 0, False)
        return values


def rows_owned(spec: TableSpec, hosts: int, host: int) -> list[int]:
    placement = Placement(spec, hosts)
    return [placement.row_at(host, local) for local in range(placement.rows_of(host))]
