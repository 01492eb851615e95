"""The emitted scapy layer and the codec say the same of every packet."""

from __future__ import annotations

from typing import Any

import pytest
from scapy.contrib.roce import BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from ina.protocol.bth import RC_SENDS, UC_SENDS, Bth, Opcode
from ina.protocol.codec import Header, decode, encode
from ina.protocol.emit.scapy_layer import scapy_name
from ina.protocol.generated.scapy_layer import INA
from ina.protocol.layout import LAYOUT
from ina.protocol.roce import RoceFrame, decode_frame, encode_frame
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


@pytest.mark.parametrize("opcode", [*UC_SENDS, *RC_SENDS])
def test_the_layer_is_in_sends_of_rocev2(opcode: Opcode) -> None:
    for header, values, payload in SAMPLES[:20]:
        frame = Ether(encode_frame(RoceFrame(Bth(opcode, 5, 6), payload, 1, 2, 3)))
        assert (frame[INA].seq, frame[INA].values) == (header.seq, values)
        assert bytes(frame[INA]) == payload


def test_what_others_send_is_left_as_it_is() -> None:
    for payload in (b"\x11" * 40, b""):
        frame = Ether(encode_frame(RoceFrame(Bth(Opcode.RC_SEND_ONLY, 5, 6), payload, 1, 2, 3)))
        assert BTH in frame
        assert INA not in frame


def test_scapy_makes_packets_of_mode_roce() -> None:
    """A SEND ONLY where nothing else is said, and its ICRC."""
    around = Ether() / IP(src="10.0.0.1", dst="10.0.0.254") / UDP(sport=0xC001, chksum=0)
    frame = decode_frame(bytes(around / BTH(dqpn=5, psn=6) / INA(seq=8, values=[7, -7])))
    assert frame.bth.opcode == Opcode.UC_SEND_ONLY
    header, values = decode(frame.payload)
    assert (header.seq, values.tolist()) == (8, [7, -7])
