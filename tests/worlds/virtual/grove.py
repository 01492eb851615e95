"""A job's workers below trees of reference switches, in virtual time: the core that ships.

Each hop of each packet may lose it, bring it twice or late, as `fate` decides.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ina._native.host import RtoLimits, SubmissionOrder, VerifyMode, WorkerConfig, WorkerCore
from ina.host.arrays import VALUE_TYPES
from ina.protocol.codec import decode_header, encode
from ina.protocol.collective import REDUCTIONS, Collective
from ina.protocol.spec import UDP_PORT
from ina.protocol.switch_model import Attachment
from tests.worlds.virtual.cores import EPOCH, SECOND, Array
from tests.worlds.virtual.trees import Forest, Node

LIMIT_NS = 600 * SECOND
HOP_NS = 5_000
_WORKERS_NET, _SWITCHES_NET = 0x0A_00_00_00, 0x0A_01_00_00

Fate = Callable[[str, str, bytes], list[int]]
"""Of a packet from somebody to somebody ("rank3", "rack0"): the delays of the copies that come."""


def unharmed(_: str, __: str, ___: bytes) -> list[int]:
    return [HOP_NS]


def rough(seed: int, loss: float, twice: float, most_ns: int) -> Fate:
    rng = random.Random(seed)

    def fate(_: str, __: str, ___: bytes) -> list[int]:
        if rng.random() < loss:
            return []
        copies = 2 if rng.random() < twice else 1
        return [HOP_NS + rng.randrange(most_ns + 1) for _ in range(copies)]

    return fate


class Grove:
    """`trees` have `lanes` each; `slots` of the job are twice as many together.

    `shares`: into how many cores each rank divides each tree's lanes, at most.
    """

    is_stream = False

    def __init__(
        self,
        trees: Sequence[Node],
        lanes: Sequence[int],
        workers: int,
        values: int = 8,
        *,
        shares: Sequence[int] | None = None,
        fate: Fate = unharmed,
        verify: VerifyMode = VerifyMode.OFF,
        first_seq: int = 0,
    ) -> None:
        self.now_ns, self.fate, self.values = 0, fate, values
        self._numbers: dict[str, int] = {}  # of switches
        self._timers: dict[tuple[int, int], int] = {}
        self.lanes = sum(lanes)
        self.forest = Forest(
            trees, lanes, values, self._at, self._place, epoch=EPOCH, is_stream=self.is_stream
        )
        self._ranks = {self._place(rank): rank for rank in range(workers)}
        self._events: list[tuple[int, int, tuple[object, ...]]] = []
        self._number = 0
        self.orders: list[SubmissionOrder] = []
        self.done: list[set[int]] = [set() for _ in range(workers)]
        self._left: dict[tuple[int, int], int] = {}
        self.cores: list[list[WorkerCore]] = []
        for rank in range(workers):
            config = WorkerConfig(
                job=0, epoch=EPOCH, rank=rank, world_size=workers, slots=2 * self.lanes,
                values_per_packet=values, stall_timeout_ns=LIMIT_NS, rto=RtoLimits(),
                trees=[place.native() for place in self.forest.places[rank]],
                verify=verify, check_key=bytes(range(16)), first_seq=first_seq,
                is_stream=self.is_stream,
            )  # fmt: skip
            self.orders.append(SubmissionOrder(config))
            self.cores.append(list(self._divided(config, shares[rank] if shares else 1)))

    def _divided(self, config: WorkerConfig, shares: int) -> list[WorkerCore]:
        cores = []
        for tree in config.trees:
            parts = min(shares, tree.lanes)
            bounds = [tree.first_lane + tree.lanes * i // parts for i in range(parts + 1)]
            for first, end in pairwise(bounds):
                config.first_lane, config.lanes = first, end - first
                cores.append(WorkerCore(config))
        return cores

    def _at(self, name: str) -> Attachment:
        number = self._numbers.setdefault(name, len(self._numbers))
        return Attachment(0, _SWITCHES_NET + number, UDP_PORT)

    @staticmethod
    def _place(rank: int) -> Attachment:
        return Attachment(0, _WORKERS_NET + rank, 4000)

    def all_reduce(self, parts: Sequence[Array], op: str = "sum") -> list[Array]:
        outs = [np.empty_like(part) for part in parts]
        number = len(self.done[0]) + 1
        for rank, part in enumerate(parts):
            self.submit(rank, number, part, outs[rank], op)
        self.run(number)
        return outs

    def submit(self, rank: int, number: int, part: Array, out: Array, op: str = "sum") -> None:
        what = Collective(VALUE_TYPES[part.dtype], part.size, REDUCTIONS[op])
        self.begin(rank, number, part, out, what)

    def begin(self, rank: int, number: int, part: Array, out: Array, what: Collective) -> None:
        placed = self.orders[rank].next(number, part.ctypes.data, out.ctypes.data, what)
        self._left[rank, number] = len(self.cores[rank])
        for index, core in enumerate(self.cores[rank]):
            core.submit_placed(placed, self.now_ns)
            self._attend(rank, index)

    def run(self, tensors: int) -> None:
        """Until each rank has completed so many tensors in all."""
        while any(len(done) < tensors for done in self.done):
            assert self._events, "nothing is under way, and it is not done"
            self.now_ns, _, event = heapq.heappop(self._events)
            assert self.now_ns < LIMIT_NS, "it does not end"
            match event:
                case (Attachment() as source, Attachment() as to, bytes() as packet):
                    self._arrive(source, to, packet)
                case (int() as rank, int() as index):
                    if self._timers.get((rank, index)) == self.now_ns:
                        del self._timers[rank, index]
                        self._attend(rank, index)

    def name(self, at: Attachment) -> str:
        return f"rank{self._ranks[at]}" if at in self._ranks else self.forest.names[at]

    def _arrive(self, source: Attachment, to: Attachment, packet: bytes) -> None:
        if to not in self._ranks:
            for leaving in self.forest.switches[self.forest.names[to]].receive(source, packet):
                self._send(to, leaving.to, encode(leaving.header, leaving.values))
            return
        rank = self._ranks[to]
        lane = decode_header(packet).seq % self.lanes
        (tree,) = (t for t in self.forest.places[rank] if 0 <= lane - t.first_lane < t.lanes)
        assert source == self._at(tree.node), "a result from another node than the tree's"
        for index, core in enumerate(self.cores[rank]):
            if 0 <= lane - core.first_lane < core.lane_count:
                core.on_result(packet, self.now_ns)
                self._attend(rank, index)

    def _attend(self, rank: int, index: int) -> None:
        core = self.cores[rank][index]
        for number in core.take_completions():
            self._left[rank, number] -= 1
            if not self._left[rank, number]:
                self.done[rank].add(number)
        while packets := core.poll_transmit(self.now_ns):
            for packet in packets:
                lane = decode_header(packet).seq % self.lanes
                (tree,) = (
                    t for t in self.forest.places[rank] if 0 <= lane - t.first_lane < t.lanes
                )
                self._send(self._place(rank), self._at(tree.node), packet)
        assert not any((core.stall, core.mismatch, core.corruption))
        deadline_ns = core.next_deadline_ns(self.now_ns)
        if deadline_ns is None:
            return
        at_ns = max(deadline_ns, self.now_ns + 1)
        if at_ns < self._timers.get((rank, index), LIMIT_NS):
            self._timers[rank, index] = at_ns
            self._put(at_ns, (rank, index))

    def _send(self, source: Attachment, to: Attachment, packet: bytes) -> None:
        for delay_ns in self.fate(self.name(source), self.name(to), packet):
            self._put(self.now_ns + delay_ns, (source, to, packet))

    def _put(self, at_ns: int, event: tuple[object, ...]) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_ns, self._number, event))


class StreamGrove(Grove):
    """Of a job of mode `stream`."""

    is_stream = True
