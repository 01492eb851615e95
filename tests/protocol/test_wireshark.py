"""The emitted dissector, run by tshark on a capture file, field by field against the codec."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.cli.main import run
from ina.protocol.bth import Bth
from ina.protocol.codec import Header, encode
from ina.protocol.coding import values_per_word
from ina.protocol.emit import ROOT
from ina.protocol.layout import LAYOUT
from ina.protocol.packed import columns_of
from ina.protocol.roce import RoceFrame, encode_frame
from ina.protocol.spec import OWNER_BITS, Flag, Kind, Shape, ValueType
from tests.protocol.samples import sample_packets
from tests.worlds.virtual.exchange import JOB, one_round, random_exchange, shared_round
from tests.worlds.virtual.roce import IN_SENDS, in_ring, said_of_roce

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is missing: apt-get install tshark"
)


def dissect(payloads: list[bytes], folder: Path) -> list[dict[str, list[str]]]:
    """Runs tshark; returns every ina.* field of each packet, name -> values in order."""
    capture = folder / "packets.pcap"
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP(src="10.0.0.1")
    wrpcap(str(capture), [frame / UDP(sport=1024, dport=17760) / payload for payload in payloads])
    script = f"lua_script:{ROOT / 'tools/wireshark/ina.lua'}"
    command = ["tshark", "-n", "-r", str(capture), "-X", script, "-T", "json", "-J", "ina"]
    done = subprocess.run(
        [*command, "--no-duplicate-keys"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    return [
        _fields(packet["_source"]["layers"].get("ina", {})) for packet in json.loads(done.stdout)
    ]


def _fields(tree: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in tree.items() if isinstance(tree, dict) else ():
        for one in value if isinstance(value, list) else [value]:
            inside = _fields(one) if isinstance(one, dict) else {name: [one]}
            for inner, texts in inside.items():
                found.setdefault(inner, []).extend(texts)
    return found


def test_every_field_and_value(tmp_path: Path) -> None:
    samples = sample_packets(40, seed=2)
    seen = dissect([payload for _, _, payload in samples], tmp_path)
    assert len(seen) == len(samples)
    for (header, values, _), fields in zip(samples, seen, strict=True):
        for field in LAYOUT:
            (text,) = fields[f"ina.{field.name}"]
            assert int(text, 0) == getattr(header, field.name), field.name
        halves = [header.path >> OWNER_BITS, header.path % (1 << OWNER_BITS)]
        told = [int(fields[name][0], 16) for name in ("ina.whose", "ina.owner") if name in fields]
        assert told == ([] if header.shape == Shape.SUM else halves)
        assert [int(text) for text in fields.get("ina.value", [])] == values
        bits = 32 // values_per_word(header.value_type)
        columns = columns_of(np.array(values, np.int32), bits).T.reshape(-1).tolist()
        shown = [int(text) for text in fields.get("ina.column", [])]
        assert shown == ([] if bits == 32 else columns)
        assert not any(name.startswith("ina.too_") for name in fields)


def test_bad_packets_are_marked_and_not_read_past_their_end(tmp_path: Path) -> None:
    whole = next(payload for header, _, payload in sample_packets(9, 3) if header.value_count == 3)
    short, cut, long, version = dissect(
        [whole[:27], whole[:-5], whole + b"\0", b"\x15" + whole[1:]], tmp_path
    )
    assert "ina.too_short" in short
    assert "ina.seq" not in short
    assert "ina.too_short" in cut
    assert len(cut["ina.value"]) == 1
    assert "ina.too_long" in long
    assert "ina.bad_version" in version


def test_a_super_frame_holds_many_packets(tmp_path: Path) -> None:
    """What the sender's kernel left to cut (UDP_SEGMENT), as captured on lo."""
    payloads = [encode(Header(seq=i, value_count=2), [i, -i]) for i in range(3)]
    payloads.append(encode(Header(seq=3)))
    whole, broken = dissect([b"".join(payloads), b"".join(payloads) + b"\0"], tmp_path)
    assert not any(name.startswith("ina.too_") for name in whole)
    info = tshark(tmp_path / "packets.pcap", "-T", "fields", "-e", "_ws.col.Info").splitlines()
    assert [text.split(",")[0].split()[-1] for text in info[0].split("; ")] == list("0123")
    assert "ina.too_long" in broken
    assert len(info[1].split("; ")) == 1


