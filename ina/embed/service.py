"""A host's service of embeddings: its rows, and what it asks of others'."""

from __future__ import annotations

import itertools
import math
import socket
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ina.embed.attached import Attached, rows_of
from ina.embed.bags import Bags
from ina.embed.errors import (
    HostLostError,
    HostsDifferError,
    InvalidBagsError,
    StepDeadlineError,
)
from ina.extension import embed as native
from ina.metrics import Living
from ina.protocol.peer import Peer

Floats = NDArray[np.float32]
PATIENCE_S = 300.0
"""Without a word of a host that is asked."""
PART_BYTES = 1400
"""Of a message, in a packet, behind ina's header of 32: with IPv4's and UDP's, 1,460."""
_SLICE_NS = 200_000_000  # a signal is seen in between


class Door:
    """A bound UDP socket, before it is known who else there is."""

    def __init__(self, host: str) -> None:
        """Raises OSError: this host has no such address."""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        self.peer = Peer.at(self.socket.getsockname())


class LookUp:
    """Vectors that have been asked for."""

    def __init__(self, service: Service, ticket: int, bags: Bags, values: int) -> None:
        """Of :meth:`Service.look_up`."""
        self._service = service
        self._ticket = ticket
        self._shape = (bags.count, values)

    def wait(self) -> Floats:
        """The vectors, shape (bags, dim); zeros for an empty bag. To be called once.

        Raises HostLostError, HostsDifferError.
        """
        native_service = self._service.native
        self._service.wait(lambda: native_service.wait(self._ticket, _SLICE_NS))
        vectors = np.empty(self._shape, np.float32)
        native_service.take(self._ticket, vectors.ctypes.data)
        return vectors


class BatchLookUp:
    """Vectors of a batch that have been asked for."""

    def __init__(self, service: Service, tickets: list[int], batch: native.Batch) -> None:
        """Of :meth:`Service.look_up_batch`."""
        self._service = service
        self._tickets = tickets
        self._batch = batch

    def take(self, addresses: list[int]) -> None:
        """Wait, and write them there, of each table; to be called once.

        Float32, (bags, dim); of tables that are asked for by row, and not plain, (rows, dim).
        Raises HostLostError, HostsDifferError.
        """
        own = self._service.native
        self._service.wait(lambda: own.wait_all(self._tickets, _SLICE_NS))
        own.take_batch(self._batch, self._tickets, addresses)


