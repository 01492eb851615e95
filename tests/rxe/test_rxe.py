"""Linux's own RoCE, rxe, as the judge of ours: machines in QEMU, each a worker of the real host
over its queue pair, at the ports of a soft switch that runs roce.p4."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import names
from ina.protocol.bth import Bth, Opcode
from ina.protocol.codec import Header, encode
from ina.protocol.roce import RoceFrame, encode_frame
from tests.lines import ROOT
from tests.rxe.words import BOOT_S, SUM_S, said
from tests.worlds.machines.kernel import Kernel
from tests.worlds.machines.machine import Machine, machine
from tests.worlds.machines.rack import MODULES, SWITCH, Rack, address, mac, rack
from tests.worlds.machines.worker import FAILED, JOINED, SUMMED

pytestmark = pytest.mark.long

VALUES = 248
FORGED = 7
"""Frames that are no result of the job's, with the ICRC that they ought to have, or another."""


def workers(rack: Rack, stack: ExitStack, **orders: Any) -> list[Machine]:
    return [stack.enter_context(rack.worker(n, "roce", **orders)) for n in (1, 2)]


def sums_of(rack: Rack) -> list[dict[str, Any]]:
    """What came of a job of two machines, each rank's."""
    with ExitStack() as stack:
        machines = workers(rack, stack)
        for machine in machines:
            said(machine, JOINED, BOOT_S)
        return [said(machine, SUMMED, SUM_S) for machine in machines]


@pytest.mark.parametrize(("values", "mtu_bytes"), [(VALUES, 1500), (1016, 4300)])
def test_two_machines_sum(linux: Kernel, tmp_path: Path, values: int, mtu_bytes: int) -> None:
    with rack(linux, tmp_path, 2, mode=names.ROCE, values=values, mtu_bytes=mtu_bytes) as one:
        first, second = sums_of(one)
    for told in (first, second):
        assert (told["rounds"], told["wrong"]) == (4, 0)
        assert told["stats"]["transport"] == "roce"
        assert (told["stats"]["refused_results"], told["stats"]["send_drops"]) == (0, 0)
    assert first["floats"] == second["floats"]


def test_two_machines_sum_though_packets_are_lost(linux: Kernel, tmp_path: Path) -> None:
    with rack(linux, tmp_path, 2, mode=names.ROCE, values=VALUES, loss=0.02) as one:
        first, second = sums_of(one)
    for told in (first, second):
        assert (told["rounds"], told["wrong"]) == (4, 0)
        assert told["stats"]["losses"] > 0
    assert first["floats"] == second["floats"]


@pytest.mark.parametrize(("mtu", "values"), [(1500, "56, 248"), (4300, "56, 248, 1016")])
def test_the_doctor_finds_all_well(linux: Kernel, tmp_path: Path, mtu: int, values: str) -> None:
    script = "\n".join(
        (
            "ip address add 10.78.0.1/24 dev eth0",
            f"ip link set eth0 mtu {mtu} up",
            "rdma link add rxe0 type rxe netdev eth0",
            f"cd {shlex.quote(str(ROOT))}",
            f"{shlex.quote(sys.executable)} -m ina doctor --roce --json; echo",
        )
    )
    cable = ("-netdev", "user,id=own", "-device", "virtio-net-pci,netdev=own,host_mtu=9000")
    with machine(linux, tmp_path, script, modules=MODULES, devices=cable) as one:
        rows = json.loads('{"rdma":' + one.line('{"rdma":', BOOT_S))["rdma"]
    found = {row["name"]: row["found"] for row in rows}
    assert all(row["verdict"] == "ok" for row in rows), rows
    assert found["rxe0 port 1, MTU"].endswith(f" of 4096 bytes: {values} values a packet")
    assert "10.78.0.1 RoCEv2" in found["rxe0 port 1, GIDs"]
    assert found["rxe0 port 1, PSN jump"] == "8 of 8 messages"
    assert found["rxe0 port 1, reliable connection"] == "8 of 8 messages"


def frames_to(number: int, queue_pair: int, *, is_right: bool) -> Iterator[bytes]:
    """Results of a job that there is not."""
    header = Header(
        job=0x7FFF, epoch=1, worker=0, slot=0, value_count=VALUES, seq=3, contributors=1
    )
    payload = encode(header, [1] * VALUES)
    for psn in range(FORGED):
        frame = RoceFrame(
            Bth(Opcode.UC_SEND_ONLY, queue_pair, psn),
            payload,
            int(IPv4Address(SWITCH)),
            int(IPv4Address(address(number))),
            0xC011,
            dst_mac=int(mac(number).replace(":", ""), 16),
        )
        data = bytearray(encode_frame(frame))
        data[-1] ^= not is_right
        yield bytes(data)


def refused_after(machine: Machine, rounds: int) -> int:
    """Results that the worker refused until some rounds later."""
    for _ in range(rounds):
        told = said(machine, SUMMED, SUM_S)
        assert told["wrong"] == 0
    refused: int = told["refused"]
    return refused


def test_what_a_nic_drops_and_a_reboot(linux: Kernel, tmp_path: Path) -> None:
    """A wrong ICRC never comes to the worker, which counts the same with a right one; then the
    switch loses its power, and both workers end with an error."""
    with rack(linux, tmp_path, 2, mode=names.ROCE, values=VALUES) as one, ExitStack() as stack:
        machines = workers(one, stack, for_ever=True, op_timeout_s=10.0)
        places = [said(machine, JOINED, BOOT_S) for machine in machines]
        queue_pair = places[0]["queue_pair"]
        assert refused_after(machines[0], 2) == 0
        one.send(1, list(frames_to(1, queue_pair, is_right=False)))
        assert refused_after(machines[0], 5) == 0
        one.send(1, list(frames_to(1, queue_pair, is_right=True)))
        assert refused_after(machines[0], 5) == FORGED
        one.reboot()
        for machine in machines:
            failed = said(machine, FAILED, SUM_S)
            assert failed["error"] in {"SwitchLostError", "JobEndedError", "OperationTimeoutError"}
            assert all(json.loads(line.removeprefix(SUMMED))["wrong"] == 0
                       for line in machine.said if line.startswith(SUMMED))  # fmt: skip
