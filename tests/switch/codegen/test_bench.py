"""`ina bench pipeline`: it sums, it checks the sums, and it says what was wrong with a call."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from ina.cli import bench_pipeline
from ina.cli.bench import parse_counts
from ina.cli.bench_pipeline import Batch, check, measure
from ina.errors import InvalidInputError
from ina.switch.native_abi import OutputBuffer


@pytest.mark.parametrize(("values", "workers"), [(64, 1), (64, 3), (256, 8)])
def test_sums_are_checked(values: int, workers: int) -> None:
    result = measure(values, workers, rounds=2, repeats=2)
    assert result.sums_checked == 3 * bench_pipeline.CHUNKS * workers * values
    assert result.packets_per_second > 0
    assert result.slowest_packets_per_second <= result.packets_per_second
    assert result.packets_per_second <= result.fastest_packets_per_second


def test_a_wrong_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = check

    def spoilt(batch: Batch, output: OutputBuffer) -> int:
        batch.gradients[5, 1, 7] += 1
        return real(batch, output)

    monkeypatch.setattr(bench_pipeline, "check", spoilt)
    with pytest.raises(InvalidInputError, match="a sum is wrong"):
        measure(64, 2, rounds=1, repeats=1)


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
    [row] = json.loads(done.stdout)
    assert (row["values"], row["workers"]) == (64, 2)
    bad = subprocess.run([*command, "--workers", "33"], capture_output=True, text=True, timeout=120)
    assert bad.returncode == 2
    assert "33 workers" in bad.stderr
    assert bad.stderr.count("\n") == 1


@pytest.mark.parametrize("text", ["", "a", "0", "64,-1"])
def test_bad_lists_are_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        parse_counts(text, "--values")
