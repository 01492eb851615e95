"""``ina bench allreduce`` on a few small tensors, as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ina.bench import star
from ina.bench.allreduce import label
from ina.cli.bench.testbeds import queue_bytes_for
from ina.emulate import remains
from ina.emulate.namespaces import namespace, remove
from ina.errors import InvalidInputError
from ina.netns import command
from ina.protocol.spec import HEADER_BYTES
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need

SMALL = ("--repeats=3", "--seconds=0.2")
RESENDS = ("retransmissions", "losses", "spurious_resends", "probes")
FIELDS = {
    *("workers", "backend", "size_bytes", "count", "type", "redop", "time_s", "time_low_s"),
    *("time_high_s", "samples", "algbw_gb_s", "busbw_gb_s", "wrong", "limit_s", "limit_share"),
    *("gain", "cpu_s_per_gb", "transport", "multicast", "verify", "unverified"),
    *("wire", "whole"),
    *("host_node", "nodeless"),
    *RESENDS,
}


def check_rows(
    document: dict[str, Any], workers: int, size: int, wrong: int = 0, more: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """``wrong``: of each of ina's rows; ``more``: how sums are verified, beside ``off``."""
    rows = {label(row["backend"], row["verify"]): row for row in document["rows"]}
    assert len(rows) == len(document["rows"])
    ours = {"ina", *(f"ina {way}" for way in more)}
    assert ours | {"gloo"} <= set(rows) <= ours | {"gloo", "mpi"}
    for row in rows.values():
        assert set(row) == FIELDS
        assert (row["workers"], row["size_bytes"]) == (workers, size)
        assert row["wrong"] == (wrong if row["backend"] == "ina" else 0)
        assert row["algbw_gb_s"] == pytest.approx(1e-9 * size / row["time_s"])
        share = 2 * (workers - 1) / workers
        assert row["busbw_gb_s"] == pytest.approx(share * row["algbw_gb_s"])
    ina, gloo = rows["ina"], rows["gloo"]
    assert ina["gain"] == pytest.approx(gloo["time_s"] / ina["time_s"])
    assert document["wrong"] == wrong * len(ours)
    for name in ours:
        assert rows[name]["unverified"] == pytest.approx(ina["time_s"] / rows[name]["time_s"])
    assert all(rows["gloo"][name] is None for name in RESENDS)
    resent, *became = (ina[name] for name in RESENDS)
    assert 0 <= sum(became) <= resent
    return rows


@pytest.mark.parametrize(
    ("workers", "dtype", "op", "more"),
    [
        pytest.param(2, "float32", "sum", (), marks=pytest.mark.long),  # the star's case does so
        (3, "int32", "avg", ("--unicast",)),
        pytest.param(3, "bfloat16", "avg", (), marks=pytest.mark.long),
    ],
)
def test_on_loopback(workers: int, dtype: str, op: str, more: tuple[str, ...]) -> None:
    case = (f"--workers={workers}", f"--dtype={dtype}", f"--op={op}", "--transport=udp", *more)
    ran = bench("allreduce", *case, "--sizes=256K", *SMALL, "--json")
    assert ran.code == 0, ran.err
    rows = check_rows(json.loads(ran.out), workers, 1 << 18)
    assert (rows["ina"]["type"], rows["ina"]["redop"]) == (dtype, op)
    assert rows["ina"]["cpu_s_per_gb"] > 0
    assert rows["ina"]["limit_share"] == pytest.approx(
        rows["ina"]["limit_s"] / rows["ina"]["time_s"]
    )
    assert (rows["ina"]["transport"], rows["gloo"]["transport"]) == ("udp", "tcp")
    assert rows["ina"]["multicast"] is not ("--unicast" in more)
    assert rows["gloo"]["multicast"] is False
    assert ran.left == []


def test_a_spoilt_sum_is_counted_and_plots_and_reports_are_written(tmp_path: Path) -> None:
    """Through shared memory, which workers of one host have unless told otherwise."""
    files = (f"--plot={tmp_path}/p.png", f"--save={tmp_path}/r.json", "--verify=off,keyed")
    ran = bench("allreduce", "--workers=2", "--sizes=64K", *SMALL, "--spoil=3", *files)
    assert ran.code == 1, ran.err
    assert "WRONG: 12 values" in ran.out  # three on each of two ranks, verified or not
    for column in ("size", "count", "type", "redop", "time ms", "algbw", "busbw", "#wrong"):
        assert column in ran.out
    saved = json.loads((tmp_path / "r.json").read_text())
    rows = check_rows(saved, 2, 1 << 16, wrong=6, more=["keyed"])
    assert {ratio["name"]: ratio["value"] for ratio in saved["ratios"]}[
        "loopback shm n=2 64K keyed ina/off"
    ] == pytest.approx(rows["ina keyed"]["unverified"])
    assert (rows["ina"]["transport"], rows["ina"]["multicast"]) == ("shm", False)
    assert rows["ina"]["limit_s"] is None
    assert (tmp_path / "p.png").stat().st_size > 1000


