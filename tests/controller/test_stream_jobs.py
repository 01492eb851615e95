"""Jobs of mode stream at the controller: their rows, and what is refused of them by name."""

from __future__ import annotations

from typing import Any

import pytest

from ina.controller.config import make_config
from ina.controller.errors import ConfigError, JobConflictError
from ina.controller.job import JobSpec
from ina.p4 import names
from ina.tables.values import Entry
from ina.trees.errors import JobRequestError
from tests.worlds.fakes.racks import Racks


async def racks_with(program: str) -> Racks:
    racks = Racks(program)
    await racks.start()
    return racks


async def test_each_switch_of_its_tree_is_told_that_last_words_are_numbers() -> None:
    racks = await racks_with(names.STREAM)
    job = await racks.run(mode=names.STREAM)
    actions = {
        name: {
            it.action
            for it in session.rows_of(job.number)
            if isinstance(it, Entry) and it.table == names.JOBS
        }
        for name, session in racks.sessions.items()
    }
    assert actions == {
        "spine": {names.ADMIT_STREAM_JOB},
        "leaf1": {names.ADMIT_INNER_STREAM_JOB},
        "leaf2": {names.ADMIT_INNER_STREAM_JOB},
    }
    assert job.verify == "off"
    racks.assert_agrees()


async def test_its_program_sums_jobs_of_mode_pool_and_no_other_sums_its_jobs() -> None:
    racks = await racks_with(names.STREAM)
    assert (await racks.run("beside")).mode == names.POOL
    for program in (names.POOL, names.SHARED):
        racks = await racks_with(program)
        says = f"mode 'stream', and switch '.*' runs the program of mode {program!r}"
        with pytest.raises(JobRequestError, match=says):
            await racks.run(mode=names.STREAM)


async def test_it_keeps_its_slots_its_switches_and_its_mode() -> None:
    racks = await racks_with(names.STREAM)
    job, beside = await racks.run(mode=names.STREAM), await racks.run("beside")
    for of, more in ((job, {"slots": 4}), (job, {"mode": names.POOL})):
        with pytest.raises(JobConflictError, match="what a job of mode 'stream' begins with stays"):
            await racks.coordinator.changes.change(of, why="a test", **more)
    with pytest.raises(JobConflictError, match="mode 'stream' begins with"):
        await racks.coordinator.changes.change(beside, mode=names.STREAM, why="a test")


async def test_its_sums_are_not_verified() -> None:
    racks = await racks_with(names.STREAM)
    with pytest.raises(JobRequestError, match="mode 'stream', verify 'keyed': a sum of checks"):
        await racks.coordinator.create(JobSpec("j", 2, mode=names.STREAM, verify="keyed"), 0.0)


SWITCH = {"mode": names.STREAM, "values": 64}


@pytest.mark.parametrize(
    ("switch", "says"),
    [
        ({"target": "tofino", "southbound": "bfrt"}, "no program of mode 'stream' is for tofino"),
        ({"target": "bmv2", "values": 256}, "256 of mode 'stream' on BMv2: its packets grow"),
        ({"target": "bmv2", "values": 0}, "256 of mode 'stream' on BMv2"),
        ({"grows": False}, r"switch\.grows: false: mode 'stream' makes whole packets"),
        ({"shared_slots": 8}, "only with mode 'shared'"),
    ],
)
def test_what_has_no_program_for_it_is_refused(switch: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_config({"switch": {**SWITCH, **switch}}, "file")


def test_bmv2_has_room_for_packets_of_64_values() -> None:
    assert make_config({"switch": {**SWITCH, "target": "bmv2"}}, "file").switch.mode == "stream"
