"""A rank's end of the service that ``ina embed serve`` runs on its host.

The service has rows and pools them; what it says of these goes over a Unix socket, and look-ups and
gradients come to it from all ranks as to any owner.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ina.embed import errors, frames
from ina.embed.errors import ServiceLostError
from ina.embed.frames import Answer, Request
from ina.embed.rules import RULES
from ina.extension.embed import Optimizer, Outcome, Placement, TableSpec
from ina.protocol.peer import Peer

Floats = NDArray[np.float32]
_ANSWER_S = 60.0
_CHUNK_BYTES = 16 << 20
T = TypeVar("T")


class Attached:
    """To a service; it may be shared by ranks of this host, of whom one tends it."""

    def __init__(self, path: str, group: str, address: str) -> None:
        """Attach. Raises ServiceLostError: nobody serves there."""
        self._path = path
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._sock.settimeout(_ANSWER_S)
        try:
            self._sock.connect(path)
        except OSError as error:
            self._sock.close()
            why = "nobody serves there" if error.errno in _NOBODY else str(error)
            raise ServiceLostError(f"INA_EMBED={path}: {why}: ina embed serve {path}") from None
        answer = self._ask(frames.Attach(group, address))
        self.service = answer.service
        self.peer = Peer.at(answer.place)
        self.host = -1
        """Its number, once it has begun."""

    def begin(self, order: frames.Begin) -> None:
        """Have it take its part in a group; of one of those that are attached.

        Raises TooLittleMemoryError, ServiceLostError.
        """
        self._ask(order)
        self.host = order.host
        specs = [TableSpec(rows=r, dim=d, first_owner=f, owners=o) for r, d, f, o in order.tables]
        self._placements = [Placement(spec, order.hosts) for spec in specs]
        self._dims = [spec.dim for spec in specs]
        self._optimizer = Optimizer()

    def set_optimizer(self, optimizer: Optimizer) -> None:
        """As the service's."""
        (rule,) = (name for name, one in RULES.items() if one == optimizer.rule)
        self._ask(frames.SetOptimizer(rule, optimizer.epsilon, optimizer.first_accumulator))
        self._optimizer = optimizer

    def rows(self, table: int) -> NDArray[np.int64]:
        """Numbers of its rows, in the order in which they lie there."""
        return rows_of(self._placements[table], self.host)

    def read(self, table: int) -> tuple[Floats, Floats]:
        """Its rows, and what the optimiser keeps of each."""
        count, dim = self._placements[table].rows_of(self.host), self._dims[table]
        values = np.empty((count, dim), np.float32)
        state = np.empty((count, self._optimizer.state_values(dim)), np.float32)
        for part in self._parts(table, count):
            answer = self._ask(frames.Read(table, part.start, part.stop - part.start))
            values[part] = np.frombuffer(answer.values, np.float32).reshape(values[part].shape)
            state[part] = np.frombuffer(answer.state, np.float32).reshape(state[part].shape)
        return values, state

    def write(self, table: int, values: Floats, state: Floats | None) -> None:
        """Set its rows; of the shapes of :meth:`read`'s."""
        for part in self._parts(table, len(values)):
            kept = None if state is None else state[part].tobytes()
            self._ask(frames.Write(table, part.start, values[part].tobytes(), kept))

    def settle(self, table: int, rows: NDArray[np.uint32], both: Floats) -> None:
        """Of replicas, values and what the optimiser keeps of each, to where they lie there."""
        dim = self._dims[table]
        owners = np.empty(rows.size, np.uint16)
        self._placements[table].owners_of(rows.size, rows.ctypes.data, owners.ctypes.data)
        rows, both = rows[owners == self.host], both[owners == self.host]
        for part in self._parts(table, rows.size):
            values, state = both[part, :dim], both[part, dim:]
            self._ask(frames.Settle(table, rows[part].tobytes(), values.tobytes(), state.tobytes()))

    def open_before(self, version: int) -> None:
        """As the native service's."""
        self._ask(frames.OpenBefore(version))

    def wait_for_version(self, version: int) -> Outcome:
        """For a while. Raises HostLostError, HostsDifferError."""
        done = self._ask(frames.WaitFor(version)).is_done
        return Outcome.DONE if done else Outcome.NOT_YET

    def close(self) -> None:
        """It ends the group once all who are attached have done so."""
        with contextlib.suppress(ServiceLostError):  # it has ended
            self._ask(frames.End())
        self._sock.close()

    def _parts(self, table: int, count: int) -> Sequence[slice]:
        """Of so many rows, as many at a time as a frame has room for."""
        dim = self._dims[table]
        row_bytes = 4 * (dim + self._optimizer.state_values(dim))
        step = max(1, _CHUNK_BYTES // row_bytes)
        return [slice(first, min(first + step, count)) for first in range(0, count, step)]

    def _ask(self, request: Request) -> Answer:
        try:
            frames.send(self._sock, request)
            answer = msgspec.msgpack.decode(frames.receive(self._sock), type=Answer)
        except (OSError, ServiceLostError, msgspec.MsgspecError) as error:
            raise ServiceLostError(f"INA_EMBED={self._path}: it does not answer: {error}") from None
        if answer.error:
            raise getattr(errors, answer.kind, ServiceLostError)(answer.error)
        return answer


_NOBODY = (errno.ENOENT, errno.ECONNREFUSED)


def rows_of(placement: Placement, host: int) -> NDArray[np.int64]:
    """The numbers of a host's rows, in the order in which they lie there."""
    count = placement.rows_of(host)
    return np.fromiter((placement.row_at(host, local) for local in range(count)), np.int64, count)
