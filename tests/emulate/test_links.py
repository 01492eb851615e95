"""Links do what the file says: bandwidth, queues, losses; and captures show what passed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from ina.emulate.load import load_topology
from ina.netns import command
from ina.protocol.spec import UDP_PORT
from tests.emulate.stream import STREAM
from tests.selection import EMULATED
from tests.worlds.processes.emulations import ALL_REDUCE, call, left, need, new_name, star, up
from tests.worlds.processes.stand_ins import python

DATAGRAMS, DATAGRAM_BYTES = 300, 1400
# Rank 0 sends, rank 1 counts; files tell each other when.
BURST = f"""
import os, socket, sys, time
from pathlib import Path
folder, ready, sent = Path(sys.argv[1]), Path(sys.argv[1], "ready"), Path(sys.argv[1], "sent")
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    if os.environ["RANK"] == "1":
        sock.bind((os.environ["INA_HOST"], 5000))
        sock.settimeout(0.5)
        ready.touch()
        count = 0
        while True:
            try:
                sock.recv(2000)
                count += 1
            except TimeoutError:
                if sent.exists():
                    break
        (folder / "count").write_text(str(count))
    else:
        while not ready.exists():
            time.sleep(0.01)
        for _ in range({DATAGRAMS}):
            sock.sendto(bytes({DATAGRAM_BYTES}), (sys.argv[3], 5000))
            time.sleep(float(sys.argv[2]))
        sent.touch()
"""
HELD = (32 + 16) * 1024 // DATAGRAM_BYTES
"""Datagrams that fit in the queue and the bucket of the slow link; all are eight seconds of it."""


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """An emulation of h1 with three neighbours: its name and folder."""
    need("soft")
    name, folder = new_name(), tmp_path_factory.mktemp("links")
    file = star(folder, 4)
    of_hosts = file.read_text().split("[hosts.h")
    of_hosts[3] += "bandwidth_mbit = 0.4\nqueue_kib = 32\n"
    of_hosts[4] += "loss_rate = 0.3\n"
    file.write_text("[hosts.h".join(of_hosts))
    with up(file, name, folder / name):
        yield name, folder
    assert left(name) == {}


def arrivals(links: tuple[str, Path], host: str, folder: Path, *, pause_s: float = 0.0) -> int:
    """How many datagrams of h1 come to this one."""
    name, _ = links
    script = folder / "burst.py"
    script.write_text(BURST)
    done = call(
        *("run", "--name", name, "--hosts", f"h1,{host}"),
        *("--", sys.executable, script, folder, str(pause_s), f"10.0.0.{host[1:]}"),
    )
    assert done.returncode == 0, done.stderr
    return int((folder / "count").read_text())


def test_an_unlimited_link_loses_nothing(links: tuple[str, Path], tmp_path: Path) -> None:
    assert arrivals(links, "h2", tmp_path, pause_s=0.001) == DATAGRAMS


def test_a_burst_overflows_the_queue_of_a_slow_link(
    links: tuple[str, Path], tmp_path: Path
) -> None:
    assert HELD // 2 < arrivals(links, "h3", tmp_path) < DATAGRAMS // 2


def test_a_lossy_link_loses_its_share(links: tuple[str, Path], tmp_path: Path) -> None:
    # Binomial: 210 of 300 arrive, standard deviation 8.
    assert 150 < arrivals(links, "h4", tmp_path, pause_s=0.001) < 270


def test_the_kernel_shapes_both_ends(links: tuple[str, Path]) -> None:
    name, _ = links
    for node, interface in (("h3", "eth0"), ("net", "s1-p3")):
        said = command("tc", "-j", "-n", f"ina.{name}.{node}", "qdisc", "show", "dev", interface)
        (queue,) = json.loads(said)
        assert queue["kind"] == "tbf"
        assert queue["options"]["rate"] == 400_000 // 8


@pytest.mark.parametrize("kind", EMULATED)
def test_tcp_crosses_the_switch_unharmed(kind: str, tmp_path: Path) -> None:
    """The kernel must not leave checksums or segments to a card that is not there."""
    need(kind)
    script, name = tmp_path / "stream.py", new_name()
    script.write_text(STREAM)
    out = tmp_path / name
    file = star(tmp_path, 2, link="bandwidth_mbit = 20")
    done = call(
        *("run", file, "--switch", kind, "--name", name, "--out", out, "--timeout-s", "120"),
        *("--", sys.executable, script),
    )
    assert done.returncode == 0, done.stderr
    assert (out / "job.h1.log").read_text() == (out / "job.h2.log").read_text()
    assert left(name) == {}


@pytest.mark.parametrize("kind", EMULATED)
def test_sums_are_exact_over_several_switches(kind: str, tmp_path: Path) -> None:
    """h1's contributions cross forwarding switches; on the soft switch some are lost there.

    There are two ways, and the results come back by the same one.
    """
    need(kind)
    name = new_name()
    file, worker = tmp_path / "diamond.toml", tmp_path / "worker.py"
    worker.write_text(ALL_REDUCE)
    file.write_text(
        'aggregator = "s4"\n[switches]\ns1 = {}\ns2 = {}\ns3 = {}\ns4 = {}\n'
        '[hosts]\nh1.ip = "10.0.0.1/24"\nh2.ip = "10.0.0.2/24"\n'
        '[[links]]\nends = ["h1", "s1"]\n[[links]]\nends = ["h2", "s4"]\n'
        '[[links]]\nends = ["s3", "s4"]\n[[links]]\nends = ["s1", "s2"]\n'
        '[[links]]\nends = ["s1", "s3"]\n[[links]]\nends = ["s2", "s4"]\n'
        + ("loss_rate = 0.05\n" if kind == "soft" else "")
    )
    topology = load_topology(file)
    assert topology.fabric.path("s4", "s1") == topology.fabric.path("s1", "s4")[::-1]
    out = tmp_path / name
    done = call(
        *("run", file, "--switch", kind, "--name", name, "--out", out, "--timeout-s", "120"),
        *("--", python(), worker),
    )
    assert done.returncode == 0, done.stderr
    assert left(name) == {}


def test_a_capture_has_what_passed_a_port(tmp_path: Path) -> None:
    need("soft")
    scapy = pytest.importorskip("scapy.all")
    name, worker = new_name(), tmp_path / "worker.py"
    worker.write_text(ALL_REDUCE)
    out = tmp_path / name
    done = call(
        *("run", star(tmp_path, 2), "--pcap", "--name", name, "--out", out),
        *("--", python(), worker),
    )
    assert done.returncode == 0, done.stderr
    assert "missed" not in (out / "capture.log").read_text()
    for number in (1, 2):
        frames = scapy.rdpcap(str(out / "pcap" / f"s1-p{number}.pcap"))
        here = f"10.0.0.{number}"
        sent = [f for f in frames if scapy.UDP in f and f[scapy.UDP].dport == UDP_PORT]
        got = [f for f in frames if scapy.UDP in f and f[scapy.UDP].sport == UDP_PORT]
        assert {f[scapy.IP].src for f in sent} == {here}
        assert {f[scapy.IP].dst for f in got} == {here}
        assert len(got) >= 3 * 20  # three sums of 5000 integers, 256 to a packet
        times = [float(f.time) for f in frames]
        # Two cores may queue what they have stamped in the other order.
        assert all(later > earlier - 1e-3 for earlier, later in pairwise(times))
    assert left(name) == {}
