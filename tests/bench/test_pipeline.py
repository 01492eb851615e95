"""`ina bench pipeline`: it sums, it checks the sums, and it says what was wrong with a call."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.bench import pipeline as bench_pipeline
from ina.bench import pipeline_frames
from ina.bench.pipeline import check, install, measure
from ina.bench.pipeline_frames import AROUND, CHUNKS, Batch
from ina.bench.pipeline_sends import measure_sends
from ina.p4 import compiled
from ina.protocol.bth import Opcode
from ina.protocol.codec import decode
from ina.protocol.roce import decode_frame
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT
from ina.switch.native_abi import OutputBuffer
from ina.switch.targets import default_target
from tests.bench.command import bench
from tests.worlds.processes.stand_ins import python


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("values", "workers"), [(64, 1), (64, 3), (256, 8), (360, 2), (1024, 2)])
def test_sums_are_checked(values: int, workers: int, shared: bool) -> None:
    result = measure(values, workers, shared=shared, rounds=2, repeats=2)
    assert result.copies == (1 if shared else workers)
    assert result.sums_checked == 3 * CHUNKS * result.copies * values
    assert result.wrong == 0
    assert result.packets_per_second > 0
    assert result.slowest_packets_per_second <= result.packets_per_second
    assert result.packets_per_second <= result.fastest_packets_per_second


def test_sums_and_icrcs_of_mode_roce_are_checked() -> None:
    """Beside mode pool's, and a CRC alone, which zlib agrees with."""
    row = measure_sends(56, 3, mode="roce", rounds=2, repeats=2)
    assert (row.values, row.pool_values, row.workers) == (56, 64, 3)
    assert row.sums_checked == 3 * CHUNKS * 3 * (56 + 64)
    assert row.wrong == 0
    assert row.low_ns_per_packet <= row.ns_per_packet <= row.high_ns_per_packet
    assert row.limit_ns == row.pool_ns_per_packet + 2 * row.crc_ns
    assert row.zlib_crc_ns > 0


