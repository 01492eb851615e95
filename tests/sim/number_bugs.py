"""Bugs of windows, of numbers that wrap, and of jobs with several aggregators, one at a time."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.mutants import nodes
from tests.sim.bug import Bug


def compares_plainly(program: dict[str, Any]) -> None:
    """A sequence number is newer if it is larger: until they wrap."""
    for node in nodes(program["actions"]):
        if node.get("op") == "<" and '["ina", "seq"]' in json.dumps(node["left"]):
            difference = node["left"]["value"]["left"]["value"]
            node["op"], node["left"], node["right"] = ">=", difference["left"], difference["right"]


NUMBER_BUGS = (
    Bug("wrap p4: the larger number is the newer one", change=compares_plainly),
    Bug("shared p4: the larger number is the newer one", change=compares_plainly, mode="shared"),
    Bug(
        "wrap controller: a switch is told the header's epoch",
        "ina/modes/rows.py",
        '("epoch", at.part.epoch),\n        ("first_slot"',
        '("epoch", at.part.epoch % 65536),\n        ("first_slot"',
    ),
    Bug(
        "wrap core: a lane's next number is cut off",
        "native/host/core/worker_core.cpp",
        "    lane.seq += window_;\n",
        "    lane.seq = (lane.seq + window_) & 0x7fffffff;\n",
    ),
    Bug(
        "window: twice as many are in flight",
        "native/host/recovery/loss_recovery.cpp",
        "if (size < window ||",
        "if (size < 2 * window ||",
    ),
    Bug(
        "window: packets without values stay in the count when they leave",
        "native/host/recovery/loss_recovery.cpp",
        "    flights_.remove(lane);\n    if (flights_.size() > 0) return;\n",
        "    flights_[lane].is_small = false;\n    flights_.remove(lane);\n"
        "    if (flights_.size() > 0) return;\n",
    ),
    Bug(
        "window: the controller's limit is not kept",
        "native/host/recovery/loss_recovery.hpp",
        "return std::min(window_->packets(), most_);",
        "return window_->packets();",
    ),
    Bug(
        "shared controller: all aggregators of a job are behind the first one's port",
        "ina/modes/shared.py",
        "with_aggregator(tree, it.node, it.port) for it in above",
        "with_aggregator(tree, it.node, above[0].port) for it in above",
    ),
)
