"""What a packet can be refused for. Each message is one line: what, and what was expected."""

from __future__ import annotations

from ina.errors import InvalidInputError


class PacketError(InvalidInputError):
    """Base of the reasons to refuse a packet; the packet is dropped and counted."""


class TruncatedPacketError(PacketError):
    """Shorter than the header, or than the values that the header announces."""


class OverlongPacketError(PacketError):
    """Bytes follow the values."""


class UnknownVersionError(PacketError):
    """A wire format version that this build does not speak."""


class UnknownKindError(PacketError):
    """A kind that is not in :class:`ina.protocol.spec.Kind`."""


class ValueCountError(PacketError):
    """A value_count that is neither 0 nor what this build carries."""


class ForeignPacketError(PacketError):
    """Another protocol's packet, where one of RoCEv2 is expected."""


class IcrcError(PacketError):
    """The invariant CRC at a packet's end is not that of the packet."""


class FieldRangeError(InvalidInputError):
    """A header field was given a number that does not fit its bits."""
