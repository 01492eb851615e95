"""Bugs in the programs of modes transparent and roce: the conformance cases must notice each.

They are put into the sources, so they need p4c.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from ina.p4 import names
from ina.p4.programs import P4_DIR
from ina.testing.case import run_case
from ina.testing.cases import all_cases
from ina.testing.soft_device import SoftDevice
from tests.conformance.mutants import compile_with

VALUES = 56
RING, ENCAP = "v1model/transparent.p4", "v1model/ring_encap.p4"


class Bug(NamedTuple):
    """A text of a source in another's place, and the case that must notice it."""

    source: str
    before: str
    after: str
    noticed_by: str
    mode: str = names.TRANSPARENT


def passes_by_default(last_line: str, says: str) -> tuple[str, str]:
    """Of the table that ends so: without a row, too."""
    line = "        const default_action = stop();\n        size = "
    return f"{line}{last_line}", f"{line}{last_line}".replace("stop()", says)


BUGS = {
    "a switch without rows forwards": Bug(
        RING, *passes_by_default("1024", "pass()"), "closed/power-on"
    ),
    "who has no row replies": Bug(
        RING, *passes_by_default("MEMBERS_TOTAL", "reply(1, 0, 0, 0)"), "reply/another-queue-pair"
    ),
    "a hidden port passes": Bug(
        RING, "(!hdr.udp.isValid() ||", "(hdr.udp.isValid() &&", "unreadable/ip-options"
    ),
    "tags pass": Bug(
        RING, "ethertype == ETHERTYPE_VLAN", "ethertype == 0", "unreadable/tag-0x8100"
    ),
    "duplicates pass as they are": Bug(
        "shared/accumulate.p4",
        "#define READ_VALUE(value, rv, operand) rv = value;",
        "#define READ_VALUE(value, rv, operand) rv = operand;",
        "again/complete",
    ),
    "repeats go back by their port": Bug(
        ENCAP,
        "#define PORT_OF_SENDER meta.next_port",
        "#define PORT_OF_SENDER standard_metadata.ingress_port",
        "again/complete",
    ),
    "marks end here": Bug(
        ENCAP, "hdr.ipv4.ecn = ECN_CE;", "hdr.ipv4.ecn = hdr.ipv4.ecn;", "mark/by-the-first"
    ),
    "all numbers are the first": Bug(
        ENCAP, "first_psn + (hdr.ina.seq >> lane_shift)[23:0]", "first_psn", "ring/of-2"
    ),
    "nobody asks for acknowledgements": Bug(
        ENCAP, "hdr.bth.ack_request = 1;", "hdr.bth.ack_request = 0;", "ring/of-1"
    ),
    "all packets ask": Bug(
        ENCAP, "hdr.bth.ack_request = 0;", "hdr.bth.ack_request = 1;", "message/of-four"
    ),
    "places are not told": Bug(ENCAP, "hdr.bth.opcode = SEND_LAST;", "", "message/of-four"),
    "the receiver is not told": Bug(
        ENCAP, "hdr.ina.worker = next_worker;", "hdr.ina.worker = hdr.ina.worker;", "ring/of-3"
    ),
    "whoever it is for": Bug(
        ENCAP,
        'hdr.ipv4.dst_addr: exact @name("dst_addr");',
        'hdr.ethernet.ethertype: exact @name("dst_addr");',
        "stranger/ring-to-another-neighbour",
    ),
    "ICRC is not made anew": Bug(RING, "hdr.icrc.crc = meta.icrc;", "", "ring/of-2"),
    "ICRC is not looked at": Bug(
        "v1model/admission.p4",
        "(meta.icrc != hdr.icrc.crc)",
        "(meta.icrc != meta.icrc)",
        "icrc/psn",
    ),
    "ICRC is of what may change": Bug(
        "v1model/icrc.p4",
        "hdr.ipv4.ihl, 8w0xFF, hdr.ipv4.total_bytes",
        "hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_bytes",
        "on-the-way/tos",
    ),
    "roce: all numbers are 0": Bug(
        "v1model/roce_encap.p4",
        "hdr.bth.psn = hdr.ina.seq[23:0];",
        "hdr.bth.psn = 0;",
        "message/of-four",
        names.ROCE,
    ),
    "roce: ICRC is not made anew": Bug(
        "v1model/roce.p4", "hdr.icrc.crc = meta.icrc;", "", "completion/order-012", names.ROCE
    ),
}


@pytest.mark.p4c
@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_conformance_fails(bug: Bug, tmp_path: Path) -> None:
    source, before, after, noticed_by, mode = bug
    program = compile_with(source, before, after, VALUES, tmp_path, mode)
    case = next(case for case in all_cases(VALUES, mode) if case.name == noticed_by)
    with SoftDevice(mode, program_of=lambda _values: program) as wrong:
        assert run_case(case, wrong).differences
    with SoftDevice(mode) as right:
        assert run_case(case, right).ok


def test_each_is_of_a_text_that_is_there_once() -> None:
    """So that a change of the sources shows where p4c is not."""
    wrong = [
        name
        for name, bug in BUGS.items()
        if (P4_DIR / bug.source).read_text().count(bug.before) != 1
    ]
    assert wrong == []
    known = {
        mode: {case.name for case in all_cases(VALUES, mode)}
        for mode in (names.ROCE, names.TRANSPARENT)
    }
    assert [name for name, bug in BUGS.items() if bug.noticed_by not in known[bug.mode]] == []
