"""The fake server is not one that agrees with everything: what it refuses, and that it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from ina.p4 import names
from tests.worlds.fakes import tofino_client as gc
from tests.worlds.fakes.tofino import FakeTofino

TARGET = gc.Target()
JOB = {"job": 1, "epoch": 2}
PARAMS = {
    "epoch": 2, "first_slot": 0, "slots": 2, "full_bitmap": 1, "group": 1, "job_index": 1,
}  # fmt: skip


@contextmanager
def bound(tofino: FakeTofino) -> Iterator[gc._BfRtInfo]:
    interface = gc.ClientInterface(tofino.address, client_id=1, device_id=0)
    interface.bind_pipeline_config(tofino.program)
    yield interface.bfrt_info_get(tofino.program)
    interface.tear_down_stream()


@contextmanager
def refused(code: grpc.StatusCode, says: str) -> Iterator[None]:
    with pytest.raises(gc.BfruntimeReadWriteRpcException) as caught:
        yield
    ((_, error),) = caught.value.sub_errors_get()
    assert error.canonical_code == code.value[0]
    assert says in error.message


def job_entry(table: gc.Table, match: dict[str, int], params: dict[str, int]) -> Any:
    key = table.make_key([gc.KeyTuple(name, value) for name, value in match.items()])
    fields = [gc.DataTuple(name, value) for name, value in params.items()]
    return [key], [table.make_data(fields, names.ADMIT_JOB)]


def test_tables_keys_actions_and_fields_it_does_not_have(tofino: FakeTofino) -> None:
    with bound(tofino) as info:
        with pytest.raises(KeyError):
            info.table_get("pipe.PoolIngress.admission.jobz")
        table = info.table_get(f"pipe.{names.JOBS}")
        wrong: list[tuple[type[Exception], Callable[[], object]]] = [
            (KeyError, lambda: table.make_key([gc.KeyTuple("jop", 1)])),
            (ValueError, lambda: table.make_key([gc.KeyTuple("job", 1, prefix_len=3)])),
            (TypeError, lambda: gc.KeyTuple("job", None)),
            (KeyError, lambda: table.make_data([], "PoolIngress.admission.admit")),
            (KeyError, lambda: job_entry(table, JOB, {"slot": 1})),
            (ValueError, lambda: job_entry(table, JOB, {**PARAMS, "slots": 1 << 16})),
            (TypeError, lambda: gc.DataTuple("slots", int_arr_val=3)),
        ]
        for error, attempt in wrong:
            with pytest.raises(error):
                attempt()


def test_entries_that_are_there_or_not_or_wrong(tofino: FakeTofino) -> None:
    with bound(tofino) as info:
        table = info.table_get(f"pipe.{names.JOBS}")
        keys, data = job_entry(table, JOB, PARAMS)
        with refused(grpc.StatusCode.NOT_FOUND, "Object not found"):
            table.entry_mod(TARGET, keys, data)
        with refused(grpc.StatusCode.NOT_FOUND, "Object not found"):
            table.entry_del(TARGET, keys)
        with refused(grpc.StatusCode.NOT_FOUND, "Object not found"):
            list(table.entry_get(TARGET, keys))
        table.entry_add(TARGET, keys, data)
        with refused(grpc.StatusCode.ALREADY_EXISTS, "Already exists"):
            table.entry_add(TARGET, keys, data)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "field group is mandatory"):
            short = {name: value for name, value in PARAMS.items() if name != "group"}
            table.entry_mod(TARGET, *job_entry(table, JOB, short))
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "key job: 65536 has more than 16 bits"):
            table.entry_add(TARGET, *job_entry(table, {"job": 1 << 16, "epoch": 2}, PARAMS))
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "not an action for an entry"):
            fields = table.make_data([], "PoolIngress.admission.unknown_job")
            table.entry_add(TARGET, table_key(table, 9), [fields])
        tofino.tables[f"pipe.{names.JOBS}"].size = 1
        with refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "Not enough space"):
            table.entry_add(TARGET, table_key(table, 9), data)
        ((found, _),) = list(table.entry_get(TARGET, []))
        assert {name: found.to_dict()[name] for name in PARAMS} == PARAMS


def table_key(table: gc.Table, job: int) -> list[Any]:
    return [table.make_key([gc.KeyTuple("job", job), gc.KeyTuple("epoch", 1)])]


def test_fixed_tables(tofino: FakeTofino) -> None:
    with bound(tofino) as info:
        nodes, groups, ports = map(info.table_get, ("$pre.node", "$pre.mgid", "$PORT"))
        group = [groups.make_key([gc.KeyTuple("$MGID", 1)])]
        lists = [
            gc.DataTuple("$MULTICAST_NODE_ID", int_arr_val=[5]),
            gc.DataTuple("$MULTICAST_NODE_L1_XID_VALID", bool_arr_val=[False]),
            gc.DataTuple("$MULTICAST_NODE_L1_XID", int_arr_val=[0]),
        ]
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "no such nodes: [5]"):
            groups.entry_add(TARGET, group, [groups.make_data(lists)])
        with pytest.raises(AssertionError, match=r"\$MGID is mandatory"):
            groups.make_key([])
        node = [nodes.make_key([gc.KeyTuple("$MULTICAST_NODE_ID", 5)])]
        fields = [
            gc.DataTuple("$MULTICAST_RID", 1),
            gc.DataTuple("$MULTICAST_LAG_ID", int_arr_val=[]),
            gc.DataTuple("$DEV_PORT", int_arr_val=[1]),
        ]
        nodes.entry_add(TARGET, node, [nodes.make_data(fields)])
        groups.entry_add(TARGET, group, [groups.make_data(lists)])
        with refused(grpc.StatusCode.FAILED_PRECONDITION, "the node is in a group"):
            nodes.entry_del(TARGET, node)
        port = [ports.make_key([gc.KeyTuple("$DEV_PORT", 3)])]
        wrong = [
            ([gc.DataTuple("$SPEED", str_val="BF_SPEED_100G")], "needs its speed and FEC"),
            ([gc.DataTuple("$SPEED", str_val="100G")], "is not one of"),
            ([gc.DataTuple("$PORT_UP", bool_val=True)], "read-only"),
        ]
        for fields, says in wrong:
            with refused(grpc.StatusCode.INVALID_ARGUMENT, says):
                ports.entry_add(TARGET, port, [ports.make_data(fields)])


def test_who_has_not_bound_the_program_can_do_nothing(tofino: FakeTofino) -> None:
    with bound(tofino):
        other = gc.ClientInterface(tofino.address, client_id=2, device_id=0)
        with pytest.raises(gc.BfruntimeForwardingRpcException) as caught:
            other.bind_pipeline_config(tofino.program)
        assert caught.value.grpc_error_get().code() is grpc.StatusCode.ALREADY_EXISTS
        table = other.bfrt_info_get().table_get(f"pipe.{names.JOBS}")
        with pytest.raises(gc.BfruntimeReadWriteRpcException):
            table.entry_add(TARGET, *job_entry(table, JOB, PARAMS))
        assert tofino.rows(names.JOBS) == []
    other.bind_pipeline_config(tofino.program)
    other.tear_down_stream()
