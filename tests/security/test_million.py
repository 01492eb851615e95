"""A stranger sends contributions for a job that runs: none is accepted, all are counted.

Each would spoil a sum if it were a member's: the job, epoch and worker are right, the slot and the
sequence number are those of this moment. Wrong is where they come from, and that alone. The job's
sums are of one packet: of a train that finds no room, the kernel would count one drop.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import pytest

from ina.controller.config import Config, make_config
from ina.host import Session
from ina.switch.ports import AfPacketPort, Port, UdpPort
from ina.switch.server import SoftSwitch
from tests.security.jobs import SummingJob
from tests.selection import LONG
from tests.worlds.fakes.stranger import (
    SWITCH_ADDRESS,
    SWITCH_MAC,
    SWITCH_UDP_PORT,
    VALUES,
    WORKERS,
    Ledger,
    Scene,
    Stranger,
    attack,
    inside_of,
    scene,
    sessions,
    socket_of,
)
from tests.worlds.processes.namespaces import hosts, ip

PACKETS = 1_000_000 if LONG else 20_000


@contextlib.contextmanager
def at(source: tuple[str, int], switch: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        sock.bind(source)
        sock.connect(switch)
        sock.setblocking(False)
        yield sock


def check(ledger: Ledger, strangers: Sequence[Stranger]) -> None:
    """None accepted, all counted; none answered, but for who is a worker itself."""
    assert ledger.by_strangers > 0
    assert ledger.missing == 0, ledger
    # All that was refused was a stranger's, and for its place; the rest the kernel has dropped.
    members = ledger.counted["drops member"]
    assert members == ledger.refused
    assert ledger.by_strangers - ledger.kernel_drops <= members <= ledger.by_strangers
    # So whoever was admitted was a worker.
    assert ledger.by_workers - ledger.kernel_drops <= ledger.admitted <= ledger.by_workers
    for stranger in strangers:
        if not stranger.name.startswith("worker"):
            with pytest.raises(BlockingIOError):
                stranger.sock.recv(1)


def check_workers(job: SummingJob) -> None:
    for session in job.sessions:
        stats = session.stats()
        assert stats.refused_results == 0
        assert stats.chunks_done > 0


@contextlib.contextmanager
def at_a_udp_port() -> Iterator[tuple[Scene, list[Session], list[Stranger]]]:
    switch = SoftSwitch([UdpPort(1)])

    def config(grpc_addr: str) -> Config:
        address, port = switch.udp_address(1)
        return config_of(grpc_addr, data_host=address, data_udp_port=port)

    with scene(switch, config) as place, contextlib.ExitStack() as stack:
        victims = stack.enter_context(sessions(place.app.listen_addr, [None] * WORKERS))
        target = switch.udp_address(1)
        own, other = (stack.enter_context(socket_of(victim)) for victim in victims)
        places = (("127.0.0.1", 0), ("127.0.0.2", own.getsockname()[1]), ("127.0.0.3", 0))
        same_host, same_port, elsewhere = (stack.enter_context(at(p, target)) for p in places)
        strangers = [
            Stranger("another UDP port", same_host, 0),
            Stranger("another address", same_port, 0),
            Stranger("elsewhere", elsewhere, 1),
            Stranger("worker 1 as worker 0", other, 0),
            Stranger("worker 0 as a worker that is none", own, WORKERS),
        ]
        yield place, victims, strangers


def test_a_stranger_at_a_udp_port() -> None:
    with at_a_udp_port() as (place, victims, strangers):
        job = SummingJob("victim", [], victims, VALUES)
        check(attack(place, strangers, job, PACKETS), strangers)
        check_workers(job)


def test_what_the_kernel_drops_is_in_the_ledger() -> None:
    """A flood that the switch's receive buffer does not hold: each packet of it is counted, too."""
    with at_a_udp_port() as (place, victims, strangers):
        shrink_buffer_of(place.switch.udp_address(1))
        job = SummingJob("victim", [], victims, VALUES)
        ledger = attack(place, strangers, job, 20_000, pause_s=0.0)
        assert ledger.kernel_drops > 0
        check(ledger, strangers)
        check_workers(job)


def shrink_buffer_of(address: tuple[str, int]) -> None:
    """Of the socket of this process that is bound there: to the least that the kernel allows."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry))) as sock:
            if sock.type == socket.SOCK_DGRAM and sock.getsockname() == address:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)


def test_a_stranger_at_a_packet_socket() -> None:
    """Ports of the switch are cables here: the right address at another port is a stranger's."""
    with hosts(WORKERS + 1) as machines, contextlib.ExitStack() as stack:
        for host in machines:
            ip(*("-n", host.namespace, "neigh", "add", SWITCH_ADDRESS),
               *("lladdr", SWITCH_MAC, "dev", "eth0"))  # fmt: skip
        ports: list[Port] = [AfPacketPort(n, h.interface) for n, h in enumerate(machines, 1)]
        table = [{"address": h.address, "port": n, "mac": h.mac} for n, h in enumerate(machines, 1)]

        def config(grpc_addr: str) -> Config:
            where = {"data_host": SWITCH_ADDRESS, "data_udp_port": SWITCH_UDP_PORT}
            return config_of(grpc_addr, hosts=table[:WORKERS], **where)

        place = stack.enter_context(scene(SoftSwitch(ports), config))
        stack.enter_context(mock.patch("ina.host.udp.open_socket", inside_of(machines)))
        members, outside = machines[:WORKERS], machines[WORKERS]
        addresses = [host.address for host in members]
        victims = stack.enter_context(sessions(place.app.listen_addr, addresses))
        own, other = (stack.enter_context(socket_of(victim)) for victim in victims)
        target = (SWITCH_ADDRESS, SWITCH_UDP_PORT)
        ip("-n", outside.namespace, "addr", "add", f"{addresses[0]}/32", "dev", "eth0")
        with outside.inside():
            same = stack.enter_context(at((addresses[0], own.getsockname()[1]), target))
            elsewhere = stack.enter_context(at((outside.address, 0), target))
        strangers = [
            Stranger("worker 0's address and UDP port, at another port of the switch", same, 0),
            Stranger("another address", elsewhere, 0),
            Stranger("worker 1 as worker 0", other, 0),
        ]
        job = SummingJob("victim", [], victims, VALUES)
        check(attack(place, strangers, job, PACKETS), strangers)
        check_workers(job)


def config_of(grpc_addr: str, hosts: Sequence[dict[str, Any]] = (), **switch: Any) -> Config:
    return make_config(
        {
            "listen": "127.0.0.1:0",
            "switch": {"grpc_addr": grpc_addr, "values": VALUES, **switch},
            "jobs": {"slots": 64},
            "host": list(hosts),
        },
        "test",
    )


def test_a_ledger_misses_what_nothing_counts() -> None:
    """The check above can fail: a packet that is nowhere, and one that was taken for a member's."""

    counted = Counter({"job_contributions": 8, "drops member": 5, "drops stale": 2, "job_stale": 2})
    assert Ledger(5, 10, counted, 0).missing == 0
    assert Ledger(6, 10, counted, 0).missing == 1
    accepted = Counter({"job_contributions": 11, "drops member": 4})
    ledger = Ledger(5, 10, accepted, 0)
    assert ledger.missing == 0
    assert ledger.admitted > ledger.by_workers
