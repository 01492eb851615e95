"""Reading capture files: packets of ina in them, and the life of one slot."""

from ina.pcap.ends import Address
from ina.pcap.follow import Event, SlotLife, follow
from ina.pcap.frame import CaptureError
from ina.pcap.packets import UDP_PORTS, Contents, Packet, contents_of, packets_of
from ina.pcap.reader import Capture, CapturedFrame

__all__ = [
    "UDP_PORTS",
    "Address",
    "Capture",
    "CaptureError",
    "CapturedFrame",
    "Contents",
    "Event",
    "Packet",
    "SlotLife",
    "contents_of",
    "follow",
    "packets_of",
]
