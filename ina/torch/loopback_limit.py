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

import torch
import torch.distributed as dist

_UDP_SEGMENT, _UDP_GRO = 103, 104  # linux/udp.h
_MAX_TRAIN_BYTES = 65_000  # of one sendmsg: an IPv4 packet's length is 16 bits
_MAX_TRAIN_PACKETS = 64  # UDP_MAX_SEGMENTS of older kernels
_SECONDS = 0.4
_BUFFER_BYTES = 4 << 20


def measure(group: dist.ProcessGroup, pairs: int, packet_bytes: int) -> float:
    """Bytes of UDP payload a second, over ``pairs`` of ranks at once (fewer if there are fewer).

    ``packet_bytes`` is the UDP payload of each packet.
    Collective over ``group``, a Gloo group; every rank gets the same number.
    """
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    pairs = max(1, min(pairs, size // 2))
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
        with contextlib.suppress(OSError):
            receiver.setsockopt(socket.IPPROTO_UDP, _UDP_GRO, 1)
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(0.2)
        ports = [torch.zeros(1, dtype=torch.int64) for _ in range(size)]
        dist.all_gather(ports, torch.tensor([receiver.getsockname()[1]]), group=group)
        dist.barrier(group=group)
        rate = torch.zeros(1, dtype=torch.float64)
        if size == 1:
            sender = threading.Thread(target=_send, args=(int(ports[0].item()), packet_bytes))
            sender.start()
            rate[0] = _receive(receiver)
            sender.join()
        elif rank < 2 * pairs and rank % 2 == 0:
            _send(int(ports[rank + 1].item()), packet_bytes)
        elif rank < 2 * pairs:
            rate[0] = _receive(receiver)
        dist.all_reduce(rate, group=group)
    finally:
        receiver.close()
    return float(rate.item())


def _send(port: int, packet_bytes: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
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
