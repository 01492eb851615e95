"""A switch in the kernel outlives its process, and the next one goes on with it. Needs root."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy.proto import p4r

from ina import netns
from ina.emulate import wiring
from ina.emulate.processes import Logged
from ina.errors import InvalidInputError, UnavailableError
from ina.p4 import compiled
from ina.switch.ports import AfPacketPort
from ina.switch.server import SoftSwitch
from ina.switch.targets import xdp_target
from ina.switch.xdp import pin as pin_file
from ina.switch.xdp import pins
from ina.switch.xdp.detach import Detached, detach
from ina.switch.xdp.links import XdpMode
from ina.switch.xdp.pin import Pin
from ina.switch.xdp.pins import PinError
from ina.tables.entities import Entities
from ina.tables.values import AnyItem, Entry, EntryCounter, Group
from ina.testing.links import Links, cannot_link
from ina.testing.soft_device import cannot_run_xdp
from ina.testing.wire import SocketWire
from tests.worlds.processes.emulations import new_name
from tests.worlds.processes.forks import call, run_ina
from tests.worlds.processes.pinned_switch import (
    PinnedSwitch,
    bpf_file_system,
    end_job,
    steps,
    wait_for,
)

WHY = cannot_run_xdp() or cannot_link()
pytestmark = pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")
MAC, OTHER_MAC, THIRD_MAC = 0x02AA0000000B, 0x02AA0000000C, 0x02AA0000000D
PROGRAM = compiled(64)
ENTITIES = Entities(PROGRAM.p4info, PROGRAM.bmv2_json)
DMAC, FORWARD = "PoolIngress.forwarding.dmac", "PoolIngress.forwarding.forward"
COUNTED = EntryCounter(DMAC, (("dst_mac", MAC),))
READ_ALL = [
    p4r.Entity(table_entry=p4r.TableEntry()),
    p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)),
    ENTITIES.groups(),
]


def forwards(mac: int, port: int) -> Entry:
    return Entry(DMAC, (("dst_mac", mac),), FORWARD, (("port", port),))


GROUP = Group(5, ((1, 7), (2, 8), (1, 9)))
ITEMS: list[AnyItem] = [forwards(MAC, 2), GROUP]


def frame(mac: int) -> bytes:
    return mac.to_bytes(6, "big") + bytes(6) + b"\x88\xb5" + bytes(50)


@pytest.fixture(scope="module", autouse=True)
def bpf() -> Iterator[Path]:
    with bpf_file_system() as folder:
        yield folder


@pytest.fixture
def name() -> Iterator[str]:
    made = new_name()
    yield made
    detach(made)


@pytest.fixture
def links() -> Iterator[Links]:
    with Links(2, switch_outside=True, mtu_bytes=3400) as made:
        yield made


@contextmanager
def running(
    name: str, ends: dict[int, str], mode: XdpMode = XdpMode.native
) -> Iterator[SoftSwitch]:
    """A process's: what it leaves goes on."""
    with Pin(name, mode) as pin:
        target = xdp_target(at_ports=True, mode=mode, pin=pin)
        ports = [AfPacketPort(port, end) for port, end in ends.items()]
        with SoftSwitch(ports, grpc_addr=None, target=target) as switch:
            yield switch


def life(name: str, ends: dict[int, str], folder: str, items: list[AnyItem], silent: bool) -> None:
    """Of a process that sets a program, inserts, and is killed. ``silent``: before it has noted
    what it did last."""
    os.environ["INA_BPFFS"] = folder
    with running(name, ends) as switch:
        if not switch.was_taken_over:
            switch.preload(ENTITIES.config)
        if silent:
            pin_file.Pin.record = lambda self, changes: None  # type: ignore[method-assign]
            switch.delete([ENTITIES.encode(it) for it in ITEMS if isinstance(it, Entry)])
        switch.insert(map(ENTITIES.encode, items))
        os.kill(os.getpid(), signal.SIGKILL)


def killed(
    name: str, links: Links, folder: Path, items: list[AnyItem], *, silent: bool = False
) -> None:
    code, said = call(life, name, links.switch_ends, str(folder), items, silent, timeout_s=60)
    assert code == -signal.SIGKILL, said


def packets(switch: SoftSwitch) -> int:
    (entity,) = switch.read([ENTITIES.counter(COUNTED)])
    return ENTITIES.count(entity).packets


