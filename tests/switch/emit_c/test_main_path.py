"""The longest path of the parser has code of its own: it and all detours do the same."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from ina.bench.pipeline import install
from ina.bench.pipeline_frames import CHUNKS, EPOCH, FRAME_HEADER_BYTES, Batch
from ina.p4 import compiled, names
from ina.protocol.spec import HEADER_BYTES, PARENT, UDP_PORT, Flag, Kind
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import load_program
from ina.switch.match import Exact
from ina.switch.passes.plan import make_plan
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import Load


def sent(pipeline: Pipeline, packet: str) -> list[str]:
    return [out.hex() for _, out in pipeline.process(0, bytes.fromhex(packet))]


def test_there_is_a_main_path(load: Load) -> None:
    pipeline = load("main_path")
    assert pipeline.generated is not None
    source = pipeline.generated.read_text()
    assert "p->length < 10" in source.partition("bool parse_main")[2].partition("}")[0]


def test_values_are_read_where_they_lie(load: Load) -> None:
    """Those of a packet in two parts, too, where the second part is the values (test_robustness.py
    compares what comes of it); in other programs and other parts, the packet is put together."""
    pool = emit_c(make_plan(load_program(compiled(64).bmv2_json)), "test")
    assert f"(at->length == 74 && length == {74 + 4 * 64})" in pool
    assert pool.partition("bool process_main")[2].count("_wire = in->tail;") == 1
    source = load("main_path").generated
    assert source is not None
    assert "const bool fits = !at->tail;" in source.read_text()


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


def test_main_path_and_general_path_agree(cache_dir: Path) -> None:
    """The pool program with and without a main path: same packets, counters and registers."""
    workers = 4
    build = compiled(64).bmv2_json
    fast = default_target(cache_dir).load(build)
    plain = default_target(cache_dir).load(build, main_path=False)
    assert fast.generated is not None
    assert plain.generated is not None
    assert "ingress_main" in fast.generated.read_text()
    assert "early->PoolIngress_admission_members = " in fast.generated.read_text()
    assert "ingress_main" not in plain.generated.read_text()
    frames = mixed_frames(4000, workers)
    try:
        for pipeline in (fast, plain):
            install(pipeline, workers)
            install_inner(pipeline, workers)
        for start in range(0, len(frames), 100):
            some = frames[start : start + 100]
            assert fast.process_batch(some) == plain.process_batch(some), f"from frame {start}"
        for register in fast.program.registers:
            for index in range(8):
                got = fast.register(register.name, index)
                assert got == plain.register(register.name, index), (register.name, index)
        for counter in fast.program.counters:
            for index in range(2):
                counted = fast.counter(counter.name, index)
                assert counted == plain.counter(counter.name, index), counter.name
        for told in (names.JOB_RESULTS, names.JOB_REPLAYS, names.JOB_PASSED_DOWN):
            assert fast.counter(told, INNER_JOB - 1)[0] > 0, told
    finally:
        fast.close()
        plain.close()


SCATTER_OR_GATHER, GATHER = 0b0110, 0b0100
INNER_JOB, PARENT_PORT, PARENT_ADDR, PATH_MASK = 2, 30, 0x0A0000FE, 31


def install_inner(pipeline: Pipeline, workers: int) -> None:
    """A job of the same workers for which the switch has a parent."""
    first_slot, group = CHUNKS, 2
    pipeline.insert(
        names.JOBS, [Exact(INNER_JOB), Exact(EPOCH)], names.ADMIT_INNER_JOB,
        [EPOCH, first_slot, CHUNKS, (1 << workers) - 1, group, INNER_JOB - 1, PARENT_PORT, 3, 8, 1,
         PATH_MASK],
    )  # fmt: skip
    for worker in range(workers):
        addr = 0x0A000001 + worker
        key = [worker + 1, addr, 4000 + worker, INNER_JOB, EPOCH, worker, Kind.CONTRIBUTION]
        pipeline.insert(names.MEMBERS, [Exact(k) for k in key], names.ADMIT_MEMBER, [1 << worker])
        way = [Exact(INNER_JOB), Exact(worker)]
        pipeline.insert(names.CHILDREN, way, names.TO_CHILD, [worker + 1, worker])
    key = [PARENT_PORT, PARENT_ADDR, UDP_PORT, INNER_JOB, EPOCH, 3, Kind.RESULT]
    pipeline.insert(names.MEMBERS, [Exact(k) for k in key], names.ADMIT_PARENT, [])
    for receiver in (*range(workers), PARENT):
        to = [0x020000000001 + receiver, 0x0A000001 + receiver, 4000 + receiver]
        to += [receiver & 3, 3, SCATTER_OR_GATHER, GATHER]
        pipeline.insert(names.RECEIVERS, [Exact(INNER_JOB), Exact(receiver)], names.ADDRESS, to)
    pipeline.set_multicast(group, [(worker + 1, worker + 1) for worker in range(workers)])


def to_inner(frame: bytearray, rng: random.Random) -> int | None:
    """Makes it one of the job with a parent: in some cases the parent's result, and its port."""
    at = FRAME_HEADER_BYTES
    frame[at + 2 : at + 4] = INNER_JOB.to_bytes(2, "big")
    frame[at + 28 : at + 31] = rng.randrange(64).to_bytes(3, "big")
    if rng.random() < 0.7:
        return None
    frame[at] = frame[at] & 0xF0 | Kind.RESULT
    frame[at + 1] = rng.choice([0, Flag.REPLAY, Flag.REPLAY | Flag.ECN])
    frame[at + 6] = 3
    frame[26:30] = PARENT_ADDR.to_bytes(4, "big")
    frame[34:36] = UDP_PORT.to_bytes(2, "big")
    sum_up(frame)
    return PARENT_PORT


