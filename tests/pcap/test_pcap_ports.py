"""What the soft switch's pcap ports read and write is a capture of the job."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

from finsy.proto import p4r
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.cli.pcap.read import CaptureFiles
from ina.pcap import follow
from ina.protocol.codec import Header, encode
from ina.protocol.spec import UDP_PORT, Kind
from ina.switch.ports import PcapPort
from ina.switch.server import SoftSwitch
from ina.testing.frames import SWITCH_IPV4, Frame
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.p4runtime import Client
from tests.worlds.processes.pool import PORT, SLOTS, PoolJob, local_workers, pool_config

VALUES, WORKERS = 64, 3
JOB, EPOCH = 1, 101  # PoolJob's first
BEGIN_S = 1_700_000_000.0


def test_in_and_out_files_tell_the_story(tmp_path: Path) -> None:
    read, written = tmp_path / "in.pcap", tmp_path / "out.pcap"
    workers = local_workers(WORKERS)
    story = [(0, 1), (1, 1), (0, 1), (2, 1), (1, 1), (0, 1 + SLOTS), (2, 1)]
    config = p4r.SetForwardingPipelineConfigRequest
    frames = []
    for at, (worker, seq) in enumerate(story):
        header = Header(
            job=JOB,
            epoch=EPOCH,
            worker=worker,
            slot=seq % SLOTS,
            value_count=VALUES,
            seq=seq,
            contributors=1 << worker,
        )
        payload = encode(header, [worker + 1] * VALUES)
        port = workers[worker].socket.getsockname()[1]
        source = int(IPv4Address("127.0.0.1"))
        frames.append(Ether(Frame(payload, src_ipv4=source, src_udp=port).build()))
        frames[-1].time = BEGIN_S + at * 0.001
    wrpcap(str(read), frames)
    with SoftSwitch([PcapPort(PORT, read, written)]) as switch:
        with Client(switch.grpc_addr) as client:
            client.become_primary()
            client.set_config(pool_config(VALUES), config.VERIFY_AND_SAVE)
            installed = PoolJob(
                ("", 0), client, workers, VALUES, JOB, own=str(IPv4Address(SWITCH_IPV4))
            )
            client.set_config(None, config.COMMIT)
        wait_until(lambda: switch.stats().ports[PORT].finished, "the file is read")
    installed.close()
    packets = list(CaptureFiles([read, written], [UDP_PORT]).packets())
    (life,) = follow(packets, JOB, 1)
    asked = [e.what for e in life.events if e.header.kind is Kind.CONTRIBUTION]
    assert [what.split(":")[0] for what in asked] == [
        "takes the slot",
        "joins",
        "is in already",
        "joins, as the last",
        "asks again",
        "takes the slot",
        "stale",
    ]
    # Results bear the time of their sending, which is long after the times in the file.
    answers = [e.packet.frame.source for e in life.events if e.header.kind is Kind.RESULT]
    assert answers == ["out.pcap"] * 4
    first, second = life.rounds
    assert dict(first.results) == {0: 1, 1: 2, 2: 1}
    assert (first.without_result, second.missing) == ([], [1, 2])