def arrived(links: Links, wanted: bytes, most_s: float = 2.0) -> list[int]:
    end = time.monotonic() + most_s
    while time.monotonic() < end:
        if found := [port for port, data in links.wire.receive(0.1) if data == wanted]:
            return found
    return []


def test_frames_leave_while_no_process_runs_and_another_takes_over(
    name: str, links: Links, bpf: Path
) -> None:
    killed(name, links, bpf, ITEMS)
    links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC)) == [2]
    with running(name, links.switch_ends) as switch:
        assert switch.was_taken_over
        read = [ENTITIES.decode(it) for it in switch.read(READ_ALL)]
        assert forwards(MAC, 2) in read
        assert GROUP in read
        links.wire.send(1, frame(MAC))
        assert arrived(links, frame(MAC)) == [2]
        assert packets(switch) == 2  # with the one that no process saw
        switch.preload(ENTITIES.config)  # the same program: nothing is lost
        assert packets(switch) == 2
        switch.insert([ENTITIES.encode(forwards(OTHER_MAC, 1))])
        switch.delete(map(ENTITIES.encode, ITEMS))
    links.wire.send(1, frame(MAC))
    links.wire.send(2, frame(OTHER_MAC))
    assert arrived(links, frame(OTHER_MAC)) == [1]
    with running(name, links.switch_ends) as switch:
        entries = [ENTITIES.decode(it) for it in switch.read(READ_ALL)]
        assert forwards(OTHER_MAC, 1) in entries
        assert not set(ITEMS) & set(entries)


def test_what_was_not_noted_was_not_done(name: str, links: Links, bpf: Path) -> None:
    killed(name, links, bpf, ITEMS)
    killed(name, links, bpf, [forwards(OTHER_MAC, 1)], silent=True)
    links.wire.send(2, frame(OTHER_MAC))
    assert arrived(links, frame(OTHER_MAC)) == [1]  # the kernel has it
    with running(name, links.switch_ends) as switch:
        entries = [ENTITIES.decode(it) for it in switch.read(READ_ALL)]
        assert forwards(MAC, 2) in entries
        assert forwards(OTHER_MAC, 1) not in entries
        switch.insert([ENTITIES.encode(forwards(THIRD_MAC, 1))])  # its number is free again
        links.wire.send(1, frame(MAC))
        assert arrived(links, frame(MAC)) == [2]
        links.wire.send(2, frame(OTHER_MAC))
        assert arrived(links, frame(OTHER_MAC), most_s=0.2) == []


def test_other_interfaces_are_taken_as_they_are_now(name: str, links: Links, bpf: Path) -> None:
    killed(name, links, bpf, ITEMS)
    turned = {1: links.switch_ends[2], 2: links.switch_ends[1]}
    with running(name, turned):
        links.wire.send(2, frame(MAC))
        assert arrived(links, frame(MAC)) == [1]
    with running(name, {1: turned[1]}) as switch:
        assert forwards(MAC, 2) in [ENTITIES.decode(it) for it in switch.read(READ_ALL)]
    assert detach(name).ports == {1: turned[1]}


def test_another_program_is_set_by_a_client_alone(name: str, links: Links, bpf: Path) -> None:
    killed(name, links, bpf, ITEMS)
    other = compiled(256)
    with running(name, links.switch_ends) as switch:
        config = Entities(other.p4info, other.bmv2_json).config
        with pytest.raises(UnavailableError, match=f"ina switch detach {name} removes it"):
            switch.preload(config)
    links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC)) == [2]


def as_if(name: str, fact: str, value: object) -> None:
    with sqlite3.connect(pin_file.state_path(name)) as state:
        state.execute("UPDATE facts SET value = ? WHERE name = ?", (value, fact))
    state.close()


def no_state(name: str) -> None:
    pin_file.state_path(name).unlink()


@pytest.mark.parametrize(
    ("spoil", "mode", "why"),
    [
        (lambda name: as_if(name, "layout", b"x"), XdpMode.native, "is of another version of ina"),
        (lambda name: as_if(name, "program", 1), XdpMode.native, "has another program"),
        (lambda name: None, XdpMode.generic, "runs in native mode"),
        (no_state, XdpMode.native, "is none that .* tells of"),
    ],
)
def test_what_cannot_be_taken_over_says_how_to_remove_it(
    name: str, links: Links, bpf: Path, spoil: Callable[[str], None], mode: XdpMode, why: str
) -> None:
    killed(name, links, bpf, ITEMS)
    spoil(name)
    wanted = rf"^pin {name}: what is there {why}: ina switch detach {name} removes it$"
    with pytest.raises(PinError, match=wanted), running(name, links.switch_ends, mode):
        pass
    links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC)) == [2]


