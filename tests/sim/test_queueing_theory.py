"""A port under Poisson arrivals of frames of one size is a queue that theory has solved."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ina._native.sim import PortCounters
from ina.sim.fabric import VirtualFabric
from ina.sim.traffic import add_traffic
from ina.sim.ways import Way
from tests.selection import LONG
from tests.sim.flow_networks import pair, poisson_stream

BITS_PER_S = 10**8
PAYLOAD_BYTES = 16
WIRE_BYTES = 24 + 14 + 20 + 8 + PAYLOAD_BYTES
SERVICE_NS = WIRE_BYTES * 8 * 10**9 // BITS_PER_S
MORE = 8 if LONG else 1
# The number of packets makes the estimate's standard deviation about a third of that.
BOUND = 0.02


def port_under(load: float, packets: int, queue_bytes: int = 1 << 40) -> PortCounters:
    """What the port counts once about so many packets have come."""
    way = Way(bits_per_s=BITS_PER_S, delay_ns=0, queue_bytes=queue_bytes)
    with VirtualFabric(pair(way), seed=5) as fabric:
        add_traffic(fabric, [poisson_stream(BITS_PER_S, load, PAYLOAD_BYTES)])
        fabric.network.run(round(packets * SERVICE_NS / load))
        return fabric.ports["h1>h2"].counters


@pytest.mark.parametrize(
    ("load", "packets"), [(0.5, 800_000), (0.7, 800_000), (0.9, 2_000_000), (0.95, 6_000_000)]
)
def test_frames_wait_as_long_as_in_an_m_d_1_queue(load: float, packets: int) -> None:
    counters = port_under(load, packets * MORE)
    assert counters.sent_packets == pytest.approx(packets * MORE, rel=BOUND)
    assert counters.full_packets == 0
    # Pollaczek-Khinchine, for a service time that does not vary.
    expected_ns = load * SERVICE_NS / (2 * (1 - load))
    assert counters.waited_ns / counters.sent_packets == pytest.approx(expected_ns, rel=BOUND)


def drop_rate(load: float, places: int) -> float:
    """Of an M/D/1/K queue with so many places, the one in service among them: exactly, from the
    Markov chain of what departing frames leave behind."""
    arrivals = [
        math.exp(-load) * load**count / math.factorial(count) for count in range(places + 1)
    ]
    chain = np.zeros((places, places))
    for left in range(places):
        staying = max(left - 1, 0)  # one of them goes next; where none is left, the next arrival
        for after in range(staying, places - 1):
            chain[left, after] = arrivals[after - staying]
        chain[left, places - 1] = 1 - chain[left].sum()
    balance = np.vstack([chain.T - np.eye(places), np.ones(places)])
    shares = np.linalg.lstsq(balance, np.append(np.zeros(places), 1), rcond=None)[0]
    return float(1 - 1 / (shares[0] + load))


def test_the_chain_has_the_known_solution_of_one_place() -> None:
    # Then a frame is lost exactly if another is in service: Erlang's B formula.
    assert drop_rate(0.8, 1) == pytest.approx(0.8 / 1.8)


@pytest.mark.parametrize(
    ("load", "places"), [(0.5, 2), (0.7, 3), (0.9, 5), (0.95, 8)], ids=lambda value: f"{value}"
)
def test_a_short_queue_drops_as_many_as_an_m_d_1_k_queue(load: float, places: int) -> None:
    counters = port_under(load, 800_000 * MORE, (places - 1) * WIRE_BYTES)
    dropped = counters.full_packets / counters.offered_packets
    assert dropped == pytest.approx(drop_rate(load, places), rel=BOUND)
