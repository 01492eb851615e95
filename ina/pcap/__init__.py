"""Reading capture files: packets of ina in them, and the life of one slot."""

from ina.pcap.follow import Event, SlotLife, follow
from ina.pcap.frame import CaptureError
from ina.pcap.packets import Packet, packets_of
from ina.pcap.reader import Capture, CapturedFrame
from ina.pcap.switches import Address

__all__ = [
    "Address",
    "Capture",
    "CaptureError",
    "CapturedFrame",
    "Event",
    "Packet",
    "SlotLife",
    "follow",
    "packets_of",
]
