"""Mode transparent by Linux's own RoCE: machines in QEMU whose rxe has reliable connections to each
other round a ring, past a soft switch that runs transparent.p4."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from ina.p4 import names
from ina.protocol.bth import Opcode
from ina.protocol.errors import ForeignPacketError
from ina.protocol.roce import RoceFrame, decode_frame
from tests.rxe.words import BOOT_S, SUM_S, said
from tests.worlds.machines.kernel import Kernel
from tests.worlds.machines.machine import Machine
from tests.worlds.machines.rack import Rack, rack, ring_address
from tests.worlds.machines.worker import FAILED, JOINED, SUMMED

pytestmark = pytest.mark.long

VALUES = 248
FIRST = int(IPv4Address(ring_address(1)))
SOON = {"rdma_timeout_s": 0.2, "rdma_retries": 7}
"""A lane waits so long for a lost packet. rxe takes seven for ever: machines may be slow here."""


def workers(rack: Rack, stack: ExitStack, *orders: dict[str, Any]) -> Sequence[Machine]:
    machines = [
        stack.enter_context(rack.worker(number, "roce", **order))
        for number, order in enumerate(orders, 1)
    ]
    for number, machine in enumerate(machines, 1):
        assert said(machine, JOINED, BOOT_S)["address"] == ring_address(number)
    return machines


def check_sums(machines: Sequence[Machine]) -> None:
    all_told = [said(machine, SUMMED, SUM_S) for machine in machines]
    for told in all_told:
        assert (told["rounds"], told["wrong"]) == (4, 0)
        assert told["stats"]["transport"] == "roce"
        assert (told["stats"]["refused_results"], told["stats"]["send_drops"]) == (0, 0)
        assert told["stats"]["timeouts"] == 0  # what is lost is rxe's to send again
    assert len({told["floats"] for told in all_told}) == 1


def roce_of(frames: Sequence[bytes]) -> list[RoceFrame]:
    """RoCEv2's among them; PacketError: an ICRC, or another checksum, is wrong."""
    found = []
    for frame in frames:
        with contextlib.suppress(ForeignPacketError):
            found.append(decode_frame(frame))
    return found


@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_a_ring_of_two_machines_sums(linux: Kernel, tmp_path: Path, loss: float) -> None:
    with (
        rack(linux, tmp_path, 2, mode=names.TRANSPARENT, values=VALUES, loss=loss) as one,
        ExitStack() as stack,
        one.captured(1) as frames,
    ):
        check_sums(workers(one, stack, SOON, SOON))
    packets = roce_of(frames)
    found = Counter(it.bth.opcode for it in packets)
    assert found.keys() == {Opcode.RC_SEND_ONLY, Opcode.RC_ACKNOWLEDGE}
    assert found[Opcode.RC_SEND_ONLY] > 2 * 1000
    if loss:
        sent = Counter(
            (it.bth.dest_qp, it.bth.psn)
            for it in packets
            if it.bth.opcode == Opcode.RC_SEND_ONLY and it.src_ipv4 == FIRST
        )
        assert max(sent.values()) > 1


def test_a_straggler_is_waited_for(linux: Kernel, tmp_path: Path) -> None:
    """Longer than a connection's timeout, and shorter than all of them."""
    with (
        rack(linux, tmp_path, 2, mode=names.TRANSPARENT, values=VALUES) as one,
        ExitStack() as stack,
    ):
        patience = {"rdma_timeout_s": 8.0, "rdma_retries": 6}
        check_sums(workers(one, stack, patience, {**patience, "late_s": 12.0}))


def test_a_straggler_that_is_too_late_is_named(linux: Kernel, tmp_path: Path) -> None:
    with (
        rack(linux, tmp_path, 2, mode=names.TRANSPARENT, values=VALUES) as one,
        ExitStack() as stack,
    ):
        patience = {"rdma_timeout_s": 1.0, "rdma_retries": 6}
        machines = workers(one, stack, patience, {**patience, "late_s": 30.0})
        failed = said(machines[0], FAILED, SUM_S)
        assert failed["error"] == "SwitchLostError"
        assert "a reliable connection to the next worker of the ring has failed" in failed["text"]
        assert "rank 1" in failed["text"]
        assert "has not sent" in failed["text"]
        failed = said(machines[1], FAILED, SUM_S)
        assert failed["error"] in {"SwitchLostError", "JobEndedError"}


def test_a_switch_that_restarts_ends_the_job(linux: Kernel, tmp_path: Path) -> None:
    """What was acknowledged is not sent again; no sum is wrong."""
    # With seven retries rxe goes on for ever.
    order = {"rdma_timeout_s": 1.0, "rdma_retries": 6, "for_ever": True, "op_timeout_s": 40.0}
    with (
        rack(linux, tmp_path, 2, mode=names.TRANSPARENT, values=VALUES) as one,
        ExitStack() as stack,
    ):
        machines = workers(one, stack, order, order)
        for _ in range(3):
            assert said(machines[0], SUMMED, SUM_S)["wrong"] == 0
        one.reboot()
        errors = set()
        for machine in machines:
            errors.add(said(machine, FAILED, SUM_S)["error"])
            sums = [line for line in machine.said if line.startswith(SUMMED)]
            assert sums
            assert all('"wrong": 0' in line for line in sums)
        assert "SwitchLostError" in errors
        assert errors <= {"SwitchLostError", "JobEndedError", "OperationTimeoutError"}
