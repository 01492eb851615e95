"""Changes of mapping at the P4 program in the soft switch: its entries are written by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

import pytest

from ina.controller.embedded import Embedded
from ina.host import Session, WorkerOptions
from ina.host.shm import cells_for
from ina.modes.transports import TransportName
from ina.p4 import compiled, names
from ina.tables.entities import entities_of
from ina.tables.values import Entry
from tests.worlds.fakes.udp_model import closing
from tests.worlds.virtual.remapped import NEVER_NS, Tensors

VALUES = 64


class Tables:
    """The job's entries in the switch, as the controller has written them for its first mapping."""

    def __init__(self, embedded: Embedded) -> None:
        self._switch = embedded.switch
        self._entities = entities_of(compiled(VALUES).p4info)
        self._mapping = [row for name in (names.JOBS, names.MEMBERS) for row in self._read(name)]

    def _read(self, table: str) -> Iterator[Entry]:
        for entity in self._switch.read([self._entities.entries_of(table)]):
            row = self._entities.decode(entity)
            if isinstance(row, Entry) and row.exact("epoch") != 0:  # not the mark
                yield row

    def change(self, epoch: int, first_slot: int, slots: int) -> list[Entry]:
        """Installs another mapping beside the one that there is; returns the entries of that."""
        older, newer = self._mapping, []
        for row in older:
            match, params = dict(row.match), dict(row.params)
            if "first_slot" in params:
                params |= {"epoch": epoch, "first_slot": first_slot, "slots": slots}
            match["epoch"] = epoch & 0xFFFF
            newer.append(Entry(row.table, (*match.items(),), row.action, (*params.items(),)))
        self._switch.insert(map(self._entities.encode, newer))
        self._mapping = newer
        return older

    def remove(self, rows: Sequence[Entry]) -> None:
        self._switch.delete(map(self._entities.encode, rows))


@contextmanager
def job(
    workers: int, slots: int, loss: float, transport: TransportName
) -> Iterator[tuple[Tables, list[Session]]]:
    with Embedded(
        values=VALUES, slots=slots, loss_rate=loss, loss_seed=slots, shm=True
    ) as embedded:

        def join(rank: int) -> Session:
            address = embedded.controller_addr
            return Session.join(address, "test", rank, workers, WorkerOptions(transport=transport))

        with ThreadPoolExecutor(workers) as pool:
            sessions = list(pool.map(join, range(workers)))
        with closing(sessions):
            yield Tables(embedded), sessions


def begin(session: Session, epoch: int, slots: int) -> None:
    (tree,) = session.ticket.trees
    changed = replace(tree, lanes=slots // 2)
    ticket = replace(session.ticket, epoch=epoch, slots=slots, trees=(changed,))
    manner = session._core.manner
    session._transport.begin_remap(manner.config(ticket), 0, manner.choice(ticket))


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize("transport", ["udp", "shm"])
def test_resizes_in_a_row_at_the_p4_program(transport: TransportName, loss: float) -> None:
    """It grows, shrinks and moves; each time ranks hear of it in another order."""
    rng = random.Random(1)
    with job(3, 32, loss, transport) as (tables, sessions):
        tensors = Tensors(sessions, VALUES, 2)
        epoch = sessions[0].ticket.epoch
        for number, slots in enumerate((128, 16, 16, 256), start=1):
            tensors.submit_all(rng.randint(0, 4))
            first_slot = 4096 if number % 2 else 1024
            older = tables.change(epoch + number, first_slot, slots)
            for session in sessions:
                begin(session, epoch + number, slots)
            first = sessions[0]._transport.reserve(0)
            for rank in rng.sample(range(3), 3):
                tensors.submit_all(1)
                sessions[rank]._transport.cut_over(first, True)
            tensors.submit_all(3)
            for session in sessions:
                assert session._transport.wait_cut(NEVER_NS)
            tables.remove(older)
            for session in sessions:
                session._transport.end_remap()
            tensors.check()
            assert {s.stats().window for s in sessions} == {slots // 2}
        assert {session.stats().transport for session in sessions} == {transport}


def test_shared_memory_has_room_for_so_many_packets() -> None:
    """A mapping that finds no room beside the other one is refused, and nothing has changed."""
    with job(1, 1024, 0.0, "shm") as (tables, (session,)):
        tensors, epoch = Tensors([session], VALUES, 2), session.ticket.epoch
        assert cells_for(512) == 2048
        with pytest.raises(RuntimeError, match="room for 2048 packets: no 2048 beside the 512 now"):
            begin(session, epoch + 1, 4096)
        tables.change(epoch + 1, 4096, 2048)
        begin(session, epoch + 1, 2048)
        session._transport.cut_over(session._transport.reserve(0), True)
        tensors.submit_all(3)
        tensors.check()
        session._transport.end_remap()
