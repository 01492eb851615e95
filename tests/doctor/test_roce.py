"""What an RDMA NIC's host lacks is one line a thing, which says what to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from unittest import mock

import pytest

from ina.doctor import roce
from ina.doctor.finding import Finding
from ina.host import rdma_loopback
from ina.host.errors import TransportError
from tests.lines import ROOT
from tests.worlds.fakes.verbs import environment, run_there

MISSING = [
    ("DEVICES", "0", "RDMA devices", "rdma link add rxe0 type rxe netdev INTERFACE"),
    ("FAILS", "open_device", "fake0", "/dev/infiniband/uverbs"),
    ("STATE", "1", "fake0 port 1", "ip link set ... up"),
    ("MTU", "1", "fake0 port 1, MTU", "256 of 4096 bytes: 56 values a packet; raise"),
    ("IPV4", "", "fake0 port 1, GIDs", "no IPv4 address of type RoCEv2"),
    ("FAILS", "reg_mr", "fake0 port 1, queue pairs", "ulimit -l"),
    ("FAILS", "modify_qp", "fake0 port 1, loopback", "nobody answers for the MAC address"),
    ("FAILS", "post_send", "fake0 port 1, loopback", "0 of 8 messages of 1024 bytes came"),
    ("FAILS", "post_send", "fake0 port 1, reliable connection", "0 of 8 messages came"),
]
"""What a device is told to lack, the line about it, and what that says."""


def checklist() -> dict[str, Finding]:
    found = {it.name: it for it in roce.examine_roce()}
    assert all("\n" not in it.found + it.get and it.required for it in found.values())
    return found


def test_all_is_well_but_for_the_kernel() -> None:
    command = [sys.executable, "-m", "ina", "doctor", "--roce", "--json"]
    done = subprocess.run(
        command,
        env=environment(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows = {row.pop("name"): row for row in json.loads(done.stdout)["rdma"]}
    assert done.returncode == int(any(row["verdict"] != "ok" for row in rows.values()))
    kernel, queues = rows.pop("kernel, for RDMA"), rows.pop("fake0 port 1, queue pairs")
    assert kernel["found"] or "modprobe ib_uverbs" in kernel["get"]
    assert queues["verdict"] == "ok"
    assert {name: row["found"] for name, row in rows.items()} == {
        "libibverbs": "libibverbs.so.1",
        "RDMA devices": "fake0",
        "fake0": "opened",
        "fake0 port 1": "active, Ethernet",
        "fake0 port 1, MTU": "1024 of 4096 bytes: 56, 248 values a packet",
        "fake0 port 1, GIDs": "0: 127.0.0.1 RoCEv1, 1: 127.0.0.1 RoCEv2",
        "fake0 port 1, loopback": "8 of 8 messages",
        "fake0 port 1, PSN jump": "8 of 8 messages",
        "fake0 port 1, reliable connection": "8 of 8 messages",
    }


def there_what_is_missing_is_named() -> None:
    """In a process that has the device which is UDP sockets. What never comes is waited for."""
    with mock.patch.object(rdma_loopback, "_WAIT_MS", 1):
        for what, value, name, says in MISSING:
            with mock.patch.dict(os.environ, {f"FAKE_VERBS_{what}": value}):
                found = checklist()[name]
            assert found.verdict == "MISSING"
            assert says in found.get


def test_what_is_missing_is_named() -> None:
    run_there(there_what_is_missing_is_named)


def test_a_machine_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise TransportError("no libibverbs: libibverbs.so.1: cannot open shared object file")

    monkeypatch.setattr(roce, "devices", none)
    library, kernel = roce.examine_roce()
    assert library.verdict == "MISSING"
    assert library.get.startswith("apt install libibverbs1 ibverbs-providers: no libibverbs: ")
    assert kernel.name == "kernel, for RDMA"
