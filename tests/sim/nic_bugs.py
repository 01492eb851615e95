"""Bugs of RDMA NICs' jobs, one at a time: of programs, of endpoints, of who writes rows.

A worker's core looks at each result's header, so what an endpoint gives it twice changes nothing;
and a lane has one packet under way, so no message is ever ahead of another that is missing.
"""

from __future__ import annotations

import json
from typing import Any

from ina.p4.names import ROCE, TRANSPARENT
from tests.conformance.mutants import action, nodes
from tests.sim.bug import Bug

_RING = "native/host/endpoint/ring_endpoint.cpp"
_LANE = "native/host/endpoint/reliable_lane.hpp"
_MODE = "ina/modes/transparent.py"


def _takes_damaged(program: dict[str, Any]) -> None:
    """A packet's ICRC is compared with itself."""
    for node in nodes(program["pipelines"]):
        if node.get("op") == "!=" and "ina_metadata_t.icrc" in json.dumps(node):
            node["right"] = node["left"]


def _keeps_icrc(program: dict[str, Any]) -> None:
    """What leaves has the ICRC with which it came."""
    for found in program["actions"]:
        kept = [step for step in found["primitives"] if "hdr.icrc.crc" not in json.dumps(step)]
        found["primitives"] = kept


def _never_repeats(program: dict[str, Any]) -> None:
    """A finished sum goes out once, whatever a NIC sends again."""
    to_sender = action(program, "distribute.to_sender")
    for step in to_sender["primitives"]:
        if "egress_spec" in json.dumps(step["parameters"][0]):
            step["parameters"][1] = {"type": "hexstr", "value": "0x01ff"}  # v1model's that drops


NIC_BUGS: tuple[Bug, ...] = (
    Bug("roce p4: damaged packets count", change=_takes_damaged, mode=ROCE),
    Bug("roce p4: ICRC is not made anew", change=_keeps_icrc, mode=ROCE),
    Bug("transparent p4: damaged packets count", change=_takes_damaged, mode=TRANSPARENT),
    Bug("transparent p4: ICRC is not made anew", change=_keeps_icrc, mode=TRANSPARENT),
    Bug("transparent p4: no repetition", change=_never_repeats, mode=TRANSPARENT),
    Bug(
        "roce controller: a worker is known by its own queue pair",
        "ina/modes/roce.py",
        'admits = (address, ("dest_qp", switch_qp(at.part.number, index)))',
        'admits = (address, ("dest_qp", whom.peer.queue_pair))',
    ),
    Bug(
        "roce nic: nobody looks at ICRC",
        "native/host/endpoint/uc_endpoint.cpp",
        "return said == received_icrc_.of(datagram.data, covered);",
        "return covered > 0;",
    ),
    Bug(
        "transparent controller: all numbers begin at 0",
        _MODE,
        '("first_psn", ring_psn(at.part.epoch)),',
        '("first_psn", 0),',
    ),
    Bug(
        "transparent controller: sums go back to who has sent",
        _MODE,
        "return at.children[next_in_ring(at, index)].port",
        "return at.children[index].port",
    ),
    Bug(
        "transparent host: who has all sums leaves at once",
        "ina/host/member/session.py",
        "return self.transport.owes() and not self._inflight.has_pending()",
        "return False",
    ),
    Bug(
        "transparent nic: nobody looks at ICRC",
        _RING,
        "return said == roce::icrc_of_packet(packet, packet_bytes - roce::kIcrcBytes);",
        "return packet_bytes > roce::kIcrcBytes;",
    ),
    Bug(
        "transparent nic: what is marked is acknowledged and dropped",
        _RING,
        "        case Reply::kTake:\n",
        "        case Reply::kTake:\n"
        "            if ((packet[1] & kEcnBits) == kCongestionExperienced) {\n"
        "                put_reply(number, roce::kAckSyndrome, responder.last(), out);\n"
        "                break;\n"
        "            }\n",
    ),
    Bug(
        "transparent nic: an acknowledgement is of all that is under way",
        _LANE,
        "drop(psn_after(psn, oldest()) + 1, now_ns);",
        "drop(static_cast<std::uint32_t>(count_) + 0 * psn, now_ns);",
    ),
    Bug(
        "transparent nic: nothing is sent again",
        _RING,
        "if (requester.is_due(now_ns)) repeat(i, out);",
        "(void)requester.is_due(now_ns);",
    ),
    Bug(
        "transparent nic: of what is under way the first alone is sent again",
        _RING,
        "for (std::size_t i = 0; i < requester.pending(); ++i) {",
        "for (std::size_t i = 0; i < 1 && i < requester.pending(); ++i) {",
    ),
    Bug(
        "transparent nic: what came before is taken again",
        _RING,
        "case Reply::kAgain: put_reply(number, roce::kAckSyndrome, responder.last(), out); break;",
        "case Reply::kAgain:\n"
        "            arrivals->push_back({packet + kInsideOffset,\n"
        "                                 bytes - kInsideOffset - roce::kIcrcBytes, false});\n"
        "            put_reply(number, roce::kAckSyndrome, responder.last(), out);\n"
        "            break;",
        slows=True,
    ),
)
