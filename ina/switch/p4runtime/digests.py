"""Digests: what a program tells the controller, in lists over its stream (DigestEntry)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from finsy.proto import p4d, p4r

from ina.switch.p4runtime.bits import encode
from ina.switch.p4runtime.schema import DigestSchema, Schema
from ina.switch.p4runtime.status import exists, invalid, not_found
from ina.switch.pipeline import Pipeline

MOST_WAITING = 4096
"""Digests of one kind that wait for their list to be full; a longer list is sent before."""

_Values = tuple[int, ...]


@dataclass
class _Told:
    """One kind of digest that a client asked for."""

    schema: DigestSchema
    entry: p4r.DigestEntry
    waiting: list[_Values] = field(default_factory=list)
    since_ns: int = 0
    """When the first of those that wait came."""
    unanswered: dict[int, tuple[int, list[_Values]]] = field(default_factory=dict)
    """By list id: until when its digests are not told again unless it is acknowledged."""
    last_list: int = 0

    def is_known(self, values: _Values, now_ns: int) -> bool:
        """Whether it waits, or is on its way to the client."""
        for number, (until_ns, _) in list(self.unanswered.items()):
            if until_ns <= now_ns:
                del self.unanswered[number]
        lists = [self.waiting, *(sent for _, sent in self.unanswered.values())]
        return self.entry.config.ack_timeout_ns > 0 and any(values in sent for sent in lists)

    def is_due(self, now_ns: int) -> bool:
        """Whether what waits is to be sent now."""
        config, count = self.entry.config, len(self.waiting)
        full = config.max_list_size and count >= config.max_list_size
        late = now_ns - self.since_ns >= config.max_timeout_ns
        return count > 0 and (bool(full) or late or count >= MOST_WAITING)


class DigestStore:
    """Which digests are told, and those that wait. The caller holds the device's lock."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self._schemas = schema.digests
        self._pipeline = pipeline
        self._told: dict[int, _Told] = {}

    def write(self, kind: p4r.Update.Type.ValueType, entry: p4r.DigestEntry) -> None:
        """Begin, change or end telling one kind of digest."""
        schema = self._schemas.get(entry.digest_id)
        if schema is None:
            raise not_found(f"no digest with id {entry.digest_id}")
        told = self._told.get(entry.digest_id)
        if kind == p4r.Update.INSERT and told is not None:
            raise exists(f"digest {schema.name} is told already")
        if kind != p4r.Update.INSERT and told is None:
            raise not_found(f"digest {schema.name} is not told")
        if kind == p4r.Update.DELETE:
            del self._told[entry.digest_id]
            return
        config = entry.config
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid(f"digest {schema.name}: times and sizes cannot be negative")
        kept = p4r.DigestEntry()
        kept.CopyFrom(entry)
        if told is None:
            self._told[entry.digest_id] = _Told(schema, kept)
        else:
            told.entry = kept

    def read(self, request: p4r.DigestEntry) -> Iterator[p4r.DigestEntry]:
        """One kind, or all (id 0), as they were written."""
        for number, told in self._told.items():
            if request.digest_id in (0, number):
                yield told.entry

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        """From now on what the list had is told again when it comes again."""
        if ack.digest_id not in self._schemas:
            raise not_found(f"no digest with id {ack.digest_id}")
        told = self._told.get(ack.digest_id)
        if told is not None:
            told.unanswered.pop(ack.list_id, None)

    def due(self, now_ns: int, wall_ns: int) -> list[p4r.DigestList]:
        """The lists to send; ``now_ns`` of any clock that does not jump, ``wall_ns`` since 1970."""
        if not self._schemas:
            return []
        by_name = {told.schema.name: told for told in self._told.values()}
        while (taken := self._pipeline.take_digest()) is not None:
            digest, values = taken
            told = by_name.get(digest.name)
            if told is None or told.is_known(values, now_ns):
                continue
            if not told.waiting:
                told.since_ns = now_ns
            told.waiting.append(values)
        lists = []
        for told in self._told.values():
            while told.is_due(now_ns):
                lists.append(_list_of(told, now_ns, wall_ns))
        return lists


def _list_of(told: _Told, now_ns: int, wall_ns: int) -> p4r.DigestList:
    config, schema = told.entry.config, told.schema
    size = config.max_list_size or MOST_WAITING
    sent, told.waiting = told.waiting[:size], told.waiting[size:]
    told.last_list += 1
    if config.ack_timeout_ns:
        told.unanswered[told.last_list] = (now_ns + config.ack_timeout_ns, sent)
    message = p4r.DigestList(digest_id=schema.id, list_id=told.last_list, timestamp=wall_ns)
    for values in sent:
        message.data.append(_data(schema, values))
    return message


def _data(schema: DigestSchema, values: _Values) -> p4d.P4Data:
    parts = [p4d.P4Data(bitstring=encode(value)) for value in values]
    match schema.form:
        case "struct":
            return p4d.P4Data(struct=p4d.P4StructLike(members=parts))
        case "tuple":
            return p4d.P4Data(tuple=p4d.P4StructLike(members=parts))
        case _:
            return parts[0]
