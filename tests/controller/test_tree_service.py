"""What workers of a job over several switches are told: where they send, their way, what concerns
them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
import pytest

from ina.controller.config import JobsConfig
from ina.controller.config.topology import fabric_of
from ina.controller.job import Job, JobSpec
from ina.controller.jobs import tokens
from ina.controller.service.endpoints import DataPath
from ina.controller.service.workers import WorkerService
from ina.controller.slots.memory import Memory
from ina.controller.watch.failure_detector import FailureDetector
from ina.controller.windows.job_windows import JobWindows
from ina.protocol.spec import VERSION, path_of
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.racks import CONFIG, JOB_SLOTS, Racks, host


class Refused(Exception):  # noqa: N818 (what gRPC does to a call)
    pass


class Call:
    """The part of gRPC's context that services use."""

    def peer(self) -> str:
        return "ipv4:10.0.0.1:4433"

    def time_remaining(self) -> float:
        return 20.0

    async def send_initial_metadata(self, metadata: object) -> None:
        pass

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise Refused(f"{code.name}: {details}")


CALL: Any = Call()


def service_of(racks: Racks) -> WorkerService:
    data = {
        switch.name: DataPath(CONFIG, switch, lambda port: cast(int, port))
        for switch in CONFIG.switches
    }
    detector = FailureDetector(racks.coordinator, 10.0)
    windows = JobWindows(racks.coordinator, fabric_of(CONFIG), CONFIG)
    return WorkerService(
        *(racks.coordinator, detector, data, windows), Memory(JobsConfig(), racks.registry)
    )


async def join(
    service: WorkerService, name: str, rank: int, address: str, world_size: int, **more: Any
) -> tuple[pb2.CreateJobReply, pb2.JoinReply]:
    created = await service.CreateJob(
        pb2.CreateJobRequest(
            name=name, world_size=world_size, wire_version=VERSION, addresses=[address], **more
        ),
        CALL,
    )
    joined = await service.Join(
        pb2.JoinRequest(
            name=name, rank=rank, host=address, udp_port=4000, timeout_s=20, switch=created.switch
        ),
        CALL,
    )
    return created, joined


async def test_each_worker_is_told_its_own_first_switch_and_way() -> None:
    racks = Racks()
    await racks.start()
    service = service_of(racks)
    hosts = [host(1, 1), host(2, 1), host(1, 2)]
    answers = await asyncio.gather(
        *(join(service, "j", rank, str(at), 3) for rank, at in enumerate(hosts))
    )
    for (created, joined), leaf, worker in zip(answers, (1, 2, 1), (0, 0, 1), strict=True):
        at = (f"leaf{leaf}", f"10.9.0.{leaf}", 17760)
        assert (created.switch, created.switch_host, created.switch_udp_port) == at
        assert created.slots == JOB_SLOTS
        (tree,) = joined.trees
        assert (tree.node, tree.host, tree.udp_port) == at
        # Two bits for each of the spine's two leaves, and one for their one or two workers.
        assert (tree.worker, tree.path) == (worker, path_of((leaf - 1, worker), (2, 1)))
        assert list(tree.owners) == [0b000 << 9, 0b010 << 9, 0b001 << 9]
        assert tree.expected_bitmap == 0b11
        assert (tree.first_lane, tree.lanes) == (0, JOB_SLOTS // 2)
        assert (joined.world_size, joined.slots) == (3, JOB_SLOTS)
    job = racks.registry.get("j")
    assert [job.members[rank].switch_port for rank in range(3)] == [1, 1, 2]


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"addresses": ["192.0.2.1"]}, "INVALID_ARGUMENT: a host at 192.0.2.1 is behind no switch"),
        ({"addresses": ["10.0.1.1", "10.0.2.1"]}, "INVALID_ARGUMENT: a host is behind two switche"),
        ({"addresses": ["x"]}, "INVALID_ARGUMENT: job 'j': host 'x' is not an IPv4 address"),
        ({"addresses": []}, "INVALID_ARGUMENT: a host at no address is behind no switch"),
        (
            {"addresses": ["10.0.1.1"], "world_size": 1025},
            "INVALID_ARGUMENT: job 'j': 1025 workers: a tree of switches sums 1 to 1024",
        ),
    ],
)
async def test_who_cannot_be_placed_hears_it_when_the_job_is_created(
    request_: dict[str, Any], says: str
) -> None:
    racks = Racks()
    await racks.start()
    usual: dict[str, Any] = {"name": "j", "world_size": 2, "wire_version": VERSION}
    with pytest.raises(Refused, match=says):
        await service_of(racks).CreateJob(pb2.CreateJobRequest(**(usual | request_)), CALL)
    assert len(racks.registry) == 0


async def test_a_switch_that_is_none_is_refused() -> None:
    racks = Racks()
    await racks.start()
    service = service_of(racks)
    await racks.coordinator.create(JobSpec("j", 2), 0.0)
    request = pb2.JoinRequest(
        name="j", rank=0, host="10.0.1.1", udp_port=1, timeout_s=1, switch="leaf9"
    )
    with pytest.raises(Refused, match="job 'j' rank 0: no switch is called 'leaf9'"):
        await service.Join(request, CALL)


def watched(service: WorkerService, job: Job) -> AsyncIterator[pb2.JobEvent]:
    request = pb2.WatchRequest(
        name=job.name,
        rank=0,
        epoch=job.epoch,
        member_key=tokens.member_key(job.key_seed, job.epoch, 0),
    )
    return service.Watch(request, CALL)


async def test_a_worker_hears_of_all_switches_of_its_tree_and_of_no_other() -> None:
    racks = Racks()
    await racks.start()
    service = service_of(racks)
    job, near = await racks.run(), await racks.run("near", (1, 1))
    streams = {it: watched(service, it) for it in (job, near)}
    heard: dict[Job, list[str]] = {job: [], near: []}

    async def listen(it: Job) -> None:
        async for event in streams[it]:
            if event.kind == pb2.JOB_WINDOWS:
                continue  # each stream begins with one
            heard[it].append(event.switch)
            if event.switch == "leaf1":
                return

    listening = [asyncio.create_task(listen(it)) for it in (job, near)]
    for _ in range(10):
        await asyncio.sleep(0)
    for name in ("spine", "leaf2", "leaf1"):
        event = pb2.JobEvent(kind=pb2.SWITCH_UNREACHABLE, switch=name)
        racks.coordinator.events.publish(event)
    await asyncio.gather(*listening)
    assert heard == {job: ["spine", "leaf2", "leaf1"], near: ["leaf1"]}
