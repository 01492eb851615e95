"""How many bytes a second this machine moves over loopback UDP, sender and receiver both busy.

That is the physical limit of an all-reduce on one machine: each byte that a worker sends or
receives crosses the loopback interface once. Trains of packets (UDP_SEGMENT, UDP_GRO) are used, as
ina does, with no work on the bytes themselves.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from ipaddress import IPv4Address

import torch
import torch.distributed as dist

_UDP_SEGMENT, _UDP_GRO = 103, 104  # linux/udp.h
_MAX_TRAIN_BYTES = 65_000  # of one sendmsg: an IPv4 packet's length is 16 bits
_MAX_TRAIN_PACKETS = 64  # UDP_MAX_SEGMENTS of older kernels
_SECONDS = 0.4
_SILENT_S = 0.2  # then nothing more comes
_BUFFER_BYTES = 4 << 20


def measure(
    group: dist.ProcessGroup, pairs: int, packet_bytes: int, host: str = "127.0.0.1"
) -> float:
    """Bytes of UDP payload a second, over ``pairs`` of ranks at once (fewer if there are fewer).

    ``packet_bytes`` is the UDP payload of each packet, ``host`` this rank's own IPv4 address.
    Collective over ``group``, a Gloo group; every rank gets the same number.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    pairs = max(1, min(pairs, size // 2))
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        with contextlib.suppress(OSError):
            receiver.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
        receiver.bind((host, 0))
        receiver.settimeout(_SILENT_S)
        own = torch.tensor([int(IPv4Address(host)), receiver.getsockname()[1]])
        places = [torch.zeros(2, dtype=torch.int64) for _ in range(size)]
        dist.all_gather(places, own, group=group)
        ends = [(str(IPv4Address(int(place[0]))), int(place[1])) for place in places]
        dist.barrier(group=group)
        rate = torch.zeros(1, dtype=torch.float64)
        if size == 1:
            sender = threading.Thread(target=_send, args=(ends[0], packet_bytes))
            sender.start()
            rate[0] = _receive(receiver)
            sender.join(10 * _SECONDS)  # its time was over long ago
        elif rank < 2 * pairs and rank % 2 == 0:
            _send(ends[rank + 1], packet_bytes)
        elif rank < 2 * pairs:
            rate[0] = _receive(receiver)
        dist.all_reduce(rate, group=group)
    finally:
        receiver.close()
    return float(rate.item())


def _send(end: tuple[str, int], packet_bytes: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(end)
        packets = min(_MAX_TRAIN_PACKETS, _MAX_TRAIN_BYTES // packet_bytes)
        train = [bytes(packet_bytes * packets)]
        segment = [(socket.IPPROTO_UDP, _UDP_SEGMENT, struct.pack("=H", packet_bytes))]
        until = time.perf_counter() + _SECONDS
        while time.perf_counter() < until:
            try:
                sock.sendmsg(train, segment)
            except ConnectionRefusedError:
                return
            except OSError:  # no UDP_SEGMENT here: packet by packet
                segment, train = [], [bytes(packet_bytes)]


def _receive(sock: socket.socket) -> float:
    buffer = bytearray(1 << 17)
    got = 0
    first = last = time.perf_counter()
    deadline = first + 5 * _SECONDS
    while last < deadline:
        try:
            count = sock.recv_into(buffer)
        except TimeoutError:
            if got:
                break
            last = time.perf_counter()
            continue
        last = time.perf_counter()
        first = last if not got else first
        got += count
    return got / max(last - first, 1e-9)
