"""The shared-memory port: identities, refusals, full rings, and workers that write nonsense."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import secrets
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ina._native import switch as native
from tests.switch.ports.conftest import OTHER_PORT, Reflector, wait_until
from tests.switch.ports.pcap_files import frames_of
from tests.worlds.processes.shm_worker import (
    HEADER_BYTES,
    IN_OWN_FRAME,
    VERSION,
    ShmWorker,
    connect,
    say_hello,
)
from tests.worlds.processes.threads import NewThreads

FRAME_HEADER_BYTES = 42
FIRST_ADDRESS = 0x7F400001  # 127.64.0.1
BAD_HELLO, NOT_ALLOWED = 1, 2


@pytest.fixture
def name() -> str:
    return f"ina-test-{secrets.token_hex(8)}"


@pytest.fixture
def workers() -> Iterator[list[ShmWorker]]:
    made: list[ShmWorker] = []
    yield made
    for worker in made:
        worker.close()


def shm_port(name: str, loss: float = 0.0, seed: int = 0) -> native.ShmPort:
    return native.ShmPort(1, name, 17760, loss, seed)


Reflect = Callable[..., Reflector]
RunLoop = Callable[..., native.PortLoop]


def test_packets_come_back_to_who_sent_them(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port, pipeline = shm_port(name), reflector(answer=True)
    run_loop([port], pipeline)
    workers += [ShmWorker(name) for _ in range(3)]
    for turn in range(300):  # the rings have 64 cells
        for number, worker in enumerate(workers):
            worker.send(b"%d of %d" % (turn, number), bytes([number]) * (turn % 257))
        for number, worker in enumerate(workers):
            assert worker.take() == (b"%d of %d" % (turn, number), False)
            assert worker.take() == (bytes([number]) * (turn % 257), False)
    stats = port.stats()
    assert stats["rx_packets"] == stats["tx_packets"] == 3 * 2 * 300
    longer = sum(turn % 257 > HEADER_BYTES for turn in range(300))
    assert pipeline.tailed == 3 * longer  # what follows a header is read where the worker has it
    assert stats["rx_bytes"] == stats["tx_bytes"] > 1800 * FRAME_HEADER_BYTES
    assert stats["attached"] == 3
    assert stats["malformed_packets"] == stats["blocked_packets"] == stats["broken_rings"] == 0


def test_each_has_an_address_that_nobody_gets_again(
    name: str, tmp_path: Path, reflector: Reflect, run_loop: RunLoop
) -> None:
    port = shm_port(name)
    written = tmp_path / "out.pcap"
    pcap = native.PcapPort(2, "", str(written), 0.0, 0)
    loop = run_loop([port, pcap], reflector(to_port=OTHER_PORT))
    for turn in range(3):
        worker = ShmWorker(name)
        worker.send(b"%d" % turn)
        wait_until(lambda: pcap.stats()["tx_packets"] == turn + 1, "forwarded")  # noqa: B023
        assert (worker.welcome.address, worker.welcome.udp_port) == (FIRST_ADDRESS, 1 + turn)
        assert worker.welcome.switch_port == 1
        worker.close()
        wait_until(lambda: port.stats()["attached"] == 0, "dropped")
    loop.stop()
    for turn, frame in enumerate(frames_of(written)):
        assert struct.unpack_from("!IIHH", frame, 26) == (
            FIRST_ADDRESS, FIRST_ADDRESS - 1, 1 + turn, 17760,
        )  # fmt: skip
        assert frame[FRAME_HEADER_BYTES:] == b"%d" % turn


def test_marks_come_through(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    run_loop([shm_port(name)], reflector(answer=True, tos=3))
    workers.append(ShmWorker(name))
    workers[0].send(b"x")
    assert workers[0].take() == (b"x", True)


@pytest.mark.parametrize(
    ("cells", "payload_bytes", "version"),
    [
        (0, 256, VERSION), (8, 256, VERSION), (65, 256, VERSION), (1 << 17, 256, VERSION),
        (0xFFFFFFFF, 256, VERSION), (64, 0, VERSION), (64, 23, VERSION), (64, 1 << 20, VERSION),
        (64, 0xFFFFFFFF, VERSION), (64, 256, VERSION + 1),
    ],
)  # fmt: skip
def test_odd_wishes_are_refused(
    name: str, run_loop: RunLoop, cells: int, payload_bytes: int, version: int
) -> None:
    port = shm_port(name)
    run_loop([port])
    with connect(name) as sock:
        welcome = say_hello(sock, cells, payload_bytes, version=version)
        assert (welcome.status, welcome.memory_fd) == (BAD_HELLO, -1)
        assert sock.recv(1) == b""
    assert port.stats()["refused_attachments"] == 1
    assert port.stats()["attached"] == 0


def test_another_users_process_is_refused(name: str, run_loop: RunLoop) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to become another user")
    port = shm_port(name)
    run_loop([port])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setuid(65534)
            with connect(name) as sock:
                data = sock.recv(24)
                code = 0 if struct.unpack("=IIIIII", data)[2] == NOT_ALLOWED else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert port.stats()["refused_attachments"] == 1


def test_silent_connections_do_not_keep_others_out(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    run_loop([shm_port(name)], reflector(answer=True))
    silent = [connect(name) for _ in range(200)]
    silent[-1].send(b"half a hel")
    workers.append(ShmWorker(name))
    workers[0].send(b"here")
    assert workers[0].take()[0] == b"here"
    for sock in silent:
        sock.close()


def test_the_memory_cannot_be_cut_short(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    run_loop([shm_port(name)], reflector(answer=True))
    workers.append(ShmWorker(name))
    with pytest.raises(PermissionError):
        os.ftruncate(workers[0].memory_fd, 0)
    workers[0].send(b"still")
    assert workers[0].take()[0] == b"still"


def test_what_does_not_fit_into_the_ring_is_dropped_and_counted(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    run_loop([port], reflector(answer=True, copies=3))
    workers.append(ShmWorker(name, cells=64))
    workers[0].send(*(b"%d" % i for i in range(64)))
    wait_until(lambda: port.stats()["rx_packets"] == 64, "taken")
    wait_until(lambda: port.stats()["blocked_packets"] == 2 * 64, "dropped")
    assert [workers[0].take()[0] for _ in range(64)] == [b"%d" % (i // 3) for i in range(64)]
    assert port.stats()["tx_packets"] == 64


def test_injected_loss(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name, loss=0.2, seed=5)
    run_loop([port], reflector(answer=True))
    workers.append(ShmWorker(name))
    for turn in range(40):
        workers[0].send(*(b"%d" % i for i in range(50)))
        wait_until(lambda: port.stats()["rx_packets"] == 50 * (turn + 1), "taken")  # noqa: B023
        stats = port.stats()
        while workers[0].received < stats["tx_packets"]:
            workers[0].take()
    counted = ("tx_packets", "loss_in_packets", "loss_out_packets")
    wait_until(lambda: sum(port.stats()[key] for key in counted) == 2000, "all counted")
    assert 250 < port.stats()["loss_in_packets"] < 550  # 400, with more than 5 sigma either way
    assert 180 < port.stats()["loss_out_packets"] < 460  # 320


def test_results_for_who_is_gone_are_undeliverable(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    # To UDP ports 1 and 2 of the sender's address: both workers.
    run_loop([port], reflector(answer=True, copies=2, udp_port=1))
    workers += [ShmWorker(name), ShmWorker(name)]
    workers[0].send(b"a")
    assert [worker.take()[0] for worker in workers] == [b"a", b"a"]
    workers.pop().close()
    wait_until(lambda: port.stats()["attached"] == 1, "dropped")
    workers[0].send(b"b")
    assert workers[0].take()[0] == b"b"
    wait_until(lambda: port.stats()["undeliverable_packets"] == 1, "counted")


def test_workers_see_the_port_close(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    loop = run_loop([port], reflector(answer=True))
    workers.append(ShmWorker(name))
    loop.stop()
    port.close()
    wait_until(workers[0].is_dropped, "end of the connection")


@pytest.mark.parametrize(("count", "beside"), [(1, 0), (2, 0), (3, 1), (4, 1), (8, 3)])
def test_most_workers_are_asked_to_leave_the_switchs_core(
    name: str,
    reflector: Reflect,
    run_loop: RunLoop,
    workers: list[ShmWorker],
    two_cores: tuple[int, int],
    count: int,
    beside: int,
) -> None:
    new = NewThreads()
    run_loop([shm_port(name)], reflector(answer=True))
    thread = new.only("ina-port-loop")
    workers += [ShmWorker(name) for _ in range(count)]
    for worker in workers:  # all are attached once all are answered
        worker.send(b"x")
        worker.take()
    for core in (*two_cores, two_cores[0]):
        os.sched_setaffinity(thread, {core})
        workers[0].send(b"x")
        workers[0].take()
        asked = [0] * beside + [1 + core] * (count - beside)
        wait_until(lambda: [w.core_to_leave() for w in workers] == asked, "asked")  # noqa: B023


def test_nobody_is_asked_to_leave_the_only_core(
    name: str,
    reflector: Reflect,
    run_loop: RunLoop,
    workers: list[ShmWorker],
    two_cores: tuple[int, int],
) -> None:
    os.sched_setaffinity(0, {two_cores[1]})
    run_loop([shm_port(name)], reflector(answer=True))
    workers += [ShmWorker(name) for _ in range(3)]
    for worker in workers:
        worker.send(b"x")
        worker.take()
    assert [worker.core_to_leave() for worker in workers] == [0, 0, 0]


@pytest.mark.parametrize("published", [65, 0x80000000, 0xFFFFFFFF])
def test_a_position_that_cannot_be_ends_the_worker(
    name: str,
    reflector: Reflect,
    run_loop: RunLoop,
    workers: list[ShmWorker],
    published: int,
) -> None:
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers += [ShmWorker(name), ShmWorker(name)]
    workers[0].set_control(0, 0, published)
    with contextlib.suppress(BrokenPipeError):  # it looked before it was woken
        workers[0].wake()
    wait_until(workers[0].is_dropped, "dropped")
    workers[1].send(b"unharmed")
    assert workers[1].take()[0] == b"unharmed"
    assert port.stats()["broken_rings"] == 1


def test_who_goes_while_its_packets_are_looked_at_takes_nothing_along(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    """The switch reads values in the worker's memory, which stays until it is done with them."""
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers.append(ShmWorker(name))
    for turn in range(50):
        gone = ShmWorker(name, cells=2048)  # more than the switch takes before it sees the end
        for _ in range(2048):
            gone.write(bytes([turn]) * 256)
        gone.publish()
        if turn % 2:
            gone.set_control(0, 0, 0x7FFFFFFF)
        gone.close()
        workers[0].send(bytes([turn]) * 256)
        assert workers[0].take()[0] == bytes([turn]) * 256
    wait_until(lambda: port.stats()["attached"] == 1, "dropped")


