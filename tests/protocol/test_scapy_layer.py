"""The emitted scapy layer and the codec say the same of every packet."""

from __future__ import annotations

from typing import Any

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.protocol.codec import Header, decode, encode
from ina.protocol.emit.scapy_layer import scapy_name
from ina.protocol.generated.scapy_layer import INA
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT, UDP_PORT, Kind
from tests.protocol.samples import sample_packets

SAMPLES = sample_packets(200, seed=1)


def test_scapy_reads_what_the_codec_wrote() -> None:
    for header, values, payload in SAMPLES:
        packet = INA(payload)
        read = {field.name: int(getattr(packet, scapy_name(field.name))) for field in LAYOUT}
        assert read == {field.name: int(getattr(header, field.name)) for field in LAYOUT}
        assert packet.values == values


def test_the_codec_reads_what_scapy_wrote() -> None:
    for header, values, payload in SAMPLES:
        fields: dict[str, Any] = {
            scapy_name(field.name): int(getattr(header, field.name)) for field in LAYOUT
        }
        del fields["value_count"]  # scapy counts
        wire = bytes(INA(**fields, values=values))
        assert wire == payload
        assert decode(wire)[0] == header


def test_a_result_that_workers_share_dissects() -> None:
    payload = encode(Header(kind=Kind.RESULT, worker=ALL_WORKERS, value_count=2), [7, -7])
    sent = Ether(dst="01:00:5e:00:00:01") / IP(src="10.0.0.254", dst="239.0.0.1")
    frame = Ether(bytes(sent / UDP(sport=UDP_PORT, dport=RESULTS_UDP_PORT) / payload))
    assert (frame[INA].kind, frame[INA].worker) == (Kind.RESULT, 255)
    assert frame[INA].values == [7, -7]


def test_the_layer_is_bound_to_the_port_both_ways() -> None:
    payload = SAMPLES[0][2]
    for source, destination in ((1024, 17760), (17760, 1024), (17760, 17761)):
        frame = bytes(Ether() / IP() / UDP(sport=source, dport=destination) / payload)
        assert INA in Ether(frame)