def shape_of(frame: bytearray, rng: random.Random) -> None:
    """Makes the shape of its round another, the same for all of it; some have no values."""
    at = FRAME_HEADER_BYTES
    shape = int.from_bytes(frame[at + 12 : at + 16], "big") % 3
    frame[at + 7] = frame[at + 7] & 0xF0 | shape
    if shape == 0 or rng.random() < 0.3:
        return
    del frame[at + HEADER_BYTES :]
    frame[at + 10 : at + 12] = (frame[at + 10] & 0xF0).to_bytes(1, "big") + b"\0"
    frame[16:18] = (len(frame) - 14).to_bytes(2, "big")
    frame[38:40] = (len(frame) - 34).to_bytes(2, "big")
    sum_up(frame)


def sum_up(frame: bytearray) -> None:
    """Its IP header anew."""
    frame[24:26] = bytes(2)
    words = sum(int.from_bytes(frame[i : i + 2], "big") for i in range(14, 34, 2))
    words = (words & 0xFFFF) + (words >> 16)
    frame[24:26] = (0xFFFF - ((words & 0xFFFF) + (words >> 16))).to_bytes(2, "big")


def mixed_frames(count: int, workers: int) -> list[tuple[int, bytes]]:
    """Contributions in any order, repeated, stale, without values, damaged, cut, and other; to both
    jobs, and the parent's results for one of them."""
    rng = random.Random(3)
    batch = Batch(64, workers, np.random.default_rng(3))
    frames = []
    for number in range(count):
        if number % 50 == 0:
            batch.set_round(rng.choice([number // 50, max(number // 50 - 1, 0)]))
        worker = rng.randrange(workers)
        frame, port = bytearray(batch.frames[rng.randrange(8), worker].tobytes()), worker + 1
        if rng.random() < 0.5:
            port = to_inner(frame, rng) or port
        if rng.random() < 0.7:
            shape_of(frame, rng)
        if rng.random() < 0.2:
            for _ in range(rng.randrange(1, 4)):
                frame[rng.randrange(70)] = rng.randrange(256)
        if rng.random() < 0.1:
            frame = frame[: rng.randrange(len(frame) + 1)]
        frames.append((port, bytes(frame)))
    return frames
