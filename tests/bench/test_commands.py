"""The other ``ina bench`` commands with tiny sizes: columns, JSON form, checks, nothing left."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from ina.bench import controller, quantize, switch
from ina.cli.bench import allreduce as bench_allreduce
from ina.cli.bench import ddp as bench_ddp
from ina.cli.bench import switch as bench_switch
from ina.errors import InaError, InvalidInputError
from ina.host.arrays import VALUE_TYPES
from ina.host.blocks import Conversion, convert, copy
from ina.rpc import controller_pb2 as pb2
from tests.bench.command import bench
from tests.worlds.processes.command import inside


def run(*arguments: str) -> dict[str, Any]:
    ran = bench(*arguments, "--json")
    assert ran.code == 0, ran.err
    assert ran.left == []
    assert ran.namespaces == []
    document: dict[str, Any] = json.loads(ran.out)
    assert (document["schema"], document["bench"]) == ("ina-bench/1", arguments[0])
    assert document["wrong"] == 0
    return document


def test_switch() -> None:
    small = ("--values=64", "--workers=2", "--seconds=0.2", "--repeats=2", "--no-bmv2")
    (row,) = run("switch", *small)["rows"]
    assert (row["switch"], row["values"], row["workers"]) == ("soft-udp", 64, 2)
    assert row["packets_per_second"] > 0
    assert row["cpu_ns_per_packet"] > 0
    assert row["gradient_gb_per_second"] == pytest.approx(row["packets_per_second"] * 256e-9)


def test_switch_leaves_out_for_bmv2_what_its_links_do_not_bear(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its links have an MTU of 1500: a job of 1024 values a packet would wait for its deadline."""

    def row(name: str, values: int, workers: int) -> switch.SwitchRow:
        rate = workers * (8.0 if name == "soft-udp" else 4.0)
        return switch.SwitchRow(name, values, workers, rate, rate, rate, 1, 1.0, 1.0, 1.0, 0)

    monkeypatch.setattr(switch, "why_not_bmv2", lambda: "")
    monkeypatch.setattr(switch, "measure", lambda v, n, *_, multicast: row("soft-udp", v, n))
    monkeypatch.setattr(switch, "measure_bmv2", lambda v, n, seconds: row("bmv2", v, n))
    bench_switch.switch(values="360,1024", workers="2,4", seconds=1.0, repeats=1, json=True)
    document = json.loads(capsys.readouterr().out)
    measured = [(row["switch"], row["values"], row["workers"]) for row in document["rows"]]
    assert measured == [
        *(("soft-udp", 360, 2), ("bmv2", 360, 2), ("soft-udp", 360, 4), ("bmv2", 360, 4)),
        *(("soft-udp", 1024, 2), ("soft-udp", 1024, 4)),
    ]
    assert any("do not fit into its links' MTU, 1500" in note for note in document["notes"])
    # As many workers on both.
    assert [ratio["value"] for ratio in document["ratios"]] == [2.0, 2.0]


def test_switch_counts_what_is_wrong_on_any_rank() -> None:
    said = [f'{{"packets": {10 + n}, "seconds": {n + 1}.0, "wrong": {n}}}\n' for n in range(3)]
    assert switch.total(said) == {"packets": 33, "wrong": 3, "seconds": 3.0}
    with pytest.raises(InaError, match="rank 1 said nothing"):
        switch.total([said[0], "Traceback", said[2]])


class _Asked(Exception):  # noqa: N818 (it ends the benchmark before it begins)
    pass


@pytest.mark.parametrize("unicast", [False, True])
@pytest.mark.parametrize("command", ["allreduce", "memory", "ddp", "switch"])
def test_unicast_reaches_the_place(
    command: str, unicast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object, multicast: bool, **__: object) -> None:
        assert multicast is not unicast
        raise _Asked

    monkeypatch.setattr(switch, "measure", ask)
    for module in (bench_allreduce, bench_ddp):
        monkeypatch.setattr(module, "open_testbed", ask)
    begin: dict[str, Callable[..., None]] = {
        "allreduce": bench_allreduce.allreduce,
        "memory": partial(bench_allreduce.allreduce, memory=True),
        "ddp": bench_ddp.ddp,
        "switch": bench_switch.switch,
    }
    with pytest.raises(_Asked):
        begin[command](unicast=unicast)


def test_controller() -> None:
    document = run("controller", "--jobs=0,3", "--admissions=8", "--workers=3")
    assert [row["jobs"] for row in document["rows"]] == [0, 3]
    for row in document["rows"]:
        assert 0 < row["p50_s"] <= row["p99_s"]
        assert row["joins_per_second"] > 0
    assert len(document["ratios"]) == 1


