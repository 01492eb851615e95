"""A TCP proxy that can cut its connections, and refuse new ones: a network that fails."""

from __future__ import annotations

import asyncio
import contextlib


class Proxy:
    """Forwards ``address`` to ``target``; an async context manager."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.address = ""
        self.up = True
        self.silent = False
        """Whether what arrives is kept back, as when a machine or a cable is gone."""
        self.refused = 0
        """How many connections were, for it is not up."""

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.address = f"{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    def cut(self) -> None:
        """Resets what is connected."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.up:
            self.refused += 1
            writer.transport.abort()
            return
        host, _, port = self._target.rpartition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        self._open -= {writer, far_writer}

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                while self.silent:
                    await asyncio.sleep(0.01)
                writer.write(data)
                await writer.drain()
        writer.close()
