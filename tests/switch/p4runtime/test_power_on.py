"""The program that runs already, set again: a fresh state, nothing compiled, nothing left over."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import U128, p4r

from ina.protocol.codec import Header, encode_header
from ina.protocol.spec import Flag
from ina.switch.ir.program import MatchKind
from ina.switch.p4runtime.arbitration import Client
from ina.switch.p4runtime.device import Device
from ina.switch.p4runtime.schema import ActionRef, FieldSchema, Schema, TableSchema, build_schema
from ina.switch.p4runtime.status import StatusError
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from ina.testing.frames import SWITCH_IPV4, Frame
from ina.testing.ordinary import ordinary_frame
from tests.switch.p4runtime.groups import group
from tests.worlds.fakes.p4runtime import features_config, update
from tests.worlds.processes.pool import (
    PORT,
    SLOTS,
    PoolJob,
    Worker,
    local_workers,
    pool_config,
)

Set = p4r.SetForwardingPipelineConfigRequest
VALUES = 64
REGISTER_CELLS = 4 * SLOTS
"""Of each register, from its first: more than the slots that the traffic uses."""


@dataclass
class InProcess:
    """A device without gRPC, with its primary client; packets go straight into its pipeline."""

    config: p4r.ForwardingPipelineConfig
    cache_dir: Path
    pipelines: list[Pipeline] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=lambda: local_workers(2))

    def __post_init__(self) -> None:
        self.device = Device(
            1,
            default_target(self.cache_dir),
            install=self.pipelines.append,
            inject=lambda _packet: True,
        )
        hello = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
        self.device.arbitrate(Client(lambda _response: None), hello)
        self.set(Set.VERIFY_AND_COMMIT)
        self.schema = build_schema(self.config.p4info, self.pipelines[-1].program)

    def set(self, action: Set.Action.ValueType) -> None:
        config = None if action == Set.COMMIT else self.config
        self.device.set_config(
            Set(device_id=1, election_id=U128.encode(1), action=action, config=config)
        )

    def write_updates(self, updates: list[p4r.Update]) -> None:
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1), updates=updates)
        assert [str(error) for error in self.device.write(request) if error] == []

    def read(self, **entity: Any) -> list[p4r.Entity]:
        return self.read_all([p4r.Entity(**entity)])

    def read_all(self, requests: list[p4r.Entity]) -> list[p4r.Entity]:
        entities, errors = self.device.read(requests)
        assert [str(error) for error in errors if error] == []
        return entities

    def close(self) -> None:
        self.device.close()
        for worker in self.workers:
            worker.socket.close()

    def state(self) -> dict[str, list[object]]:
        """All that can be read of it, by what it is of."""
        asked = [
            *(
                p4r.Entity(
                    table_entry=p4r.TableEntry(
                        table_id=table,
                        is_default_action=is_default,
                        counter_data=p4r.CounterData(),
                    )
                )
                for table in self.schema.tables
                for is_default in (False, True)
            ),
            p4r.Entity(counter_entry=p4r.CounterEntry()),
            p4r.Entity(packet_replication_engine_entry=group(0)),
        ]
        found: dict[str, list[object]] = {}
        for entity in self.read_all(asked):
            found.setdefault(self._what(entity), []).append(entity.SerializeToString())
        pipeline = self.pipelines[-1]
        for register in pipeline.program.registers:
            cells = range(min(register.size, REGISTER_CELLS))
            found[f"register {register.name}"] = [
                pipeline.register(register.name, cell) for cell in cells
            ]
        return found

    @staticmethod
    def _what(entity: p4r.Entity) -> str:
        match entity.WhichOneof("entity"):
            case "table_entry":
                entry = entity.table_entry
                return f"{'default' if entry.is_default_action else 'entries'} {entry.table_id}"
            case "counter_entry":
                return f"counter {entity.counter_entry.counter_id}"
        return "groups"


def any_match(field: FieldSchema, rng: random.Random) -> p4r.FieldMatch:
    """A match of the field's kind."""
    width_bytes = (field.width_bits + 7) // 8
    value = rng.randrange(1 << field.width_bits - 1, 1 << field.width_bits)
    data = value.to_bytes(width_bytes, "big")
    match = p4r.FieldMatch(field_id=field.id)
    match field.kind:
        case MatchKind.EXACT:
            match.exact.value = data
        case MatchKind.LPM:
            match.lpm.value, match.lpm.prefix_len = data, field.width_bits
        case MatchKind.TERNARY:
            match.ternary.value = match.ternary.mask = data
        case MatchKind.RANGE:
            match.range.low = match.range.high = data
        case MatchKind.OPTIONAL:
            match.optional.value = data
    return match


