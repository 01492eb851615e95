"""A program with a packet and what must come of it; pieces that several of them have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ina.switch.match import Exact
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.switch.bmv2 import Builder, assign, param, state


@dataclass(frozen=True)
class Case:
    """A program, its entries (table, key, action, parameters), a packet, what leaves."""

    program: Builder
    packet: str
    right: Sequence[tuple[int, str]]
    entries: Sequence[tuple[str, int, str, Sequence[int]]] = ()
    replicas: Sequence[tuple[int, int]] = field(default=())
    """Of multicast group 1: (port, rid)."""


def run(case: Case, cache_dir: Path, *, main_path: bool = True) -> list[tuple[int, str]]:
    """What leaves the program as it ships, as (port, hex)."""
    with default_target(cache_dir).load(case.program.json(), main_path=main_path) as pipeline:
        return leaves(case, pipeline)


def leaves(case: Case, pipeline: Pipeline) -> list[tuple[int, str]]:
    """What leaves a pipeline with its program and no entries, as (port, hex)."""
    for table, key, action, params in case.entries:
        pipeline.insert(table, [Exact(key)], action, params)
    if case.replicas:
        pipeline.set_multicast(1, case.replicas)
    sent = pipeline.process(0, bytes.fromhex(case.packet))
    return [(port, data.hex()) for port, data in sent]


IP = [("proto", 8), ("id", 8)]
AB = {"a": [("k", 8)], "b": [("v", 8)]}
ALL_AB = [state("start", ["a", "b"])]
OF_PROTO = [state("start", ["ip"], "ip.proto", {4: "inner"}), state("inner", ["ip2"])]
SET = {"set": ([9], [assign("standard_metadata.egress_spec", param(0))])}
