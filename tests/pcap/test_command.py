"""`ina pcap`: what it prints, for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ina.cli.main import run
from ina.protocol.codec import Header, encode
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import OWNER_BITS, Shape, ValueType, path_of
from tests.worlds.virtual.exchange import JOB, Exchange, frame, one_round, shared_round


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    exchange = one_round()
    exchange.add(frame("10.0.0.1", 53, "10.0.0.2", 53, b"other"))
    exchange.add(frame("10.0.0.1", 1024, "10.0.0.254", 17760, b"\x11 too short", tos=3))
    return exchange.write(tmp_path / "a.pcap")


def decode(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[list[str], str]:
    assert run(["pcap", "decode", *map(str, args)]) == 0
    printed = capsys.readouterr()
    return printed.out.splitlines(), printed.err


def test_a_line_a_packet(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines, said = decode(capsys, capture)
    assert len(lines) == 1 + 12
    assert lines[3].split()[:8] == [
        *("3", "0.000250", "10.0.0.1:1024", "10.0.0.254:17760"),
        *("contribution", "0", "9", "5"),
    ]
    assert "resend" in lines[3]
    assert "contributors 0x7" in lines[5]
    assert lines[-1].endswith("shorter than the 32-byte header; CE")
    assert said == "12 packets of ina, 1 of them malformed; 1 frames of other traffic\n"


def test_a_document_a_packet(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [json.loads(line) for line in decode(capsys, capture, "--json", "--values")[0]]
    assert len(documents) == 12
    assert {field.name for field in LAYOUT} <= set(documents[0])
    resend = documents[2]
    assert (resend["kind"], resend["flags"], resend["seq"]) == ("CONTRIBUTION", ["RESEND"], 1)
    assert documents[4]["values"] == [6, -3]
    assert "shorter" in documents[-1]["problem"]


def test_words_with_several_values_are_unpacked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [-3 + (100 << 8) - (2 << 16), 127]
    header = Header(value_type=ValueType.FLOAT16_IN_8, value_count=2)
    exchange = Exchange(1)
    exchange.add(frame("10.0.0.1", 1024, "10.0.0.254", 17760, encode(header, words)))
    file = exchange.write(tmp_path / "packed.pcap")
    columns = [[-3, 127], [100, 0], [-2, 0], [0, 0]]
    lines, _ = decode(capsys, file, "--values")
    assert lines[1].endswith(f"columns {columns}")
    ((document,), _) = decode(capsys, file, "--json", "--values")
    assert json.loads(document)["columns"] == columns
    assert json.loads(document)["value_type"] == "FLOAT16_IN_8"


@pytest.mark.parametrize(
    ("options", "count"),
    [(["--kind", "result"], 4), (["--worker", "2"], 3), (["--seq", "5"], 1), (["--job", "1"], 0),
     (["--slot", "1", "--job", "9"], 11)],
)  # fmt: skip
def test_filters(
    options: list[str], count: int, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(decode(capsys, capture, "--json", *options)[0]) == count


def test_several_files_are_merged_by_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange = one_round()
    frames = exchange.frames
    exchange.frames = frames[::2]
    even = exchange.write(tmp_path / "even.pcap")
    exchange.frames = frames[1::2]
    odd = exchange.write_pcapng(tmp_path / "odd.pcapng")
    documents = [json.loads(line) for line in decode(capsys, even, odd, "--json")[0]]
    assert [d["source"] for d in documents] == (["even.pcap", "odd.pcapng"] * 6)[:11]
    times = [d["time_ns"] for d in documents]
    assert times == sorted(times)
    assert "odd.pcapng" in decode(capsys, even, odd)[0][2]


def follow(capsys: pytest.CaptureFixture[str], *args: object) -> str:
    assert run(["pcap", "follow", *map(str, args)]) == 0
    return capsys.readouterr().out


def test_the_life_of_a_slot(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = follow(capsys, capture, "--job", JOB, "--slot", 1)
    assert "job 9 slot 1; workers 0, 1, 2" in told
    for words in ("takes the slot", "as the last", "asks again", "stale: dropped", "(resend)"):
        assert words in told
    assert "open, missing 1, 2" in told
    life: Any = json.loads(follow(capsys, capture, "--job", JOB, "--slot", 1, "--json"))[
        "switches"
    ][0]
    assert [r["complete"] for r in life["rounds"]] == [True, False]
    assert life["rounds"][1]["missing"] == [1, 2]
    assert len(life["events"]) == 11
    assert "no packet of it" in follow(capsys, capture, "--job", 1, "--slot", 1)


def test_results_that_workers_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = shared_round().write(tmp_path / "shared.pcap")
    lines = decode(capsys, capture)[0]
    assert lines[6].split()[2:6] == ["10.0.0.254:17760", "239.1.2.3:17761", "result", "all"]
    documents = [json.loads(line) for line in decode(capsys, capture, "--json")[0]]
    assert (documents[5]["worker"], documents[5]["to"]) == (255, "239.1.2.3:17761")
    of_worker_0 = decode(capsys, capture, "--json", "--worker", "0")[0]
    assert [json.loads(line)["kind"] for line in of_worker_0] == ["CONTRIBUTION", "RESULT"]
    (round_line,) = follow(capsys, capture, "--job", JOB, "--slot", 1).splitlines()[-1:]
    assert "all, alone 1, 2" in round_line
    assert "no result to" not in round_line
    life: Any = json.loads(follow(capsys, capture, "--job", JOB, "--slot", 1, "--json"))[
        "switches"
    ][0]
    (round_,) = life["rounds"]
    assert round_["results"] == {"0": 1, "1": 1, "2": 1}
    assert round_["results_to_all"] == 1


def test_a_cut_off_file_is_told(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture.write_bytes(capture.read_bytes()[:-3])
    assert "ends in the middle of frame 13" in decode(capsys, capture)[1]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["decode", "/nonexistent.pcap"], "/nonexistent.pcap: No such file"),
        (["decode", __file__], "neither pcap nor pcapng"),
        (["decode", "a", "--kind", "song"], "--kind song: not one of contribution,"),
        (["decode", "a", "--udp-port", "0"], "--udp-port 0: not in 1..65535"),
        (["follow", "a", "--job", "1", "--slot", "1", "--workers", "33"], "not in 1..32"),
        (["follow", "a", "--slot", "1"], "--job"),
    ],
)
def test_wrong_input_is_one_line(
    args: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["pcap", *args]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_whose_packet_it_is_in_a_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exchange = one_round()
    for header in (
        Header(job=9, worker=3, path=path_of([1, 3], [2, 2])),
        Header(job=9, worker=1, level=1, path=path_of([1, 0, 2, 0], [2, 5, 5, 5])),
    ):
        exchange.add(frame("10.0.0.1", 1024, "10.0.0.254", 17760, encode(header)))
    lines, _ = decode(capsys, exchange.write(tmp_path / "a.pcap"))
    assert not [line for line in lines[:-2] if "path" in line or "level" in line]
    assert lines[-2].endswith("path 0x700")
    assert lines[-1].endswith("from level 1; path 0x402")


def test_whose_chunk_it_is_where_it_is_somebody_s(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exchange, mine, yours = one_round(), path_of([1], [2]), path_of([2], [2])
    for header in (
        Header(job=9, worker=1, shape=Shape.SCATTER, path=mine | yours >> OWNER_BITS),
        Header(job=9, worker=1, shape=7, path=mine | yours >> OWNER_BITS),
    ):
        exchange.add(frame("10.0.0.1", 1024, "10.0.0.254", 17760, encode(header)))
    capture = exchange.write(tmp_path / "a.pcap")
    lines, _ = decode(capsys, capture)
    assert lines[-2].endswith("scatter; path 0x400; owner 0x800")
    assert lines[-1].endswith("shape 7; path 0x400; owner 0x800")
    documents = [json.loads(line) for line in decode(capsys, capture, "--json")[0]]
    told = [{name: it[name] for name in ("shape", "path", "whose", "owner")} for it in documents]
    assert told[-2] == {"shape": "SCATTER", "path": 0x400800, "whose": 0x400000, "owner": 0x800}
    assert told[-1] == told[-2] | {"shape": 7}
    assert (told[0]["shape"], told[0]["owner"]) == ("SUM", None)
