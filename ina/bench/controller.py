"""How fast a controller admits: joins a second, and how long a job waits until it may send.

The controller and its soft switch are a process of their own; clients are threads here. A job is
admitted when the last Join is answered: its entries are in the switch's tables by then.
"""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from ina.bench.spread import percentile, spread
from ina.emulate.nodes import controller_toml
from ina.errors import DeadlineError, InaError
from ina.host.calls import Credentials
from ina.host.client import GrpcWire, process_name
from ina.host.member.client import ControllerClient
from ina.host.thread_driver import ThreadDriver
from ina.p4 import names
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2

_READY_S = 120.0
_JOIN_S = 60.0
_STOP_S = 10.0
_SLOTS = 64
"""Of a job: 128 jobs fit."""
MAX_JOBS = names.SLOTS_TOTAL // _SLOTS - 16
_CLIENTS = 8
"""Jobs that are being admitted at once where joins a second are counted."""
_HOST, _FIRST_UDP_PORT = "127.0.0.1", 20_000


@dataclass(frozen=True)
class AdmissionRow:
    """With so many other jobs on the switch. Times in seconds."""

    jobs: int
    workers: int
    admissions: int
    p50_s: float
    """From the first CreateJob of a job to the answer to its last Join; one job at a time."""
    p99_s: float
    leave_p50_s: float
    """Of one worker's Leave; the last one waits until the entries are gone."""
    joins_per_second: float
    """Joins answered, 8 jobs at once, each leaving again."""
    wrong: int
    """Answers that were not what was asked for: another size, a job number handed out twice."""


class Client:
    """Admits jobs of ``workers`` workers at one controller."""

    def __init__(self, address: str, workers: int) -> None:
        self.workers = workers
        self.driver = ThreadDriver("bench")
        wire = GrpcWire(address, self.driver)
        self.client = ControllerClient(wire, process_name(), timeout_s=_JOIN_S)
        self.pool = ThreadPoolExecutor(workers)

    def admit(self, name: str) -> list[pb2.JoinReply]:
        """All ranks create and join at once, as workers do."""
        return list(self.pool.map(lambda rank: self._join(name, rank), range(self.workers)))

    def _join(self, name: str, rank: int) -> pb2.JoinReply:
        request = pb2.CreateJobRequest(
            name=name, world_size=self.workers, slots=_SLOTS, wire_version=VERSION
        )
        self.driver.run(self.client.create_job(request, _JOIN_S))
        return self.driver.run(
            self.client.join(
                pb2.JoinRequest(
                    name=name,
                    rank=rank,
                    host=_HOST,
                    udp_port=_FIRST_UDP_PORT + rank,
                    timeout_s=_JOIN_S,
                )
            )
        )

    def leave(self, name: str, replies: list[pb2.JoinReply]) -> list[float]:
        """All ranks leave, one after the other; seconds of each."""
        times = []
        for rank, reply in enumerate(replies):
            started = time.perf_counter()
            self.driver.run(
                self.client.leave(Credentials(name, rank, reply.epoch, reply.member_key))
            )
            times.append(time.perf_counter() - started)
        return times

    def close(self) -> None:
        """Ends its threads and connections."""
        self.pool.shutdown()
        self.client.wire.close()


def measure(
    jobs: list[int],
    workers: int,
    admissions: int,
    *,
    store: bool,
    on_row: Callable[[AdmissionRow], None],
) -> None:
    """One controller, ``jobs`` (ascending) other jobs on its switch at a time.

    ``store``: it keeps its jobs in a file, as one that survives its restart does. Raises InaError.
    """
    with _controller(store) as address, contextlib.ExitStack() as stack:
        client = Client(address, workers)
        stack.callback(client.close)
        resident: set[int] = set()
        for count in jobs:
            while len(resident) < count:
                replies = client.admit(f"resident-{len(resident)}")
                resident.add(replies[0].trees[0].job)
            on_row(_measurement(address, client, resident, admissions))


def _measurement(address: str, client: Client, resident: set[int], admissions: int) -> AdmissionRow:
    times, leaves, wrong = [], [], 0
    for number in range(admissions + 1):
        started = time.perf_counter()
        replies = client.admit(f"job-{number}")
        passed = time.perf_counter() - started
        wrong += sum(_is_wrong(reply, client.workers, resident) for reply in replies)
        left = client.leave(f"job-{number}", replies)
        if number:  # the first one warms up
            times.append(passed)
            leaves += left
    return AdmissionRow(
        jobs=len(resident),
        workers=client.workers,
        admissions=admissions,
        p50_s=percentile(times, 0.5),
        p99_s=percentile(times, 0.99),
        leave_p50_s=spread(leaves).median,
        joins_per_second=_joins_per_second(address, client.workers, admissions),
        wrong=wrong,
    )


def _is_wrong(reply: pb2.JoinReply, workers: int, resident: set[int]) -> bool:
    return reply.world_size != workers or reply.slots != _SLOTS or reply.trees[0].job in resident


def _joins_per_second(address: str, workers: int, admissions: int) -> float:
    """``_CLIENTS`` clients, each admitting and leaving job after job; all have connected before."""
    rounds = max(1, admissions // _CLIENTS)

    def some(number: int, turns: range) -> None:
        for turn in turns:
            name = f"client-{number}-{turn}"
            clients[number].leave(name, clients[number].admit(name))

    clients = [Client(address, workers) for _ in range(_CLIENTS)]
    try:
        with ThreadPoolExecutor(_CLIENTS) as pool:
            list(pool.map(lambda number: some(number, range(1)), range(_CLIENTS)))
            started = time.perf_counter()
            list(pool.map(lambda number: some(number, range(1, rounds + 1)), range(_CLIENTS)))
            passed = time.perf_counter() - started
    finally:
        for client in clients:
            client.close()
    return _CLIENTS * rounds * workers / passed


@contextlib.contextmanager
def _controller(store: bool) -> Iterator[str]:
    """A controller with a soft switch, as a process; its address. It is gone afterwards."""
    with TemporaryDirectory(prefix="ina-bench-") as folder:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind((_HOST, 0))
            udp_port = probe.getsockname()[1]
        config = {
            "listen": f"{_HOST}:0",
            "switch": {"data_host": _HOST, "data_udp_port": udp_port, "values": 64},
            "jobs": {"slots": _SLOTS, "lease_s": 3600.0},
            "store": {"path": f"{folder}/jobs.sqlite" if store else ""},
        }
        file, log = Path(folder) / "controller.toml", Path(folder) / "log"
        file.write_text(controller_toml(config))
        with log.open("wb") as sink:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "ina", "controller", "run", str(file)),
                    *("--embedded-switch", "--json"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=sink,
                text=True,
                start_new_session=True,  # Ctrl-C reaches this process, which stops it
            )
        try:
            yield _address(process, log)
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_STOP_S)
            assert process.stdout is not None
            process.stdout.close()


def _address(process: subprocess.Popen[str], log: Path) -> str:
    lines: queue.Queue[str] = queue.Queue()
    stream = process.stdout
    assert stream is not None
    threading.Thread(target=lambda: lines.put(stream.readline()), daemon=True).start()
    try:
        line = lines.get(timeout=_READY_S)
    except queue.Empty:
        raise DeadlineError(
            f"bench controller: process {process.pid} is not ready after {_READY_S:g} s"
        ) from None
    if not line:
        said = log.read_text(errors="replace").strip().splitlines()
        raise InaError(f"bench controller: {said[-1] if said else 'the controller ended'}")
    address: str = json.loads(line)["controller"]
    return address
