"""Everything that is not INA crosses the switch as it would cross any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ina.p4 import names
from ina.protocol.spec import UDP_PORT
from ina.tables.values import DefaultAction, Entry, EntryCounter, Group
from ina.testing.case import Arrival, Case, ItemChange
from ina.testing.cases.actors import tally, team
from ina.testing.cases.admission import honest_round
from ina.testing.cases.malformed import changed
from ina.testing.device import Ability
from ina.testing.frames import CE, Frame, PortFrame
from ina.testing.state import forward

ROUTER, HOST_A, HOST_B = 0x02AA_0000_0001, 0x02AA_0000_000A, 0x02AA_0000_000B
BROADCAST = 0xFFFF_FFFF_FFFF
LLDP = 0x0180_C200_000E
GROUP = 300
_TO_CONTROLLER = (Ability.CPU_PORT,)


def cases(values: int) -> Iterator[Case]:
    """L2, flooding, L3, the CPU port, marks, and all of it beside a job."""
    yield from switched(values)
    yield from routed(values)
    yield from controller(values)
    yield from beside(values)


def datagram(dst_mac: int, dst_ipv4: int = 0x0A01_0203, **fields: Any) -> Frame:
    """An ordinary UDP datagram."""
    frame = Frame(b"ordinary", 0x0A05_0607, 5353, dst_mac=dst_mac, src_mac=HOST_A, dst_udp=53)
    return replace(frame, dst_ipv4=dst_ipv4, **fields)


def ether(dst_mac: int, ethertype: int, body: bytes) -> bytes:
    """Any frame."""
    macs = dst_mac.to_bytes(6, "big") + HOST_A.to_bytes(6, "big")
    return macs + ethertype.to_bytes(2, "big") + body


def switched(values: int) -> Iterator[Case]:
    """By destination MAC address; frames stay as they are."""
    plain = {
        "udp": datagram(HOST_B).build(),
        "arp": ether(HOST_B, 0x0806, bytes(46)),
        "ipv6": ether(HOST_B, 0x86DD, b"\x60" + bytes(60)),
        "vendor": ether(HOST_B, 0x88B5, b"x"),
        "header-alone": ether(HOST_B, 0x88B5, b""),
        "wrong-ip-checksum": datagram(HOST_B, checksum=1).build(),
        "cut-ip-header": datagram(HOST_B).build()[:25],
        "cut-udp-header": datagram(HOST_B).build()[:38],
        "ttl-0": datagram(HOST_B, ttl=0).build(),
        "from-our-udp-port": datagram(HOST_B, src_udp=UDP_PORT).build(),
        "large": ether(HOST_B, 0x88B5, bytes(range(256)) * 5),
    }
    for name, data in plain.items():
        yield Case(
            f"l2/{name}",
            "A frame to a known address leaves by that port, unchanged.",
            values,
            (forward(HOST_B, 2),),
            (Arrival(1, data).gives((2, data)), Arrival(2, data).gives((2, data))),
            {EntryCounter(names.DMAC, (("dst_mac", HOST_B),)): (2, 2 * len(data))},
        )
    data = plain["arp"]
    yield Case(
        "l2/unknown",
        "As compiled, a frame to an unknown address is dropped.",
        values,
        (forward(HOST_A, 1),),
        (Arrival(1, data),),
    )
    yield Case(
        "l2/entry-comes-and-goes",
        "Forwarding follows the table.",
        values,
        (),
        (
            Arrival(1, data),
            ItemChange(insert=(forward(HOST_B, 2),)),
            Arrival(1, data).gives((2, data)),
            ItemChange(delete=(forward(HOST_B, 2),), insert=(forward(HOST_B, 3),)),
            Arrival(1, data).gives((3, data)),
            ItemChange(delete=(forward(HOST_B, 3),)),
            Arrival(1, data),
        ),
    )
    yield from flooded(values)


def flooded(values: int) -> Iterator[Case]:
    """To a group, by the default or by an entry."""
    data = ether(HOST_B, 0x0806, bytes(46))
    group = Group(GROUP, ((1, 1), (2, 1), (3, 1)))
    everybody = ether(BROADCAST, 0x0806, bytes(46))
    flood_all = DefaultAction(names.DMAC, names.FLOOD, (("group", GROUP),))
    flood_one = Entry(names.DMAC, (("dst_mac", BROADCAST),), names.FLOOD, (("group", GROUP),))
    floods = (
        Arrival(1, everybody).gives((2, everybody), (3, everybody)),
        Arrival(3, everybody).gives((1, everybody), (2, everybody)),
        Arrival(4, everybody).gives((1, everybody), (2, everybody), (3, everybody)),
    )
    yield Case(
        "flood/default",
        "Unknown addresses go to every port of the group, but not back.",
        values,
        (group, flood_all, forward(HOST_B, 2)),
        (*floods, Arrival(3, data).gives((2, data))),
    )
    yield Case(
        "flood/entry",
        "So do addresses whose entry says so; others are dropped.",
        values,
        (group, flood_one),
        (*floods, Arrival(3, data)),
    )
    yield Case(
        "flood/default-restored",
        "The program's own default returns when the controller takes its own back.",
        values,
        (group, flood_all),
        (floods[0], ItemChange(delete=(flood_all,)), Arrival(1, everybody)),
    )


def routes() -> tuple[Entry, ...]:
    """Three networks, one within another, behind the router's address."""
    return (
        Entry(names.ROUTER_MACS, (("dst_mac", ROUTER),), names.NO_ACTION),
        *(
            Entry(
                names.IPV4_LPM,
                (("dst_addr", network),),
                names.ROUTE,
                (("port", port), ("src_mac", ROUTER), ("dst_mac", HOST_B)),
            )
            for network, port in (("10.1.0.0/16", 3), ("10.1.2.0/24", 4), ("10.1.2.3/32", 5))
        ),
        forward(ROUTER, 9),  # not asked: the router's address is routed, not switched
    )