def test_pins_that_are_gone_begin_anew(name: str, links: Links, bpf: Path) -> None:
    killed(name, links, bpf, ITEMS)
    pins.remove(pins.folder_of(name))
    with running(name, links.switch_ends) as switch:
        assert not switch.was_taken_over


def test_one_process_has_a_name(name: str) -> None:
    with Pin(name):
        wanted = f"^pin {name}: process {os.getpid()} runs it"
        with pytest.raises(PinError, match=wanted):
            Pin(name)
        with pytest.raises(PinError, match=wanted):
            detach(name)
    with Pin(name):
        pass


def test_detach_says_what_it_removed(name: str, links: Links, bpf: Path) -> None:
    killed(name, links, bpf, ITEMS)
    done = run_ina("switch", "detach", name, timeout_s=60)
    assert done.returncode == 0, done.stderr
    ends = ", ".join(f"port {port} ({end})" for port, end in links.switch_ends.items())
    assert done.stdout.startswith(f"removed {ends}, 4 programs, ")
    links.wire.send(1, frame(MAC))
    assert arrived(links, frame(MAC), most_s=0.2) == []
    assert not pins.folder_of(name).exists()
    done = run_ina("switch", "detach", name, timeout_s=60)
    assert done.stdout == f"nothing is pinned as {name}\n"
    assert detach(name) == Detached({}, 0, 0, had_state=False)


def test_without_a_bpf_file_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INA_BPFFS", str(tmp_path))
    with pytest.raises(PinError, match=f"mounted at {tmp_path}: mount -t bpf bpf {tmp_path}$"):
        Pin("any")


@pytest.mark.parametrize("wrong", ["", "-a", "a/b", "a.b", "a" * 33, ".."])
def test_names(wrong: str) -> None:
    with pytest.raises(InvalidInputError, match="expected 1 to 32 letters"):
        detach(wrong)


def more_steps(ranks: list[Logged]) -> None:
    before = max(map(steps, ranks))
    wait_for(lambda: min(map(steps, ranks)) >= before + 50)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", list(XdpMode))
def test_a_job_goes_on_while_the_server_is_killed_and_started_again(
    mode: XdpMode, tmp_path: Path
) -> None:
    with PinnedSwitch(tmp_path) as network:
        server = network.start("--xdp-mode", mode)
        network.controller()
        ranks = network.ranks()
        wait_for(lambda: min(map(steps, ranks)) >= 20)
        entries = network.show()["entries"]
        for _ in range(2):
            server.process.kill()
            server.process.wait(60)
            more_steps(ranks)
            server = network.start("--xdp-mode", mode)
            assert '"taken_over":true' in server.log.read_text()
            wait_for(network.is_reached)
            assert network.show()["entries"] == entries
            more_steps(ranks)
        assert "0 entries written, 0 removed" in network.log_of("controller")
        assert "1 entries written" not in network.log_of("controller")
        end_job(tmp_path, ranks)
        wait_for(lambda: {it["table"] for it in network.show()["entries"]} == {"own_addresses"})


def forged(contribution: bytes) -> bytes:
    """The same with other values, and no UDP checksum."""
    frame = bytearray(contribution)
    frame[40:42] = bytes(2)
    frame[-400:] = b"\x7e" * 400
    return bytes(frame)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_who_sends_a_members_packets_from_another_port_changes_no_sum(tmp_path: Path) -> None:
    """A stranger sends what rank 0 sends, with other values; ranks compare each sum."""
    with PinnedSwitch(tmp_path, strangers=1) as network:
        network.start()
        network.controller()
        ranks = network.ranks()
        wait_for(lambda: min(map(steps, ranks)) >= 20)
        sent = 0
        with (
            SocketWire({1: wiring.DATA_INTERFACE}, network.space(2)) as stranger,
            netns.inside(network.space(0)),
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as tap,
        ):
            tap.bind((wiring.DATA_INTERFACE, 0))
            tap.settimeout(10)
            while sent < 500:
                data, where = tap.recvfrom(1 << 16)
                if where[2] == socket.PACKET_OUTGOING and len(data) > 1000:
                    stranger.send(1, forged(data))
                    sent += 1
        more_steps(ranks)
        drops = {it["label"]: it["packets"] for it in network.show()["counters"]}
        assert drops["member"] >= sent
        end_job(tmp_path, ranks)
