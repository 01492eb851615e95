"""The wire format of ina, defined once: every other definition is emitted from this table.

A packet is Ethernet / IPv4 / UDP / header (32 bytes) / ``value_count`` int32 values. All fields are
in network byte order. The P4 header, the C++ header, the scapy layer, the Wireshark dissector and
the table in docs/protocol.md are generated from :data:`FIELDS` and the enumerations below.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from ina.errors import InvalidInputError

VERSION = 5
UDP_PORT = 17760
"""The port of the switch. A packet to or from any other port is ordinary traffic."""

RESULTS_UDP_PORT = 17761
"""Where workers listen for results that come to several of them at once, by IP multicast."""

MAX_WORKERS = 32
"""Children of one switch: the width of the contributors bitmap."""

MAX_WORLD_SIZE = 1024
"""Workers of a job over several switches. At 1024, 20 bits of a float32's 24 are left."""

MAX_LEVELS = 4
"""Of switches in a tree: how many indices ``path`` has room for."""

PATH_BITS = 24
PATH_BITS_PER_LEVEL = 5
USUAL_WIDTHS = (PATH_BITS_PER_LEVEL,) * MAX_LEVELS
"""Bits of ``path`` for each index, from the root's on, where no tree says less: with the most
children that a switch has, at each. (A root of so many has a sixth.)"""

OWNER_BITS = 12
"""The lower bits of ``path``, in rounds of another shape than SUM: whose chunk it is, as the upper
ones say whose packet. A tree with a longer path than the upper ones hold has sums alone."""

ALL_WORKERS = 255
"""``worker`` of such a result: whoever of the job receives it."""

PARENT = 254
"""``worker`` of a sum on its way up, inside of the switch: its receiver is the parent."""

VALUES_PER_PACKET_BUILDS = (64, 256, 360, 1024)
"""Values a packet in the checked-in builds of the P4 program (a compile-time constant there).

64 is what a Tofino sums; 360 is the most that a multiple of 8 fits into an MTU of 1500; 1024,
4 KiB, is for shared memory and jumbo frames.
"""
ROCE_VALUES_PER_PACKET_BUILDS = (56, 248, 1016)
"""The same of programs that speak RoCEv2: what a path MTU of InfiniBand's (256, 1024, 4096 bytes of
payload) has room for behind the header of 32 bytes."""
DEFAULT_VALUES_PER_PACKET = 256
"""Of a soft switch or BMv2, where nobody chose: 1 KiB, which a tunnel's smaller MTU still bears."""


class Kind(IntEnum):
    """What a packet is."""

    CONTRIBUTION = 1  # a worker's values, to be summed
    RESULT = 2  # the sum, to the workers
    PARAMETER = 3  # not used: a result frees shared slots on its way down
    CONTROL = 4  # in-band control (probe, connectivity test)
    REFUSAL = 5  # why a contribution was not accepted


class Shape(IntEnum):
    """Who gives a round's values, and who gets those of its result: the same on all packets of it.

    All workers send a packet in each round, and all get one. A packet of who gives nothing is a
    header alone, as is a result for who gets nothing.
    """

    SUM = 0  # all give, all get: all_reduce; a round of headers alone, too
    SCATTER = 1  # all but the owner give, the owner gets: reduce_scatter, reduce
    GATHER = 2  # the owner gives, all but the owner get: all_gather, broadcast


class Flag(IntFlag):
    """What happened to a packet on its way. A slot ORs ECN, OVERFLOW, NON_FINITE and WANTED."""

    RESEND = 0x01  # the worker has sent this chunk before
    COLLISION = 0x02  # mode `shared`: it goes on alone, for the slot is another job's
    ECN = 0x04  # a queue on the way was long
    OVERFLOW = 0x08  # the integer sum may have wrapped
    NON_FINITE = 0x10  # a contribution held Inf or NaN: every value of the result is NaN
    PARTIAL = 0x20  # mode `partial`: not every worker is in the sum
    REPLAY = 0x40  # a result for the worker that `path` names, and for no other
    WANTED = 0x80  # mode `shared`: while a slot gathered it, another job found the slot taken


NO_FLAGS = Flag(0)


class DropReason(IntEnum):
    """Why a switch dropped an INA packet: the index of the switch's drop counter.

    The checks are made in this order, and the first that fails is counted.
    """

    MALFORMED = 0  # truncated, or the UDP payload is not header + value_count values
    VERSION = 1  # a wire format version that this switch does not speak
    KIND = 2  # not a kind that a switch accepts (mode `pool`: contributions and results)
    JOB = 3  # no such job, or another epoch of it
    MEMBER = 4  # not the port, address, worker and kind that the controller admitted to the job
    SLOT = 5  # slot index outside the job's range
    STALE = 6  # older than the slot's owner: its worker has had the result, or its job is gone
    DUPLICATE = 7  # already in a sum that is not complete yet


