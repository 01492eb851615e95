"""A fake controller service for the tests: the real messages, and a test that pulls the strings."""

from __future__ import annotations

import queue
import threading
import time
from concurrent import futures
from typing import Any

import grpc

from ina.host.trees import one_switch
from ina.protocol.peer import Peer
from ina.protocol.spec import RESULTS_UDP_PORT, VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.rpc.channel import BEARABLE_PINGS
from tests.worlds.fakes.tickets import tree_message
from tests.worlds.fakes.udp_model import UdpModel

JOB, EPOCH = 3, 0x2_0001

# The generated stubs are typed for grpc.aio only.
Servicer: Any = rpc.ControllerServicer
register: Any = rpc.add_ControllerServicer_to_server


def key_of(rank: int) -> bytes:
    return b"key of rank %d" % rank


LOOK_S = 0.02
"""How often it is looked for what no call tells."""


class FakeController(Servicer):  # type: ignore[misc]
    """Programs the switch model once all workers have joined. Use it as a context manager.

    What a test may set: `lease_s`, `heartbeat_s`, `window`; `standby`: every call fails as a
    standby's does; `ended`: Heartbeat and Watch answer NOT_FOUND with this text; `end`: Watch
    brings this event instead; `forgets`: so many Joins find no job; `results_host`: where workers
    are told to listen. `missing`: ranks that have said that nothing comes there. `wire_version`: of
    the packets that the switch is said to take. `verify`, `check_key`: of the job's sums; `trees`:
    that each worker is told. `slots`: of the job, where it has not all.
    """

    def __init__(
        self, switch: UdpModel, *, lease_s: float = 0.0, heartbeat_s: float = 0.0, window: int = 0
    ) -> None:
        self.switch = switch
        self.switch_host = switch.address[0]
        self.lease_s, self.heartbeat_s, self.window = lease_s, heartbeat_s, window
        self.wire_version = VERSION
        self.mode = "pool"
        self.verify, self.check_key = "off", b""
        self.trees: list[pb2.Tree] = []
        self.standby = False
        self.ended: str | None = None
        self.end: pb2.JobEvent | None = None
        self.forgets = 0
        self.results_host = switch.group
        self.missing: set[int] = set()
        self.world_size = 0
        self.created: list[pb2.CreateJobRequest] = []
        self.joined: dict[int, pb2.JoinRequest] = {}
        self.left: list[tuple[int, int]] = []
        self.leaving: list[pb2.LeaveRequest] = []
        self.last_words: dict[int, pb2.Progress] = {}
        self.progress: dict[int, list[pb2.Progress]] = {}
        self.epoch = EPOCH  # of the mapping
        self.mapping: pb2.Mapping | None = None  # that the job changes to
        self.last: pb2.Mapping | None = None  # that it has changed to
        self.done: set[int] = set()  # ranks that have the results by the older one
        self.said: list[pb2.RemapRequest] = []
        self.asking: set[int] = set()  # ranks that have asked
        self.answers = threading.Event()  # Remap waits for it
        self.answers.set()
        self.slots = 0  # of the job; 0: all that the switch has
        self.watching: dict[int, queue.Queue[pb2.JobEvent | None]] = {}
        self.address = ""
        self._port = 0
        self._changed = threading.Condition()

    def __enter__(self) -> FakeController:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Serve, after stop() on the same port again."""
        self._pool = futures.ThreadPoolExecutor(16)
        self._server = grpc.server(self._pool, options=BEARABLE_PINGS)
        register(self, self._server)
        self._port = self._server.add_insecure_port(f"127.0.0.1:{self._port}")
        self.address = f"127.0.0.1:{self._port}"
        self._server.start()

    def stop(self) -> None:
        """Be away, as after kill -9: calls break."""
        for events in self.watching.values():
            events.put(None)
        self._server.stop(None).wait(10)
        self._pool.shutdown()

    def until(self, what: Any, timeout_s: float = 30.0) -> None:
        """Wait for a condition over what the workers have said, or have made of what they heard."""
        end_s = time.monotonic() + timeout_s
        with self._changed:
            while not what():
                assert time.monotonic() < end_s, "the worker has not said it"
                self._changed.wait(LOOK_S)

    def tell(self, event: pb2.JobEvent) -> None:
        """Send an event to all who watch."""
        event.epoch = event.epoch or EPOCH
        for events in self.watching.values():
            events.put(event)

    def remap(
        self, slots: int, first_slot: int, *, waits: bool = False, tells: bool = True
    ) -> None:
        """Begin a change to so many slots. `waits`: behind a barrier; `tells`: by an event."""
        epoch = self.epoch + 1
        self.switch.install_beside(JOB, epoch, first_slot, slots)
        self.mapping = pb2.Mapping(epoch=epoch, mode=self.mode, slots=slots, waits=waits)
        self.done.clear()
        if tells:
            self.tell(pb2.JobEvent(kind=pb2.JOB_REMAPS))

    def Remap(self, request: pb2.RemapRequest, context: Any) -> pb2.RemapReply:  # noqa: N802
        self._check_member(request, context)
        with self._changed:
            self.asking.add(request.rank)
            self._changed.notify_all()
        self.answers.wait(30)
        with self._changed:
            mapping = self.mapping
            self.said.append(request)
            if mapping is not None and request.to_epoch == mapping.epoch:
                self._hear(request, mapping)
            self._changed.notify_all()
            mapping = self.mapping
            if mapping is None and request.to_epoch == self.epoch:
                mapping = self.last  # it has changed to that
            reply = pb2.RemapReply(mapping=mapping)
            if mapping is not None and not mapping.trees:
                reply.mapping.trees.extend(self._trees(request.rank, mapping.slots))
            return reply

    def _trees(self, rank: int, slots: int) -> list[pb2.Tree]:
        """Where its one switch sums all ranks."""
        at = Peer.at((self.switch_host, self.switch.address[1]))
        (place,) = one_switch(JOB, rank, self.world_size, slots, at, mode=self.mode)
        return [tree_message(place)]

    def _hear(self, request: pb2.RemapRequest, mapping: pb2.Mapping) -> None:
        if request.declined:
            self.switch.take_back(JOB, self.epoch)
            self.mapping = None
            self.tell(pb2.JobEvent(kind=pb2.JOB_REMAP_OFF))
        elif request.first_operation and not mapping.first_operation:
            assert request.rank == 0
            mapping.first_operation = request.first_operation
            self.tell(pb2.JobEvent(kind=pb2.JOB_REMAPS))
        if request.done:
            self.done.add(request.rank)
        if len(self.done) == self.world_size:
            self.switch.remove_older(JOB, self.epoch)
            mapping.waits = False
            self.epoch, self.mapping, self.last = mapping.epoch, None, mapping
            self.tell(pb2.JobEvent(kind=pb2.JOB_REMAPPED))

    def CreateJob(self, request: pb2.CreateJobRequest, context: Any) -> pb2.CreateJobReply:  # noqa: N802
        self._check_primary(context)
        self.created.append(request)
        if self.world_size not in (0, request.world_size):
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "the job has\nanother size")
        self.world_size = request.world_size
        return pb2.CreateJobReply(
            switch_host=self.switch_host,
            switch_udp_port=self.switch.address[1],
            values_per_packet=self.switch.values,
            slots=request.slots or self._slots,
            results_host=self.results_host,
            results_udp_port=RESULTS_UDP_PORT if self.results_host else 0,
            wire_version=self.wire_version,
            mode=self.mode,
        )

    def Join(self, request: pb2.JoinRequest, context: Any) -> pb2.JoinReply:  # noqa: N802
        self._check_primary(context)
        if self.forgets:
            self.forgets -= 1
            context.abort(grpc.StatusCode.NOT_FOUND, "no such job")
        with self._changed:
            self.joined[request.rank] = request
            self._changed.notify_all()
        if len(self.joined) == self.world_size:
            self._install()
        while len(self.joined) < self.world_size:
            if not context.is_active():
                return pb2.JoinReply()  # to nobody
            if context.time_remaining() < 5.0:  # the client's grace is over
                context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "rank 1 is missing")
            time.sleep(0.01)
        return pb2.JoinReply(
            epoch=EPOCH,
            world_size=self.world_size,
            slots=self._slots,
            window=self.window,
            lease_s=self.lease_s,
            heartbeat_s=self.heartbeat_s,
            member_key=key_of(request.rank),
            shares_results=self._shares(request.rank),
            verify=self.verify,
            check_key=self.check_key,
            trees=self.trees or self._trees(request.rank, self._slots),
        )

    def Heartbeat(self, request: pb2.HeartbeatRequest, context: Any) -> pb2.HeartbeatReply:  # noqa: N802
        self._check_member(request, context)
        with self._changed:
            self.progress.setdefault(request.rank, []).append(request.progress)
            if request.progress.shared_results_missing and self._shares(request.rank):
                self.missing.add(request.rank)
                self._install()
            self._changed.notify_all()
        return pb2.HeartbeatReply(
            lease_s=self.lease_s,
            heartbeat_s=self.heartbeat_s,
            remaps_to=0 if self.mapping is None else self.mapping.epoch,
        )

    @property
    def _slots(self) -> int:
        return self.slots or self.switch.slots

    def _shares(self, rank: int) -> bool:
        wants = self.joined[rank].takes_shared_results and rank not in self.missing
        return bool(self.switch.group) and wants

    def _install(self) -> None:
        ports = [worker.udp_port for _, worker in sorted(self.joined.items())]
        sharing = frozenset(rank for rank in self.joined if self._shares(rank))
        self.switch.install_ports(JOB, EPOCH, ports, sharing, self._slots)

    def Watch(self, request: pb2.WatchRequest, context: Any) -> Any:  # noqa: N802
        if self.end is not None:
            yield self.end
            return
        self._check_member(request, context)
        context.send_initial_metadata(())  # it is heard
        events: queue.Queue[pb2.JobEvent | None] = queue.Queue()
        if not context.add_callback(lambda: events.put(None)):
            return  # the call is over already
        with self._changed:
            self.watching[request.rank] = events
            self._changed.notify_all()
        while (event := events.get()) is not None:
            yield event

    def Leave(self, request: pb2.LeaveRequest, context: Any) -> pb2.LeaveReply:  # noqa: N802
        self._check_primary(context)
        assert request.member_key == key_of(request.rank)
        self.left.append((request.rank, request.epoch))
        self.leaving.append(request)
        self.last_words[request.rank] = request.progress
        return pb2.LeaveReply()

    def _check_primary(self, context: Any) -> None:
        if self.standby:
            context.abort(grpc.StatusCode.UNAVAILABLE, "standby: another controller is primary")

    def _check_member(self, request: Any, context: Any) -> None:
        self._check_primary(context)
        if self.ended is not None:
            context.abort(grpc.StatusCode.NOT_FOUND, self.ended)
        known = (request.epoch, request.member_key) == (EPOCH, key_of(request.rank))
        if not known:
            context.abort(grpc.StatusCode.PERMISSION_DENIED, "not this member's key")
