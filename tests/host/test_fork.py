"""A process with our gRPC threads forks, as training does, and its children live."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

FORKS = 40
DEADLINE_S = 240.0

# `ina` comes first, as in a training script. The child does what subprocess's does between fork and
# exec, and stays a moment, in which threads that gRPC started in it would run.
_SCRIPT = """
import json, os, sys, threading, time
from concurrent import futures
import ina.host
import grpc

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

server = grpc.server(futures.ThreadPoolExecutor(4))
server.add_generic_rpc_handlers([Echo()])
address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
server.start()
done = [0, 0, 0]
end = threading.Event()

def call(caller):
    with grpc.insecure_channel(address) as channel:
        echo = channel.unary_unary("/test/Echo")
        while not end.is_set():
            assert echo(b"x", timeout=60.0) == b"x"
            done[caller] += 1

callers = [threading.Thread(target=call, args=(i,)) for i in range(3)]
for caller in callers:
    caller.start()
while not all(done):
    time.sleep(0.01)
children = []
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child == 0:
        if sys.argv[2] == "close":
            os.closerange(3, 1000)
        time.sleep(0.05)
        os._exit(0)
    children.append(child)
    time.sleep(0.002)  # the calls go on
ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
before = list(done)
while any(now == then for now, then in zip(done, before)):  # the parent's calls go on
    time.sleep(0.01)
end.set()
for caller in callers:
    caller.join()
server.stop(None).wait()
print(json.dumps(ends))
"""


@pytest.mark.parametrize("descriptors", ["close", "keep"])
def test_children_of_a_process_with_busy_grpc_threads_live(descriptors: str) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GRPC_")}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(FORKS), descriptors],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=environ,
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == [0] * FORKS
    # gRPC says a line per fork whose handlers it could not run; also, on a busy machine, that the
    # server has gone before a channel was closed.
    assert [line for line in ran.stderr.splitlines() if "Got goaway" not in line] == []


def test_who_wants_the_handlers_of_grpc_keeps_them() -> None:
    shown = "import os, ina; print(os.environ['GRPC_ENABLE_FORK_SUPPORT'])"
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GRPC_")}
    for given, wanted in (({}, "0"), ({"GRPC_ENABLE_FORK_SUPPORT": "1"}, "1")):
        ran = subprocess.run(
            [sys.executable, "-c", shown],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            env=environ | given,
        )
        assert ran.stdout.strip() == wanted, ran.stderr
