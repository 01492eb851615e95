"""Chance follows from the seed and an element's name: runs repeat, and do not mix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from ina.extension import sim as native
from ina.extension.congestion import Choice
from ina.sim.fabric import VirtualFabric
from ina.sim.flows import Completion
from ina.sim.topology import Cable, Topology
from ina.sim.traffic import (
    AllToAllSpec,
    Flows,
    PoissonSpec,
    TcpSpec,
    TrafficSpec,
    UdpSpec,
    UdpStream,
    add_traffic,
)
from ina.sim.ways import Way
from tests.worlds.virtual.hand_job import add_workers, reduce_all

MS = 1_000_000
HERE = ["h1", "h2", "h3", "h4"]
APART = ["x1", "x2", "x3"]
WAY = Way(
    bits_per_s=10**10,
    delay_ns=2000,
    jitter_ns=1000,
    loss=0.01,
    duplication=0.01,
    reordering=0.01,
    reordering_ns=20_000,
    queue_bytes=200_000,
    marking="red",
    red_least_bytes=10_000,
    red_most_bytes=100_000,
)
POISSON = PoissonSpec(
    load=0.3,
    sizes="fixed",
    size_kib=30,
    stop_ms=2,
    sources=HERE,
    destinations=HERE,
    tcp=TcpSpec(algorithm="dctcp"),
)
UDP = UdpSpec(source="h1", destination="h4", rate_gbit=1, spacing="poisson", stop_ms=2)
OTHERS = AllToAllSpec(size_kib=20, rounds=3, sources=APART, destinations=APART)


@dataclass(frozen=True)
class Ran:
    """What happened among ``HERE``."""

    records: list[tuple[str, native.Fate, int, int, bytes]]
    completions: list[Completion]
    udp: tuple[int, int, int]


def run(seed: int, *, others: bool = False, pcap: Path | None = None) -> Ran:
    """Workers and other traffic around a P4 switch; and ``others`` that are apart, before them."""
    hosts = HERE + APART * others
    topology = Topology(
        tuple(hosts),
        {"s1": "p4"} | ({"s2": "plain"} if others else {}),
        tuple(Cable(name, "s1" if name in HERE else "s2", WAY, WAY) for name in hosts),
    )
    with VirtualFabric(topology, seed=seed) as fabric:
        trace = native.Trace(1 << 18, "" if pcap is None else str(pcap))
        fabric.network.set_trace(trace)
        fabric.switches["s1"].insert(fabric.forwarding("s1"))
        specs: list[TrafficSpec] = [OTHERS, POISSON, UDP] if others else [POISSON, UDP]
        poisson, udp = add_traffic(fabric, specs)[-2:]
        assert isinstance(poisson, Flows)
        assert isinstance(udp, UdpStream)
        # A window that fills the queue, which others' packets then find full.
        reduce_all(fabric, add_workers(fabric, HERE[:3], window=Choice("fixed")), 20_000)
        fabric.network.run(1000 * MS)
        assert poisson.active == 0
        trace.flush()
        names = trace.ports
        return Ran(
            [
                (names[of.port], of.fate, of.sent_ns, of.arrives_ns, of.head)
                for of in trace.records()
                if "x" not in names[of.port]
            ],
            list(poisson.completions()),
            (udp.counters.sent_packets, udp.counters.received_packets, udp.counters.delay_ns),
        )


def test_the_same_seed_gives_the_same_capture_byte_for_byte(tmp_path: Path) -> None:
    first, second = tmp_path / "first.pcap", tmp_path / "second.pcap"
    ran = run(1, pcap=first)
    assert run(1, pcap=second) == ran
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size > 1 << 20
    # RED drops what is not ECN-capable.
    fates = {native.Fate.ARRIVES, native.Fate.LOST, native.Fate.QUEUE_FULL}
    assert {fate for _, fate, *_ in ran.records} == fates
    other = run(2)
    assert other.records != ran.records
    assert other.udp != ran.udp


def test_an_element_more_elsewhere_changes_nothing_here() -> None:
    assert run(3, others=True) == run(3)


@pytest.mark.parametrize("name", ["", "other"])
def test_draws_follow_from_the_name(name: str) -> None:
    def starts(spec: PoissonSpec) -> list[int]:
        with VirtualFabric(
            Topology(("h1", "h2"), {}, (Cable("h1", "h2", WAY, WAY),)), seed=1
        ) as fabric:
            [running] = add_traffic(fabric, [spec])
            fabric.network.run(10**10)
            assert isinstance(running, Flows)
            return sorted(flow.started_ns for flow in running.completions())

    spec = msgspec.structs.replace(POISSON, sources=["h1"], destinations=["h2"])
    same = starts(msgspec.structs.replace(spec, name=name)) == starts(spec)
    assert same == (name == "")
