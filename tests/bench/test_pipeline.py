"""`ina bench pipeline`: it sums, it checks the sums, and it says what was wrong with a call."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from ina.bench import pipeline as bench_pipeline
from ina.bench.pipeline import Batch, check, measure
from ina.switch.native_abi import OutputBuffer


@pytest.mark.parametrize(("values", "workers"), [(64, 1), (64, 3), (256, 8), (360, 2), (1024, 2)])
def test_sums_are_checked(values: int, workers: int) -> None:
    result = measure(values, workers, rounds=2, repeats=2)
    assert result.sums_checked == 3 * bench_pipeline.CHUNKS * workers * values
    assert result.packets_per_second > 0
    assert result.slowest_packets_per_second <= result.packets_per_second
    assert result.packets_per_second <= result.fastest_packets_per_second


def test_a_wrong_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = check

    def spoilt(batch: Batch, output: OutputBuffer) -> tuple[int, int]:
        batch.gradients[5, 1, 7] += 1
        return real(batch, output)

    monkeypatch.setattr(bench_pipeline, "check", spoilt)
    # One value of one chunk, in both workers' results, in the warm-up and in the repeat.
    assert measure(64, 2, rounds=1, repeats=1).wrong == 4


def test_frames_are_what_the_wire_format_says() -> None:
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    from ina.protocol.codec import decode

    batch = Batch(64, 3, np.random.default_rng(0))
    batch.set_round(2)
    frame = Ether(batch.frames[9, 2].tobytes())
    checksum = frame[IP].chksum
    del frame[IP].chksum
    assert Ether(bytes(frame))[IP].chksum == checksum
    header, values = decode(bytes(frame[UDP].payload))
    assert (header.worker, header.slot, header.seq) == (2, 9, 2 * bench_pipeline.CHUNKS + 9)
    assert np.array_equal(values, batch.gradients[9, 2])


def test_the_command_prints_json() -> None:
    command = [sys.executable, "-m", "ina", "bench", "pipeline", "--values", "64"]
    done = subprocess.run(
        [*command, "--workers", "2", "--repeats", "1", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    [row] = document["rows"]
    assert (row["values"], row["workers"], row["wrong"]) == (64, 2, 0)
    [ratio] = document["ratios"]
    assert ratio["value"] == row["fraction_of_limit"]
    bad = subprocess.run([*command, "--workers", "33"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2
    assert "--workers 33" in bad.stderr
    assert bad.stderr.count("\n") == 1
