"""The pool program on a soft switch, with one job and its workers' sockets."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from finsy.proto import p4i, p4r

from ina.p4 import compiled, names
from ina.p4.names import (
    ADDRESS,
    ADMIT_JOB,
    ADMIT_MEMBER,
    JOBS,
    MEMBERS,
    OURS,
    OWN_ADDRESSES,
    RECEIVERS,
)
from ina.protocol import codec
from ina.protocol.addresses import mac_of
from ina.protocol.codec import Header
from ina.protocol.spec import Kind
from ina.switch.p4runtime.config import config_from_files
from tests.worlds.fakes.p4runtime import update

SLOTS = 8
"""Of each job."""
PORT = 1
LOOPBACK = ipaddress.IPv4Address("127.0.0.1")


def pool_config(values: int) -> p4r.ForwardingPipelineConfig:
    """The checked-in build."""
    program = compiled(values)
    return config_from_files(program.p4info, program.bmv2_json)


@dataclass(frozen=True)
class Worker:
    """A bound UDP socket, and where the switch finds it."""

    socket: socket.socket
    port: int
    mac: int


def local_workers(count: int) -> list[Worker]:
    """On 127.0.0.1, behind UDP port 1."""
    workers = []
    for _ in range(count):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((str(LOOPBACK), 0))
        sock.settimeout(5)
        workers.append(Worker(sock, PORT, mac_of(LOOPBACK)))
    return workers


class ControlPlane(Protocol):
    """Of a switch: over gRPC or in this process."""

    def write_updates(self, updates: list[p4r.Update]) -> None:
        """In order; fails where one is refused."""
        ...

    def read(self, **entity: Any) -> list[p4r.Entity]:
        """What one request selects."""
        ...


class PoolJob:
    """A job on a switch; its workers send to `address`."""

    def __init__(
        self,
        address: tuple[str, int],
        client: ControlPlane,
        workers: list[Worker],
        values: int,
        job: int = 1,
        own: str = "",
    ) -> None:
        """A job on the switch that ``client`` is primary of, and has set the program of.

        ``own``: the address that packets are for, where it is not that of `address`.
        """
        self.address = address
        self.values = values
        self.client = client
        self.job = job
        self.epoch = 100 + job
        self._own = own
        self._info = pool_config(values).p4info
        self.sockets = [worker.socket for worker in workers]
        self._install(workers)

    def contribution(self, worker: int, seq: int, values: npt.NDArray[np.int32]) -> bytes:
        """The packet of one worker."""
        return codec.encode(
            Header(
                job=self.job,
                epoch=self.epoch,
                worker=worker,
                slot=seq % SLOTS,
                value_count=self.values,
                seq=seq,
                contributors=1 << worker,
            ),
            values,
        )

    def send(self, worker: int, payload: bytes) -> None:
        self.sockets[worker].sendto(payload, self.address)

    def result(self, worker: int) -> tuple[Header, npt.NDArray[np.int32]]:
        """The next packet that the worker gets; raises TimeoutError after 5 s."""
        return codec.decode(self.sockets[worker].recv(65536))

    def drops(self) -> list[int]:
        """Packets refused, by ina.protocol.spec.DropReason."""
        counter = next(c for c in self._info.counters if c.preamble.name == names.DROPS)
        read = self.client.read(counter_entry=p4r.CounterEntry(counter_id=counter.preamble.id))
        return [entity.counter_entry.data.packet_count for entity in read]

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()

    def _install(self, workers: list[Worker]) -> None:
        full = (1 << len(workers)) - 1
        job = [self.epoch, self.job * SLOTS, SLOTS, full, self.job, self.job]
        group = p4r.MulticastGroupEntry(multicast_group_id=self.job)
        entries = [self._entry(JOBS, [self.job, self.epoch], ADMIT_JOB, job)]
        host = int(ipaddress.IPv4Address(self._own or self.address[0] or LOOPBACK))
        own = self._entry(OWN_ADDRESSES, [host], OURS, [])
        there = self.client.read(table_entry=p4r.TableEntry(table_id=own.table_id))
        if all(it.table_entry.match != own.match for it in there):  # no job has come before
            entries.append(own)
        for rank, worker in enumerate(workers):
            host, udp_port = worker.socket.getsockname()
            ip = int(ipaddress.IPv4Address(host))
            member = [worker.port, ip, udp_port, self.job, self.epoch, rank, Kind.CONTRIBUTION]
            address = [worker.mac, ip, udp_port, 0, 0, 0, 0]
            entries.append(self._entry(MEMBERS, member, ADMIT_MEMBER, [1 << rank]))
            entries.append(self._entry(RECEIVERS, [self.job, rank], ADDRESS, address))
            group.replicas.add(egress_port=worker.port, instance=rank + 1)
        updates = [update("INSERT", table_entry=entry) for entry in entries]
        engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
        updates.append(update("INSERT", packet_replication_engine_entry=engine))
        self.client.write_updates(updates)

    def _entry(self, table: str, key: list[int], action: str, params: list[int]) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=_id(self._info.tables, table))
        for i, value in enumerate(key):
            entry.match.add(field_id=i + 1).exact.value = _bytes(value)
        entry.action.action.action_id = _id(self._info.actions, action)
        for i, value in enumerate(params):
            entry.action.action.params.add(param_id=i + 1, value=_bytes(value))
        return entry


def _id(objects: Any, name: str) -> int:
    preambles: list[p4i.Preamble] = [o.preamble for o in objects]
    return next(p.id for p in preambles if p.name == name)


def _bytes(value: int) -> bytes:
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