def test_floats_travel_in_several_ways() -> None:
    ran = bench("allreduce", "--workers=2", "--sizes=64K", *SMALL, "--wire=32,8", "--json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    rows = {row["wire"]: row for row in report["rows"]}
    assert list(rows) == ["32", "8", ""]
    assert all(row["wrong"] == 0 for row in rows.values())
    assert rows["8"]["whole"] == pytest.approx(rows["32"]["time_s"] / rows["8"]["time_s"])
    ratios = {ratio["name"]: ratio["value"] for ratio in report["ratios"]}
    assert ratios["loopback shm n=2 64K wire 8 ina/32"] == rows["8"]["whole"]
    ran = bench("allreduce", "--workers=2", "--sizes=64K", "--wire=8,12")
    assert ran.code == 2
    assert "--wire=12: want 32, 16, 16-stochastic, 8, 8-stochastic" in ran.err


def test_memory_above_the_tensor_and_spoilt_sums(tmp_path: Path) -> None:
    case = ("--memory", "--workers=2", "--sizes=64M", "--spoil=3")
    plot = tmp_path / "p.png"
    ran = bench("allreduce", *case, "--json", f"--plot={plot}")
    assert ran.code == 1, ran.err
    rows = json.loads(ran.out)["rows"]
    # What it spoils is ina's: Gloo's have nothing wrong in them.
    assert [(row["backend"], row["wrong"]) for row in rows] == [("ina", 6), ("gloo", 0)]
    assert all(0 <= row["above_bytes"] < 32 << 20 for row in rows)  # no copy of the tensor
    assert plot.stat().st_size > 1000


@pytest.mark.parametrize("more", [(), pytest.param(("--unicast",), marks=pytest.mark.long)])
def test_in_a_star_of_namespaces(more: tuple[str, ...]) -> None:
    need("soft")
    case = ("--workers=2", "--sizes=64K", "--link=100mbit", "--queue=128K", *SMALL, *more)
    ran = bench("allreduce", *case, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    rows = check_rows(document, 2, 1 << 16)
    # 46 packets of 360 values, the most for an MTU of 1500, with 66 bytes of headers each.
    assert (document["settings"]["values"], document["settings"]["queue"]) == (360, "128K")
    assert (rows["ina"]["transport"], rows["ina"]["multicast"]) == ("udp", not more)
    assert rows["ina"]["limit_s"] == pytest.approx((65536 + 46 * (42 + HEADER_BYTES)) * 8 / 1e8)
    assert ran.left == []
    assert ran.namespaces == []


@pytest.mark.parametrize("queue", ["79K", "96K,128K"])
def test_a_queue_has_room_for_a_super_packet(queue: str) -> None:
    with pytest.raises(InvalidInputError, match=f"--queue {queue}: want one size, 80K or more"):
        queue_bytes_for(queue, 1e9)


def test_queues_of_the_star_are_as_long_as_asked_for() -> None:
    need("soft")
    hosts = [remains.HostState("h1", "10.77.0.1", namespace("bench-queue", "h1"))]
    net = namespace("bench-queue", "net")
    try:
        star.build(net, hosts, 1e9, queue_bytes_for("96K", 1e9))
        for space, interface in ((net, "p-h1"), (hosts[0].namespace, "eth0")):
            shown = json.loads(
                command("tc", "-n", space, "-json", "-d", "qdisc", "show", "dev", interface)
            )
            # tc tells the limit as the time that what is beyond the burst waits, in microseconds.
            waits_us = (96 * 1024 - star.BURST_BYTES) * 8 / 1e3
            assert shown[0]["options"]["lat"] == pytest.approx(waits_us, abs=1)
    finally:
        remove([net, hosts[0].namespace])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--queue", "128K"), "error: --queue 128K: only links with a rate have queues"),
        (("--workers", "2,33"), "error: --workers 33: want integers from 2 to 32"),
        (("--sizes", "x"), "error: --sizes x: want sizes"),
        (("--dtype", "x"), "error: --dtype x: the network sums int32, float"),
        (("--op", "max"), "error: --op max: the network does sum and avg"),
        (("--link", "fast"), "error: --link fast: want a rate"),
        (("--transport", "x"), "error: --transport x: want auto, udp, shm"),
        (("--memory", "--sizes", "9G"), "error: --sizes 9G: want sizes"),
        (("--memory", "--op", "avg"), "error: --memory --op avg: it measures a sum"),
        (("--tolerance", "1"), "error: tolerance 1: want 0 or more and below 1"),
        (("--baseline", "absent.json"), "error: absent.json: No such file"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "allreduce", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
