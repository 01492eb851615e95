"""Indirect counters: CounterEntry."""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4r

from ina.switch.p4runtime.schema import CounterSchema, Schema
from ina.switch.p4runtime.status import invalid, not_found, out_of_range
from ina.switch.pipeline import Pipeline


def write_counter(schema: Schema, pipeline: Pipeline, entry: p4r.CounterEntry) -> None:
    """Set one index, or all when the index is left out. No data: nothing changes."""
    counter = _counter(schema, entry.counter_id)
    indices = _indices(counter, entry)
    if not entry.HasField("data"):
        return
    if entry.data.packet_count < 0 or entry.data.byte_count < 0:
        raise invalid(f"{counter.name}: a counter cannot be negative")
    for index in indices:
        pipeline.set_counter(counter.name, index, entry.data.packet_count, entry.data.byte_count)


def read_counters(
    schema: Schema, pipeline: Pipeline, request: p4r.CounterEntry
) -> Iterator[p4r.CounterEntry]:
    """One index, all of a counter (no index), or all counters (id 0)."""
    if request.counter_id:
        counters = [_counter(schema, request.counter_id)]
    else:
        counters = list(schema.counters.values())
    for counter in counters:
        for index in _indices(counter, request):
            packets, size = pipeline.counter(counter.name, index)
            yield p4r.CounterEntry(
                counter_id=counter.id,
                index=p4r.Index(index=index),
                data=p4r.CounterData(
                    packet_count=packets if counter.packets else 0,
                    byte_count=size if counter.bytes else 0,
                ),
            )


def _counter(schema: Schema, counter_id: int) -> CounterSchema:
    counter = schema.counters.get(counter_id)
    if counter is None:
        raise not_found(f"no counter with id {counter_id}")
    return counter


def _indices(counter: CounterSchema, entry: p4r.CounterEntry) -> range:
    if not entry.HasField("index"):
        return range(counter.size)
    index = entry.index.index
    if index < 0:
        raise invalid(f"{counter.name}: index {index} is negative")
    if index >= counter.size:
        raise out_of_range(f"{counter.name}: index {index} is not below {counter.size}")
    return range(index, index + 1)
