"""What the pool program's tables hold while frames are thrown at it: one job of two workers.

As bytes, for native/testing/pipeline_door.cpp: the same ones for libFuzzer's program, which has no
Python, and for the tests.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ina.p4 import compiled, names
from ina.protocol.spec import Kind
from ina.protocol.strips import to_worker
from ina.switch.ir import Program, load_program
from ina.switch.native_abi import to_words
from ina.trees.tree import single

VALUES = 64
JOB, EPOCH, GROUP, FIRST_SLOT, SLOTS, JOB_INDEX = 7, 0x0003_0009, 9, 32, 8, 5
WORKERS = 2
TREE = single("switch", WORKERS)
_ENTRY, _GROUP = 0, 1


def port_of(rank: int) -> int:
    """The switch port that the worker is behind."""
    return rank + 1


def address_of(rank: int) -> int:
    """The worker's IPv4 address."""
    return 0x0A000000 + port_of(rank)


def udp_port_of(rank: int) -> int:
    """The worker's UDP port."""
    return 3999 + port_of(rank)


def program_json() -> bytes:
    """The program: BMv2 JSON."""
    return compiled(VALUES).bmv2_json.read_bytes()


def pipeline_setup() -> bytes:
    """The job's entries and its group."""
    program = load_program(program_json())
    epoch = EPOCH & 0xFFFF
    parts = [
        _entry(
            program,
            names.JOBS,
            [JOB, epoch],
            names.ADMIT_JOB,
            [EPOCH, FIRST_SLOT, SLOTS, (1 << WORKERS) - 1, GROUP, JOB_INDEX],
        )
    ]
    for rank in range(WORKERS):
        address, udp_port = address_of(rank), udp_port_of(rank)
        to = [0x0200 << 32 | address, address, udp_port]
        strips = to_worker(TREE.owners[rank], TREE.owner_mask(TREE.root))
        params = [*to, strips.way, strips.way_mask, strips.on, strips.off]
        parts += [
            _entry(program, names.RECEIVERS, [JOB, rank], names.ADDRESS, params),
            _entry(
                program,
                names.MEMBERS,
                [port_of(rank), address, udp_port, JOB, epoch, rank, Kind.CONTRIBUTION],
                names.ADMIT_MEMBER,
                [1 << rank],
            ),
        ]
    copies = [(port_of(rank), rank + 1) for rank in range(WORKERS)]
    parts.append(struct.pack("<3I", _GROUP, GROUP, len(copies)))
    parts += [struct.pack("<2I", *copy) for copy in copies]
    return b"".join(parts)


def _entry(
    program: Program, table: str, key: Sequence[int], action: str, params: Sequence[int]
) -> bytes:
    """One of exact matches."""
    (where,) = [one for one in program.tables if one.name == table]
    chosen = where.action(action)
    assert chosen is not None
    keys = [
        word for k, v in zip(where.keys, key, strict=True) for word in to_words(v, k.width_bits)
    ]
    masks = [word for k in where.keys for word in to_words((1 << k.width_bits) - 1, k.width_bits)]
    values = [
        word
        for param, value in zip(chosen.params, params, strict=True)
        for word in to_words(value, param.width_bits)
    ]
    words = [*keys, *masks, *values]
    head = struct.pack("<5I", _ENTRY, where.index, chosen.index, len(keys), len(values))
    return head + struct.pack(f"<{len(words)}Q", *words)
