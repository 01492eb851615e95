"""The wire format of ina, defined once: every other definition is emitted from this table.

A packet is Ethernet / IPv4 / UDP / header (28 bytes) / ``value_count`` int32 values. All fields are
in network byte order. The P4 header, the C++ header, the scapy layer, the Wireshark dissector and
the table in docs/protocol.md are generated from :data:`FIELDS` and the enumerations below.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

VERSION = 3
UDP_PORT = 17760
"""The port of the switch. A packet to or from any other port is ordinary traffic."""

RESULTS_UDP_PORT = 17761
"""Where workers listen for results that come to several of them at once, by IP multicast."""

MAX_WORKERS = 32
"""Width of the contributors bitmap of one level."""

ALL_WORKERS = 255
"""``worker`` of such a result: whoever of the job receives it."""

VALUES_PER_PACKET_BUILDS = (64, 256, 360, 1024)
"""Values a packet in the checked-in builds of the P4 program (a compile-time constant there).

64 is what a Tofino sums; 360 is the most that a multiple of 8 fits into an MTU of 1500; 1024,
4 KiB, is for shared memory and jumbo frames.
"""
DEFAULT_VALUES_PER_PACKET = 256
"""Of a soft switch or BMv2, where nobody chose: 1 KiB, which a tunnel's smaller MTU still bears."""


class Kind(IntEnum):
    """What a packet is."""

    CONTRIBUTION = 1  # a worker's values, to be summed
    RESULT = 2  # the sum, to the workers
    PARAMETER = 3  # mode `shared`: result and de-allocation, from the parameter server
    CONTROL = 4  # in-band control (probe, connectivity test)
    REFUSAL = 5  # why a contribution was not accepted


class Flag(IntFlag):
    """What happened to a packet on its way. A slot ORs ECN, OVERFLOW and NON_FINITE."""

    RESEND = 0x01  # the worker has sent this chunk before
    COLLISION = 0x02  # mode `shared`: the slot belongs to somebody else
    ECN = 0x04  # a queue on the way was long
    OVERFLOW = 0x08  # the integer sum may have wrapped
    NON_FINITE = 0x10  # a contribution held Inf or NaN: every value of the result is NaN
    PARTIAL = 0x20  # mode `partial`: not every worker is in the sum


NO_FLAGS = Flag(0)


class DropReason(IntEnum):
    """Why a switch dropped an INA packet: the index of the switch's drop counter.

    The checks are made in this order, and the first that fails is counted.
    """

    MALFORMED = 0  # truncated, or the UDP payload is not header + value_count values
    VERSION = 1  # a wire format version that this switch does not speak
    KIND = 2  # not a kind that this switch accepts (mode `pool`: contributions only)
    JOB = 3  # no such job, or another epoch of it
    MEMBER = 4  # not the port, address and worker that the controller admitted to the job
    SLOT = 5  # slot index outside the job's range
    STALE = 6  # older than the slot's owner: its worker has had the result, or its job is gone
    DUPLICATE = 7  # already in a sum that is not complete yet


class ValueType(IntEnum):
    """Type of the tensor that the int32 values stand for."""

    INT32 = 0  # the values themselves; sums wrap around
    FLOAT32 = 1  # IEEE 754 binary32, scaled by the block's exponent
    FLOAT16 = 2  # IEEE 754 binary16, scaled alike
    BFLOAT16 = 3  # the upper half of a binary32, scaled alike


@dataclass(frozen=True)
class Field:
    """One header field: name, width in bits, meaning."""

    name: str
    bits: int
    meaning: str


FIELDS: tuple[Field, ...] = (
    Field("version", 4, f"wire format version, {VERSION}"),
    Field("kind", 4, "what the packet is, see Kind"),
    Field("flags", 8, "see Flag"),
    Field("job", 16, "job number, given by the controller"),
    Field("epoch", 16, "low 16 bits of the job's incarnation; packets of any other are refused"),
    Field("worker", 8, "rank within its level, 0..31; in a result: the receiver"),
    Field("level", 4, "level of aggregation, or target switch (modes with several switches)"),
    Field("priority", 4, "larger is more urgent (modes with preemption); 0 otherwise"),
    Field("slot", 16, "slot index within the job's range, 0..slots-1"),
    Field("value_type", 4, "type of the tensor, see ValueType"),
    Field("value_count", 12, "int32 values behind it: the build's constant, or 0 (exponents only)"),
    Field("seq", 32, "sequence number of the chunk; serial-number arithmetic (RFC 1982)"),
    Field("contributors", 32, "bitmap of the workers in the values, bit = worker"),
    Field("exponent", 8, "biased exponent of this chunk's values; 0: all zero"),
    Field("next_exponent", 8, "the same of the chunk one window ahead; a slot keeps the maximum"),
    Field("digest", 16, "of what the worker has submitted; a slot adds them up, modulo 2^16"),
    Field("check", 32, "of the values and what else is said; a slot adds them up, modulo 2^32"),
)

HEADER_BYTES = sum(field.bits for field in FIELDS) // 8
VALUE_BYTES = 4

EXPONENT_BIAS = 127
"""exponent field = e + 127 with 2**e > max |x| of the block; 0 stands for an all-zero block."""
