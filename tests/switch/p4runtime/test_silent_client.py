"""A primary that dies without a word (its machine, its cable) does not stay primary."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from finsy.proto import rpc_code

from ina.switch import server
from ina.switch.ports import UdpPort
from ina.switch.targets import default_target
from tests.worlds.fakes.p4runtime import Client

PING_S = 1.0  # gRPC can no less
SILENCE_S = 8.0  # both times and a slow machine; gRPC's own would be a minute


class Cable:
    """Relays one TCP connection until it is cut; neither end hears of that."""

    def __init__(self, to: str) -> None:
        self._to = to
        self._whole = True
        self._loop = asyncio.new_event_loop()
        listening = asyncio.start_server(self._relay, "127.0.0.1", 0)
        server = self._loop.run_until_complete(listening)
        self.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def cut(self) -> None:
        self._whole = False

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _relay(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        host, port = self._to.split(":")
        far, on = await asyncio.open_connection(host, int(port))
        await asyncio.gather(self._copy(near, on), self._copy(far, back))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                if self._whole:
                    writer.write(data)


@pytest.fixture
def soft_switch(monkeypatch: pytest.MonkeyPatch, cache_dir: Path) -> Iterator[server.SoftSwitch]:
    monkeypatch.setattr(server, "_PING_S", PING_S)
    with server.SoftSwitch([UdpPort(1)], target=default_target(cache_dir)) as opened:
        yield opened


def test_a_silent_primary_is_no_primary(soft_switch: server.SoftSwitch) -> None:
    cable = Cable(soft_switch.grpc_addr)
    with contextlib.closing(cable), Client(soft_switch.grpc_addr) as backup:
        with Client(cable.address) as primary:
            primary.become_primary(2)
            backup.arbitrate(1)
            assert backup.standing() == (rpc_code.ALREADY_EXISTS, 2)
            cable.cut()
            began_s = time.monotonic()
            assert backup.standing()[0] == rpc_code.NOT_FOUND  # there is no primary
        assert time.monotonic() - began_s < SILENCE_S
