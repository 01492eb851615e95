"""Worker of ``ina bench collectives``, one process a rank. Rank 0 prints JSON lines.

Each collective on each size is done by ina, by Gloo, and where it is one packet by bare datagrams
beside them, in turns, so that all meet the same state of the machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist

import ina.torch
from ina.bench.collective_kinds import LinkBytes, SizedCollective, is_round_trip
from ina.bench.collectives import ECHO, GLOO, INA, RING, CollectivesOrder
from ina.bench.testbed import asked_of
from ina.bench.torch.bare_udp import UdpEnd
from ina.bench.torch.exchanges import Exchange
from ina.bench.torch.link_counters import LinkCounters
from ina.bench.torch.ranks import Ranks
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES
from ina.torch.env import Settings

_WARM_UP = 2
_SAMPLE_S = 0.25
"""A sample repeats a short operation until it takes about so long: a barrier ends less exactly."""
_MAX_CALLS = 64
_SAMPLE_BYTES = 64 << 20
"""Each repetition within a sample has a tensor of its own, as a training step does."""


@dataclass
class WayTimes:
    """What one of them needed."""

    run: Callable[[int], None]
    """So many times, one after the other."""
    over: str
    times_s: list[float] = field(default_factory=list)
    """Of one operation, of the slowest rank."""
    moved: list[tuple[float, float]] = field(default_factory=list)
    """Bytes sent and received for one operation, of each rank; empty: links count nothing."""
    wrong: int = 0


class Turns:
    """Measures all ways of one case."""

    def __init__(
        self, case: SizedCollective, asked: CollectivesOrder, ranks: Ranks, host: str
    ) -> None:
        self._asked, self._ranks = asked, ranks
        self._calls = 1
        self._case, self._dtype = case, getattr(torch, asked.dtype)
        self._exchange = Exchange(case, self._dtype)
        self.ways: dict[str, WayTimes] = {
            INA: WayTimes(lambda calls: self._call(None, calls), ""),
            GLOO: WayTimes(lambda calls: self._call(ranks.gloo, calls), "tcp"),
        }
        self._bare: list[UdpEnd] = []
        if is_round_trip(case, asked.values):
            has_values = case.words > 0
            payload_bytes = HEADER_BYTES + VALUE_BYTES * asked.values * has_values
            self._bare = [UdpEnd(host, payload_bytes) for _ in (ECHO, RING)]
            self.ways[ECHO] = WayTimes(echoed(self._bare[0], ranks), "udp")
            self.ways[RING] = WayTimes(passed_on(self._bare[1], ranks), "udp")

    def measure(self, counters: LinkCounters | None) -> None:
        """Samples in turns until there are enough, or the time is over and there are three."""
        asked, ranks = self._asked, self._ranks
        for name, group, spoil in ((INA, None, asked.spoil), (GLOO, ranks.gloo, 0)):
            before = _packets_sent()
            wrong = self._exchange.wrong(group, ranks.gloo, spoil)
            self.ways[name].wrong = ranks.total(wrong)
            if name == INA:
                transport = str(ina.torch.stats().session["transport"])
                self.ways[name].over = transport if _packets_sent() > before else "gloo"
        self._settle()
        begun = time.perf_counter()
        for turn in range(asked.repeats):
            for way in self.ways.values():
                way.times_s.append(self._sample(way))
            late = time.perf_counter() - begun > asked.seconds and turn >= 2
            if ranks.first(int(late)):
                break
        if counters is not None:
            self._repeat(self._most_calls)  # beside many, what else ranks send is little
            for name in (INA, GLOO):
                self.ways[name].moved = self._moved(self.ways[name], counters)
        for end in self._bare:
            end.close()

    def _call(self, group: Any, calls: int) -> None:
        for number in range(calls):
            self._exchange.call(number, group)

    def _settle(self) -> None:
        """Warms up, and chooses how often a sample repeats the operation: all ways alike."""
        for _ in range(_WARM_UP):
            longest = max(self._sample(way) for way in self.ways.values())
        count = round(_SAMPLE_S / max(longest, 1e-9))
        self._repeat(self._ranks.first(max(1, min(count, self._most_calls))))

    @property
    def _most_calls(self) -> int:
        most = _SAMPLE_BYTES // max(1, self._case.size_bytes)
        return max(1, min(most, _MAX_CALLS))

    def _repeat(self, calls: int) -> None:
        self._calls = calls
        self._exchange = Exchange(self._case, self._dtype, calls)

    def _sample(self, way: WayTimes) -> float:
        self._exchange.fill()
        self._ranks.meet()
        started = time.perf_counter()
        way.run(self._calls)
        return self._ranks.most(time.perf_counter() - started) / self._calls

    def _moved(self, way: WayTimes, counters: LinkCounters) -> list[tuple[float, float]]:
        """What a sample has on the links, less what is there without it."""
        whole, beside = self._window(way, counters), self._window(None, counters)
        return [
            ((it.sent - of.sent) / self._calls, (it.received - of.received) / self._calls)
            for it, of in zip(whole, beside, strict=True)
        ]

    def _window(self, way: WayTimes | None, counters: LinkCounters) -> list[LinkBytes]:
        self._exchange.fill()
        self._ranks.meet()
        before = counters.read()
        self._ranks.meet()
        if way is not None:
            way.run(self._calls)
        self._ranks.meet()
        after = counters.read()
        return self._ranks.each(
            LinkBytes(after.sent - before.sent, after.received - before.received)
        )


def echoed(echo: UdpEnd, ranks: Ranks) -> Callable[[int], None]:
    """Of this rank's end: the first rank asks, the last one answers, the others have nothing to
    do."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    places = ranks.places(echo.place)
    if rank == 0:
        echo.connect(places[last])
        return echo.ask
    if rank == last:
        echo.connect(places[0])
        return echo.answer
    return lambda count: None


def passed_on(end: UdpEnd, ranks: Ranks) -> Callable[[int], None]:
    """Of this rank's end: one to the next rank, one from the rank before."""
    places = ranks.places(end.place)
    peer = places[(dist.get_rank() + 1) % len(places)]
    return lambda count: end.pass_on(count, peer)


def _packets_sent() -> int:
    return int(ina.torch.stats().session["packets_sent"])


def main() -> None:
    """Measure every case; one JSON line each."""
    asked = asked_of(CollectivesOrder)
    torch.set_num_threads(1)
    dist.init_process_group("ina")
    ranks = Ranks()
    host = Settings.from_environ().host or "127.0.0.1"
    counters = LinkCounters(asked.net) if asked.net else None
    for case in asked.cases(dist.get_world_size()):
        turns = Turns(case, asked, ranks, host)
        turns.measure(counters)
        if dist.get_rank() == 0:
            record = {
                name: {
                    "times_s": way.times_s,
                    "moved": way.moved,
                    "wrong": way.wrong,
                    "over": way.over,
                }
                for name, way in turns.ways.items()
            }
            print(json.dumps(record), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