class Service:
    """The rows of this host, in a thread of their own, and a client to those of all."""

    def __init__(
        self,
        door: Door,
        config: native.GroupConfig,
        peers: Sequence[Peer],
        *,
        patience_s: float = PATIENCE_S,
        loss_rate: float = 0.0,
        loss_seed: int = 0,
        names: Sequence[str] = (),
        attached: Sequence[Attached] = (),
    ) -> None:
        """Take over `door`; `peers` are the hosts' addresses, by number.

        `loss_rate`, a share of what it sends, is dropped, for tests and demonstrations. `names` are
        the tables', for metrics; none: their numbers. `attached` are services of this host whose
        rows this one sees to, as to its own.
        """
        self._attached = attached
        self.specs = config.tables
        self.number = next(_numbers)
        """Among the services of this process."""
        self.names = names or [str(table) for table in range(len(config.tables))]
        self.refreshes = 0
        """How often other rows have become hot."""
        self.dims = [spec.dim for spec in config.tables]
        self._placements = [native.Placement(spec, config.hosts) for spec in config.tables]
        self.host = config.host
        self.hosts = config.askers or config.hosts
        """That ask, and end steps."""
        self._peers = peers
        self._optimizer = config.optimizer
        places = [(int(peer.address), peer.udp_port) for peer in peers]
        own = native.ClientConfig(patience_ns=int(patience_s * 1e9))
        self.native = native.Service(
            door.socket.fileno(), config, own, places, loss_rate, loss_seed
        )
        door.socket.close()
        SERVICES.add(self)

    def set_optimizer(self, optimizer: native.Optimizer) -> None:
        """Before the first step has ended."""
        self.native.set_optimizer(optimizer)
        for one in self._attached:
            one.set_optimizer(optimizer)
        self._optimizer = optimizer

    def look_up(self, step: int, table: int, bags: Bags, *, with_state: bool = False) -> LookUp:
        """Ask for the sums of bags in version `step` of the tables.

        `with_state`: of single rows, with what the optimiser keeps behind each.
        """
        ticket = self.native.look_up(step, table, *bags.address, with_state)
        values = self.dims[table] + (self.state_values(table) if with_state else 0)
        return LookUp(self, ticket, bags, values)

    def look_up_batch(self, step: int, batch: native.Batch) -> BatchLookUp:
        """Ask for what a batch needs in version `step` of the tables; it is sent at once."""
        return BatchLookUp(self, self.native.look_up_batch(step, batch), batch)

    def state_values(self, table: int) -> int:
        """How many numbers the optimiser keeps of a row."""
        return self._optimizer.state_values(self.dims[table])

    def add_gradients(self, step: int, table: int, bags: Bags, vectors: Floats) -> None:
        """Add ``vectors[i]``, times its weight, to the gradient of each row of bag i.

        Raises InvalidBagsError: `vectors` are not float32 of shape (bags, dim).
        """
        want = (bags.count, self.dims[table])
        if vectors.shape != want or vectors.dtype != np.float32:
            raise InvalidBagsError(f"vectors: {vectors.dtype} {vectors.shape}: want float32 {want}")
        vectors = np.ascontiguousarray(vectors)
        self.native.add_gradients(step, table, *bags.address, vectors.ctypes.data)

    def end_step(self, step: int, rate: float) -> None:
        """No more gradients of this step. Each host says so, and then rows are updated."""
        self.native.end_step(step, rate)

    def wait_for_version(self, version: int, most_s: float = math.inf) -> None:
        """Until this host's rows have the gradients of all steps before.

        Raises HostLostError, HostsDifferError; StepDeadlineError: it took longer than `most_s`.
        """
        deadline = time.monotonic() + most_s
        self.wait(lambda: self.native.wait_for_gradients(_SLICE_NS), deadline)
        self.wait(lambda: self.native.wait_for_version(version, _SLICE_NS), deadline)
        for one in self._attached:
            self.wait(lambda at=one: at.wait_for_version(version), deadline)  # type: ignore[misc]

    def settle(self, table: int, rows: NDArray[np.uint32], both: Floats) -> None:
        """Write replicas, values and what the optimiser keeps of each, to where they lie here."""
        for one in self._attached:
            one.settle(table, rows, both)

    def open_before(self, version: int) -> None:
        """Versions from this one on are not read yet: rows are to be settled before."""
        self.native.open_before(version)
        for one in self._attached:
            one.open_before(version)

    def look_for_lost(self, version: int) -> None:
        """Ask every host that has rows for one in this version, which all are about to have.

        Raises HostLostError, which names who does not answer, after its patience.
        """
        self.wait_for_version(version)
        asked = []
        for host in range(len(self._peers)):
            for table, placement in enumerate(self._placements):
                if placement.rows_of(host) > 0:
                    bags = Bags.of([placement.row_at(host, 0)], limit=2**32)
                    asked.append(self.look_up(version, table, bags, with_state=True))
                    break
        for one in asked:
            one.wait()

    def wait(self, once: Callable[[], native.Outcome], deadline: float = math.inf) -> None:
        """As often as it is needed. The cores give up what takes longer than their patience."""
        while (outcome := once()) is native.Outcome.NOT_YET:
            if time.monotonic() > deadline:
                raise StepDeadlineError("embeddings: other hosts have not ended their steps")
        if outcome is native.Outcome.FAILED:
            failure = self.native.failure
            if failure.host == self.host:
                raise HostsDifferError(f"embeddings: {failure.what}")
            raise HostLostError(
                f"embeddings, step {failure.step}: host {failure.host}"
                f" ({self._peers[failure.host]}) {failure.what}"
            )

    def rows(self, table: int) -> NDArray[np.int64]:
        """The numbers of this host's rows, in the order in which they lie here."""
        own = rows_of(self._placements[table], self.host)
        return np.concatenate([own, *(one.rows(table) for one in self._attached)])

    def read(self, table: int) -> tuple[Floats, Floats]:
        """This host's rows, and what the optimiser keeps of each, in the order of :meth:`rows`."""
        count, dim = self._placements[table].rows_of(self.host), self.dims[table]
        values = np.empty((count, dim), np.float32)
        state = np.empty((count, self.state_values(table)), np.float32)
        self.native.copy_rows(table, 0, count, values.ctypes.data, state.ctypes.data, False)
        others = [one.read(table) for one in self._attached]
        return (
            np.concatenate([values, *(one[0] for one in others)]),
            np.concatenate([state, *(one[1] for one in others)]),
        )

    def write(self, table: int, values: Floats, state: Floats | None = None) -> None:
        """Set this host's rows. Raises InvalidBagsError: of another shape than :meth:`read`'s."""
        counts = [self._placements[table].rows_of(self.host)]
        counts += [one.rows(table).size for one in self._attached]
        for name, given, want in (
            ("values", values, (sum(counts), self.dims[table])),
            ("state", state, (sum(counts), self.state_values(table))),
        ):
            if given is not None and (given.shape != want or given.dtype != np.float32):
                raise InvalidBagsError(f"{name}: {given.dtype} {given.shape}: want float32 {want}")
        values = np.ascontiguousarray(values)
        state = None if state is None else np.ascontiguousarray(state)
        address = 0 if state is None else state.ctypes.data
        self.native.copy_rows(table, 0, counts[0], values.ctypes.data, address, True)
        first = counts[0]
        for one, count in zip(self._attached, counts[1:], strict=True):
            part = slice(first, first + count)
            one.write(table, values[part], None if state is None else state[part])
            first += count

    def close(self) -> None:
        """Others get no answer any more."""
        SERVICES.remove(self)
        for one in self._attached:
            one.close()
        self.native.close()


SERVICES: Living[Service] = Living()
"""Every one of this process that is not closed."""
_numbers = itertools.count()
