"""What no software can beat: bytes on the wire, with all headers, over the link's rate.

Ethernet frames count 14 bytes of header, no FCS, preamble or gap: that is what Linux' token bucket
counts, which stands for the wire in a star of namespaces.
"""

from __future__ import annotations

import math

from ina.p4.builds import frame_bytes
from ina.protocol.spec import VALUE_BYTES

_TCP_HEADER_BYTES = 14 + 20 + 32
"""Ethernet, IPv4, TCP with timestamps."""
_MTU_BYTES = 1500
_TCP_SEGMENT_BYTES = _MTU_BYTES - 20 - 32

TCP_PAYLOAD_SHARE = _TCP_SEGMENT_BYTES / (_TCP_HEADER_BYTES + _TCP_SEGMENT_BYTES)
"""Of what a long TCP flow has on the wire."""


def ina_payload_share(values: int) -> float:
    """Of what a job of long tensors has on the wire, ``values`` a packet."""
    return values * VALUE_BYTES / ina_wire_bytes(values, values)


def ina_wire_bytes(elems: int, values: int) -> int:
    """On one worker's link in each direction: the tensor once, ``values`` a packet.

    The first packets of a float tensor, which agree on exponents and carry no values, are not
    counted: they are the protocol's, not the wire's.
    """
    packets = math.ceil(elems / values)
    return elems * VALUE_BYTES + packets * frame_bytes(0)


def ring_wire_bytes(tensor_bytes: int, workers: int) -> float:
    """On one worker's link in each direction for a ring over TCP: 2 (n - 1) / n of the tensor."""
    payload = 2 * (workers - 1) / workers * tensor_bytes
    return payload * (1 + _TCP_HEADER_BYTES / _TCP_SEGMENT_BYTES)


def crossings(workers: int, multicast: bool, racks: int = 0) -> int:
    """How often a tensor's packets cross the UDP of a machine that has workers and switches.

    Each worker's go up once. Results come down once for each worker, or once in all: what further
    receivers of a multicast cost is not counted, so that nothing can be faster. ``racks``: switches
    between the workers and the root, each with a way up and one down; 0: all are at the root.
    """
    return workers + 2 * racks + (max(racks, 1) if multicast else workers)


def link_s(wire_bytes: float, rate_bit_s: float) -> float:
    """Seconds on a link of so many bits a second."""
    return wire_bytes * 8 / rate_bit_s
