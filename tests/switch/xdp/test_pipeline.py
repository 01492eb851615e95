"""Programs in the kernel: their tables, counters and registers, and what is refused."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.errors import InaError
from ina.p4 import compiled
from ina.switch.errors import (
    CompilerMissingError,
    EntryExistsError,
    EntryNotFoundError,
    InvalidEntryError,
    TableFullError,
    UnsupportedProgramError,
)
from ina.switch.match import Exact, Lpm
from ina.switch.pipeline import Pipeline
from ina.switch.targets import xdp_target
from ina.switch.xdp import libbpf
from ina.switch.xdp.compile import find_clang
from ina.switch.xdp.libbpf import Object, RefusedError, XdpError
from ina.switch.xdp.pipeline import XdpPipeline
from ina.testing.devices import open_device
from ina.testing.soft_device import cannot_run_xdp
from tests.switch.emit_c.conftest import PROGRAMS
from tests.switch.ir.small import PORTS, field, number, op, small_program

AGO_US = 10 * 10**6  # less than the machine may be up for
FORWARD = "PoolIngress.forwarding.forward"
DMAC, LPM = "PoolIngress.forwarding.dmac", "PoolIngress.forwarding.ipv4_lpm"

needs_kernel = pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pipeline]:
    """In the kernel."""
    with xdp_target().load(compiled(64).bmv2_json) as pipeline:
        yield pipeline


@needs_kernel
@pytest.mark.parametrize("times", [0, 1])
def test_its_clock_begins_when_it_is_switched_on(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when the machine is: mode shared takes slots that nobody has used for old."""
    began_ns = time.monotonic_ns() - times * AGO_US * 1000
    monkeypatch.setattr(f"{XdpPipeline.__module__}.time.monotonic_ns", lambda: began_ns)
    now = field("standard_metadata", "ingress_global_timestamp")
    program = small_program(
        op("register_write", {"type": "register_array", "value": "seen"}, number(0), now),
        standard=PORTS | {"ingress_global_timestamp": 48},
        register_arrays=[{"name": "seen", "id": 0, "size": 1, "bitwidth": 48}],
    )
    with xdp_target(tmp_path).load(json.dumps(program)) as pipeline:
        pipeline.process(1, bytes(60))
        assert pipeline.register("seen", 0) // AGO_US == times


@needs_kernel
def test_packets_of_1024_values_are_refused() -> None:
    with pytest.raises(UnsupportedProgramError, match="headers of 4"):
        xdp_target().load(compiled(1024).bmv2_json)


@needs_kernel
def test_frames_that_no_interface_has_are_dropped(pool: Pipeline) -> None:
    frame = bytes(6) + bytes(6) + b"\x88\xb5"
    pool.set_default(DMAC, FORWARD, [7])
    try:
        assert pool.process(1, frame) == [(7, frame)]
        assert pool.process(1, frame[:13]) == []
        assert pool.process(1, frame + bytes(3520 - 14)) == [(7, frame + bytes(3520 - 14))]
        assert pool.process(1, frame + bytes(3521 - 14)) == []
    finally:
        pool.set_default(DMAC, None)
    assert pool.process(1, frame) == []


@needs_kernel
def test_entries_come_change_and_go(pool: Pipeline) -> None:
    mac = 0x02AA0000000B
    frame = mac.to_bytes(6, "big") + bytes(6) + b"\x88\xb5payload"
    handle = pool.insert(DMAC, [Exact(mac)], FORWARD, [2])
    with pytest.raises(EntryExistsError, match="already has an entry for this key"):
        pool.insert(DMAC, [Exact(mac)], FORWARD, [3])
    assert pool.process(1, frame) == [(2, frame)]
    pool.modify(DMAC, handle, FORWARD, [3])
    assert pool.process(1, frame) == [(3, frame)]
    assert pool.direct_counter(DMAC, handle) == (2, 2 * len(frame))
    pool.set_direct_counter(DMAC, handle, 5, 6)
    assert pool.direct_counter(DMAC, handle) == (5, 6)
    pool.delete(DMAC, handle)
    assert pool.process(1, frame) == []
    with pytest.raises(EntryNotFoundError):
        pool.modify(DMAC, handle, FORWARD, [3])
    again = pool.insert(DMAC, [Exact(mac)], FORWARD, [4])
    assert pool.direct_counter(DMAC, again) == (0, 0)
    pool.delete(DMAC, again)


