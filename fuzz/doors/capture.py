"""Capture files: pcap and pcapng, and the packets of ina in them."""

from __future__ import annotations

from fuzz.doors.memory_file import memory_file
from fuzz.doors.promise import promise, refusals
from ina.pcap import Capture, CaptureError, follow, packets_of

FOLLOWED_JOB, FOLLOWED_SLOT = 7, 0
"""What the examples hold."""


def enter(data: bytes) -> None:
    """Reads all, and follows a slot through it."""
    packets = []
    with memory_file(data) as path:
        capture = Capture(path)
        with refusals(CaptureError):
            for frame in capture:
                promise(len(frame.data) <= len(data), "a frame is of the file")
                packets += list(packets_of(frame))
        for packet in packets:
            promise(packet.header or packet.problem or packet.cut, "a bad packet has a reason")
        lives = follow(packets, FOLLOWED_JOB, FOLLOWED_SLOT)
        for life in lives:
            promise(len(life.events) <= len(packets), "each event is a packet's")
