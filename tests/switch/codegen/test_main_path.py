"""The longest path of the parser has code of its own: it and all detours do the same."""

from __future__ import annotations

import pytest

from ina.switch.pipeline import Pipeline
from tests.switch.codegen.conftest import Load


def sent(pipeline: Pipeline, packet: str) -> list[str]:
    return [out.hex() for _, out in pipeline.process(0, bytes.fromhex(packet))]


def test_there_is_a_main_path(load: Load) -> None:
    pipeline = load("main_path")
    assert pipeline.c_source is not None
    source = pipeline.c_source.read_text()
    assert "p->length < 10" in source.partition("bool parse_main")[2].partition("}")[0]


@pytest.mark.parametrize(
    ("packet", "out"),
    [
        # outer: kept 101, mark, also_kept 1010; inner: kept abc, low, number, port
        ("aa00 0001 abc1 000005 07 99", "ba00 0001 abc2 000005 07 99"),
        ("aa00 0001 abcf 000005 07", "ba00 0001 abc0 000005 07"),  # low wraps, kept does not care
        ("4a00 0001 0000 000000 00", "5a00 0001 0001 000000 00"),
        ("aa01 0001 abc1 000005 07 99", "ba01 0001 99"),  # inner made invalid
        ("aa02 0001 abc1 000005 07 99", "abc2 000005 07 99"),  # outer made invalid
        ("aa00 0001 abc1 000005", "ba00 0001 abc1 000005"),  # a byte too short for inner
        ("aa00 0002 abc1", "ba00 0002 abc1"),  # another kind: no inner
        ("aa00 01f0 00ff 99", "ba00 01f0 ff00 99"),  # other
        ("aa03 0001 abc1 000005 07", "ba03 0001 abc2 000005 07"),
        ("aa03 0001 abc1 000005 00", ""),
        ("aa03 0002", ""),  # port of an invalid header is 0
    ],
)
def test_paths(load: Load, packet: str, out: str) -> None:
    expected = [out.replace(" ", "")] if out else []
    assert sent(load("main_path"), packet) == expected


def test_copies_start_from_what_ingress_left(load: Load) -> None:
    pipeline = load("main_path")
    pipeline.set_multicast(1, [(2, 1), (3, 2), (4, 4)])
    assert sent(pipeline, "aa04 0001 abc1 000005 07") == [
        f"ba040001abc2{5 + rid:06x}07" for rid in (1, 2, 4)
    ]
    assert sent(pipeline, "aa04 01f0 00ff 99") == ["ba0401f0ff0099"] * 3
