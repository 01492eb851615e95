"""A worker's program ends, whatever gRPC's threads do at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.controller import FakeController
from tests.worlds.fakes.udp_model import UdpModel

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0

# gRPC's threads are daemons: where the interpreter's end finds them they stop, and keep the locks
# that they hold. On a loaded machine that may be in the last event of the stream, after its reader
# has gone; with slow_grpc it always is.
_SCRIPT = """
import sys, time
from tests.host import slow_grpc
from ina.host import Session

session = Session.join(sys.argv[1], "digits", 0, 1)
while session.error() is None:
    time.sleep(0.01)
if sys.argv[2] == "closed":
    session.close()
    assert slow_grpc.handling.wait(60)
print("end", flush=True)
"""


@pytest.mark.parametrize("session", ["closed", "open"])
def test_a_program_ends_while_grpc_handles_an_event(session: str) -> None:
    with (
        UdpModel() as switch,
        FakeController(switch, lease_s=60.0, heartbeat_s=0.05) as fake,
    ):
        program = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT, fake.address, session],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            fake.until(lambda: fake.watching)
            fake.tell(pb2.JobEvent(kind=pb2.JOB_ENDED, reason="over", fatal=True))
            said, _ = program.communicate(timeout=DEADLINE_S)
        finally:
            program.kill()
            program.communicate(timeout=DEADLINE_S)
        assert (program.returncode, said) == (0, "end\n")