@needs_kernel
def test_a_table_is_full_and_has_room_again(pool: Pipeline) -> None:
    table = "PoolIngress.own_addresses"
    action = pool.program.table(table)
    assert action is not None
    name = action.actions[0].name
    handles = [pool.insert(table, [Exact(number)], name, []) for number in range(16)]
    with pytest.raises(TableFullError, match=r"is full \(16 entries\)"):
        pool.insert(table, [Exact(99)], name, [])
    pool.delete(table, handles.pop())
    handles.append(pool.insert(table, [Exact(99)], name, []))
    for handle in handles:
        pool.delete(table, handle)


@needs_kernel
def test_two_prefixes_of_one_address_are_two_entries(pool: Pipeline) -> None:
    route = "PoolIngress.forwarding.route"
    handles = [pool.insert(LPM, [Lpm(0x0A010000, 16)], route, [3, 1, 2])]
    handles.append(pool.insert(LPM, [Lpm(0x0A010000, 24)], route, [4, 1, 2]))
    with pytest.raises(EntryExistsError):
        pool.insert(LPM, [Lpm(0x0A010000, 24)], route, [5, 1, 2])
    for handle in handles:
        pool.delete(LPM, handle)


@needs_kernel
def test_registers_are_read_and_written_as_they_lie(pool: Pipeline) -> None:
    for place, register in enumerate(pool.program.registers):
        pool.set_register(register.name, register.size - 1, (1 << 64) - 1 - place)
    for place, register in enumerate(pool.program.registers):
        wanted = ((1 << 64) - 1 - place) % (1 << register.width_bits)
        assert pool.register(register.name, register.size - 1) == wanted, register.name
        assert pool.register(register.name, 0) == 0
        pool.set_register(register.name, register.size - 1, 0)
    with pytest.raises(EntryNotFoundError):
        pool.register(pool.program.registers[0].name, pool.program.registers[0].size)


@needs_kernel
def test_what_is_closed_says_so(cache_dir: Path) -> None:
    pipeline = xdp_target(cache_dir).load(PROGRAMS / "checksum.json")
    pipeline.close()
    pipeline.close()
    with pytest.raises(InvalidEntryError, match="the pipeline is closed"):
        pipeline.process(1, bytes(60))


@needs_kernel
def test_a_program_that_the_verifier_refuses_says_why(tmp_path: Path) -> None:
    source, path = tmp_path / "bad.c", tmp_path / "bad.o"
    source.write_text(
        '__attribute__((section("xdp"), used)) int bad(void *ctx) { return *(int *)0; }\n'
        'char licence[] __attribute__((section("license"), used)) = "Apache-2.0";\n'
    )
    command = [
        find_clang(),
        "-target",
        "bpf",
        "-O1",
        "-g",
        "-w",
        "-c",
        str(source),
        "-o",
        str(path),
    ]
    subprocess.run(command, check=True)
    with pytest.raises(RefusedError, match=r"the kernel's verifier refuses bad\.o: ") as found:
        Object(path)
    assert found.value.log


def test_a_file_that_is_no_object_is_one_line(tmp_path: Path) -> None:
    if libbpf.why_not():
        pytest.skip(libbpf.why_not())
    path = tmp_path / "none.o"
    with pytest.raises(XdpError, match=f"{path}: No such file"):
        Object(path)


def test_without_clang_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_CLANG", "no-such-clang")
    why = "no compiler for BPF 'no-such-clang': apt install clang, or set INA_CLANG"
    assert xdp_target().trouble() == why
    if not libbpf.why_not():
        with pytest.raises(CompilerMissingError, match=why):
            xdp_target().load(PROGRAMS / "checksum.json")


def test_without_libbpf_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "LIBRARY", "libnone.so.1")
    libbpf.library.cache_clear()
    try:
        assert libbpf.why_not() == "no libnone.so.1: apt install libbpf1"
    finally:
        monkeypatch.undo()
        libbpf.library.cache_clear()


def test_a_device_that_cannot_be_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_CLANG", "no-such-clang")
    with pytest.raises(InaError, match="device xdp no compiler for BPF"), open_device("xdp"):
        pass
