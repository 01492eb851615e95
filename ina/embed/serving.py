"""The service of a host as a process of its own: rows of several groups, for the host's ranks.

Ranks attach over a Unix socket, which its owner and root alone may connect to. A group's part here
begins when one of them says how, and ends when the last of them is gone. If one goes without a word
it is kept up as long as others take to notice whose silence it is.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from ina.embed import frames
from ina.embed.errors import ServiceLostError, TableError
from ina.embed.frames import Answer, Request
from ina.embed.memory import check_memory
from ina.embed.rules import RULES
from ina.embed.service import Door, Service
from ina.errors import InaError, InvalidInputError, UnavailableError
from ina.extension.embed import GroupConfig, Optimizer, Outcome, Placement, TableSpec
from ina.protocol.peer import Peer

_log = logging.getLogger(__name__)
_WAIT_NS = 200_000_000  # who has asked looks for signals in between
_LINGER = 3.0
"""Times a group's patience."""


class Part:
    """This process's, in one group."""

    def __init__(self, address: str) -> None:
        """Bind a port. Raises OSError."""
        self.door = Door(address)
        self.attached = 0
        self.was_left = False
        """Somebody went without a word."""
        self._lock = threading.Lock()
        self._service: Service | None = None
        self._placements: list[Placement] = []
        self._rows: list[int] = []
        self._host = 0
        self.patience_s = 0.0

    @property
    def _running(self) -> Service:
        if self._service is None:
            raise TableError("the group has not begun")
        return self._service

    def do(self, request: Request) -> Answer:
        """What a rank asks. Raises InaError, ValueError, IndexError."""
        if isinstance(request, frames.WaitFor):  # others go on meanwhile
            return self._wait_for(request.version)
        with self._lock:
            match request:
                case frames.Begin():
                    self._begin(request)
                case frames.SetOptimizer():
                    self._running.set_optimizer(_optimizer_of(request))
                case frames.Read():
                    return self._read(request)
                case frames.Write():
                    self._write(request)
                case frames.Settle():
                    self._settle(request)
                case frames.OpenBefore():
                    self._running.open_before(request.version)
        return Answer()

    def _begin(self, order: frames.Begin) -> None:
        if self._service is not None:
            raise TableError("the group has begun")
        specs = [TableSpec(rows=r, dim=d, first_owner=f, owners=o) for r, d, f, o in order.tables]
        config = GroupConfig(
            key=order.key,
            host=order.host,
            hosts=order.hosts,
            askers=order.askers,
            tables=specs,
            optimizer=Optimizer(),
        )
        check_memory(specs, order.hosts, order.host, config.optimizer)
        self._placements = [Placement(spec, order.hosts) for spec in specs]
        self._rows = [spec.rows for spec in specs]
        self._host, self.patience_s = order.host, order.patience_s
        self._service = Service(
            self.door,
            config,
            [Peer.at(place) for place in order.peers],
            patience_s=order.patience_s,
            loss_rate=order.loss_rate,
            loss_seed=order.loss_seed,
            names=order.names,
        )

    def _read(self, asked: frames.Read) -> Answer:
        service = self._running
        values = np.empty((asked.count, service.dims[asked.table]), np.float32)
        state = np.empty((asked.count, service.state_values(asked.table)), np.float32)
        addresses = values.ctypes.data, state.ctypes.data
        service.native.copy_rows(asked.table, asked.first, asked.count, *addresses, False)
        return Answer(values=values.tobytes(), state=state.tobytes())

    def _write(self, asked: frames.Write) -> None:
        service = self._running
        values = np.frombuffer(asked.values, np.float32).reshape(-1, service.dims[asked.table])
        want = (len(values), service.state_values(asked.table))
        state = np.frombuffer(asked.state or b"", np.float32)
        if asked.state is not None and state.size != want[0] * want[1]:
            raise TableError(f"{state.size} numbers of the optimiser: want {want}")
        address = 0 if asked.state is None else state.ctypes.data
        service.native.copy_rows(
            asked.table, asked.first, len(values), values.ctypes.data, address, True
        )

    def _settle(self, asked: frames.Settle) -> None:
        service, placement = self._running, self._placements[asked.table]
        rows = np.frombuffer(asked.rows, np.uint32)
        values = np.frombuffer(asked.values, np.float32)
        values = values.reshape(rows.size, service.dims[asked.table])
        state = np.frombuffer(asked.state, np.float32)
        state = state.reshape(rows.size, service.state_values(asked.table))
        for at, row in enumerate(rows.tolist()):
            if row >= self._rows[asked.table] or placement.owner_of(row) != self._host:
                continue
            service.native.copy_rows(
                asked.table,
                placement.local_of(row),
                *(1, values[at].ctypes.data, state[at].ctypes.data, True),
            )

    def _wait_for(self, version: int) -> Answer:
        service = self._running
        outcome = service.native.wait_for_version(version, _WAIT_NS)
        service.wait(lambda: outcome if outcome is Outcome.FAILED else Outcome.DONE)
        return Answer(is_done=outcome is Outcome.DONE)

    def close(self) -> None:
        """Others get no answer any more."""
        with self._lock:
            if self._service is not None:
                self._service.close()
            else:
                self.door.socket.close()