class ValueType(IntEnum):
    """Type of the tensor that the int32 values stand for, and how many of it are in each.

    The lower two bits are the tensor's, the upper two the binary logarithm of how many.
    """

    INT32 = 0  # the values themselves; sums wrap around
    FLOAT32 = 1  # IEEE 754 binary32, scaled by the block's exponent
    FLOAT16 = 2  # IEEE 754 binary16, scaled alike
    BFLOAT16 = 3  # the upper half of a binary32, scaled alike
    FLOAT32_IN_16 = 5  # FLOAT32, two in a word of signed columns of 16 bits
    FLOAT16_IN_16 = 6  # FLOAT16, two in a word
    BFLOAT16_IN_16 = 7  # BFLOAT16, two in a word
    BYTES = 8  # four in a word, as they lie in memory: of whatever type, to be moved and not summed
    FLOAT32_IN_8 = 9  # FLOAT32, four in a word of signed columns of 8 bits
    FLOAT16_IN_8 = 10  # FLOAT16, four in a word
    BFLOAT16_IN_8 = 11  # BFLOAT16, four in a word

    @property
    def element(self) -> ValueType:
        """The tensor's."""
        return ValueType(self & 3)

    @property
    def per_word(self) -> int:
        """How many values an int32 word of a packet holds: 1, 2 or 4."""
        return 1 << (self >> 2)

    @property
    def bits(self) -> int:
        """Of a word, for each value: 32, 16 or 8."""
        return 32 // self.per_word

    @functools.cache
    def packed_in(self, bits: int) -> ValueType:
        """The same tensor's in columns of so many bits; integers stay as they are.

        Raises ValueError: not 32, 16 or 8.
        """
        if self.element == ValueType.INT32:
            return self
        if bits not in (32, 16, 8):
            raise ValueError(f"columns of {bits} bits: there are 32, 16 and 8")
        return ValueType(self.element | {32: 0, 16: 1, 8: 2}[bits] << 2)


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
    Field("worker", 8, "index among the receiver's children, 0..31; in a result: of the receiver"),
    Field("level", 4, "of its sender: 0 a worker, else levels of switches below; echoed"),
    Field("shape", 4, "who gives values and who gets them, see Shape"),
    Field("slot", 16, "slot index within the job's range, 0..slots-1"),
    Field("value_type", 4, "type of the tensor, see ValueType"),
    Field("value_count", 12, "int32 values behind it: the build's constant, or 0 (a header alone)"),
    Field("seq", 32, "sequence number of the chunk; serial-number arithmetic (RFC 1982)"),
    Field("contributors", 32, "bitmap of the children in the values; in a result: of the root"),
    Field("exponent", 8, "biased exponent of this chunk's values; 0: all zero"),
    Field("next_exponent", 8, "the same of the chunk one window ahead; a slot keeps the maximum"),
    Field("digest", 16, "of what the worker has submitted; a slot adds them up, modulo 2^16"),
    Field("check", 32, "of the values and what else is said; a slot adds them up, modulo 2^32"),
    Field("path", PATH_BITS, "the way down to whose packet it is; lower half: owner, unless SUM"),
    Field("copy", 8, "0: sent first; n: the n-th resend, 255 any later one; echoed"),
)

HEADER_BYTES = sum(field.bits for field in FIELDS) // 8
VALUE_BYTES = 4

EXPONENT_BIAS = 127
"""exponent field = e + 127 with 2**e > max |x| of the block; 0 stands for an all-zero block."""


def index_bits(fan_in: int, *, is_root: bool = False) -> int:
    """How many bits of ``path`` say which of a node's children is meant.

    A root has one index to spare, so that no child's is all ones: a path of all ones is nobody's.
    """
    return max(1, (fan_in if is_root else fan_in - 1).bit_length())


def path_of(indices: Sequence[int], widths: Sequence[int] = USUAL_WIDTHS) -> int:
    """``path`` of the worker that these indices lead to, the root's child first.

    ``widths``: how many bits each takes, as its node has it; more of them than indices are ignored.
    Raises InvalidInputError: more than MAX_LEVELS of them, or one that its bits have no room for.
    """
    if not 1 <= len(indices) <= min(MAX_LEVELS, len(widths)):
        raise InvalidInputError(f"a path of {len(indices)} levels: 1 to {MAX_LEVELS} fit a packet")
    path, left = 0, PATH_BITS
    for index, width in zip(indices, widths, strict=False):
        left -= width
        if not 0 <= index < min(1 << width, MAX_WORKERS):
            raise InvalidInputError(
                f"a path by child {index}: children are 0..{min(1 << width, MAX_WORKERS) - 1}"
            )
        path |= index << left
    return path


def path_mask(widths: Sequence[int]) -> int:
    """The bits of ``path`` down to a node's children. ``widths``: from the root's to the node's."""
    return ((1 << sum(widths)) - 1) << PATH_BITS - sum(widths)