def allowed(table: TableSchema, as_default: bool) -> list[ActionRef]:
    """Its actions that may stand there, that with most parameters last."""
    refs = [
        ref for ref in table.actions.values() if (ref.as_default if as_default else ref.in_entries)
    ]
    return sorted(refs, key=lambda ref: len(ref.action.params))


def call(table: TableSchema, as_default: bool, rng: random.Random) -> p4r.TableAction:
    """The action with most parameters that may stand there, with any values for them."""
    refs = allowed(table, as_default)
    made = p4r.TableAction()
    made.action.action_id = refs[-1].action.id
    for param in refs[-1].action.params:
        value = rng.randrange(1 << param.width_bits)
        made.action.params.add(
            param_id=param.id, value=value.to_bytes(16, "big").lstrip(b"\0") or b"\0"
        )
    return made


def everything(schema: Schema, rng: random.Random) -> list[p4r.Update]:
    """What changes each table's entries and default, each counter, and the groups."""
    updates = []
    for table in schema.tables.values():
        if not table.is_const and table.fields:
            entry = p4r.TableEntry(
                table_id=table.id,
                match=[any_match(field, rng) for field in table.fields],
                priority=9 if table.needs_priority else 0,
                action=call(table, False, rng),
                metadata=b"kept",
            )
            updates.append(update("INSERT", table_entry=entry))
        if not table.const_default:
            default = p4r.TableEntry(
                table_id=table.id, is_default_action=True, action=call(table, True, rng)
            )
            updates.append(update("MODIFY", table_entry=default))
        if table.direct_counter is not None:
            counted = p4r.DirectCounterEntry(
                table_entry=p4r.TableEntry(table_id=table.id, is_default_action=True),
                data=p4r.CounterData(packet_count=7),
            )
            updates.append(update("MODIFY", direct_counter_entry=counted))
    for counter in schema.counters.values():
        data = p4r.CounterData(packet_count=5 * counter.packets, byte_count=6 * counter.bytes)
        updates.append(
            update("MODIFY", counter_entry=p4r.CounterEntry(counter_id=counter.id, data=data))
        )
    updates += [
        update("INSERT", packet_replication_engine_entry=group(number, (3, 1), (4, 2)))
        for number in (900, 65535)
    ]
    return updates


Live = Callable[[InProcess], list[tuple[int, bytes]]]


def live_features(switch: InProcess) -> list[tuple[int, bytes]]:
    """Entries, counters and groups of every kind, and random frames."""
    rng = random.Random(5)
    frames = [ordinary_frame(rng) for _ in range(200)]
    out = switch.pipelines[-1].process_batch(frames)
    switch.write_updates(everything(switch.schema, rng))
    return out + switch.pipelines[-1].process_batch(frames)


