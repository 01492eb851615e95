"""What a soak has left behind: processes, sockets, shared memory, and jobs on the switch."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

import grpc

from ina.rpc import controller_pb2 as pb2
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.soak.programs import MARK

_CALL_S = 30.0
_SHM = Path("/dev/shm")


def started_at(pid: int) -> str:
    """When the process of this number began, in clock ticks; empty: there is none, or a zombie.

    Numbers are used again, so both together name a process.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if fields[0] == "Z" else fields[19]


def processes(started: dict[int, str], folder: Path) -> Iterator[str]:
    """Of those that were started, and of what they have started themselves, those that run."""
    for pid, begin in started.items():
        if begin and started_at(pid) == begin:
            yield f"process {pid} still runs"
    mark = f"{MARK}={folder}".encode()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it ends, or is another user's
            if mark in environ.read_bytes().split(b"\0"):
                yield f"process {environ.parent.name} still runs, which one of ina's has started"


def sockets(net: str) -> Iterator[str]:
    """Those at an address in ``net`` (127.x.y) that belong to a process."""
    for kind in ("udp", "tcp", "raw"):
        for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            host, _, port = fields[1].partition(":")
            address = socket.inet_ntoa(struct.pack("=I", int(host, 16)))
            if address.startswith(f"{net}.") and int(fields[9]):  # 0: TCP's own, in TIME_WAIT
                yield f"a {kind} socket at {address}:{int(port, 16)}"


def shared_memory() -> set[str]:
    """What is there by name. ina's own has none, and goes with the last process that maps it."""
    return {path.name for path in _SHM.iterdir()} if _SHM.is_dir() else set()


def left_on_switch(controller: str) -> Iterator[str]:
    """What the controller knows of a job that has ended, and what is on the switch of it."""
    with grpc.insecure_channel(controller) as channel:
        operator = OperatorStub(channel)
        jobs = operator.ListJobs(pb2.ListJobsRequest(), timeout=_CALL_S).jobs
        shown = operator.ShowSwitch(pb2.ShowSwitchRequest(), timeout=_CALL_S)
    yield from (f"the controller still has job {job.name!r}" for job in jobs)
    if shown.slots_used:
        yield f"{shown.slots_used} slots of the switch are in use"
    left = (entry for entry in shown.entries if entry.table != "own_addresses")
    yield from (f"the switch still has {kept(entry)}" for entry in left)


def kept(entry: pb2.TableEntry) -> str:
    return f"an entry in {entry.table}: {entry.match}"


def all_of(started: dict[int, str], folder: Path, net: str, shm_before: Iterable[str]) -> list[str]:
    """What is left when all is over."""
    new_shm = sorted(name for name in shared_memory() - set(shm_before) if name.startswith("ina"))
    return [
        *processes(started, folder),
        *sockets(net),
        *(f"shared memory {name}" for name in new_shm),
    ]