def test_sends_of_rocev2_hold_packets(tmp_path: Path) -> None:
    """Also uncut ones, and those of a soft switch's port; of others nothing is taken."""
    payloads = [encode(Header(seq=i, value_count=2), [i, -i]) for i in range(2)]
    sends = [encode_frame(RoceFrame(Bth(0x24, 5, 6), it, 1, 2, 3)) for it in payloads]
    inside = b"".join(frame[42:] for frame in sends)
    around = Ether() / IP(src="10.0.0.1")
    others = encode_frame(RoceFrame(Bth(0x24, 5, 6), payloads[0] + bytes(4), 1, 2, 3))
    immediate = encode_frame(RoceFrame(Bth(0x25, 5, 6), bytes(4) + payloads[0], 1, 2, 3))
    capture = tmp_path / "sends.pcap"
    frames = [sends[1], bytes(around / UDP(sport=9, dport=4791) / inside)]
    frames += [bytes(around / UDP(sport=9, dport=17760) / inside), others, immediate]
    wrpcap(str(capture), [Ether(frame) for frame in frames])
    asked = ("-T", "fields", "-e", "_ws.col.Protocol", "-e", "ina.seq", "-e", "ina.value")
    lines = [line.split("\t") for line in tshark(capture, *asked).splitlines()]
    both = ["INA", "0,1", "0,0,1,-1"]
    assert lines == [["INA", "1", "1,-1"], both, both, ["RRoCE", "", ""], ["RRoCE", "", ""]]


def tshark(capture: Path, *options: str) -> str:
    script = f"lua_script:{ROOT / 'tools/wireshark/ina.lua'}"
    done = subprocess.run(
        ["tshark", "-n", "-r", str(capture), "-X", script, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Lua" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["exchange.pcap", "exchange.pcapng", "sends.pcap", "ring.pcap"])
def test_a_whole_exchange_as_ina_pcap_reads_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A round with a resend, a replay, a late copy: two decoders, field by field."""
    exchange = random_exchange(seed=7)
    if name in ("sends.pcap", "ring.pcap"):
        said_of_roce(exchange, IN_SENDS if name == "sends.pcap" else in_ring(exchange.workers))
    capture = tmp_path / name
    exchange.write_pcapng(capture) if name.endswith("ng") else exchange.write(capture)
    fields = [field.name for field in LAYOUT]
    chosen = [word for field in fields for word in ("-e", f"ina.{field}")]
    lines = tshark(capture, "-T", "fields", "-E", "separator=,", *chosen).splitlines()
    assert run(["pcap", "decode", "--json", "--values", str(capture)]) == 0
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == len(documents) == len(exchange.frames)
    for line, document in zip(lines, documents, strict=True):
        read = dict(zip(fields, (int(text, 0) for text in line.split(",")), strict=True))
        document["kind"] = Kind[document["kind"]]
        document["flags"] = sum(Flag[flag] for flag in document["flags"])
        document["shape"] = Shape[document["shape"]]
        document["value_type"] = ValueType[document["value_type"]]
        assert read == {field: document[field] for field in fields}


def test_a_result_that_workers_share_dissects(tmp_path: Path) -> None:
    """It comes from the switch's port, to another than a worker's."""
    capture = shared_round().write(tmp_path / "shared.pcap")
    asked = ("-T", "fields", "-e", "udp.srcport", "-e", "udp.dstport", "-e", "_ws.col.Info")
    told = tshark(capture, "-Y", "ina.worker == 255", *asked).splitlines()
    assert told == ["17760\t17761\tresult job 9 worker 255 seq 1, 2 values"]


def test_a_slot_is_found_with_a_display_filter_and_told_in_the_info_column(tmp_path: Path) -> None:
    capture = one_round().write(tmp_path / "round.pcap")
    shown = tshark(
        *(capture, "-Y", f"ina.job == {JOB} && ina.slot == 1 && ina.seq == 1"),
        *("-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"),
    )
    sent = "INA\t{} job 9 worker {} seq 1, 2 values"
    story = [("contribution", 0), ("contribution", 1), ("contribution", 0), ("contribution", 2)]
    story += [("result", 0), ("result", 1), ("result", 2), ("contribution", 1), ("result", 1)]
    story += [("contribution", 2)]
    assert shown.splitlines() == [sent.format(kind, worker) for kind, worker in story]
    resends = tshark(capture, "-Y", "ina.flags.resend == 1", "-T", "fields", "-e", "ina.worker")
    assert resends.split() == ["0", "1"]
