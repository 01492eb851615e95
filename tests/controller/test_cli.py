"""``ina controller`` and ``ina job`` as processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ina.host import Session, WorkerOptions
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import workers_of
from tests.worlds.processes.command import inside
from tests.worlds.processes.controller_command import (
    NO_LEASES,
    TIMEOUT_S,
    config_file,
    ina,
    started,
)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A controller with its own switch, and its address."""
    config = str(config_file(tmp_path, NO_LEASES))
    with started("controller", "run", config, "--embedded-switch") as (process, ready):
        yield process, ready["controller"]


def test_run_list_show_stop(running: tuple[subprocess.Popen[str], str]) -> None:
    process, address = running
    assert ina("job", "list", "--controller", address).stdout == "no jobs\n"
    with workers_of(address) as workers:
        joined = workers.run_job("train", 2)
        (job,) = json.loads(ina("job", "list", "--controller", address, "--json").stdout)
        assert (job["name"], job["state"], job["joined"]) == ("train", "running", [0, 1])
        listed = ina("job", "list", "--controller", address).stdout
        assert "train" in listed
        shown = json.loads(ina("controller", "show", "--controller", address, "--json").stdout)
        assert len(shown["entries"]) == 6 + len(("own address", "that of shared memory"))
        assert {"name", "label", "packets"} <= shown["counters"][0].keys()
        assert (
            "admit_member(worker_bit=2)"
            in ina("controller", "show", "--controller", address).stdout
        )
        workers.leave("train", 0, joined.epoch)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 128 + signal.SIGTERM
    refused = ina("job", "list", "--controller", address)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: controller {address}: ")
    assert refused.stderr.count("\n") == 1


def test_an_embedded_switch_offers_shared_memory_beside_udp(tmp_path: Path) -> None:
    # Ports 1 and 2 are others': shared memory is 3.
    hosts = '[[host]]\naddress = "10.0.0.2"\nport = 2\n'
    config = str(config_file(tmp_path, NO_LEASES + hosts))
    with started("controller", "run", config, "--embedded-switch") as (_, ready):
        with ThreadPoolExecutor(2) as pool:
            first, second = pool.map(
                lambda rank: Session.join(
                    ready["controller"],
                    "mixed",
                    rank,
                    2,
                    WorkerOptions(transport=("auto", "udp")[rank]),
                ),
                range(2),
            )
        with first, second:
            assert first.path == "shared memory"
            assert second.path.startswith("UDP 127.0.0.1:")
            handle = first.all_reduce(np.arange(1000, dtype=np.int32), async_op=True)
            total = second.all_reduce(np.ones(1000, np.int32))
            assert np.array_equal(total, np.arange(1, 1001, dtype=np.int32))
            assert np.array_equal(handle.wait(), total)


def test_a_killed_controller_is_replaced_and_its_job_goes_on(tmp_path: Path) -> None:
    store = f'[store]\npath = "{tmp_path / "controller.db"}"\n{NO_LEASES}'
    with started("switch", "--port", "1=udp:", "--grpc-addr", "127.0.0.1:0") as (_, switch):
        config = str(config_file(tmp_path, store))
        command = ["controller", "run", config, "--switch", switch["grpc_addr"]]
        with started(*command) as (process, ready), workers_of(ready["controller"]) as workers:
            joined = workers.run_job("train", 2)
            before, keys = of_jobs(workers.show()), workers.keys
            process.kill()
        with started(*command) as (_, ready), workers_of(ready["controller"]) as workers:
            workers.keys = keys
            (job,) = workers.jobs()
            assert (job.state, job.epoch, list(job.joined)) == ("running", joined.epoch, [0, 1])
            assert of_jobs(workers.show()) == before
            workers.heartbeat("train", 0, joined.epoch)
            for rank in range(2):
                workers.leave("train", rank, joined.epoch)
            assert not of_jobs(workers.show())
            assert workers.run_job("train", 2).epoch == joined.epoch + 1


def test_interrupt_is_130(running: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = running
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 130


def test_check_says_ok_or_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = config_file(tmp_path)
    said = inside(capsys, "controller", "check", good).out
    assert said.startswith(f"{good}: ok; store ")
    assert json.loads(inside(capsys, "controller", "check", good, "--json").out)["config"]
    bad = config_file(tmp_path, "[jobs]\nslot = 4\n")
    refused = inside(capsys, "controller", "check", bad)
    assert (refused.code, refused.err) == (
        2,
        f"error: {bad}: jobs.slot: unknown key; did you mean 'slots'?\n",
    )


def test_a_listen_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = ina("controller", "run", "--listen", address)
    said = f"error: cannot listen on {address}: Address already in use\n"
    assert (refused.returncode, refused.stderr) == (2, said)
