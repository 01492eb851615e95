"""Injected loss: at the rate asked for, the same packets for the same seed, both directions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ina._native import switch as native
from tests.switch.ports.conftest import Reflector, wait_until
from tests.switch.ports.pcap_files import frames_of, pcap_bytes

PACKETS = 20_000


def survivors(
    tmp_path: Path,
    run_loop: Callable[..., native.PortLoop],
    pipeline: Reflector,
    loss: float,
    seed: int,
) -> tuple[list[bytes], dict[str, int]]:
    source, target = tmp_path / "in.pcap", tmp_path / "out.pcap"
    if not source.exists():
        source.write_bytes(pcap_bytes([i.to_bytes(14, "big") for i in range(PACKETS)]))
    port = native.PcapPort(1, str(source), str(target), loss, seed)
    loop = run_loop([port], pipeline)
    wait_until(lambda: port.stats()["finished"] == 1, "file read")
    loop.stop()
    return frames_of(target), port.stats()


@pytest.mark.parametrize("loss", [0.0, 0.01, 0.3, 1.0])
def test_rate(
    tmp_path: Path,
    reflector: Callable[..., Reflector],
    run_loop: Callable[..., native.PortLoop],
    loss: float,
) -> None:
    frames, stats = survivors(tmp_path, run_loop, reflector(), loss, 7)
    assert stats["rx_packets"] == PACKETS
    arrived = PACKETS - stats["loss_in_packets"]
    assert arrived - stats["loss_out_packets"] == stats["tx_packets"] == len(frames)
    for lost, of in ((stats["loss_in_packets"], PACKETS), (stats["loss_out_packets"], arrived)):
        five_sigma = 5 * (of * loss * (1 - loss)) ** 0.5
        assert abs(lost - of * loss) <= five_sigma


def test_a_seed_says_which(
    tmp_path: Path, reflector: Callable[..., Reflector], run_loop: Callable[..., native.PortLoop]
) -> None:
    first, _ = survivors(tmp_path, run_loop, reflector(), 0.2, 1)
    again, _ = survivors(tmp_path, run_loop, reflector(), 0.2, 1)
    other, _ = survivors(tmp_path, run_loop, reflector(), 0.2, 2)
    assert first == again
    assert first != other
