"""The emitted dissector, run by tshark on a capture file, field by field against the codec."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.protocol.emit import ROOT
from ina.protocol.layout import PLACES
from tests.protocol.samples import sample_packets

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
        if isinstance(value, dict):
            for inner, texts in _fields(value).items():
                found.setdefault(inner, []).extend(texts)
        else:
            found.setdefault(name, []).extend(value if isinstance(value, list) else [value])
    return found


def test_every_field_and_value(tmp_path: Path) -> None:
    samples = sample_packets(40, seed=2)
    seen = dissect([payload for _, _, payload in samples], tmp_path)
    assert len(seen) == len(samples)
    for (header, values, _), fields in zip(samples, seen, strict=True):
        for place in PLACES:
            (text,) = fields[f"ina.{place.name}"]
            assert int(text, 0) == getattr(header, place.name), place.name
        assert [int(text) for text in fields.get("ina.value", [])] == values
        assert not any(name.startswith("ina.too_") for name in fields)


def test_bad_packets_are_marked_and_not_read_past_their_end(tmp_path: Path) -> None:
    whole = next(payload for header, _, payload in sample_packets(9, 3) if header.value_count == 3)
    short, cut, long, version = dissect(
        [whole[:23], whole[:-5], whole + b"\0", b"\x25" + whole[1:]], tmp_path
    )
    assert "ina.too_short" in short
    assert "ina.seq" not in short
    assert "ina.too_short" in cut
    assert len(cut["ina.value"]) == 1
    assert "ina.too_long" in long
    assert "ina.bad_version" in version
