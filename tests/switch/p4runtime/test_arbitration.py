"""Primary and backups: the rules of the spec's "Client Arbitration and Controller Replication"."""

from __future__ import annotations

import pytest
from finsy.proto import U128, p4r, rpc_code

from ina.switch.p4runtime.arbitration import Arbitration, Client
from ina.switch.p4runtime.status import StatusError
from tests.switch.p4runtime.conftest import Connect, refused
from tests.worlds.fakes.p4runtime import entry, exact, features_config, update


def test_highest_id_is_primary(connect: Connect) -> None:
    first, second = connect(), connect()
    first.arbitrate(5)
    assert first.standing() == (rpc_code.OK, 5)
    second.arbitrate(3)
    assert second.standing() == (rpc_code.ALREADY_EXISTS, 5)
    assert first.nothing_more()  # a new backup is news to nobody else
    second.arbitrate(8)
    assert second.standing() == (rpc_code.OK, 8)
    assert first.standing() == (rpc_code.ALREADY_EXISTS, 8)


def test_without_the_primary_nobody_writes_until_somebody_asks(connect: Connect) -> None:
    primary, backup = connect(), connect()
    primary.arbitrate(5)
    primary.receive()
    primary.set_config(features_config())
    backup.arbitrate(4)
    backup.receive()
    primary.close()
    assert backup.standing() == (rpc_code.NOT_FOUND, 5)
    refused(lambda: backup.set_config(features_config()), rpc_code.PERMISSION_DENIED)
    backup.arbitrate(4)  # below the highest ever seen
    assert backup.standing() == (rpc_code.NOT_FOUND, 5)
    backup.arbitrate(5)
    assert backup.standing() == (rpc_code.OK, 5)
    backup.write_updates([])


def test_a_primary_may_step_down(connect: Connect) -> None:
    client = connect().become_primary(5)
    client.arbitrate(4)
    assert client.standing() == (rpc_code.NOT_FOUND, 5)
    refused(lambda: client.set_config(features_config()), rpc_code.PERMISSION_DENIED)


def test_without_an_election_id_never_primary(connect: Connect) -> None:
    client = connect()
    client.arbitrate(None)
    assert client.standing() == (rpc_code.NOT_FOUND, 0)
    refused(lambda: client.set_config(features_config()), rpc_code.PERMISSION_DENIED)


def test_zero_is_an_election_id(connect: Connect) -> None:
    connect().become_primary(0)


def test_ids_of_128_bits(connect: Connect) -> None:
    connect().become_primary((7 << 64) + 1)
    second = connect()
    second.arbitrate(2)
    assert second.standing() == (rpc_code.ALREADY_EXISTS, (7 << 64) + 1)


def test_backup_is_refused_and_changes_nothing(connect: Connect) -> None:
    primary, backup = connect().become_primary(5), connect()
    primary.set_config(features_config())
    backup.arbitrate(3)
    backup.receive()
    row = entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")])
    refused(lambda: backup.write("INSERT", table_entry=row), rpc_code.PERMISSION_DENIED)
    refused(lambda: backup.set_config(features_config()), rpc_code.PERMISSION_DENIED)
    assert primary.tables(table_id=row.table_id) == []
    assert backup.tables(table_id=row.table_id) == []  # reading needs no standing


def test_takeover_moves_the_right_to_write(connect: Connect) -> None:
    old, new = connect().become_primary(1), connect()
    old.set_config(features_config())
    new.become_primary(2)
    row = entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")])
    refused(lambda: old.write("INSERT", table_entry=row), rpc_code.PERMISSION_DENIED)
    new.write("INSERT", table_entry=row)
    assert [e.match for e in new.tables(table_id=row.table_id)] == [row.match]


@pytest.mark.parametrize(
    ("election_id", "device_id", "code"),
    [(5, 1, rpc_code.INVALID_ARGUMENT), (6, 2, rpc_code.NOT_FOUND), (6, 0, rpc_code.NOT_FOUND)],
)
def test_streams_that_end(connect: Connect, election_id: int, device_id: int, code: int) -> None:
    """An id that is taken; a device that is not there."""
    connect().become_primary(5)
    other = connect()
    other.arbitrate(election_id, device_id)
    refused(other.receive, code)


def test_device_cannot_change_in_a_stream(connect: Connect) -> None:
    client = connect().become_primary(5)
    client.arbitrate(5, device_id=2)
    refused(client.receive, rpc_code.FAILED_PRECONDITION)


def test_roles_have_primaries_of_their_own(connect: Connect) -> None:
    connect().become_primary(5)
    other = connect(role="monitor").become_primary(3)
    other.set_config(features_config())


def test_role_config_is_refused(connect: Connect) -> None:
    client = connect()
    message = p4r.MasterArbitrationUpdate(device_id=1)
    message.role.config.Pack(p4r.Error())
    client.send(p4r.StreamMessageRequest(arbitration=message))
    refused(client.receive, rpc_code.UNIMPLEMENTED, "role configuration")


def test_too_many_streams(connect: Connect) -> None:
    for i in range(16):
        client = connect()
        client.arbitrate(i + 1)
        client.receive()
    last = connect()
    last.arbitrate(99)
    refused(last.receive, rpc_code.RESOURCE_EXHAUSTED)


def test_other_devices_are_not_found(connect: Connect) -> None:
    client = connect().become_primary()
    refused(lambda: client.set_config(features_config(), device_id=7), rpc_code.NOT_FOUND)
    write = p4r.WriteRequest(device_id=7, updates=[update("INSERT")])
    refused(lambda: client.stub.Write(write, timeout=5), rpc_code.NOT_FOUND)
    refused(
        lambda: list(client.stub.Read(p4r.ReadRequest(device_id=7), timeout=5)), rpc_code.NOT_FOUND
    )


def test_an_id_that_arrives_after_its_stream_has_ended_is_nobody_s() -> None:
    arbitration = Arbitration(1)
    message = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(5))
    late = Client(send=lambda _: None)
    arbitration.leave(late)
    with pytest.raises(StatusError, match="the stream has ended"):
        arbitration.update(late, message)
    heard: list[p4r.StreamMessageResponse] = []
    again = Client(send=heard.append)
    arbitration.update(again, message)
    assert heard[-1].arbitration.status.code == rpc_code.OK
