"""The conformance device over BFRuntime: what it writes, reads and empties. No frames here."""

from __future__ import annotations

import pytest

from ina.p4 import names
from ina.tables.bfrt import caller
from ina.tables.values import Counter, DefaultAction, Entry, EntryCounter, Group
from ina.testing.control_plane import BFRT_CLIENT_ID, BfrtClient
from ina.testing.device import Ability, pool_program
from ina.testing.errors import DeviceError
from ina.testing.frames import PortFrame
from ina.testing.p4runtime_device import BfrtDevice
from ina.testing.state import forward
from tests.worlds.fakes.tofino import FakeTofino


class NoWire:
    """Cables that nothing comes out of."""

    ports = range(3)
    frame_bytes = range(14, 1500)

    def send(self, port: int, data: bytes) -> None:
        raise AssertionError("not in these tests")

    def receive(self, timeout_s: float) -> list[PortFrame]:
        return []


ROUTE = Entry(
    names.IPV4_LPM,
    (("dst_addr", "10.1.0.0/16"),),
    names.ROUTE,
    (("port", 3), ("src_mac", 1), ("dst_mac", 2)),
)
FLOOD = DefaultAction(names.DMAC, names.FLOOD, (("group", 7),))


def test_a_reset_empties_everything_and_writes_the_fences(tofino: FakeTofino) -> None:
    with BfrtDevice("tofino", tofino.address, 0, NoWire()) as device:
        assert device.abilities == {Ability.GROWTH, Ability.SOME_GROWTH}
        device.reset(64)
        fences = len(tofino.rows(names.DMAC))
        assert fences == len(NoWire.ports) + 1
        tofino.entries[f"pipe.{names.DROPS}"][(("$COUNTER_INDEX", 1),)] = {
            "$COUNTER_SPEC_PKTS": 5, "$COUNTER_SPEC_BYTES": 500,
        }  # fmt: skip
        device.insert([ROUTE, FLOOD, Group(7, ((1, 1), (2, 2))), forward(9, 1)])
        assert tofino.defaults[f"pipe.{names.DMAC}"]["group"] == 7
        assert tofino.rows(names.IPV4_LPM)[0]["dst_addr"] == (0x0A010000, 16)
        assert device.counts([Counter(names.DROPS, 1)]) == [(5, 500)]
        device.reset(64)
        assert tofino.defaults == {}
        assert tofino.rows(names.IPV4_LPM) == []
        assert len(tofino.rows(names.DMAC)) == fences
        assert [row["$MGID"] for row in tofino.rows("$pre.mgid")] == [0x7FF0]
        assert device.counts([Counter(names.DROPS, 1)]) == [(0, 0)]
        registers = [name for name, t in tofino.tables.items() if t.table_type == "Register"]
        assert registers
        assert {f"delete {name}" for name in registers} <= set(tofino.calls)
    assert tofino.owner is None


def test_entries_come_and_go_with_their_counters(tofino: FakeTofino) -> None:
    client = BfrtClient(tofino.address, 0)
    client.insert([ROUTE, FLOOD, forward(9, 1)])
    for row in tofino.entries[f"pipe.{names.DMAC}"].values():
        row |= {"$COUNTER_SPEC_PKTS": 2, "$COUNTER_SPEC_BYTES": 120}
    assert client.counts([EntryCounter(names.DMAC, (("dst_mac", 9),))]) == [(2, 120)]
    client.delete([ROUTE, FLOOD, forward(9, 1)])
    assert tofino.rows(names.DMAC) == tofino.rows(names.IPV4_LPM) == []
    assert tofino.defaults == {}
    assert tofino.owner.client_id == BFRT_CLIENT_ID
    client.close()


def test_a_group_gets_other_copies(tofino: FakeTofino) -> None:
    client = BfrtClient(tofino.address, 0)
    client.insert([Group(7, ((1, 256),))])
    client.modify([Group(7, ((1, 1), (1, 2)))])
    nodes = tofino.rows("$pre.node")
    assert [(row["$DEV_PORT"], row["$MULTICAST_RID"]) for row in nodes] == [([1], 1), ([1], 2)]
    with pytest.raises(DeviceError, match="there is no group 8"):
        client.modify([Group(8, ((1, 1),))])
    client.close()


def test_a_device_that_says_nothing(tofino: FakeTofino, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the start, it is as with any session: tests/southbound/test_bfrt_session.py."""
    client = BfrtClient(tofino.address, 0, tofino.program)
    monkeypatch.setattr(caller, "CALL_TIMEOUT_S", 0.3)
    tofino.silent = True
    try:
        with pytest.raises(DeviceError, match=r"insert: no answer within 0.3 s"):
            client.insert([ROUTE])
    finally:
        tofino.silent = False
    client.close()
    tofino.stop()
    with pytest.raises(DeviceError, match=r"no answer from a BFRuntime server"):
        BfrtClient(tofino.address, 0)


def test_what_goes_wrong_is_a_device_error_of_one_line(tofino: FakeTofino) -> None:
    with pytest.raises(DeviceError, match="it does not run a program ina_other"):
        BfrtClient(tofino.address, 0, "ina_other")
    client = BfrtClient(tofino.address, 0, tofino.program)
    with pytest.raises(DeviceError, match=r"another controller is primary .*already owns this P4"):
        BfrtClient(tofino.address, 0)
    with pytest.raises(DeviceError, match="insert: ALREADY_EXISTS Already exists"):
        client.insert([ROUTE, ROUTE])
    with pytest.raises(DeviceError, match="has no key nothing"):
        client.insert([Entry(names.DMAC, (("nothing", 1),), names.DROP)])
    with pytest.raises(DeviceError, match="'0x800/&0xff', for a match that is Exact"):
        client.insert([Entry(names.DMAC, (("dst_mac", "0x800/&0xff"),), names.DROP)])
    with pytest.raises(DeviceError, match="a number, for a match that is LPM"):
        client.insert([Entry(names.IPV4_LPM, (("dst_addr", 1),), names.DROP)])
    with pytest.raises(DeviceError, match="sends no packets"):
        client.packet_out(b"", 1)
    client.set_pipeline(pool_program(64))
    tofino.stop()
    with pytest.raises(DeviceError, match="UNAVAILABLE"):
        client.insert([ROUTE])
    client.close()
