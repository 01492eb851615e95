"""A plan's nodes, the switches of its sums and who asks, in virtual time: the shipped cores, a
network that loses, and NumPy as the oracle.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.congestion import Congestion
from ina.extension import infer as native
from ina.infer.client import client_config
from ina.infer.placing import Surroundings, place, program_of, summed
from ina.infer.plan import InferencePlan
from ina.infer.reference import answers_of
from ina.protocol.codec import encode
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORKERS
from ina.protocol.switch_model import Attachment, ModelJob, SwitchModel
from tests.infer.plans import dense, graph, looked_up, samples_of
from tests.worlds.virtual.cores import worker_config

KEY = 0x0FED_CBA9_8765_4321
MS = 1_000_000
VALUES = 64
SLOTS = 32
EPOCH = 0x1_0003  # as worker_config has it
JOB = 7
Ints = NDArray[np.int32]


@dataclass
class Faults:
    """Of the network, each a share of the packets; and of nodes."""

    loss: float = 0.0
    copies: float = 0.0
    flips: float = 0.0
    late: float = 0.0
    dies: tuple[int, int] | None = None
    """A node, and after so many packets that came to it."""


@dataclass
class Run:
    """Everything in it follows from its seed."""

    seed: int
    plan: InferencePlan
    requests: list[tuple[int, int, int]]
    """By client: when it asks (ms), and for how many samples."""
    faults: Faults
    deadline_s: float = 60.0
    clients: int = 2


def draw(seed: int) -> Run:
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 5))
    make: Any = (dense, dense, graph, looked_up)[int(random.integers(4))]
    rough = bool(random.integers(4))
    faults = Faults(
        loss=float(random.choice([0.0, 0.02, 0.1, 0.25])) * rough,
        copies=float(random.choice([0.0, 0.1])) * rough,
        flips=float(random.choice([0.0, 0.05])) * rough,
        late=float(random.choice([0.0, 0.1])) * rough,
    )
    if random.integers(6) == 0:
        faults.dies = (int(random.integers(nodes)), int(random.integers(60)))
    requests = [
        (int(random.integers(2)), int(random.integers(40)), int(random.choice([0, 1, 2, 9, 200])))
        for _ in range(int(random.integers(1, 5)))
    ]
    return Run(seed, make(seed, nodes), requests, faults, deadline_s=30.0)


@dataclass(order=True)
class _Event:
    at_ns: int
    number: int
    who: str = field(compare=False)
    index: int = field(compare=False)
    sender: tuple[int, int] = field(compare=False, default=(0, 0))
    packet: bytes = field(compare=False, default=b"")
    sums: int = field(compare=False, default=-1)


@dataclass
class _Asked:
    number: int
    samples: Ints
    padded: Ints
    out: Ints
    want: Ints
    outcome: str = ""


class World:
    """A run; :attr:`wrong` says what was seen that must not be."""

    def __init__(self, run: Run) -> None:
        self.run_of, self.plan = run, run.plan
        self.random = np.random.default_rng([run.seed, 7])
        self.wrong: list[str] = []
        self.now_ns = 0
        self._events: list[_Event] = []
        self._number = 0
        placed = place(self.plan)
        self.sums = summed(placed)
        count = len(self.plan.spec.nodes)
        peers = tuple(Peer.at((f"10.0.0.{i + 1}", 7000)) for i in range(count))
        around = Surroundings(KEY, peers)
        self.members = [list(placed[k].needs) for k in self.sums]
        self.switches = [self._switch(members) for members in self.members]
        self.places = [[k for k in self.sums if node in placed[k].needs] for node in range(count)]
        self.nodes = [
            native.Node(
                program_of(self.plan, placed, node, around),
                native.EntryConfig(patience_ns=3000 * MS),
                [(k, self._engine(k, node)) for k in self.places[node]],
            )
            for node in range(count)
        ]
        self.clients = [
            native.Client(client_config(self.plan, placed, around, nonce=100 + i))
            for i in range(run.clients)
        ]
        self.asked: list[list[_Asked]] = [[] for _ in self.clients]
        self._got = [0] * count
        self._dead: set[int] = set()
        self._armed: dict[tuple[str, int], int] = {}
        self._at = {
            **{(0x0A000001 + i, 7000): ("node", i) for i in range(count)},
            **{(0x0A000101 + i, 9000): ("client", i) for i in range(run.clients)},
        }

    def _switch(self, members: list[int]) -> SwitchModel:
        model = SwitchModel(SLOTS, VALUES)
        workers = tuple(
            Attachment(i + 1, 0x0A000001 + node, 5000) for i, node in enumerate(members)
        )
        assert len(workers) <= MAX_WORKERS
        model.install(ModelJob(JOB, EPOCH, 0, SLOTS, workers))
        return model

    def _engine(self, stage: int, node: int) -> native.SumEngine:
        members = self.members[self.sums.index(stage)]
        config = worker_config(members.index(node), len(members), SLOTS, VALUES, stall_s=8.0)
        return native.SumEngine(config, 0, Congestion().choice(), 1 << 20, is_virtual=True)

    def _push(self, at_ns: int, who: str, index: int, **more: Any) -> None:
        self._number += 1
        heapq.heappush(self._events, _Event(at_ns, self._number, who, index, **more))

    def _send(self, who: str, index: int, packet: bytes, **more: Any) -> None:
        faults = self.run_of.faults
        chances = self.random.random(3)
        for _ in range(1 + (chances[0] < faults.copies)):
            if self.random.random() < faults.loss:
                continue
            if chances[1] < faults.flips and who != "switch" and more.get("sums", -1) < 0:
                at = int(self.random.integers(8 * len(packet)))
                flipped = bytearray(packet)
                flipped[at // 8] ^= 1 << at % 8
                packet = bytes(flipped)
            delay_ns = int(self.random.integers(20_000, 60_000))
            if chances[2] < faults.late:
                delay_ns += int(self.random.integers(100 * MS))
            self._push(self.now_ns + delay_ns, who, index, packet=packet, **more)

    def _ask(self, client: int, samples: int) -> None:
        plan = self.plan
        given = samples_of(plan, self.run_of.seed + samples, samples)
        blocks = -(-samples // plan.spec.block)
        padded = np.full((blocks * plan.spec.block, given.shape[1]), plan.spec.input.low, np.int32)
        padded[:samples] = given
        want = answers_of(plan, given)
        out = np.full((len(padded), *want.shape[1:]), -(2**31), np.int32)
        number = self.clients[client].ask(
            padded.ctypes.data, blocks, out.ctypes.data,
            self.now_ns + int(self.run_of.deadline_s * 1e9),
        )  # fmt: skip
        self.asked[client].append(_Asked(number, given, padded, out, want))

    def _attend(self, who: str, index: int) -> None:
        core: Any = self.nodes[index] if who == "node" else self.clients[index]
        own = (0x0A000001 + index, 7000) if who == "node" else (0x0A000101 + index, 9000)
        for sums, ipv4, udp_port, packet in core.work(self.now_ns):
            if sums >= 0:
                switch = self.sums.index(self.places[index][sums])
                self._send("switch", switch, packet, sender=(index, 0))
            elif (ipv4, udp_port) in self._at:
                self._send(*self._at[ipv4, udp_port], packet, sender=own)
        deadline_ns = core.next_deadline_ns()
        armed = self._armed.get((who, index), 2**63)
        if deadline_ns < armed or armed <= self.now_ns:
            self._armed[who, index] = deadline_ns
            if deadline_ns < 2**63 - 1:
                self._push(max(deadline_ns, self.now_ns + 1), who, index)

    def _at_switch(self, event: _Event) -> None:
        switch, (node, _) = event.index, event.sender
        members = self.members[switch]
        sender = Attachment(members.index(node) + 1, 0x0A000001 + node, 5000)
        for leaving in self.switches[switch].receive(sender, event.packet):
            to = members[leaving.to.port - 1]
            header = replace(leaving.header, value_count=len(leaving.values))
            at = self.places[to].index(self.sums[switch])
            self._send("node", to, encode(header, leaving.values or None), sums=at)

    def run(self, most_s: float = 300.0) -> World:
        """Until all requests have ended, or it is too late."""
        for client, at_ms, samples in self.run_of.requests:
            self._push(at_ms * MS, "ask", client, sums=samples)
        left = len(self.run_of.requests)
        while self._events and (left or any(node.under_way for node in self._alive())):
            event = heapq.heappop(self._events)
            self.now_ns = event.at_ns
            if self.now_ns > most_s * 1e9:
                break
            if event.who == "ask":
                self._ask(event.index, event.sums)
                self._attend("client", event.index)
            elif event.who == "switch":
                self._at_switch(event)
            elif event.who == "client":
                self._at_client(event)
            elif event.index not in self._dead:
                self._at_node(event)
            left -= self._note_outcomes()
        self._judge()
        return self

    def _alive(self) -> list[native.Node]:
        return [
            node
            for i, node in enumerate(self.nodes)
            if i not in self._dead and node.failure.fault == native.Fault.NONE
        ]

    def _at_client(self, event: _Event) -> None:
        if event.packet:
            self.clients[event.index].receive(event.sender, event.packet, self.now_ns)
        self._attend("client", event.index)

    def _at_node(self, event: _Event) -> None:
        node, dies = self.nodes[event.index], self.run_of.faults.dies
        if event.packet:
            self._got[event.index] += 1
            if dies is not None and dies[0] == event.index and self._got[event.index] > dies[1]:
                self._dead.add(event.index)
                return
            if event.sums >= 0:
                node.receive_result(event.sums, event.packet, self.now_ns)
            else:
                node.receive(event.sender, event.packet, self.now_ns)
        self._attend("node", event.index)

    def _note_outcomes(self) -> int:
        ended = 0
        for client, asked in zip(self.clients, self.asked, strict=True):
            for one in asked:
                outcome = client.outcome(one.number)
                if one.outcome or outcome == native.Outcome.PENDING:
                    continue
                ended += 1
                one.outcome = outcome.name
                if outcome == native.Outcome.DONE:
                    if not np.array_equal(one.out[: len(one.samples)], one.want):
                        self.wrong.append("a wrong answer")
                    continue
                self._judge_failure(client, outcome)
        return ended

    def _judge_failure(self, client: native.Client, outcome: native.Outcome) -> None:
        if not self._dead:
            self.wrong.append(f"{outcome.name}, {client.failure.fault.name}: and nobody died")
        elif outcome == native.Outcome.TOO_LATE:
            if self._dead != {self.plan.entry}:
                self.wrong.append("too late, and it is not the entry that died")
        elif client.failure.fault == native.Fault.NODE_LOST:
            if client.failure.node not in self._dead:
                self.wrong.append(f"node {client.failure.node} is blamed, and is not dead")
        else:
            self.wrong.append(f"{client.failure.fault.name}: want NODE_LOST")

    def _judge(self) -> None:
        for client, asked in enumerate(self.asked):
            for one in asked:
                if not one.outcome:
                    self.wrong.append(f"client {client} hangs")
        if not self._dead:
            for node in self.nodes:
                if node.under_way:
                    self.wrong.append("blocks are under way for ever")
