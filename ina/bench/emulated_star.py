"""The star of :mod:`ina.bench.shared_star` with a switch on packet sockets: BMv2.

Its links are those of ``ina emulate``: veth pairs without offloads, as P4 switches want them. BMv2
is slow enough for round trips to be long; nothing is added to them.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

import msgspec

from ina.bench.shared_star import (
    AGGREGATOR_NAME,
    StarShape,
    jobs_tables,
    shared_switch,
)
from ina.bench.standing import P4RUNTIME_PORT, READY_TIMEOUT_S, own_name
from ina.bench.star import StarNetwork
from ina.emulate.assemble import Draft, assemble
from ina.emulate.emulation import emulate
from ina.emulate.namespaces import namespace
from ina.emulate.processes import Logged, environment
from ina.emulate.topology import Host, Switch, SwitchKind, Topology, derived_mac
from ina.emulate.wiring import management_address
from ina.protocol.spec import UDP_PORT

_SWITCH = "s1"


@contextlib.contextmanager
def emulated_star(
    plan: StarShape, kind: SwitchKind, progress: Callable[[str], None] = lambda step: None
) -> Iterator[StarNetwork]:
    """Such a star with its controller, until the block ends; then nothing is left.

    ``plan.round_trip_us`` has no place here. Raises as :func:`ina.emulate.emulation.emulate`.
    """
    topology = _topology(plan, kind)
    with (
        tempfile.TemporaryDirectory(prefix="ina-bench-") as folder,
        emulate(topology, Path(folder), progress) as emulation,
    ):
        above = _start_aggregator(topology, Path(folder))
        try:
            hosts = [it for it in emulation.state.hosts if it.name != AGGREGATOR_NAME]
            state = msgspec.structs.replace(emulation.state, hosts=hosts)
            processes = (*emulation.processes, above)
            yield StarNetwork(plan.workers, plan.link, plan.rate_bit_s, state, processes)
        finally:
            above.stop()


@contextlib.contextmanager
def forwarding_star(
    workers: int,
    link: str,
    rate_bit_s: float | None,
    *,
    values: int,
    progress: Callable[[str], None] = lambda step: None,
) -> Iterator[StarNetwork]:
    """A star whose soft switch forwards all frames, and sums; until the block ends.

    Raises as :func:`ina.emulate.emulation.emulate`.
    """
    rates = {f"h{number}": rate_bit_s for number in range(1, workers + 1)}
    topology = star_topology(rates, "soft", {"switch": {"values": values}})
    with (
        tempfile.TemporaryDirectory(prefix="ina-bench-") as folder,
        emulate(topology, Path(folder), progress) as emulation,
    ):
        yield StarNetwork(workers, link, rate_bit_s, emulation.state, emulation.processes)


def _topology(plan: StarShape, kind: SwitchKind) -> Topology:
    rates = {f"h{number}": plan.rate_bit_s for number in range(1, plan.workers + 1)}
    rates[AGGREGATOR_NAME] = plan.aggregator_bit_s
    number = len(rates)
    aggregator = {
        "name": AGGREGATOR_NAME,
        "grpc_addr": f"{management_address(number)}:{P4RUNTIME_PORT}",
        "data_host": str(_address(number).ip),
        "data_mac": derived_mac(_address(number).ip),
        "port": number,
    }
    tables = {"switch": shared_switch(plan), "aggregator": [aggregator], **jobs_tables(plan)}
    return star_topology(rates, kind, tables)


def _address(number: int) -> IPv4Interface:
    return IPv4Interface(f"10.79.0.{number}/24")


def star_topology(
    rates: Mapping[str, float | None], kind: SwitchKind, controller: dict[str, Any]
) -> Topology:
    """Hosts, by the rates of their links, around one switch; None: unshaped.

    ``controller``: its tables.
    """
    addresses = {name: _address(number) for number, name in enumerate(rates, 1)}
    shapes = [{} if rate is None else {"bandwidth_mbit": rate / 1e6} for rate in rates.values()]
    ends = [(name, f"{_SWITCH}-p{port}") for port, name in enumerate(rates, 1)]
    return assemble(
        Draft(
            source=Path("ina-bench"),
            name=own_name(),
            hosts=[Host(name, it, derived_mac(it.ip)) for name, it in addresses.items()],
            switches=[Switch(_SWITCH, kind)],
            links=list(zip(ends, shapes, strict=True)),
            aggregator=None,
            aggregator_address=None,
            controller=controller,
        )
    )


def _start_aggregator(topology: Topology, folder: Path) -> Logged:
    host = topology.host(AGGREGATOR_NAME)
    number = topology.hosts.index(host) + 1
    command = [
        *(sys.executable, "-m", "ina", "aggregator", f"--listen={host.address.ip}:{UDP_PORT}"),
        f"--grpc-addr={management_address(number)}:{P4RUNTIME_PORT}",
    ]
    process = Logged(
        "the aggregator",
        namespace(topology.name, host.name),
        command,
        folder / "aggregator.log",
        environment(),
    )
    try:
        process.await_line("ready: ", READY_TIMEOUT_S)
    except BaseException:
        process.stop()
        raise
    return process
