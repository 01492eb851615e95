"""Random traffic that is not INA: tables that forward it, and frames that meet them."""

from __future__ import annotations

import random

from ina.p4 import names
from ina.protocol.spec import UDP_PORT
from ina.tables.values import AnyItem, DefaultAction, Entry, Group
from ina.testing.frames import SWITCH_MAC, Frame, PortFrame
from ina.testing.state import forward

PORT = 33
"""Where ordinary frames to the switch's own address go."""
GROUP = 0x3000
_ROUTER, _HOST, _NOBODY = 0x02AA_0000_0001, 0x02AA_0000_0002, 0x02AA_0000_0003
_MACS = (SWITCH_MAC, _ROUTER, _ROUTER, _HOST, _NOBODY, 0xFFFF_FFFF_FFFF)
_NETWORKS = (("10.0.0.0/8", 3), ("10.1.0.0/16", 4), ("10.1.2.0/24", 5), ("10.1.2.3/32", 33))
_ADDRESSES = (0x0A01_0203, 0x0A01_0204, 0x0A01_0304, 0x0A02_0304, 0xC0A8_0001)


def ordinary_state() -> tuple[AnyItem, ...]:
    """L2 and L3 tables, and a flood for all that they do not know."""
    return (
        Group(GROUP, ((1, 1), (2, 1), (3, 1), (33, 1))),
        DefaultAction(names.DMAC, names.FLOOD, (("group", GROUP),)),
        forward(SWITCH_MAC, PORT),
        forward(_HOST, 2),
        Entry(names.ROUTER_MACS, (("dst_mac", _ROUTER),), names.NO_ACTION),
        *(
            Entry(
                names.IPV4_LPM,
                (("dst_addr", network),),
                names.ROUTE,
                (("port", port), ("src_mac", _ROUTER), ("dst_mac", _HOST)),
            )
            for network, port in _NETWORKS
        ),
    )


def ordinary_frame(rng: random.Random) -> PortFrame:
    """A datagram of somebody to somebody, whole or nearly so."""
    frame = Frame(
        rng.randbytes(rng.choice((0, 8, 64, 700))),
        src_ipv4=rng.getrandbits(32),
        src_udp=rng.getrandbits(16),
        dst_mac=rng.choice(_MACS),
        dst_ipv4=rng.choice(_ADDRESSES),
        dst_udp=rng.choice((53, 4000, 17759, UDP_PORT)),  # of another switch
        ttl=rng.choice((0, 1, 2, 64, 255)),
        tos=rng.getrandbits(8),
        identification=rng.getrandbits(16),
        checksum=rng.choice((None, None, None, 0x1234)),
    )
    data = bytearray(frame.build())
    if rng.random() < 0.3:
        data[12:14] = rng.choice((b"\x08\x06", b"\x86\xdd", b"\x88\xcc"))
    if rng.random() < 0.2:
        data[14] = rng.choice((0x44, 0x46, 0x4F, 0x55, 0x60))
    return rng.randrange(1, 5), bytes(data)