def test_a_wrong_icrc_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one of all results of a round: none of its values counts."""
    real, results = pipeline_frames._icrc_of, 0

    def once_another(frame: pipeline_frames.Bytes) -> bytes:
        nonlocal results
        results += 1
        return real(frame) if results % (2 * CHUNKS) else b"none"

    monkeypatch.setattr(pipeline_frames, "_icrc_of", once_another)
    assert measure_sends(56, 2, mode="roce", rounds=1, repeats=1).wrong == 2 * 56


def test_frames_of_mode_roce_are_what_their_format_says() -> None:
    batch = Batch(56, 3, np.random.default_rng(0), AROUND["rocev2"])
    batch.set_round(2)
    assert batch.around.wrong(batch.frames) == 0
    frame = decode_frame(batch.frames[9, 2].tobytes())
    header, values = decode(bytes(frame.payload))
    assert (header.worker, header.slot, header.seq) == (2, 9, 2 * CHUNKS + 9)
    assert (frame.bth.opcode, frame.bth.psn) == (Opcode.UC_SEND_ONLY, 2 * CHUNKS + 9)
    assert np.array_equal(values, batch.gradients[9, 2])


@pytest.mark.parametrize("claims", [False, True])
def test_sums_of_mode_shared_are_checked(claims: bool) -> None:
    result = measure(64, 3, mode="shared", claims=claims, rounds=2, repeats=2)
    assert (result.mode, result.claims) == ("shared", claims)
    assert result.copies == (1 if claims else 3)
    assert result.sums_checked == 3 * CHUNKS * result.copies * 64
    assert result.wrong == 0


@pytest.mark.parametrize(("shared", "wrong"), [(False, 4), (True, 2)])
def test_a_wrong_sum_is_noticed(monkeypatch: pytest.MonkeyPatch, shared: bool, wrong: int) -> None:
    real = check

    def spoilt(batch: Batch, output: OutputBuffer, copies: int) -> tuple[int, int]:
        batch.gradients[5, 1, 7] += 1
        return real(batch, output, copies)

    monkeypatch.setattr(bench_pipeline, "check", spoilt)
    # One value of one chunk, in every copy of its result, in the warm-up and in the repeat.
    assert measure(64, 2, shared=shared, rounds=1, repeats=1).wrong == wrong


def test_one_copy_for_all_goes_where_the_workers_listen_together() -> None:
    batch = Batch(64, 3, np.random.default_rng(0))
    batch.set_round(0)
    with default_target().load(compiled(64).bmv2_json) as pipeline:
        install(pipeline, 3, shared=True)
        sent = [(worker + 1, batch.frames[0, worker].tobytes()) for worker in range(3)]
        [(port, frame)] = pipeline.process_batch(sent)
    packet = Ether(frame)
    assert port == 1
    assert (packet.dst, packet[IP].dst) == ("01:00:5e:40:00:01", "239.192.0.1")
    assert packet[UDP].dport == RESULTS_UDP_PORT
    header, values = decode(bytes(packet[UDP].payload))
    assert header.worker == ALL_WORKERS
    assert np.array_equal(values, batch.gradients[0].sum(axis=0))


def test_what_a_call_costs_without_packets_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    real = bench_pipeline._timed
    calls = 0

    def slow(table: Any, state: int, batch: Batch, output: OutputBuffer, count: int) -> int:
        nonlocal calls
        calls += 1
        real(table, state, batch, output, count)
        interrupted = 50_000_000 if count == 0 and calls % 2 else 0
        return 1_000_000 + 10 * count + interrupted

    monkeypatch.setattr(bench_pipeline, "_timed", slow)
    assert measure(64, 2, rounds=3, repeats=1).ns_per_packet == pytest.approx(10)


def test_frames_are_what_the_wire_format_says() -> None:
    batch = Batch(64, 3, np.random.default_rng(0))
    batch.set_round(2)
    frame = Ether(batch.frames[9, 2].tobytes())
    checksum = frame[IP].chksum
    del frame[IP].chksum
    assert Ether(bytes(frame))[IP].chksum == checksum
    header, values = decode(bytes(frame[UDP].payload))
    assert (header.worker, header.slot, header.seq) == (2, 9, 2 * CHUNKS + 9)
    assert np.array_equal(values, batch.gradients[9, 2])


def test_the_command_prints_json() -> None:
    command = [python(), "-m", "ina", "bench", "pipeline", "--values", "64"]
    done = subprocess.run(
        [*command, "--workers", "2", "--repeats", "1", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [(row["values"], row["workers"], row["copies"]) for row in document["rows"]] == [
        (64, 2, 1),
        (64, 2, 2),
    ]
    assert document["wrong"] == 0
    assert [(ratio["name"], ratio["value"]) for ratio in document["ratios"]] == [
        (f"64 values, n=2{which} pipeline/numpy", row["of_numpy"])
        for which, row in zip((", one copy for all", ""), document["rows"], strict=True)
    ]
    bad = subprocess.run([*command, "--workers", "33"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2
    assert "--workers 33" in bad.stderr
    assert bad.stderr.count("\n") == 1


def test_the_command_holds_mode_roce_against_its_limit() -> None:
    command = [python(), "-m", "ina", "bench", "pipeline", "--mode", "roce", "--values", "56"]
    done = subprocess.run(
        [*command, "--workers", "2", "--repeats", "1", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    [row] = document["rows"]
    assert (row["mode"], row["values"], row["pool_values"]) == ("roce", 56, 64)
    assert document["wrong"] == 0
    assert [(ratio["name"], ratio["value"]) for ratio in document["ratios"]] == [
        ("mode roce, 56 values, n=2 limit/pipeline", row["of_limit"])
    ]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("--mode=roce", "--values=64"), "--values 64"), (("--mode=transparent",), "--mode trans")],
)
def test_what_is_not_measured_is_told(arguments: tuple[str, ...], named: str) -> None:
    ran = bench("pipeline", *arguments)
    assert ran.code == 2
    assert named in ran.err
    assert ran.err.count("\n") == 1
