"""The reference: ``ina.protocol.switch_model`` for INA packets, a short switch for all others.

It is what the P4 program is judged by, so it shares nothing with it: it reads frames byte by byte,
and it is written for reading. Frames come one at a time, so a queue holds only the copies of one.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from ina import modes
from ina.p4 import names
from ina.protocol.codec import encode
from ina.protocol.roce import ipv4_checksum
from ina.protocol.slot_model import Outcome
from ina.protocol.spec import PARENT, DropReason, Flag, Kind
from ina.protocol.switch_model import Attachment, Departure, SwitchModel
from ina.tables.values import AnyItem, Count, CounterRef, DefaultAction, Entry, Group
from ina.testing.device import Ability
from ina.testing.frames import (
    CE,
    ETHERNET_BYTES,
    IPV4,
    IPV4_BYTES,
    Frame,
    PortFrame,
)
from ina.testing.framing import FRAMINGS
from ina.testing.model_tables import Tables, sender_number, strips_of

DROP_PORT = 511
_IPV4 = b"\x08\x00"
_COUNTERS = {
    Outcome.ABSORBED: (names.JOB_CONTRIBUTIONS,),
    Outcome.RESULT: (names.JOB_CONTRIBUTIONS, names.JOB_RESULTS),
    Outcome.REPLAY: (names.JOB_REPLAYS,),
    Outcome.DUPLICATE: (names.JOB_DUPLICATES,),
    Outcome.STALE: (names.JOB_STALE,),
    Outcome.JOINED_AND_FLUSHED: (names.JOB_CONTRIBUTIONS, names.JOB_FLUSHES),
    Outcome.FLUSHED: (names.JOB_REPLAYS, names.JOB_FLUSHES),
    Outcome.COLLISION: (names.JOB_COLLISIONS,),
    Outcome.BYPASSED: (names.JOB_BYPASSED,),
    Outcome.LATE: (names.JOB_LATE,),
    Outcome.MISSED: (names.JOB_MISSED,),
    Outcome.EVICTED: (names.JOB_CONTRIBUTIONS,),
}


class ModelDevice:
    """See :class:`ina.testing.device.Device`."""

    name = "model"
    abilities = frozenset(Ability)
    ports = range(names.CPU_PORT + 1)
    frame_bytes = range(1 << 16)

    def __init__(self, mode: str = names.DEFAULT_MODE) -> None:
        self.mode = mode
        self.reset(64)

    def reset(self, values: int) -> None:
        """As at power-on."""
        mode = modes.of(self.mode)
        self._framing = FRAMINGS[mode.framing]
        self._tables = Tables(self._framing.sender)
        self._model = SwitchModel(
            names.SLOTS_TOTAL,
            values,
            gathers=mode.gathers,
            expands=mode.is_stream,
            shapes=self._framing.has_shapes,
        )
        self._member: dict[str, int] = {}  # parameters of the row of who sent what is processed
        self._params: dict[int, dict[str, int]] = {}  # of the job table, by job number

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes them, in order."""
        for item in items:
            self._tables.insert(item)
        self._admit()

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes them off, in order."""
        for item in items:
            self._tables.delete(item)
        self._admit()

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups other copies, in order."""
        for group in groups:
            self._tables.modify(group)

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        """Returns what leaves, frame by frame."""
        return [out for port, data in frames for out in self._switch(port, data)]

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Packets and bytes of each."""
        return [self._tables.read(ref) for ref in refs]

    def __enter__(self) -> ModelDevice:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """There is nothing to give back."""

    def _admit(self) -> None:
        self._model.jobs.clear()
        self._model.owners.clear()
        self._params.clear()
        for row, job in self._tables.jobs():
            self._model.install(job)
            self._params[job.number] = dict(row.params)
        owners = self._tables.owners()
        for epoch in self._model.owners.keys() - owners:
            del self._model.owners[epoch]

    def _switch(self, port: int, data: bytes) -> list[PortFrame]:
        if port == names.CPU_PORT:
            return self._packet_out(data)
        if self._framing.may_be_its(data):
            is_own = self._framing.is_own(self._tables, int.from_bytes(data[30:34], "big"))
            passes = self._framing.passes(self._tables, port, data, is_own=is_own)
            if passes is None and is_own:
                return self._aggregate(port, data)
            if isinstance(passes, tuple):
                return self._send(port, *passes)
            if passes is False:
                self._tables.count(names.DROPS, DropReason.MEMBER, len(data))
                return []
        if len(data) < ETHERNET_BYTES:
            return []
        return self._forward(port, data)

    # -- INA packets --

    def _aggregate(self, port: int, data: bytes) -> list[PortFrame]:
        frame, model = self._framing.opened(data), self._model
        if frame is None or not model.fits(frame.payload):
            self._tables.count(names.DROPS, DropReason.MALFORMED, len(data))
            return []
        if (reason := self._framing.spoilt(data)) is not None:
            self._tables.count(names.DROPS, reason, len(data))
            return []
        model.drops.clear()
        model.outcomes.clear()
        model.passed_down.clear()
        model.members.clear()
        model.evicted.clear()
        sender = sender_number(self._framing.sender_of(frame))
        departures = model.receive(
            self._tables.same(Attachment(port, frame.src_ipv4, sender), frame.payload),
            frame.payload,
            congestion_experienced=frame.ecn == CE,
        )
        for reason in model.drops:
            self._tables.count(names.DROPS, reason, len(data))
        if not model.members:
            return []
        job = int.from_bytes(frame.payload[2:4], "big")
        self._member = self._member_row(port, frame)
        for _, outcome in model.outcomes:
            for name in _COUNTERS[outcome]:
                self._tables.count(name, self._index(job), len(data))
        for owner in model.evicted:
            self._tables.count(names.JOB_EVICTIONS, self._index(owner), len(data))
        for _ in model.passed_down:
            self._tables.count(names.JOB_PASSED_DOWN, self._index(job), len(data))
        return self._distribute(frame, job, departures)

    def _member_row(self, port: int, frame: Frame) -> dict[str, int]:
        """Parameters of the row that has let it in, which counts it."""
        job, epoch = (int.from_bytes(frame.payload[at : at + 2], "big") for at in (2, 4))
        worker, kind = frame.payload[6], frame.payload[0] & 0xF
        sender = frame.src_ipv4, *self._framing.sender_of(frame)
        row = self._tables.hit(
            names.MEMBERS, (port, *sender, job, epoch, worker, kind), len(frame.build())
        )
        return {} if row is None else dict(row.params)

    def _index(self, job: int) -> int:
        """Which counters are the job's."""
        return self._params[job]["job_index"]

    def _distribute(self, frame: Frame, job: int, departures: list[Departure]) -> list[PortFrame]:
        """A result to the replicas of the job's group, or to one child; or a sum to the parent.

        The model knows no groups, so to it no worker shares. What copies there are is the group's
        matter here: instance r names worker r - 1, and 256 the number that stands for all. Nor does
        it know which are stripped: their rows say it.
        """
        if _is_to_all(departures):
            copies = self._tables.group(self._params[job]["group"])
            wanted = [(port, _to_worker(departures[0], rid - 1)) for port, rid in copies]
        else:
            wanted = [(self._port_of(job, departure), departure) for departure in departures]
        sent: list[PortFrame] = []
        depths: Tally[int] = Tally()
        for port, departure in wanted:
            result = self._address(frame, job, departure)
            if result is None:
                self._tables.count(names.JOB_UNADDRESSED, self._index(job), len(frame.build()))
            else:
                marked = self._mark_ours(result, job, depths[port], len(frame.build()))
                sent.append((port, marked))
            depths[port] += 1
        return sent

    def _port_of(self, job: int, departure: Departure) -> int:
        """The parent's, a child's or the sender's; for the first two the tables say it."""
        if _is_going_up(departure):
            return self._params[departure.header.job]["parent_port"]
        way = departure.header.path & self._params[job].get("path_mask", 0)
        row = self._tables.hit(names.CHILDREN, (job, way), 0)
        if row is not None:
            return dict(row.params)["port"]
        return self._framing.way_back(departure.to.port, self._member)

    def _address(self, frame: Frame, job: int, departure: Departure) -> Frame | None:
        """The contribution's frame on its way back, from the address that it was sent to."""
        length = len(frame.build())
        receiver = PARENT if _is_going_up(departure) else departure.header.worker
        whose = departure.header.job  # a sum that was put out of its slot is another job's
        key = self._framing.receiver(whose, receiver, self._member)
        row = self._tables.hit(names.RECEIVERS, key, length)
        if row is None:
            return None
        to = dict(row.params)
        departure = self._model.stripped(departure, strips_of(to))
        header = departure.header
        if receiver == PARENT:
            own = self._params[whose]
            header = replace(
                header,
                worker=own["own_worker"],
                contributors=own.get("own_bit", header.contributors),
                level=own["own_level"],
            )
        payload = encode(self._framing.told(header, to), departure.values or None)
        return self._framing.addressed(frame, payload, header.seq, to)

    def _mark_ours(self, result: Frame, job: int, depth: int, arrived_bytes: int) -> bytes:
        """A switch counts bytes of what has arrived, which here may be shorter than the result."""
        if depth <= self._threshold():
            return result.build()
        self._tables.count(names.JOB_ECN_MARKS, self._index(job), arrived_bytes)
        payload = bytearray(result.payload)
        payload[1] |= Flag.ECN
        tos = result.tos | CE if result.ecn else result.tos
        return replace(result, payload=bytes(payload), tos=tos).build()

    def _threshold(self) -> int:
        default = self._tables.default(names.ECN_THRESHOLD)
        return 0x7FFFF if default is None else dict(default.params)["packets"]

    # -- all others --

    def _packet_out(self, data: bytes) -> list[PortFrame]:
        """Two bytes (port, 7 bits of padding), then the frame."""
        if len(data) < 2:
            return []
        return self._send(names.CPU_PORT, int.from_bytes(data[:2], "big") >> 7, data[2:])

    def _forward(self, port: int, data: bytes) -> list[PortFrame]:
        dst_mac = int.from_bytes(data[:6], "big")
        is_ipv4 = data[12:14] == _IPV4 and len(data) >= ETHERNET_BYTES + IPV4_BYTES
        if is_ipv4 and self._tables.hit(names.ROUTER_MACS, (dst_mac,), len(data)):
            return self._route(port, data)
        entry = self._tables.hit(names.DMAC, (dst_mac,), len(data))
        return self._act(port, data, entry or self._tables.default(names.DMAC))

    def _route(self, port: int, data: bytes) -> list[PortFrame]:
        version, words = data[14] >> 4, data[14] & 15
        wrong_sum = words == 5 and int.from_bytes(data[24:26], "big") != ipv4_checksum(data[IPV4])
        if version != 4 or words < 5 or data[22] < 2 or wrong_sum:
            return []
        to = int.from_bytes(data[30:34], "big")
        entry = self._tables.longest_prefix(names.IPV4_LPM, to, len(data))
        if entry is None:
            return self._act(port, data, self._tables.default(names.IPV4_LPM))
        return self._act(port, _changed(data, 22, data[22] - 1), entry)

    def _act(self, port: int, data: bytes, what: Entry | DefaultAction | None) -> list[PortFrame]:
        if what is None:
            return []
        params = dict(what.params)
        match what.action:
            case names.FORWARD:
                return self._send(port, params["port"], data)
            case names.ROUTE:
                macs = params["dst_mac"].to_bytes(6, "big") + params["src_mac"].to_bytes(6, "big")
                return self._send(port, params["port"], macs + data[12:])
            case names.SEND_TO_CONTROLLER:
                return self._send(port, names.CPU_PORT, data)
            case names.FLOOD:
                return self._flood(port, params["group"], data)
            case _:
                return []

    def _flood(self, port: int, group: int, data: bytes) -> list[PortFrame]:
        sent: list[PortFrame] = []
        depths: Tally[int] = Tally()
        for out, rid in self._tables.group(group):
            if rid == 0 or out != port:
                sent += self._send(port, out, data, depths[out])
            depths[out] += 1
        return sent

    def _send(self, port: int, out: int, data: bytes, depth: int = 0) -> list[PortFrame]:
        """Egress: what goes to the controller says where it came from; a long queue marks."""
        if out == DROP_PORT:
            return []
        if out != names.CPU_PORT:
            return [(out, self._mark(data, depth))]
        return [(out, (port << 7).to_bytes(2, "big") + self._mark(data, depth))]

    def _mark(self, data: bytes, depth: int) -> bytes:
        is_ipv4 = data[12:14] == _IPV4 and len(data) >= ETHERNET_BYTES + IPV4_BYTES
        if depth <= self._threshold() or not is_ipv4 or not data[15] & 3:
            return data
        return _changed(data, 15, data[15] | CE)


def _to_worker(departure: Departure, worker: int) -> Departure:
    return replace(departure, header=replace(departure.header, worker=worker))


def _is_going_up(departure: Departure) -> bool:
    return departure.header.kind is Kind.CONTRIBUTION


def _is_to_all(departures: Sequence[Departure]) -> bool:
    return any(
        not _is_going_up(departure) and not departure.header.flags & Flag.REPLAY
        for departure in departures
    )


def _changed(data: bytes, offset: int, value: int) -> bytes:
    """One byte of the IPv4 header changed, and its checksum by the difference (RFC 1624)."""
    changed = bytearray(data)
    word = offset & ~1
    before = int.from_bytes(data[word : word + 2], "big")
    changed[offset] = value
    after = int.from_bytes(changed[word : word + 2], "big")
    total = (int.from_bytes(data[24:26], "big") ^ 0xFFFF) + (before ^ 0xFFFF) + after
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    changed[24:26] = (total ^ 0xFFFF).to_bytes(2, "big")
    return bytes(changed)