def live_pool(switch: InProcess) -> list[tuple[int, bytes]]:
    """A job of two workers beside that: rounds that are complete, and rounds that are not."""
    rng = random.Random(6)
    out = live_features(switch)
    job = PoolJob(
        ("", 0), switch, switch.workers, VALUES, own=str(ipaddress.IPv4Address(SWITCH_IPV4))
    )
    frames = []
    for seq in range(3 * SLOTS // 2):
        for worker in (0, 1)[: rng.choice((1, 2, 2))]:
            header = Header(
                flags=Flag(rng.randrange(1, 1 << len(Flag))),
                job=job.job,
                epoch=job.epoch,
                worker=worker,
                slot=seq % SLOTS,
                value_count=VALUES,
                seq=seq,
                contributors=1 << worker,
                exponent=rng.randrange(1, 200),
                next_exponent=rng.randrange(1, 200),
                digest=rng.getrandbits(16),
                check=rng.getrandbits(32),
            )
            host, udp_port = switch.workers[worker].socket.getsockname()
            payload = encode_header(header) + rng.randbytes(4 * VALUES)
            frame = Frame(payload, int(ipaddress.IPv4Address(host)), udp_port)
            frames.append((PORT, frame.build()))
    return out + switch.pipelines[-1].process_batch(frames)


PROGRAMS: dict[str, tuple[Callable[[], p4r.ForwardingPipelineConfig], Live]] = {
    "features": (features_config, live_features),
    "pool": (lambda: pool_config(VALUES), live_pool),
}


def set_again(switch: InProcess) -> None:
    switch.set(Set.VERIFY_AND_COMMIT)


def save_and_commit(switch: InProcess) -> None:
    switch.set(Set.VERIFY_AND_SAVE)
    switch.set(Set.COMMIT)


def save_write_and_set_again(switch: InProcess) -> None:
    """What was written for a saved program goes with it."""
    switch.set(Set.VERIFY_AND_SAVE)
    switch.write_updates(everything(switch.schema, random.Random(7)))
    switch.set(Set.VERIFY_AND_COMMIT)


def power_on(switch: InProcess) -> None:
    switch.device.power_on()


@pytest.fixture(params=PROGRAMS)
def switch_and_live(
    request: pytest.FixtureRequest, cache_dir: Path
) -> Iterator[tuple[InProcess, Live]]:
    config, live = PROGRAMS[request.param]
    switch = InProcess(config(), cache_dir)
    yield switch, live
    switch.close()


@pytest.mark.parametrize("again", [set_again, save_and_commit, save_write_and_set_again, power_on])
def test_nothing_is_left(
    switch_and_live: tuple[InProcess, Live], again: Callable[[InProcess], None]
) -> None:
    switch, live = switch_and_live
    fresh = switch.state()
    first_out = live(switch)
    used = switch.state()
    untouched = {what for what in used | fresh if used.get(what) == fresh.get(what)}
    assert untouched <= constant_parts(switch.schema)
    again(switch)
    assert switch.state() == fresh
    assert live(switch) == first_out
    assert switch.state() == used


def constant_parts(schema: Schema) -> set[str]:
    """What no client can change and no packet counts in: const entries, defaults with no choice."""
    parts = set()
    for table in schema.tables.values():
        if table.direct_counter is None:
            parts |= {f"entries {table.id}"} if table.is_const or not table.fields else set()
            constant = table.const_default or not allowed(table, True)[-1].action.params
            parts |= {f"default {table.id}"} if constant else set()
    return parts


def test_it_is_not_compiled_again(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no compiler any more, another program is refused and this one is not."""
    switch = InProcess(features_config(), cache_dir)
    monkeypatch.setenv("INA_CC", "no-such-compiler")
    switch.set(Set.VERIFY)
    switch.set(Set.VERIFY_AND_COMMIT)
    assert len(switch.pipelines) == 2
    switch.config = pool_config(VALUES)
    with pytest.raises(StatusError, match="no-such-compiler"):
        switch.set(Set.VERIFY_AND_COMMIT)
    switch.close()


def test_another_p4info_is_another_program(cache_dir: Path) -> None:
    """Its names count, not only what runs."""
    switch = InProcess(features_config(), cache_dir)
    switch.config = features_config()
    switch.config.p4info.tables[0].preamble.name = "Other.table"
    with pytest.raises(StatusError, match=r"no table Other\.table"):
        switch.set(Set.VERIFY_AND_COMMIT)
    switch.close()


def test_no_program_no_power_on() -> None:
    device = Device(1, default_target(), install=lambda _: None, inject=lambda _packet: True)
    with pytest.raises(StatusError, match="no forwarding pipeline"):
        device.power_on()
