"""Programs are known by mode, target and values, and what they can do stands beside."""

from __future__ import annotations

import pytest

from ina.controller.config import SwitchConfig
from ina.controller.config.checks import builds_of
from ina.p4 import compiled, names
from ina.p4.catalogue import PROGRAMS, ProgramId, capabilities, find, target_of, values_of
from ina.p4.errors import UnknownBuildError
from ina.p4.info import read_p4info
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS


@pytest.mark.parametrize("program", [it for it in PROGRAMS if it.target == "v1model"], ids=str)
def test_each_can_what_its_p4info_says(program: ProgramId) -> None:
    info = read_p4info(find(program).p4info)
    sizes = {table.name: table.size for table in info.tables}
    can = capabilities(program)
    rows = names.MAX_RING_LANES if program.mode == names.TRANSPARENT else 1
    assert (sizes[names.JOBS], sizes[names.MEMBERS]) == (can.jobs, can.members * rows)
    assert {register.size for register in info.registers} == {can.slots}
    actions = {action.name: action.parameters for action in info.actions}
    assert can.shares == (names.ADMIT_SHARED_JOB in actions)
    assert can.adds_sets == (names.ADMIT_SET in actions)
    assert can.evicts == (names.OWNERS in sizes)
    assert can.streams == (names.ADMIT_STREAM_JOB in actions)
    of_shared = {it.name for it in actions.get(names.ADMIT_SHARED_JOB, ())}
    assert can.has_lanes == (of_shared >= {"lane_mask", "claimable", "age_us"})


def test_one_number_is_a_program_of_each_target() -> None:
    soft, chip = ProgramId("pool", "v1model", 64), ProgramId("pool", "tofino", 64)
    assert soft != chip
    assert (capabilities(soft).has_pipes, capabilities(chip).has_pipes) == (False, True)
    assert [str(soft), str(chip)] == [
        "pool, 64 values a packet",
        "pool on tofino, 64 values a packet",
    ]


def test_what_chips_leave_out_of_mode_shared() -> None:
    soft, one, two = (
        capabilities(ProgramId("shared", target, 64)) for target in ("v1model", "tofino", "tofino2")
    )
    assert [it.shares for it in (soft, one, two)] == [True, True, True]
    assert [it.evicts for it in (soft, one, two)] == [True, False, False]
    assert [it.adds_sets for it in (soft, one, two)] == [True, False, False]
    assert [it.has_lanes for it in (soft, one, two)] == [True, False, True]
    pool = capabilities(ProgramId("pool", "v1model", 64))
    assert (pool.shares, pool.evicts, pool.adds_sets, pool.has_lanes) == (False,) * 4


def test_what_there_is_for_a_target() -> None:
    assert values_of("pool", target_of("bmv2")) == VALUES_PER_PACKET_BUILDS
    assert values_of("pool", target_of("tofino2")) == (64,)
    assert values_of("shared", target_of("tofino2")) == (64,)
    assert values_of("sparse", "v1model") == ()
    assert builds_of(SwitchConfig(target="tofino")) == (64,)


def test_what_there_is_not() -> None:
    for absent in (
        ProgramId("sparse", "v1model", 64),
        ProgramId("pool", "v1model", 65),
        ProgramId("pool", "tofino", 256),
    ):
        for ask in (capabilities, find):
            with pytest.raises(UnknownBuildError, match=f"no program {absent}"):
                ask(absent)
    with pytest.raises(UnknownBuildError, match="no build of the program pool on tofino, 64"):
        find(ProgramId("pool", "tofino", 64))
    assert find(ProgramId("pool", "v1model", 64)) == compiled(64)