def test_a_length_that_cannot_be_is_malformed(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers.append(ShmWorker(name))
    for said in (257, 1 << 16, 0xFFFFFFFF):
        workers[0].write(b"x", bytes_said=said)
    workers[0].send(b"right")
    assert workers[0].take()[0] == b"right"
    assert port.stats()["malformed_packets"] == 3


def test_a_place_that_cannot_be_is_malformed(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers.append(ShmWorker(name, cells=64, payload_bytes=256))
    frames_bytes = 64 * workers[0].frame_bytes
    last = frames_bytes - (256 - HEADER_BYTES)  # the last at which the values fit
    for rest_at in (last + 1, frames_bytes, frames_bytes + 1, 1 << 31, IN_OWN_FRAME):
        workers[0].write(bytes(256), rest_at=rest_at)
    workers[0].send(b"right")
    assert workers[0].take()[0] == b"right"
    assert port.stats()["malformed_packets"] == 5
    workers[0].write(bytes(range(256)), rest_at=last)
    workers[0].publish()
    assert workers[0].take()[0][:HEADER_BYTES] == bytes(range(HEADER_BYTES))


def test_a_result_for_many_is_there_once_and_nobody_else_can_write_it(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    run_loop([shm_port(name)], reflector(answer=True, copies=3, udp_port=1))
    workers += [ShmWorker(name) for _ in range(3)]
    for turn in range(300):
        payload = bytes([turn % 256]) * 256
        workers[turn % 3].send(payload)
        assert all(worker.take() == (payload, False) for worker in workers)
        places = {struct.unpack_from("=I", w.memory, w.cell(1, turn) + 8)[0] for w in workers}
        assert len(places) == 1
        assert IN_OWN_FRAME not in places
    results_fd = workers[0].welcome.results_fd
    with pytest.raises(PermissionError):
        mmap.mmap(results_fd, 0)
    with pytest.raises(PermissionError):
        os.pwrite(results_fd, b"x", 0)
    with pytest.raises(PermissionError):
        os.ftruncate(results_fd, 0)


def test_who_keeps_all_results_takes_nothing_from_others(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    """One that takes nothing holds the whole area: others' values then come in their own frames."""
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    holder = ShmWorker(name, cells=32768, payload_bytes=HEADER_BYTES + 1024)
    workers += [holder, ShmWorker(name)]
    for turn in range(16):  # 16 MiB
        holder.send(*[bytes(HEADER_BYTES + 1024)] * 1024)
        wait_until(lambda: port.stats()["tx_packets"] == 1024 * (turn + 1), "answered")  # noqa: B023
    for turn in range(100):
        payload = bytes([turn]) * 256
        workers[1].send(payload)
        assert workers[1].take()[0] == payload
    assert workers[1].shared == 0
    workers.remove(holder)
    holder.close()
    wait_until(lambda: port.stats()["attached"] == 1, "dropped")
    workers[0].send(bytes(256))
    assert workers[0].take()[0] == bytes(256)
    assert workers[0].shared == 1


def test_a_released_position_that_cannot_be_harms_only_its_worker(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers += [ShmWorker(name), ShmWorker(name)]
    for turn in range(3):
        workers[0].set_control(1, 1, 0x7FFFFFFF)
        workers[0].send(*[b"x"] * 64)
        wait_until(lambda: port.stats()["rx_packets"] == 65 * turn + 64, "taken")  # noqa: B023
        workers[1].send(b"y")
        assert workers[1].take()[0] == b"y"
    assert port.stats()["blocked_packets"] > 0


def test_noise_in_one_workers_memory_disturbs_nobody(
    name: str, reflector: Reflect, run_loop: RunLoop, workers: list[ShmWorker]
) -> None:
    """Random words anywhere in its memory, while the switch reads it and serves two others."""
    port = shm_port(name)
    run_loop([port], reflector(answer=True))
    workers += [ShmWorker(name), ShmWorker(name)]
    stop = threading.Event()
    rings = 0

    def disturb() -> None:
        nonlocal rings
        dice = random.Random(1)
        while not stop.is_set():
            hostile = ShmWorker(name)
            rings += 1
            for _ in range(dice.randrange(1, 200)):
                for _ in range(20):
                    ring, line = dice.randrange(2), dice.randrange(3)
                    hostile.set_control(ring, line, _odd(dice, hostile.sent))
                    at = 4 * dice.randrange(len(hostile.memory) // 4)
                    struct.pack_into("=I", hostile.memory, at, _odd(dice, hostile.sent))
                    payload, said, rest_at = (
                        dice.randbytes(dice.randrange(257)),
                        _odd(dice, 0),
                        _odd(dice, 16384),
                    )
                    hostile.write(payload, bytes_said=said, rest_at=rest_at)
                try:
                    hostile.wake()
                except OSError:
                    break  # dropped
            hostile.close()

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        for turn in range(2000):
            payloads = [b"%d %d" % (turn, i) for i in range(8)]
            for worker in workers:
                worker.send(*payloads)
            for worker in workers:
                assert [worker.take()[0] for _ in payloads] == payloads
    finally:
        stop.set()
        thread.join()
    stats = port.stats()
    assert stats["broken_rings"] > 0
    assert rings >= stats["broken_rings"]
    assert stats["malformed_packets"] > 0


def _odd(dice: random.Random, near: int) -> int:
    kinds = (0, 1, near, near + dice.randrange(64), dice.randrange(600), dice.getrandbits(32))
    return dice.choice(kinds) & 0xFFFFFFFF
