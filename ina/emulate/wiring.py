"""Namespaces, interfaces, addresses and queues of a topology.

The namespace ``net`` holds all switches, the controller, and their ends of the links (``s1-p1``). A
host has a namespace of its own with ``eth0``, its link to a switch, and ``mgmt0``, a link to the
controller's machine beside the switches, as real ones have it.
"""

from __future__ import annotations

from ipaddress import IPv4Address

from ina import netns
from ina.emulate.errors import TopologyError
from ina.emulate.namespaces import give_names, namespace
from ina.emulate.topology import EmulatedLink, End, Host, Topology
from ina.netns import ip

NET = "net"
CONTROLLER_ADDRESS = IPv4Address("172.31.255.254")
_MANAGEMENT = IPv4Address("172.31.240.0")
"""Host n's mgmt0 has this address + n."""
DATA_INTERFACE, MANAGEMENT_INTERFACE = "eth0", "mgmt0"
_TBF_MIN_BURST_BYTES = 16 << 10
_TBF_BURST_S = 0.004
"""A bucket lasts for one tick of the slowest kernel clock, 250 Hz: smaller ones lose speed."""


def namespaces_of(topology: Topology) -> list[str]:
    """All that it needs."""
    return [
        namespace(topology.name, node) for node in (NET, *(host.name for host in topology.hosts))
    ]


def build(topology: Topology) -> None:
    """Makes all of it. Raises :class:`NetnsError`; :func:`namespaces.remove` undoes it."""
    _check_management(topology)
    net = namespace(topology.name, NET)
    addresses = [(str(host.address.ip), host.name) for host in topology.hosts]
    addresses.append((str(CONTROLLER_ADDRESS), "controller"))
    for name in namespaces_of(topology):
        netns.add_host(name)
        give_names(name, addresses)
    ip(net, "addr", "add", f"{CONTROLLER_ADDRESS}/32", "dev", "lo")
    for link in topology.links:
        _lay(topology, link)
    for number, host in enumerate(topology.hosts, 1):
        _configure(topology, host)
        _manage(topology, number, host)


def _check_management(topology: Topology) -> None:
    for host in topology.hosts:
        if CONTROLLER_ADDRESS in host.address.network:
            raise TopologyError(
                f"{topology.source}: hosts.{host.name}.ip: {host.address.network} holds"
                f" {CONTROLLER_ADDRESS}, the emulation's controller"
            )


def _lay(topology: Topology, link: EmulatedLink) -> None:
    kinds = {switch.name: switch.kind for switch in topology.switches}
    one, other = (_interface(topology, end) for end in link.ends)
    netns.add_pairs([(one, other)])
    for made, end in zip((one, other), link.ends, strict=True):
        space, interface = made
        with netns.inside(space):
            switch_off_offload(interface)
        if end.port is None:
            host = topology.host(end.node)
            ip(space, "link", "set", interface, "address", host.mac)
        if any(kinds.get(it.node) == "xdp" for it in link.ends):
            netns.receive_in_bursts(made)
        ip(space, "link", "set", interface, "up")
        if link.bandwidth_mbit is not None:
            _shape(made, link.bandwidth_mbit, link.queue_kib)


def pull_out(topology: Topology, link: EmulatedLink) -> None:
    """Nothing leaves by either end of a cable any more.

    Interfaces stay up: BMv2 would not read from one again that was down. Raises
    :class:`NetnsError`.
    """
    for end in link.ends:
        netns.drop_all(_interface(topology, end))


def plug_in(topology: Topology, link: EmulatedLink) -> None:
    """As it was before :func:`pull_out`."""
    for end in link.ends:
        made = _interface(topology, end)
        netns.unshape(made)
        if link.bandwidth_mbit is not None:
            _shape(made, link.bandwidth_mbit, link.queue_kib)


def _interface(topology: Topology, end: End) -> netns.End:
    if end.port is None:
        return netns.End(namespace(topology.name, end.node), DATA_INTERFACE)
    return netns.End(namespace(topology.name, NET), str(end))


def _shape(end: netns.End, bandwidth_mbit: float, queue_kib: int) -> None:
    rate_bits_s = round(bandwidth_mbit * 1e6)
    burst_bytes = max(_TBF_MIN_BURST_BYTES, round(rate_bits_s / 8 * _TBF_BURST_S))
    netns.shape(end, rate_bits_s, burst_bytes, queue_kib << 10)


def _configure(topology: Topology, host: Host) -> None:
    """Address, and whom it reaches: no ARP, for the switches do not flood."""
    space = namespace(topology.name, host.name)
    ip(space, "addr", "add", str(host.address), "dev", DATA_INTERFACE)
    others = [(other.address.ip, other.mac) for other in topology.hosts if other is not host]
    for switch, address in topology.aggregators.items():
        others.append((address, topology.switch_mac(switch)))
    for address, mac in others:
        ip(space, "neigh", "add", str(address), "lladdr", mac, "dev", DATA_INTERFACE)
        if topology.aggregators and address not in host.address.network:
            ip(space, "route", "add", f"{address}/32", "dev", DATA_INTERFACE)


def management_address(number: int) -> IPv4Address:
    """Of host ``number``, from 1, in the topology's order: where the controller reaches it."""
    return _MANAGEMENT + number


def _manage(topology: Topology, number: int, host: Host) -> None:
    space, net = namespace(topology.name, host.name), namespace(topology.name, NET)
    own, port = management_address(number), f"mgmt{number}"
    netns.add_pairs([(netns.End(net, port), netns.End(space, MANAGEMENT_INTERFACE))])
    ip(net, "link", "set", port, "up")
    ip(net, "route", "add", f"{own}/32", "dev", port)
    ip(space, "link", "set", MANAGEMENT_INTERFACE, "up")
    ip(space, "addr", "add", f"{own}/32", "dev", MANAGEMENT_INTERFACE)
    ip(space, "route", "add", f"{CONTROLLER_ADDRESS}/32", "dev", MANAGEMENT_INTERFACE)


def switch_off_offload(interface: str) -> None:
    """What a network card would do for the kernel; an interface in this thread's namespace.

    Behind a veth pair there is no card. With it on, the kernel hands on TCP segments of 64 KiB and
    checksums that are still to be computed; BMv2 would drop the one and deliver the other as they
    are. Raises OSError.
    """
    for command in (netns.SET_TX_CHECKSUMS, netns.SET_TSO, netns.SET_GSO, netns.SET_GRO):
        netns.set_offload(interface, command, on=False)
