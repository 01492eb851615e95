"""A worker's queue pair, over a device that is UDP sockets: two of them send each other messages.

Each function named ``there_...`` runs in a process that has the device.
"""

from __future__ import annotations

import os
from ipaddress import IPv4Address

import pytest

from ina.extension.rdma import RoceChannel, UcQueue, rdma_devices
from tests.worlds.fakes.verbs import run_there

HERE = int(IPv4Address("127.0.0.1"))
MESSAGE_BYTES = 1024
PACKETS = 16
BUFFERS = 2 * PACKETS + 64
PLACES = 256
"""Of the send queue."""


def queue() -> UcQueue:
    return UcQueue("fake0", 1, 1, PACKETS, MESSAGE_BYTES)


def pair() -> tuple[RoceChannel, RoceChannel]:
    one, other = queue(), queue()
    one.connect(HERE, other.number, 7, 2)
    other.connect(HERE, one.number, 0xFF_FFFE, 2)
    return RoceChannel(one), RoceChannel(other)


def message(number: int, length: int = MESSAGE_BYTES) -> bytes:
    return (number.to_bytes(4, "big") * length)[:length]


def received(channel: RoceChannel, count: int) -> list[bytes]:
    """So many, unless none comes for ten seconds."""
    came: list[bytes] = []
    while len(came) < count:
        more = channel.receive(10_000)
        assert more, f"{len(came)} of {count}"
        came += more
    return came


def there_messages_come_in_order() -> None:
    one, other = pair()
    sent = [message(i, 32 + 4 * i) for i in range(PACKETS)]
    one.send(sent)
    assert received(other, PACKETS) == sent
    other.send(sent[:3])
    assert received(one, 3) == sent[:3]


def there_queues_turn_over() -> None:
    """More messages than places to send from, and than buffers to receive into."""
    one, other = pair()
    rounds = 3 * PLACES // PACKETS
    assert rounds * PACKETS > BUFFERS
    for i in range(rounds):
        sent = [message(PACKETS * i + j) for j in range(PACKETS)]
        one.send(sent)
        assert received(other, PACKETS) == sent
    assert (one.counters.send_drops, one.counters.refused) == (0, 0)


def there_what_is_not_taken_is_lost() -> None:
    """Buffers are used up; once they are posted again, more come."""
    one, other = pair()
    for i in range(BUFFERS // PACKETS + 4):
        one.send([message(i)] * PACKETS)
    received(other, BUFFERS)
    one.send([message(99)])
    while message(99) not in received(other, 1):
        continue


def there_a_refused_message_is_counted() -> None:
    one, _ = pair()
    one.send([message(1)] * 5)
    assert one.counters.send_drops == 0
    os.environ["FAKE_VERBS_FAILS"] = "post_send"
    one.send([message(1)] * 5)
    # A full queue is no broken one.
    assert (one.counters.send_drops, one.counters.refused) == (5, 0)


def there_a_frame_written_anew_goes_with_its_old_header() -> None:
    """A frame is written anew while the device has still to send it: the header stays the old."""
    one, other = pair()
    os.environ["FAKE_VERBS_LATE"] = "1"
    for number in range(4):
        one.send([message(number)])
    old = [message(number)[:32] + message(number + 1)[32:] for number in range(3)]
    assert received(other, 3) == old


def there_a_broken_queue_pair_wakes_nobody() -> None:
    one, _ = pair()
    os.environ["FAKE_VERBS_FAILS"] = "poll_cq"
    assert one.receive(0) == []
    assert (one.fd, one.counters.refused) == (-1, 1)
    one.send([message(1)] * 3)
    assert (one.counters.send_drops, one.counters.refused) == (3, 2)


def there_what_is_closed_says_so() -> None:
    one, _ = pair()
    one.close()
    one.close()
    for call in (lambda: one.send([b""]), lambda: one.receive(0)):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(ValueError, match="without a way"):
        RoceChannel(queue())
    with pytest.raises(ValueError, match="more messages than frames"):
        pair()[0].send([b""] * (PACKETS + 1))
    with pytest.raises(ValueError, match="longer than its frame"):
        pair()[0].send([bytes(5000)])


def there_a_child_leaves_the_parents_alone() -> None:
    one, other = pair()
    child = os.fork()
    if child == 0:
        one.close()
        other.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    one.send([message(1)])
    assert received(other, 1) == [message(1)]


def there_devices_are_listed() -> None:
    (device,) = rdma_devices()
    (port,) = device.ports
    assert (device.name, device.trouble) == ("fake0", "")
    assert (port.number, port.is_active, port.is_ethernet) == (1, True, True)
    assert (port.active_mtu_bytes, port.max_mtu_bytes) == (1024, 4096)
    assert [(gid.index, gid.type, gid.ipv4) for gid in port.gids] == [(0, 1, HERE), (1, 2, HERE)]


@pytest.mark.parametrize(
    "function",
    [
        there_messages_come_in_order,
        there_queues_turn_over,
        there_what_is_not_taken_is_lost,
        there_a_refused_message_is_counted,
        there_a_frame_written_anew_goes_with_its_old_header,
        there_a_broken_queue_pair_wakes_nobody,
        there_what_is_closed_says_so,
        there_a_child_leaves_the_parents_alone,
        there_devices_are_listed,
    ],
)
def test_there(function) -> None:  # type: ignore[no-untyped-def]
    run_there(function)


def refused(**place: object) -> str:
    wanted = {"device": "fake0", "port": 1, "gid_index": 1, "packets": 4, "message_bytes": 1024}
    with pytest.raises(RuntimeError) as caught:
        UcQueue(**{**wanted, **place}).connect(HERE, 1, 0, 0)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def there_errors_say_what_to_do() -> None:
    assert refused(device="mlx5_7") == "no RDMA device mlx5_7"
    assert refused(port=2).startswith("RDMA device fake0 port 2: ")
    assert refused(message_bytes=1028) == (
        "fake0 port 1 takes 1024 bytes a packet (its active MTU), and the job's have 1028:"
        " raise the interface's MTU, or take fewer values a packet"
    )
    os.environ["FAKE_VERBS_STATE"] = "1"
    assert refused() == "fake0 port 1 is not active"
    os.environ["FAKE_VERBS_STATE"] = "4"
    for call, said in {
        "open_device": "RDMA device fake0 cannot be opened: ",
        "reg_mr": "ulimit -l limits",
        "create_qp": "a queue pair for 4 packets on fake0: ",
        "modify_qp": "nobody answers for the MAC address of 127.0.0.1 from fake0: ",
    }.items():
        os.environ["FAKE_VERBS_FAILS"] = call
        assert said in refused()
        assert call != "open_device" or rdma_devices()[0].trouble.startswith("it cannot be opened")


def test_errors() -> None:
    run_there(there_errors_say_what_to_do)
