"""A round of three workers on a real switch; run in the network namespace that has the cables.

Sends what tests.worlds.virtual.exchange.one_round sends, one packet at a time (fences keep the
order), and prints how many results came back. Argument: the switch's P4Runtime address.
"""

from __future__ import annotations

import sys
from ipaddress import IPv4Address

from ina.protocol.codec import Header, encode
from ina.protocol.spec import NO_FLAGS, Flag, index_bits, path_of
from ina.protocol.switch_model import Attachment, ModelJob
from ina.testing.frames import Frame
from ina.testing.p4runtime_device import P4RuntimeDevice
from ina.testing.state import job_state, own_address
from ina.testing.wire import SocketWire

JOB, SLOTS, VALUES, EPOCH, WORKERS = 9, 4, 64, 5, 3


def workers() -> tuple[Attachment, ...]:
    first = int(IPv4Address("10.0.0.1"))
    return tuple(Attachment(w + 1, first + w, 1024 + w) for w in range(WORKERS))


def contribution(worker: int, seq: int, flags: Flag = NO_FLAGS) -> tuple[int, bytes]:
    header = Header(
        flags=flags,
        job=JOB,
        epoch=EPOCH,
        worker=worker,
        slot=seq % SLOTS,
        value_count=VALUES,
        seq=seq,
        contributors=1 << worker,
        path=path_of([worker], [index_bits(WORKERS, is_root=True)]),
        copy=1 if flags & Flag.RESEND else 0,
    )
    at = workers()[worker]
    payload = encode(header, [worker + 1] * VALUES)
    return at.port, Frame(payload, src_ipv4=at.ipv4, src_udp=at.udp_port).build()


def main() -> None:
    with SocketWire({port: f"eth{port}" for port in range(1, WORKERS + 1)}) as wire:
        device = P4RuntimeDevice("switch", sys.argv[1], 1, wire, patience_s=60.0)
        with device:
            device.reset(VALUES)
            device.insert((own_address(), *job_state(ModelJob(JOB, EPOCH, 8, SLOTS, workers()))))
            resend = Flag.RESEND
            sent = [contribution(0, 1), contribution(1, 1), contribution(0, 1, resend)]
            sent += [contribution(2, 1), contribution(1, 1, resend)]
            sent += [contribution(0, 1 + SLOTS), contribution(2, 1)]
            print(sum(len(device.process([frame])) for frame in sent))


if __name__ == "__main__":
    main()
