"""``ina embed serve``'s end of the Unix socket: what ranks ask it for, and what nobody may."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ina.embed import frames
from ina.embed.attached import Attached
from ina.embed.bags import Bags
from ina.embed.errors import ServiceLostError, TableError, TooLittleMemoryError
from ina.embed.service import Door, Service
from ina.embed.serving import Serving
from ina.errors import UnavailableError
from ina.extension.embed import GroupConfig, Optimizer, Outcome, Rule, TableSpec

ROWS, DIM = 20, 3


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "embed"
    with Serving(path):
        yield path
    assert not path.exists()


def order_of(*places: tuple[str, int], rows: int = ROWS) -> frames.Begin:
    """Of a rank, and a service that has all rows."""
    return frames.Begin(
        key=7,
        host=1,
        hosts=2,
        askers=1,
        tables=[(rows, DIM, 1, 1)],
        names=["a"],
        peers=list(places),
        patience_s=1.0,
        loss_rate=0.0,
        loss_seed=0,
    )


@pytest.fixture
def attached(path: Path) -> Iterator[Attached]:
    found = Attached(str(path), "a group", "127.0.0.1")
    yield found
    found.close()


@pytest.fixture
def rank(attached: Attached) -> Iterator[Service]:
    door = Door("127.0.0.1")
    peers = [door.peer, attached.peer]
    attached.begin(order_of(*(peer.place for peer in peers)))
    spec = TableSpec(rows=ROWS, dim=DIM, first_owner=1)
    config = GroupConfig(key=7, host=0, hosts=2, askers=1, tables=[spec], optimizer=Optimizer())
    service = Service(door, config, peers, patience_s=1.0, attached=[attached])
    yield service
    service.close()


def test_rows_are_there_as_if_they_were_here(rank: Service) -> None:
    values = np.arange(ROWS * DIM, dtype=np.float32).reshape(ROWS, DIM)
    assert rank.rows(0).tolist() == list(range(ROWS))
    rank.write(0, values)
    assert np.array_equal(rank.read(0)[0], values)
    sums = rank.look_up(0, 0, Bags.of([1, 2, 5], [0, 2], limit=ROWS)).wait()
    assert np.array_equal(sums, [values[1] + values[2], values[5]])


def test_gradients_are_added_there_once_the_rank_has_ended_its_step(rank: Service) -> None:
    rank.set_optimizer(Optimizer(rule=Rule.ADAGRAD))
    rank.write(0, np.zeros((ROWS, DIM), np.float32), np.ones((ROWS, DIM), np.float32))
    one = Bags.of([4], limit=ROWS)
    rank.add_gradients(0, 0, one, np.full((1, DIM), 2, np.float32))
    rank.end_step(0, 1.0)
    rank.wait_for_version(1)
    values, state = rank.read(0)
    assert np.allclose(values[4], -2 / np.sqrt(5))
    assert np.array_equal(state[3:5], [[1] * DIM, [5] * DIM])


def test_replicas_are_written_back_where_they_lie(rank: Service) -> None:
    rank.set_optimizer(Optimizer(rule=Rule.ROWWISE_ADAGRAD))
    rank.settle(0, np.array([3, 9], np.uint32), np.array([[1, 2, 3, 7], [4, 5, 6, 8]], np.float32))
    values, state = rank.read(0)
    assert np.array_equal(values[[3, 9]], [[1, 2, 3], [4, 5, 6]])
    assert state[[3, 9], 0].tolist() == [7, 8]


def test_versions_that_are_not_open_wait(rank: Service, attached: Attached) -> None:
    rank.open_before(0)
    asked = rank.look_up(0, 0, Bags.of([1], limit=ROWS))
    assert rank.native.wait(asked._ticket, 50_000_000) is Outcome.NOT_YET
    rank.open_before(1)
    asked.wait()
    assert attached.wait_for_version(0) is Outcome.DONE
    assert attached.wait_for_version(1) is Outcome.NOT_YET


def test_what_cannot_be_is_refused(attached: Attached) -> None:
    with pytest.raises(TableError, match="the group has not begun"):
        attached.open_before(3)
    places = (("127.0.0.1", 1), attached.peer.place)
    with pytest.raises(TooLittleMemoryError, match="its rows need"):
        attached.begin(order_of(*places, rows=2**32 - 2))
    attached.begin(order_of(*places))
    with pytest.raises(TableError, match="the group has begun"):
        attached.begin(order_of(*places))
    for request in (
        frames.Read(0, 10, ROWS),
        frames.Read(0, -1, 1),
        frames.Read(0, 0, -1),
        frames.Read(9, 0, 1),
        frames.Read(-1, 0, 1),
        frames.Write(0, ROWS, bytes(4 * DIM), None),
        frames.Write(0, 0, bytes(4), None),
        frames.Settle(0, bytes(4), bytes(4), b""),
        frames.SetOptimizer("adam", 0.0, 0.0),
        frames.WaitFor(-1),
        frames.OpenBefore(2**40),
    ):
        with pytest.raises((ServiceLostError, TableError)):
            attached._ask(request)
    assert attached.read(0)[0].shape == (ROWS, DIM)  # it goes on


@pytest.mark.parametrize(
    "bytes_",
    [
        b"\xff\xff\xff\xff",
        b"\x03\0\0\0abc",
        len(body := msgspec.msgpack.encode(frames.End())).to_bytes(4, "little") + body,
        b"\x01",
    ],
)
def test_who_talks_nonsense_is_not_talked_to(bytes_: bytes, path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(str(path))
        sock.sendall(bytes_)
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(100) == b""
    Attached(str(path), "another", "127.0.0.1").close()


def test_others_may_not_connect_and_two_cannot_serve_at_a_path(path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(UnavailableError, match="cannot serve there: Address already in use"):
        Serving(path)


def test_an_address_that_is_not_this_host_s_is_refused(path: Path) -> None:
    with pytest.raises(ServiceLostError, match="it does not answer"):
        Attached(str(path), "a group", "192.0.2.1")


def test_who_does_not_answer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ina.embed.attached._ANSWER_S", 0.1)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "deaf"))
        sock.listen()
        with pytest.raises(ServiceLostError, match="it does not answer: timed out"):
            Attached(str(tmp_path / "deaf"), "a group", "127.0.0.1")
