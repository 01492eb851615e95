"""Embedded: what it starts works, what it cannot start it says, what it stops is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ina.controller.embedded import Embedded
from ina.errors import InaError
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import workers_of


def threads() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.is_alive())


def soon(holds: Callable[[], bool]) -> bool:
    """Idle threads of a pool, and gRPC's connections, end a moment after they are shut down."""
    for _ in range(500):
        if holds():
            return True
        time.sleep(0.01)
    return False


def only_remain(names: list[str]) -> bool:
    return soon(lambda: set(threads()) <= set(names))


def sockets() -> int:
    links = Path("/proc/self/fd")
    return sum(
        os.readlink(link).startswith("socket:") for link in links.iterdir() if link.is_symlink()
    )


def free_to_listen(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex((host, int(port))) != 0


def test_both_run_and_are_gone_afterwards() -> None:
    with Embedded(values=64):
        pass  # gRPC keeps a few descriptors of its own from here on
    before, running = sockets(), threads()
    with Embedded(values=64) as embedded:
        with workers_of(embedded.controller_addr) as workers:
            workers.run_job("j", 2)
            assert len(of_jobs(embedded.show())) == 6
        addresses = [embedded.controller_addr, embedded.switch.grpc_addr]
        assert "ina-controller" in threads()
        assert not any(map(free_to_listen, addresses))
    assert only_remain(running), threads()
    assert all(map(free_to_listen, addresses))
    assert soon(lambda: sockets() <= before), sockets()
    embedded.close()  # again: nothing happens


def test_it_works_inside_a_running_event_loop() -> None:
    async def scenario() -> int:
        with Embedded(values=64) as embedded:
            return embedded.show().slots_total

    assert asyncio.run(scenario()) == 8192


def test_in_a_fork_of_a_process_that_ran_one_it_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with Embedded(values=64):
        pass
    child = os.fork()
    if child == 0:
        try:
            Embedded(values=64).__enter__()
        except InaError as error:
            os.write(1, str(error).encode())
        finally:
            os._exit(0)
    deadline = time.monotonic() + 10
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)
    said = capfd.readouterr().out
    assert f"process {os.getpid()}, of which this one is a fork, has run a switch" in said


def test_two_in_one_process() -> None:
    with Embedded(values=64) as first, Embedded(values=256) as second:
        for embedded, values in ((first, 64), (second, 256)):
            with workers_of(embedded.controller_addr) as workers:
                assert workers.create("j", 1).values_per_packet == values


@pytest.mark.parametrize(
    ("host", "switch", "offered"),
    [
        # Other users of the host, and on a network other hosts, could read the sums.
        ("127.0.0.1", {}, ""),
        ("0.0.0.0", {}, ""),
        ("127.0.0.2", {"multicast": "239.9.0.0/16"}, "239.9.0.1"),
        ("0.0.0.0", {"multicast": "239.192.0.0/24"}, "239.192.0.1"),
    ],
)
def test_results_go_by_multicast_only_where_it_is_asked_for(
    host: str, switch: dict[str, str], offered: str
) -> None:
    with Embedded(values=64, host=host, config={"switch": switch}) as embedded:
        address = f"127.0.0.1:{embedded.controller_addr.rpartition(':')[2]}"
        if host == "127.0.0.2":
            address = embedded.controller_addr
        with workers_of(address) as workers:
            assert workers.create("j", 1).results_host == offered


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"values": 65}, "switch.values: 65 is not 64, 256, 360 or 1024"),
        ({"slots": 3}, "jobs.slots: expected `int` that's a multiple of 2"),
        ({"host": "203.0.113.1"}, "203.0.113.1.*Cannot assign requested address"),
        ({"host": "here"}, "'here' is not an IPv4 address"),
        ({"loss_rate": 1.5}, "loss rate 1.5"),
    ],
)
def test_what_cannot_start_is_said_to_the_caller(settings: dict[str, int], said: str) -> None:
    before = threads()
    with pytest.raises(InaError, match=said) as caught:
        Embedded(**settings).__enter__()  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert only_remain(before), threads()


def test_a_machine_without_a_compiler_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("INA_CACHE_DIR", str(tmp_path))
    with pytest.raises(InaError, match="compiler"):
        Embedded(values=64).__enter__()
