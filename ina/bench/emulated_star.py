"""The star of :mod:`ina.bench.shared_star` with a switch on packet sockets: BMv2.

Its links are those of ``ina emulate``: veth pairs without offloads, as P4 switches want them. BMv2
is slow enough for round trips to be long; nothing is added to them.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from ipaddress import IPv4Interface
from pathlib import Path

import msgspec

from ina.bench.shared_star import (
    AGGREGATOR_NAME,
    P4RUNTIME_PORT,
    StarShape,
    jobs_tables,
    shared_switch,
)
from ina.bench.standing import own_name
from ina.bench.star import READY_TIMEOUT_S, StarNetwork
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


def _topology(plan: StarShape, kind: SwitchKind) -> Topology:
    rates = {f"h{number}": plan.rate_bit_s for number in range(1, plan.workers + 1)}
    rates[AGGREGATOR_NAME] = plan.aggregator_bit_s
    hosts = []
    for number, name in enumerate(rates, 1):
        address = IPv4Interface(f"10.79.0.{number}/24")
        hosts.append(Host(name, address, derived_mac(address.ip)))
    above = hosts[-1]
    aggregator = {
        "name": above.name,
        "grpc_addr": f"{management_address(len(hosts))}:{P4RUNTIME_PORT}",
        "data_host": str(above.address.ip),
        "data_mac": above.mac,
        "port": len(hosts),
    }
    return assemble(
        Draft(
            source=Path("ina-bench"),
            name=own_name(),
            hosts=hosts,
            switches=[Switch(_SWITCH, kind)],
            links=[
                (
                    (name, f"{_SWITCH}-p{port}"),
                    {} if rate is None else {"bandwidth_mbit": rate / 1e6},
                )
                for port, (name, rate) in enumerate(rates.items(), 1)
            ],
            aggregator=None,
            aggregator_address=None,
            controller={
                "switch": shared_switch(plan),
                "aggregator": [aggregator],
                **jobs_tables(plan),
            },
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