def test_a_wrong_answer_of_the_controller_is_counted() -> None:
    trees = [pb2.Tree(job=5)]
    reply = pb2.JoinReply(trees=trees, world_size=2, slots=64)
    assert not controller._is_wrong(reply, 2, {4})
    assert controller._is_wrong(reply, 2, {5})  # a job number that another job has
    assert controller._is_wrong(reply, 3, {4})
    assert controller._is_wrong(pb2.JoinReply(trees=trees, world_size=2, slots=62), 2, {4})


def test_ddp() -> None:
    document = run("ddp", "--model=tiny,digits", "--workers=2", "--repeats=3", "--seconds=0.2")
    rows = {(row["model"], row["backend"]): row for row in document["rows"]}
    assert list(rows) == [
        *(("tiny", "ina"), ("tiny", "gloo"), ("digits", "ina"), ("digits", "gloo")),
    ]
    for (model, _), row in rows.items():
        items = {"tiny": 512, "digits": 32}[model]
        assert row["items_per_second"] == pytest.approx(2 * items / row["step_s"])
        assert row["gain"] == pytest.approx(rows[model, "gloo"]["step_s"] / row["step_s"])
        assert row["gradient_bytes"] == 4 * row["parameters"]
        assert row["buckets"] >= 2
    assert rows["digits", "ina"]["parameters"] == 151_306


def test_the_large_models_have_the_parameters_of_their_papers() -> None:
    pytest.importorskip("torch")
    from ina.bench.torch.models import gpt2_shapes, resnet50_shapes

    def count(shapes: list[list[tuple[int, ...]]]) -> int:
        return sum(math.prod(shape) for layer in shapes for shape in layer)

    assert count(resnet50_shapes()) == 25_557_032
    assert count(gpt2_shapes()) == 124_439_808
    assert len(resnet50_shapes()) == 54  # 53 convolutions and a linear layer


def test_quantize() -> None:
    document = run("quantize", "--dtype=float32,int32", "--repeats=2")
    found = [(row["what"], row["type"], row["place"]) for row in document["rows"]]
    assert found == [
        *(("scan", "float32", "cache"), ("quantize", "float32", "cache")),
        *(("dequantize", "float32", "cache"), ("scan", "float32", "DRAM")),
        *(("quantize", "float32", "DRAM"), ("dequantize", "float32", "DRAM")),
        *(("quantize", "int32", "cache"), ("dequantize", "int32", "cache")),
        *(("quantize", "int32", "DRAM"), ("dequantize", "int32", "DRAM")),
    ]
    for row in document["rows"]:
        assert row["of_memcpy"] == pytest.approx(row["gb_per_second"] / row["memcpy_gb_per_second"])
    assert len(document["ratios"]) == len(found)


def test_a_wrong_conversion_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def spoilt(what: Conversion, array: Any, wire: Any, block_elems: int, rounds: int) -> None:
        convert(what, array, wire, block_elems, rounds)
        if what == "dequantize":
            array[7] += 1

    monkeypatch.setattr(quantize, "convert", spoilt)
    assert [row.wrong for row in quantize.measure("float32", "cache", 256, 1)] == [0, 0, 1]


def test_conversions_by_block_are_those_of_the_wire() -> None:
    for dtype in VALUE_TYPES:
        array = np.arange(-700, 700).astype(dtype)
        wire = np.zeros(4 * array.size, np.uint8)
        convert("quantize", array, wire, 256)  # the last block is shorter
        assert np.array_equal(wire.view(">i4"), array.astype(np.int32))
        back = np.zeros_like(array)
        convert("dequantize", back, wire, 256)
        assert np.array_equal(back, array)
    with pytest.raises(InvalidInputError, match="want 4 for each"):
        convert("scan", np.zeros(4, np.float32), np.zeros(8, np.uint8), 4)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_a_conversion_is_done_as_often_as_asked(rounds: int) -> None:
    numbers = np.arange(1000, dtype=np.int32)
    swapped = numbers.copy()
    convert("quantize", swapped, swapped.view(np.uint8), 256, rounds)  # in place
    assert np.array_equal(swapped, numbers.byteswap() if rounds % 2 else numbers)


def test_the_peer_copies_all_bytes() -> None:
    source = np.arange(1000).astype(np.uint8)
    target = np.zeros_like(source)
    copy(source, target, 2)
    assert np.array_equal(source, target)
    with pytest.raises(InvalidInputError, match="1000 bytes to 999"):
        copy(source, target[1:], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("switch", "--values", "x"), "error: --values x: want integers"),
        (("switch", "--workers", "33"), "error: --workers 33: want integers from 1 to 32"),
        (("switch", "--seconds", "0"), "error: --seconds 0: want more than 0"),
        (("controller", "--jobs", "500"), "error: --jobs 500: want integers from 0 to 112"),
        (("ddp", "--model", "x"), "error: --model x: want some of digits, resnet50, gpt2"),
        (("ddp", "--link", "x"), "error: --link x: want a rate"),
        (("quantize", "--dtype", "float64"), "error: --dtype float64: the network sums int32"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines()[-1].startswith(message)