def routed(values: int) -> Iterator[Case]:
    """IPv4, for frames to the router's address."""
    table = routes()

    def after(frame: Frame) -> bytes:
        hop = replace(frame, ttl=frame.ttl - 1, src_mac=ROUTER, dst_mac=HOST_B, checksum=None)
        return hop.build()

    for address, port in ((0x0A01_0909, 3), (0x0A01_0209, 4), (0x0A01_0203, 5)):
        # Identifications that make checksums with and without carries, and one of 0.
        sent = [datagram(ROUTER, address, identification=i) for i in range(0, 65536, 9001)]
        yield Case(
            f"l3/longest-prefix-to-{port}",
            "The longest prefix decides; TTL falls by one, the checksum follows.",
            values,
            table,
            tuple(Arrival(1, frame.build()).gives((port, after(frame))) for frame in sent),
        )
    for ttl in (2, 255):
        frame = datagram(ROUTER, ttl=ttl)
        yield Case(
            f"l3/ttl-{ttl}",
            "A packet with hops left is routed.",
            values,
            table,
            (Arrival(1, frame.build()).gives((5, after(frame))),),
        )
    yield from dropped(values)


def dropped(values: int) -> Iterator[Case]:
    """What a router does not send on, and where it sends the rest."""
    table = routes()
    good = datagram(ROUTER).build()
    for name, data in {
        "ttl-1": datagram(ROUTER, ttl=1).build(),
        "ttl-0": datagram(ROUTER, ttl=0).build(),
        "wrong-checksum": datagram(ROUTER, checksum=0xBEEF).build(),
        "no-route": datagram(ROUTER, 0xC0A8_0001).build(),
        "version-5": changed(good, 14, 0x5502),
        "header-of-4-words": changed(good, 14, 0x4402),
    }.items():
        yield Case(
            f"l3/{name}",
            "What cannot be routed is dropped.",
            values,
            table,
            (Arrival(1, data),),
        )
    default = DefaultAction(
        names.IPV4_LPM, names.ROUTE, (("port", 7), ("src_mac", ROUTER), ("dst_mac", HOST_A))
    )
    away = datagram(ROUTER, 0xC0A8_0001)
    yield Case(
        "l3/default-route",
        "The default action may be a route; it does not touch the TTL.",
        values,
        (*table, default),
        (
            Arrival(1, away.build()).gives(
                (7, replace(away, src_mac=ROUTER, dst_mac=HOST_A).build())
            ),
        ),
    )


def packet_in(port: int, data: bytes) -> PortFrame:
    """What the controller gets: the ingress port in 9 bits, 7 bits of padding, the frame."""
    return names.CPU_PORT, (port << 7).to_bytes(2, "big") + data


def controller(values: int) -> Iterator[Case]:
    """Packet-in and packet-out."""
    needs = frozenset(_TO_CONTROLLER)
    lldp = ether(LLDP, 0x88CC, b"lldp" * 10)
    punt = Entry(names.DMAC, (("dst_mac", LLDP),), names.SEND_TO_CONTROLLER)
    yield Case(
        "cpu/packet-in",
        "A frame to the controller says by which port it came.",
        values,
        (punt,),
        tuple(Arrival(port, lldp).gives(packet_in(port, lldp)) for port in (1, 3, 8)),
        needs=needs,
    )
    them = team(values, 1)
    lookalike = them.frame(0, 0, them.ones()).build()
    yield Case(
        "cpu/packet-out",
        "A frame of the controller leaves as it is, even if it looks like a contribution.",
        values,
        them.state,
        tuple(
            Arrival(names.CPU_PORT, (port << 7).to_bytes(2, "big") + data).gives((port, data))
            for port, data in ((5, lldp), (1, lookalike), (5, lookalike))
        ),
        needs=needs,
    )


def beside(values: int) -> Iterator[Case]:
    """Forwarding and aggregation do not disturb each other."""
    them = team(values, 2)
    data = datagram(HOST_B).build()
    first, last = honest_round(them)
    yield Case(
        "beside/a-round",
        "Ordinary frames between the packets of a round.",
        values,
        (*them.state, forward(HOST_B, 2)),
        (
            Arrival(1, data).gives((2, data)),
            first,
            Arrival(2, data).gives((2, data)),
            last,
            Arrival(1, data).gives((2, data)),
        ),
        tally(them, contributions=2, results=1),
    )
    group = Group(GROUP, ((2, 1), (2, 2), (3, 1)))
    marked = replace(datagram(BROADCAST, tos=0x40 | 2), identification=7)
    plain, ce = marked.build(), replace(marked, tos=0x40 | CE).build()
    not_capable = replace(marked, tos=0x40).build()
    yield Case(
        "beside/marked-by-queue",
        "A queue above the threshold marks ordinary ECN-capable packets as well.",
        values,
        (
            group,
            DefaultAction(names.DMAC, names.FLOOD, (("group", GROUP),)),
            DefaultAction(names.ECN_THRESHOLD, names.MARK_ABOVE, (("packets", 0),)),
        ),
        (
            Arrival(1, plain).gives((2, plain), (2, ce), (3, plain)),
            Arrival(1, not_capable).gives((2, not_capable), (2, not_capable), (3, not_capable)),
        ),
        needs=frozenset({Ability.STEADY_QUEUES}),
    )
