"""Counters over P4Runtime: counted by packets, read and written; multicast groups."""

from __future__ import annotations

import pytest
from finsy.proto import p4r, rpc_code
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.switch.server import SoftSwitch
from tests.switch.p4runtime.conftest import update_refused
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.p4runtime import IDS, Client, entry, exact

MAC = "00:00:00:00:00:05"
FRAME = bytes(Ether(dst=MAC, src="00:00:00:00:00:09", type=0x0800) / IP(dst="10.1.2.3") / UDP())
ROW = entry("bridge", "discard", match=[exact(b"\x05")])


def counter(name: str, index: int | None = None, **data: int) -> p4r.CounterEntry:
    found = p4r.CounterEntry(counter_id=IDS.counter[name])
    if index is not None:
        found.index.index = index
    if data:
        found.data.CopyFrom(p4r.CounterData(**data))
    return found


def read_counter(client: Client, request: p4r.CounterEntry) -> dict[int, tuple[int, int]]:
    entries = [e.counter_entry for e in client.read(counter_entry=request)]
    return {e.index.index: (e.data.packet_count, e.data.byte_count) for e in entries}


def inject(switch: SoftSwitch, count: int) -> None:
    """Packets that arrive at port 1, as from the wire."""
    before = switch.stats().injected_packets
    for _ in range(count):
        assert switch._ports is not None
        assert switch._ports.inject(1, FRAME)
    wait_until(lambda: switch.stats().injected_packets == before + count, "injected")
    # Counted before the pipeline runs them; a read of a counter waits for the batch.


def test_indirect_counters_count(client: Client, switch: SoftSwitch) -> None:
    inject(switch, 5)
    wait_until(
        lambda: read_counter(client, counter("port_counter", 1)) == {1: (5, 5 * len(FRAME))},
        "counted",
    )
    everything = read_counter(client, counter("port_counter"))
    assert everything == {i: (5, 5 * len(FRAME)) if i == 1 else (0, 0) for i in range(8)}
    assert read_counter(client, counter("packet_counter", 0)) == {0: (5, 0)}  # counts no bytes
    assert len(client.read(counter_entry=p4r.CounterEntry())) == 8 + 4


def test_indirect_counters_are_written(client: Client) -> None:
    client.write("MODIFY", counter_entry=counter("port_counter", 2, packet_count=7, byte_count=70))
    assert read_counter(client, counter("port_counter", 2)) == {2: (7, 70)}
    client.write("MODIFY", counter_entry=counter("port_counter", 2))  # no data: no change
    assert read_counter(client, counter("port_counter", 2)) == {2: (7, 70)}
    client.write("MODIFY", counter_entry=counter("port_counter", packet_count=1, byte_count=2))
    assert set(read_counter(client, counter("port_counter")).values()) == {(1, 2)}


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (counter("port_counter", 8), rpc_code.OUT_OF_RANGE),
        (counter("port_counter", -1), rpc_code.INVALID_ARGUMENT),
        (p4r.CounterEntry(counter_id=5), rpc_code.NOT_FOUND),
    ],
)
def test_wrong_indices(client: Client, request_: p4r.CounterEntry, code: int) -> None:
    update_refused(lambda: client.read(counter_entry=request_), code)
    update_refused(lambda: client.write("MODIFY", counter_entry=request_), code)


@pytest.mark.parametrize("kind", ["INSERT", "DELETE"])
def test_counters_are_only_modified(client: Client, kind: str) -> None:
    update_refused(
        lambda: client.write(kind, counter_entry=counter("port_counter", 1)),
        rpc_code.INVALID_ARGUMENT, "only be modified",
    )  # fmt: skip
    update_refused(
        lambda: client.write(kind, direct_counter_entry=p4r.DirectCounterEntry(table_entry=ROW)),
        rpc_code.INVALID_ARGUMENT, "only be modified",
    )  # fmt: skip


def test_direct_counters(client: Client, switch: SoftSwitch) -> None:
    client.write("INSERT", table_entry=ROW)
    inject(switch, 3)
    counted = p4r.CounterData(packet_count=3, byte_count=3 * len(FRAME))

    def in_entry() -> p4r.CounterData:
        (found,) = client.tables(table_id=ROW.table_id, counter_data=p4r.CounterData())
        return found.counter_data

    wait_until(lambda: in_entry() == counted, "counted")
    (without,) = client.tables(table_id=ROW.table_id)
    assert not without.HasField("counter_data")  # only when asked for
    key = p4r.TableEntry(table_id=ROW.table_id, match=ROW.match)
    (direct,) = client.read(direct_counter_entry=p4r.DirectCounterEntry(table_entry=key))
    assert direct.direct_counter_entry == p4r.DirectCounterEntry(table_entry=key, data=counted)
    wild = client.read(direct_counter_entry=p4r.DirectCounterEntry())
    assert direct in wild
    assert len(wild) == 1 + 3  # and those of the const table
    reset = p4r.DirectCounterEntry(table_entry=key, data=p4r.CounterData(packet_count=1))
    client.write("MODIFY", direct_counter_entry=reset)
    assert in_entry() == p4r.CounterData(packet_count=1)
    start = p4r.TableEntry.FromString(ROW.SerializeToString())
    start.counter_data.packet_count = 9
    client.write("MODIFY", table_entry=start)
    assert in_entry().packet_count == 9
    client.write("DELETE", table_entry=key)
    client.write("INSERT", table_entry=start)
    assert in_entry().packet_count == 9  # set by INSERT, and not the old entry's


def test_default_entry_has_a_direct_counter(client: Client, switch: SoftSwitch) -> None:
    inject(switch, 2)
    default = p4r.TableEntry(table_id=ROW.table_id, is_default_action=True)
    request = p4r.DirectCounterEntry(table_entry=default)
    wait_until(
        lambda: (
            client.read(direct_counter_entry=request)[0].direct_counter_entry.data.packet_count == 2
        ),
        "counted",
    )


def test_direct_counter_of_what_is_not_there(client: Client) -> None:
    gone = p4r.DirectCounterEntry(table_entry=entry("bridge", match=[exact(b"\x05")]))
    update_refused(lambda: client.read(direct_counter_entry=gone), rpc_code.NOT_FOUND)
    none = p4r.DirectCounterEntry(table_entry=p4r.TableEntry(table_id=IDS.table["routes"]))
    update_refused(
        lambda: client.read(direct_counter_entry=none), rpc_code.INVALID_ARGUMENT, "direct counter"
    )
