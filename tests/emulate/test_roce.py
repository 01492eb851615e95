"""Mode roce on real links: hosts' kernels make the frames, and switches send SENDs up, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ina.cli.pcap.read import CaptureFiles
from ina.pcap import UDP_PORTS, follow
from ina.pcap.sends import Icrc
from ina.protocol.bth import ROCE_UDP_PORT
from ina.protocol.roce import decode_frame
from tests.emulate.two_jobs import SUM
from tests.emulate.two_racks import TWO_RACKS
from tests.worlds.processes.emulations import call, left, need, new_name
from tests.worlds.processes.stand_ins import python

ROCE = '[controller.switch]\nmode = "roce"\n[controller.jobs]\nmode = "roce"\n'


@pytest.mark.parametrize(
    "loss", ["", pytest.param("loss_rate = 0.02\n", marks=pytest.mark.long)], ids=["whole", "lossy"]
)
def test_racks_sum_over_rocev2_exactly(loss: str, tmp_path: Path) -> None:
    """Ranks 0 and 1 behind leaf1, 2 and 3 behind leaf2: two levels, each packet a SEND."""
    need("soft")
    scapy = pytest.importorskip("scapy.all")
    fabric, script = tmp_path / "fabric.toml", tmp_path / "sum.py"
    fabric.write_text(
        TWO_RACKS.replace('ends = ["h1", "leaf1-p1"]\n', f'ends = ["h1", "leaf1-p1"]\n{loss}')
        + ROCE
    )
    script.write_text(SUM)
    name, out = new_name(), tmp_path / "out"
    done = call(
        *("run", fabric, "--switch", "soft", "--pcap", "--name", name, "--out", out),
        *("--timeout-s", "120", "--", python(), script),
    )
    assert done.returncode == 0, done.stderr
    assert left(name) == {}
    shown = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    (job,) = shown["jobs"]
    assert [it["switch"] for it in job["nodes"]] == ["spine", "leaf1", "leaf2"]
    for port in ("leaf1-p1", "leaf1-p9", "spine-p1"):
        frames = [bytes(it) for it in scapy.rdpcap(str(out / "pcap" / f"{port}.pcap"))
                  if scapy.UDP in it and it[scapy.UDP].dport == ROCE_UDP_PORT]  # fmt: skip
        assert len(frames) > 60
        for frame in frames:
            decode_frame(frame)
    files = CaptureFiles(sorted((out / "pcap").glob("*.pcap")), UDP_PORTS)
    packets = list(files.packets())
    assert {(it.problem, it.send and it.send.icrc) for it in packets} == {("", Icrc.RIGHT)}
    header = next(it.header for it in packets if it.header is not None)
    lives = follow(packets, header.job, header.slot)
    assert [it.has_parent for it in lives] == [False, True, True]
    assert all(round_.complete for it in lives for round_ in it.rounds)
