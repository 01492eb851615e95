"""What a worker's link tells its queue pairs of its place in a ring."""

from __future__ import annotations

import contextlib
from ipaddress import IPv4Address
from typing import Any

import pytest

from ina.host.errors import TransportError
from ina.host.link import open_ring_link
from ina.host.rdma import RdmaPatience
from ina.host.soft_ring import SoftRingLink
from ina.host.verbs_ring import VerbsRingLink
from ina.protocol.peer import Peer
from ina.protocol.ring import Ring, RingNode

SWITCH = Peer.at(("10.0.0.254", 4791))
OWN, NEXT, PREVIOUS = (IPv4Address("10.128.32.1") + it for it in range(3))


def test_without_a_device_a_ring_is_made_in_software(caplog: pytest.LogCaptureFixture) -> None:
    way = Peer.at(("127.0.0.1", 17760)), None, 4, 1024, (OWN, OWN + 99), RdmaPatience()
    with pytest.raises(TransportError, match=r"rank 0: .*end of a tunnel.*ina doctor --roce says"):
        open_ring_link("rank 0", "roce", *way)
    with contextlib.closing(open_ring_link("rank 0", "auto", *way)) as link:
        assert isinstance(link, SoftRingLink)
    (said,) = caplog.messages
    assert said.startswith("rank 0: RoCEv2 in software (roce-soft): the switch at 127.0.0.1:17760")


class Queues:
    """In the place of :class:`RcRing`."""

    out_numbers, in_numbers = [0x11, 0x13], [0x12, 0x14]

    def __init__(self, says: str = "") -> None:
        self.path: Any = None
        self._says = says

    def connect(self, path: Any) -> None:
        self.path = path
        if self._says:
            raise RuntimeError(self._says)


def link_of(queues: Any) -> VerbsRingLink:
    link = VerbsRingLink(queues, OWN, SWITCH, RdmaPatience(0.5, 3))
    link.set_dscp(46)
    return link


def node(own: IPv4Address = OWN) -> RingNode:
    ring = Ring(own, NEXT, PREVIOUS, (0x21, 0x22), (0x31, 0x32), 0xABCDEF)
    return RingNode(SWITCH.address, SWITCH.udp_port, ring=ring)


def test_queue_pairs_lead_to_both_neighbours() -> None:
    queues = Queues()
    link = link_of(queues)
    assert link.own == Peer(OWN, 0xC011, ring_pairs=(0x11, 0x13, 0x12, 0x14))
    assert link.leads_to is None
    link.lead_to(node())
    path = queues.path
    assert (path.next_ipv4, path.next_in) == (int(NEXT), [0x21, 0x22])
    assert (path.previous_ipv4, path.previous_out) == (int(PREVIOUS), [0x31, 0x32])
    assert (path.first_psn, path.traffic_class) == (0xABCDEF, 46 << 2 | 2)
    assert (path.timeout, path.retries) == (17, 3)
    assert link.leads_to == node()


@pytest.mark.parametrize(
    ("whereto", "says"),
    [
        (SWITCH, "has said no place in a ring"),
        (node(NEXT), "says that this worker has 10.128.32.2 in its ring, and its device has"),
        (node(), "past 10.0.0.254: nobody answers"),
    ],
)
def test_what_is_wrong_with_a_place_is_one_line(whereto: Peer, says: str) -> None:
    with pytest.raises(TransportError, match=says) as caught:
        link_of(Queues("nobody answers")).lead_to(whereto)
    assert "\n" not in str(caught.value)
