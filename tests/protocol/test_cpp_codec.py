"""The emitted C++ codec, compiled and fed the same packets as the Python codec."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ina.protocol.codec import decode
from ina.protocol.emit import ROOT
from ina.protocol.errors import (
    OverlongPacketError,
    TruncatedPacketError,
    UnknownKindError,
    UnknownVersionError,
)
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import HEADER_BYTES
from tests.protocol.samples import sample_packets

COMPILER = shutil.which("c++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="c++ is missing: apt-get install g++")

# Reads packets as hex lines. Prints the verdict, the fields, and the header as stored again. Each
# packet is copied to a heap block of its exact size, so that the sanitizer sees a read beyond it.
_MAIN = """
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include "common/ina_wire.hpp"
int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        const std::size_t bytes = line.size() / 2;
        std::unique_ptr<std::uint8_t[]> data(new std::uint8_t[bytes]);
        for (std::size_t i = 0; i < bytes; ++i)
            data[i] = static_cast<std::uint8_t>(std::stoi(line.substr(2 * i, 2), nullptr, 16));
        ina::wire::Header h;
        const auto verdict = ina::wire::parse_packet(data.get(), bytes, h);
        std::printf("%d", static_cast<int>(verdict));
        if (verdict == ina::wire::Parse::kOk) {
            PRINT_FIELDS
            std::uint8_t again[ina::wire::kHeaderBytes] = {};
            ina::wire::store_header(again, h);
            std::printf(" ");
            for (const std::uint8_t byte : again) std::printf("%02x", byte);
        }
        std::printf("\\n");
    }
}
"""
_VERDICTS = {
    TruncatedPacketError: "1",
    OverlongPacketError: "2",
    UnknownVersionError: "3",
    UnknownKindError: "4",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    prints = "".join(
        f'std::printf(" %lu", static_cast<unsigned long>(h.{p.name}));' for p in LAYOUT
    )
    (folder / "main.cpp").write_text(_MAIN.replace("PRINT_FIELDS", prints))
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=address"]
    command = [str(COMPILER), *options, f"-I{ROOT / 'native'}", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=folder, check=True, timeout=120)
    return folder / "main"


def run(program: Path, payloads: list[bytes]) -> list[str]:
    text = "".join(f"{payload.hex()}\n" for payload in payloads)
    done = subprocess.run(
        [program], input=text, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


def test_fields_and_bytes(program: Path) -> None:
    samples = sample_packets(200, seed=4)
    lines = run(program, [payload for _, _, payload in samples])
    for (header, _, payload), line in zip(samples, lines, strict=True):
        verdict, *numbers, again = line.split()
        assert verdict == "0"
        assert [int(text) for text in numbers] == [getattr(header, p.name) for p in LAYOUT]
        assert again == payload[:HEADER_BYTES].hex()


def test_the_same_packets_are_refused_for_the_same_reason(program: Path) -> None:
    whole = sample_packets(1, seed=5)[0][2]
    bad = [whole[:cut] for cut in range(len(whole))]
    bad += [whole + b"\0", b"\x11" + whole[1:], b"\x20" + whole[1:], b"\x26" + whole[1:]]
    for payload, line in zip(bad, run(program, bad), strict=True):
        with pytest.raises(tuple(_VERDICTS)) as refusal:
            decode(payload)
        assert line == _VERDICTS[refusal.type]
