"""The reference switch: the switch model between frames, and what the program counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from ina.protocol.codec import encode
from ina.protocol.slot_model import Outcome
from ina.protocol.spec import UDP_PORT, DropReason
from ina.protocol.switch_model import Departure, Endpoint, Job, SwitchModel
from tests.agreement.frames import CE, ETHERNET_BYTES, RESULT_TTL, Frame, is_udp, is_whole, parse

PortFrame = tuple[int, bytes]


@dataclass
class Counts:
    """Packets and bytes (whole frames, as they came in) by what became of them."""

    packets: Counter[object] = field(default_factory=Counter)
    frame_bytes: Counter[object] = field(default_factory=Counter)

    def add(self, what: object, data: bytes) -> None:
        """Counts one frame."""
        self.packets[what] += 1
        self.frame_bytes[what] += len(data)

    def __getitem__(self, what: object) -> tuple[int, int]:
        return self.packets[what], self.frame_bytes[what]


def worker_mac(endpoint: Endpoint) -> int:
    """The MAC address of the worker at an address; any function of it will do."""
    return 0x02_01_00_00_00_00 | endpoint.ipv4 & 0xFFFF | (endpoint.port & 0xFF) << 16


class ReferenceSwitch:
    """Frames in, frames out, by ``ina.protocol.switch_model``.

    ``forwarding`` says where ordinary frames go: destination MAC -> port. Others are dropped.
    """

    def __init__(self, slots: int, values: int) -> None:
        self.model = SwitchModel(slots, values)
        self.forwarding: dict[int, int] = {}
        self.counts = Counts()

    def process(self, port: int, data: bytes) -> list[PortFrame]:
        """Returns the frames that leave because of one frame, in order."""
        if not (is_udp(data) and parse(data).dst_udp == UDP_PORT):
            out = self.forwarding.get(int.from_bytes(data[:6], "big"))
            if out is None or len(data) < ETHERNET_BYTES:
                return []
            self.counts.add("forwarded", data)
            return [(out, data)]
        if not is_whole(data):
            self.counts.add(DropReason.MALFORMED, data)
            return []
        return self._aggregate(port, data)

    def _aggregate(self, port: int, data: bytes) -> list[PortFrame]:
        frame, model = parse(data), self.model
        model.drops.clear()
        model.outcomes.clear()
        sender = Endpoint(port, frame.src_ipv4, frame.src_udp)
        departures = model.receive(sender, frame.payload, congestion_experienced=frame.ecn == CE)
        for event in (*model.drops, *model.outcomes):
            self.counts.add(event, data)
        return [(departure.to.port, self._result(frame, departure)) for departure in departures]

    def _result(self, frame: Frame, departure: Departure) -> bytes:
        """The contribution's frame with the result in it, from the address that it was sent to."""
        to = departure.to
        return replace(
            frame,
            payload=encode(departure.header, departure.values or None),
            dst_mac=worker_mac(to),
            src_mac=frame.dst_mac,
            dst_ipv4=to.ipv4,
            src_ipv4=frame.dst_ipv4,
            dst_udp=to.udp_port,
            src_udp=UDP_PORT,
            ttl=RESULT_TTL,
            udp_checksum=0,
            checksum=None,
        ).build()

    def drop_count(self, reason: DropReason) -> tuple[int, int]:
        """Returns what the drop counter of a reason must show."""
        return self.counts[reason]

    def job_counts(self, job: Job) -> dict[str, tuple[int, int]]:
        """Returns what the program's counters of the job must show, by their short names."""
        of = {outcome: self.counts[job.number, outcome] for outcome in Outcome}
        summed = of[Outcome.ABSORBED], of[Outcome.RESULT]
        return {
            "contributions": (summed[0][0] + summed[1][0], summed[0][1] + summed[1][1]),
            "results": of[Outcome.RESULT],
            "replays": of[Outcome.REPLAY],
            "duplicates": of[Outcome.DUPLICATE],
            "stale": of[Outcome.STALE],
        }
