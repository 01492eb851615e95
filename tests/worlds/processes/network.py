"""A real ``ina switch`` and a real ``ina controller run``, each a process, on free ports."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.worlds.processes.stand_ins import python

START_TIMEOUT_S = 120.0
EMPTY_TIMEOUT_S = 30.0
"""A killed worker's lease, and time to remove its job."""


@dataclass(frozen=True)
class Network:
    """Where it is."""

    controller: str

    def show_when_empty(self) -> pb2.ShowSwitchReply:
        """What the switch has once no job is left, or at the latest after a while."""
        deadline_s = time.monotonic() + EMPTY_TIMEOUT_S
        with open_channel(self.controller) as channel:
            stub = OperatorStub(channel)
            while True:
                shown = stub.ShowSwitch(pb2.ShowSwitchRequest(), timeout=START_TIMEOUT_S)
                if (
                    all(it.table == "own_addresses" for it in shown.entries)
                    or time.monotonic() > deadline_s
                ):
                    return shown
                time.sleep(0.2)


@contextlib.contextmanager
def network(folder: Path, config: str = "") -> Iterator[Network]:
    """``config``: TOML to add to the controller's file (``[jobs]`` and so on)."""
    with contextlib.ExitStack() as stack:
        switch = stack.enter_context(
            _running(["switch", "--grpc-addr", "127.0.0.1:0", "--port", "1=udp:127.0.0.1:0"])
        )
        udp_port = int(switch["ports"]["1"].rpartition(":")[2])
        file = folder / "controller.toml"
        file.write_text(
            f'listen = "127.0.0.1:0"\n{config}\n[switch]\ngrpc_addr = "{switch["grpc_addr"]}"\n'
            f"data_udp_port = {udp_port}\n"
        )
        controller = stack.enter_context(_running(["controller", "run", str(file)]))
        yield Network(controller["controller"])


@contextlib.contextmanager
def _running(args: list[str]) -> Iterator[dict[str, Any]]:
    """A command that prints a line of JSON when it is ready; told to stop at the end."""
    process = subprocess.Popen(
        [python(), "-m", "ina", *args, "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.communicate(timeout=START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
