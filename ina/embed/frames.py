"""What a rank and the service of its host say to each other over a Unix socket.

A frame is four bytes, little endian, of how long its body is, and that: msgpack. The rank asks, the
service answers each request once, in order.
"""

from __future__ import annotations

import socket

import msgspec

from ina.embed.errors import ServiceLostError

MOST_BYTES = 64 << 20
_LENGTH_BYTES = 4


class Attach(msgspec.Struct, tag=True):
    """First: of which group, and at which of this host's addresses others reach the service."""

    group: str
    address: str


class Begin(msgspec.Struct, tag=True):
    """Of all that a group agrees on, as ``GroupConfig`` and :class:`ina.embed.service.Service`."""

    key: int
    host: int
    hosts: int
    askers: int
    tables: list[tuple[int, int, int, int]]
    """Rows, values of a row, first owner, owners."""
    names: list[str]
    peers: list[tuple[str, int]]
    patience_s: float
    loss_rate: float
    loss_seed: int


class SetOptimizer(msgspec.Struct, tag=True):
    """As ``Optimizer``, its rule by name."""

    rule: str
    epsilon: float
    first_accumulator: float


class Read(msgspec.Struct, tag=True):
    """Of a table so many of the service's rows, as they lie there."""

    table: int
    first: int
    count: int


class Write(msgspec.Struct, tag=True):
    """The same the other way: float32; without state, that stays."""

    table: int
    first: int
    values: bytes
    state: bytes | None


class Settle(msgspec.Struct, tag=True):
    """Of rows that are replicas elsewhere, what they are now."""

    table: int
    rows: bytes
    """Uint32."""
    values: bytes
    state: bytes


class OpenBefore(msgspec.Struct, tag=True):
    """As the native service's."""

    version: int


class WaitFor(msgspec.Struct, tag=True):
    """A version, for a while."""

    version: int


class End(msgspec.Struct, tag=True):
    """This rank needs it no more."""


Request = Attach | Begin | SetOptimizer | Read | Write | Settle | OpenBefore | WaitFor | End


class Answer(msgspec.Struct):
    """To a request."""

    error: str = ""
    """Why not; empty: it is done."""
    kind: str = ""
    """Of the error: its class."""
    service: str = ""
    """Which process this is."""
    place: tuple[str, int] = ("", 0)
    is_done: bool = True
    values: bytes = b""
    state: bytes = b""


def send(sock: socket.socket, message: Request | Answer) -> None:
    """Raises OSError."""
    body = msgspec.msgpack.encode(message)
    sock.sendall(len(body).to_bytes(_LENGTH_BYTES, "little") + body)


def receive(sock: socket.socket) -> bytes:
    """A body. Raises ServiceLostError: the other has closed, or says nonsense; OSError."""
    size = int.from_bytes(_exactly(sock, _LENGTH_BYTES), "little")
    if size > MOST_BYTES:
        raise ServiceLostError(f"a frame of {size} bytes: want at most {MOST_BYTES}")
    return _exactly(sock, size)


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = sock.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ServiceLostError("the connection is closed")
        parts += part
    return bytes(parts)
