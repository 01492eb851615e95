"""A controller's Operator service whose answers a test chooses."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NoReturn

import grpc

from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc

TRAIN = pb2.Job(
    name="train", tenant="vision", priority=3, state="running", job=4, epoch=70_001,
    world_size=3, joined=[0, 1, 2], first_slot=512, slots=512, window=256, created_unix_s=1e9,
)  # fmt: skip
STALL = pb2.Stall(seq=1234, slot=723, missing=[2], waiting=[0, 1], since_unix_s=1e9)
MEMBERS = [
    pb2.Member(
        rank=rank, host=f"10.0.0.{rank + 1}", udp_port=4433, switch_port=1, lease_left_s=7.5,
        watching=rank != 2,
        progress=pb2.Progress(operations_submitted=9, operations_done=8, in_flight=256),
    )
    for rank in range(3)
]  # fmt: skip
SWITCH = pb2.ShowSwitchReply(
    program="pool, 64 values a packet",
    device_id=1,
    slots_total=8192,
    slots_used=512,
    entries=[
        pb2.TableEntry(table="jobs", match="job=4", action="admit_job(epoch=70001)", job="train"),
        pb2.TableEntry(table="dmac", match="dst_mac=2", action="forward(port=2)"),
        pb2.TableEntry(table="jobs", match="job=9", action="admit_job(epoch=5)", foreign=True),
    ],
    counters=[
        pb2.Counter(name="job_results", index=4, label="job train", packets=17, job="train"),
        pb2.Counter(name="drops", index=1, label="unknown_member", packets=5),
    ],
)
FABRIC = pb2.ShowFabricReply(
    switches=[
        pb2.FabricSwitch(
            name=name, target="soft", data_addr=f"10.0.9.{number}:17760", slots_total=8192,
            slots_used=512,
        )
        for number, name in enumerate(("leaf1", "leaf2", "spine"))
    ],
    links=[
        pb2.FabricLink(switch_a="leaf1", port_a="9", switch_b="spine", port_b="1"),
        pb2.FabricLink(switch_a="leaf2", port_a="9", switch_b="spine", port_b="2"),
    ],
    hosts=[
        pb2.FabricHost(address=f"10.0.{rack}.{host}", switch=f"leaf{rack}", port=f"{host}")
        for rack in (1, 2)
        for host in (1, 2)
    ],
    jobs=[
        pb2.FabricJob(
            name="train", state="running", world_size=4,
            nodes=[
                pb2.TreeNode(
                    switch="spine", children=["leaf1", "leaf2"], contributions=2000, results=1000
                ),
                pb2.TreeNode(
                    switch="leaf1", parent="spine", ranks=[0, 1, 3], contributions=3000,
                    results=1000, replays=7, passed_down=1001,
                ),
                pb2.TreeNode(
                    switch="leaf2", parent="spine", ranks=[2], contributions=1000, results=1000
                ),
            ],
        ),
        pb2.FabricJob(name="next", state="joining", world_size=2),
    ],
)  # fmt: skip


# The generated classes are typed for grpc.aio only. What is missing here is UNIMPLEMENTED.
Servicer: Any = rpc.OperatorServicer


class FakeController(Servicer):  # type: ignore[misc]
    """Serves what its attributes hold; ``refuse`` ends every call with that status."""

    def __init__(self) -> None:
        self.jobs = [TRAIN]
        self.refuse: tuple[grpc.StatusCode, str] | None = None
        self.switch_away = False
        self.holds: list[pb2.SlotHold] = []  # of a switch whose slots jobs share
        self.switch_state = "connected"
        self.released: threading.Event | None = None  # calls hang until it is set
        self.events: queue.Queue[pb2.JobEvent | None] = queue.Queue()
        self.evicted: list[pb2.EvictJobRequest] = []
        self.watched: list[str] = []
        self.planned: list[pb2.PlanJobRequest] = []

    def ListJobs(self, request: Any, context: Any) -> pb2.ListJobsReply:  # noqa: N802
        self._check(context)
        return pb2.ListJobsReply(jobs=self.jobs)

    def ShowJob(self, request: Any, context: Any) -> pb2.ShowJobReply:  # noqa: N802
        return pb2.ShowJobReply(
            job=self._job(request.name, context),
            members=MEMBERS,
            counters=[c for c in SWITCH.counters if c.job == request.name],
            history=[pb2.JobEvent(kind=pb2.JOB_RUNNING, name=request.name, unix_s=1e9)],
        )

    def WatchJobs(self, request: Any, context: Any) -> Iterator[pb2.JobEvent]:  # noqa: N802
        self._check(context)
        self.watched.append(request.name)
        context.send_initial_metadata(())
        while True:
            try:
                event = self.events.get(timeout=0.05)
            except queue.Empty:
                if not context.is_active():
                    return
                continue
            if event is None:
                return
            yield event

    def EvictJob(self, request: Any, context: Any) -> pb2.EvictJobReply:  # noqa: N802
        job = self._job(request.name, context)
        self.evicted.append(request)
        return pb2.EvictJobReply(job=job)

    def PlanJob(self, request: Any, context: Any) -> pb2.PlanJobReply:  # noqa: N802
        self._check(context)
        self.planned.append(request)
        return pb2.PlanJobReply(policy="static", slots=512)

    def ShowSwitch(self, request: Any, context: Any) -> pb2.ShowSwitchReply:  # noqa: N802
        self._check(context)
        if self.switch_away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "switch 10.0.0.9:9559 does not answer")
        shown = pb2.ShowSwitchReply(slots_shared=4096 if self.holds else 0, holds=self.holds)
        shown.MergeFrom(SWITCH)
        return shown

    def ShowFabric(self, request: Any, context: Any) -> pb2.ShowFabricReply:  # noqa: N802
        self._check(context)
        return FABRIC

    def RemoveForeign(self, request: Any, context: Any) -> pb2.RemoveForeignReply:  # noqa: N802
        self._check(context)
        return pb2.RemoveForeignReply(removed=[e for e in SWITCH.entries if e.foreign])

    def ListTenants(self, request: Any, context: Any) -> pb2.ListTenantsReply:  # noqa: N802
        self._check(context)
        return pb2.ListTenantsReply(tenants=[pb2.Tenant(name="vision", jobs=1, slots=512)])

    def ShowController(self, request: Any, context: Any) -> pb2.ShowControllerReply:  # noqa: N802
        self._hang()
        standby = self.refuse is not None
        return pb2.ShowControllerReply(
            role="standby" if standby else "primary", election_id=2, jobs=1,
            switch_addr="10.0.0.9:9559", switch_state=self.switch_state, store="/var/lib/ina/c.db",
        )  # fmt: skip

    def _job(self, name: str, context: Any) -> pb2.Job:
        self._check(context)
        for job in self.jobs:
            if job.name == name:
                return job
        self._abort(context, grpc.StatusCode.NOT_FOUND, f"no job is called {name!r}")

    def _check(self, context: Any) -> None:
        self._hang()
        if self.refuse is not None:
            self._abort(context, *self.refuse)

    def _hang(self) -> None:
        if self.released is not None:
            self.released.wait(120)

    def _abort(self, context: Any, code: grpc.StatusCode, why: str) -> NoReturn:
        context.abort(code, why)
        raise AssertionError("abort raises")


@contextmanager
def serving(fake: FakeController) -> Iterator[str]:
    """Its address."""
    with ThreadPoolExecutor(8) as pool:
        server: Any = grpc.server(pool)
        servicer: Any = fake  # the stubs know asyncio's service only
        rpc.add_OperatorServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(None).wait(30)
