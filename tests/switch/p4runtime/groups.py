"""Multicast groups in P4Runtime's form, and a frame that the features program sends to one."""

from __future__ import annotations

from finsy.proto import p4r
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

FRAME = bytes(Ether(dst="00:00:00:00:00:05", src="00:00:00:00:00:09") / IP(dst="10.1.2.3") / UDP())


def group(
    number: int, *replicas: tuple[int, int], old_form: bool = False
) -> p4r.PacketReplicationEngineEntry:
    """Of replicas (port, instance); ``old_form``: ports as numbers."""
    found = p4r.MulticastGroupEntry(multicast_group_id=number)
    for port, instance in replicas:
        if old_form:
            found.replicas.add(egress_port=port, instance=instance)
        else:
            found.replicas.add(
                port=port.to_bytes(2, "big").lstrip(b"\0") or b"\0", instance=instance
            )
    return p4r.PacketReplicationEngineEntry(multicast_group_entry=found)
