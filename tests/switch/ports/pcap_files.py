"""pcap files as tests write and read them, by others' hands than ina's."""

from __future__ import annotations

import struct
from pathlib import Path

from scapy.utils import RawPcapReader

MAGIC_US, MAGIC_NS = 0xA1B2C3D4, 0xA1B23C4D


def pcap_bytes(
    frames: list[bytes], order: str = "<", magic: int = MAGIC_NS, link_type: int = 1
) -> bytes:
    """A file, of which frame ``i`` was there at one second and ``i`` of the smaller unit."""
    out = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)
    for i, frame in enumerate(frames):
        out += struct.pack(f"{order}IIII", 1, i, len(frame), len(frame)) + frame
    return out


def frames_of(path: Path) -> list[bytes]:
    """In a file, in order."""
    return [bytes(data) for data, _ in RawPcapReader(str(path))]