class Serving:
    """Serves at `path` from construction until :meth:`close`; a context manager."""

    def __init__(self, path: Path) -> None:
        """Raises UnavailableError: the path is in use, or is no place for a socket."""
        self._path = path
        self._name = secrets.token_hex(8)
        self._parts: dict[str, Part] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._connections: set[socket.socket] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        try:
            before = os.umask(0o177)
            try:
                self._socket.bind(str(path))
            finally:
                os.umask(before)
        except OSError as error:
            self._socket.close()
            raise UnavailableError(
                f"{path}: cannot serve there: {error.strerror or error}"
            ) from None
        self._socket.listen()
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all groups' parts, and remove the socket."""
        self._over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with contextlib.suppress(OSError):
            self._path.unlink()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            parts, self._parts = self._parts, {}
        for part in parts.values():
            part.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        name, part, said_end = "", None, False
        try:
            while not said_end:
                request = msgspec.msgpack.decode(frames.receive(connection), type=Request)
                if part is None and isinstance(request, frames.Attach):
                    name, part = request.group, self._part(request)
                    place = part.door.peer.place
                    frames.send(connection, Answer(service=self._name, place=place))
                elif part is not None:
                    said_end = isinstance(request, frames.End)
                    frames.send(connection, _answer(part.do, request))
                else:
                    break
        except (OSError, ServiceLostError, msgspec.MsgspecError, InvalidInputError):
            pass  # it is gone, or no rank of ours
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()
            if part is not None:
                self._leave(name, part, said_end)

    def _part(self, request: frames.Attach) -> Part:
        with self._lock:
            if request.group not in self._parts:
                self._parts[request.group] = Part(request.address)
                _log.info("a group has come: %d here", len(self._parts))
            part = self._parts[request.group]
            part.attached += 1
        return part

    def _leave(self, name: str, part: Part, said_end: bool) -> None:
        with self._lock:
            part.was_left |= not said_end
            part.attached -= 1
            is_last = part.attached == 0
        if not is_last:
            return
        if part.was_left:
            self._over.wait(_LINGER * part.patience_s)
        with self._lock:
            if part.attached > 0 or self._parts.get(name) is not part:
                return
            del self._parts[name]
        part.close()
        _log.info("a group has gone: %d here", len(self._parts))


def _answer(do: Callable[[Request], Answer], request: Request) -> Answer:
    try:
        return do(request)
    except InaError as error:
        return Answer(error=str(error), kind=type(error).__name__)
    except (ValueError, IndexError, OSError, RuntimeError, TypeError, MemoryError) as error:
        return Answer(error=f"{type(error).__name__}: {error}")


def _optimizer_of(asked: frames.SetOptimizer) -> Optimizer:
    if asked.rule not in RULES:
        raise TableError(f"optimizer {asked.rule!r}: want one of {', '.join(RULES)}")
    return Optimizer(
        rule=RULES[asked.rule],
        epsilon=asked.epsilon,
        first_accumulator=asked.first_accumulator,
    )
