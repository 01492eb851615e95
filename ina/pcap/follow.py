"""The life of one slot, packet by packet: the reference slot is fed what the capture shows.

In a tree of switches each has a slot of its own by that index, and so a life of its own.

What a capture cannot show is said, not guessed: a packet that was lost behind the place of the
capture looks as if it had arrived, and one that passed elsewhere is missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ina.pcap.ends import RING, Address, asker, destination, sender_text, source
from ina.pcap.frame import CapturedFrame
from ina.pcap.packets import Packet
from ina.pcap.paths import whose
from ina.pcap.places import Sighting, sightings
from ina.pcap.rounds import SeenRound, workers_in
from ina.pcap.switches import Switches
from ina.protocol.codec import Header
from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag
from ina.protocol.spec import MAX_WORKERS, Flag, Kind

_LAST_COPY = 255  # the number of any later copy
_EPOCHS = 1 << 16  # the header carries 16 bits of the epoch


@dataclass(frozen=True)
class Event:
    """One packet of the slot and what it did; ``have`` and ``missing``: children, afterwards."""

    packet: Packet
    header: Header
    who: str  # sent it
    what: str
    have: list[int]
    missing: list[int]
    path: int  # of the worker whose packet it is or caused it
    note: str = ""  # what is odd about it, or cannot be seen in this capture
    elsewhere: list[CapturedFrame] = field(default_factory=list)  # the same packet, in other places


@dataclass
class SlotLife:
    """Everything a capture tells of one slot of one switch.

    ``workers``: the switch's children by index, which are workers unless ``in_tree``: then there
    may be switches among them. ``workers_known``: results have named them all, or the caller has;
    otherwise they are those that sent anything for the job.
    """

    job: int
    slot: int
    switch: Address
    workers: list[int]
    workers_known: bool
    in_tree: bool = False  # it is one of several, as far as the capture tells
    has_parent: bool = False
    parents: list[Address] = field(default_factory=list)  # the one, if the capture shows it
    events: list[Event] = field(default_factory=list)
    rounds: list[SeenRound] = field(default_factory=list)


class _JobBits:
    """The bitmap of a switch's children in each epoch of the job, from everything they sent."""

    def __init__(self, worker_count: int | None) -> None:
        self._given = (1 << worker_count) - 1 if worker_count else 0
        self._in_results: dict[int, int] = defaultdict(int)
        self._senders: dict[int, int] = defaultdict(int)

    def learn(self, header: Header) -> None:
        if header.kind is Kind.RESULT:
            self._in_results[header.epoch] |= header.contributors
        elif header.kind is Kind.CONTRIBUTION:
            self._senders[header.epoch] |= 1 << header.worker

    def forget_results(self) -> None:
        """They are a parent's, and have the bits of its children."""
        self._in_results.clear()

    def of(self, epoch: int) -> int:
        return self._given or self._in_results.get(epoch, 0) or self._senders.get(epoch, 0)

    @property
    def known(self) -> bool:
        return bool(self._given) or set(self._senders) <= set(self._in_results)

    @property
    def union(self) -> int:
        bits = 0
        for epoch in {*self._in_results, *self._senders}:
            bits |= self.of(epoch)
        return bits or self._given


class _Epochs:
    """Epochs of a job as numbers that grow beyond the header's 16 bits, and when each began."""

    def __init__(self) -> None:
        self._first_ns: dict[int, int] = {}  # by the header's 16 bits
        self._newest: list[tuple[int, int]] = []  # since when, which; oldest first

    def learn(self, header: Header, time_ns: int) -> None:
        known_ns = self._first_ns.setdefault(header.epoch, time_ns)
        self._first_ns[header.epoch] = min(known_ns, time_ns)

    def place(self, header: Header, time_ns: int) -> tuple[Tag, bool]:
        """Whose round it is, and whether a newer epoch had been seen by then."""
        if not self._newest:
            self._put_in_order()
        newest = next(epoch for since_ns, epoch in reversed(self._newest) if since_ns <= time_ns)
        epoch = _unwrap(header.epoch, newest)
        return Tag(epoch, header.seq), epoch < newest

    def _put_in_order(self) -> None:
        newest = 0
        for since_ns, low in sorted((ns, epoch) for epoch, ns in self._first_ns.items()):
            epoch = _unwrap(low, newest) if newest else _EPOCHS + low
            newest = max(newest, epoch)  # the job was admitted again
            self._newest.append((since_ns, newest))


def _unwrap(low: int, near: int) -> int:
    """The number with these 16 low bits that is nearest."""
    ahead = (low - near) % _EPOCHS
    return near + ahead - (_EPOCHS if ahead >= _EPOCHS // 2 else 0)


def follow(
    packets: Iterable[Packet],
    job: int,
    slot: int,
    *,
    worker_count: int | None = None,
    switch: Address | None = None,
) -> list[SlotLife]:
    """Follows ``slot`` (index within the job's range) of job number ``job`` at each switch of
    which the capture has children, or at ``switch``; those that are below others come last.

    ``packets`` in any order: they are sorted by time, for a capture of several interfaces is not
    quite in order. ``worker_count`` 1..32: children of each; None: from the contributors of any
    result of the job, where the switch makes it, or else the children that sent something.
    """
    switches, epochs = Switches(), _Epochs()
    bits: dict[Address, _JobBits] = defaultdict(lambda: _JobBits(worker_count))
    kept: list[tuple[Packet, Header]] = []
    for packet in packets:
        header = packet.header
        if header is None or header.job != job or not _can_be(header):
            continue
        if packet.is_spoilt and header.slot == slot:
            kept.append((packet, header))
        if not packet.problem:
            switches.learn(packet, header)
            bits[_switch_of(packet, header)].learn(header)
            epochs.learn(header, packet.time_ns)
            if header.slot == slot:
                kept.append((packet, header))
    kept.sort(key=lambda pair: pair[0].time_ns)
    followers = {}
    for address in sorted(switches.with_children(), key=lambda it: (switches.depth(it), it)):
        if switch in (None, address):
            if switches.has_parent(address):
                bits[address].forget_results()
            life = SlotLife(
                *(job, slot, address, workers_in(bits[address].union), bits[address].known),
                in_tree=switches.is_in_tree(address),
                has_parent=switches.has_parent(address),
                parents=switches.parents(address),
            )
            followers[address] = _Follower(life, bits[address])
    for seen in sightings(kept):
        packet, header = seen.packet, seen.header
        for end in {source(packet): None, destination(packet): None}:
            if end in followers and packet.problem:
                followers[end].refuse(seen)
            elif end in followers:
                followers[end].feed(seen, *epochs.place(header, packet.time_ns))
    return [it.life for it in followers.values()]


def _switch_of(packet: Packet, header: Header) -> Address:
    """Whose children the packet's worker and contributors are among."""
    return source(packet) if header.kind is Kind.RESULT else destination(packet)


def _can_be(header: Header) -> bool:
    """Whether there may be such a worker; a result may be for all of them."""
    return header.is_to_all or header.worker < MAX_WORKERS


class _Follower:
    """Feeds the reference slot and writes down what it answers."""

    def __init__(self, life: SlotLife, bits: _JobBits) -> None:
        self.life = life
        self._bits = bits
        self._slot = Slot()
        self._rounds: dict[Tag, SeenRound] = {}
        self._senders: dict[tuple[int, int], str] = {}  # by epoch and worker
        self._copies: set[tuple[Tag, int, int, int]] = set()
        self._elsewhere: list[CapturedFrame] = []
        """Of the packet that it is fed."""
        self._child = "child" if life.in_tree else "worker"

    def feed(self, seen: Sighting, tag: Tag, is_old: bool) -> None:
        packet, header = seen.packet, seen.header
        self._elsewhere = seen.elsewhere
        is_own = source(packet) == self.life.switch
        if header.kind is Kind.RESULT and is_own:
            self._result(packet, header, tag)
        elif header.kind is Kind.RESULT:
            self._from_parent(packet, header, tag)
        elif header.kind is not Kind.CONTRIBUTION:
            self._tell(packet, header, header.kind.name.lower(), self._rounds.get(tag))
        elif is_own:
            self._sum_up(packet, header, tag)
        elif not self._bits.of(header.epoch) >> header.worker & 1:
            self._tell(packet, header, f"refused: not a {self._child} of the {self._whole}", None)
        elif is_old:
            self._tell(packet, header, "refused: an older epoch of the job", None)
        else:
            self._contribution(packet, header, tag)

    def refuse(self, seen: Sighting) -> None:
        """What its receiver drops without a look at what it says, which may be another's."""
        self._elsewhere = seen.elsewhere
        self._tell(seen.packet, seen.header, "dropped: its ICRC is wrong", None)

    @property
    def _whole(self) -> str:
        return "switch" if self.life.in_tree else "job"

    def _contribution(self, packet: Packet, header: Header, tag: Tag) -> None:
        before = self._rounds.get(self._slot.owner)
        takes = tag != self._slot.owner
        all_bits = self._bits.of(header.epoch)
        outcome = self._slot.contribute(Contribution(tag, 1 << header.worker), all_bits)
        note = self._other_sender(packet, header)
        is_new = self._is_new(header, tag)
        if outcome is Outcome.STALE:
            self._tell(packet, header, "stale: dropped", self._rounds.get(tag), note)
            return
        round_ = self._round(tag, header)
        round_.joined.setdefault(header.worker, packet.time_ns)
        if outcome in (Outcome.REPLAY, Outcome.DUPLICATE):
            what = "is in already: dropped"
            if is_new:
                round_.asked_again[header.worker] += 1
            else:
                note = note or "the same packet: a copy, or captured in two places"
            if outcome is Outcome.REPLAY:
                round_.replayed.add(header.worker)
                what = f"asks again: {self._answer}"
                if not round_.results_seen:
                    note = note or "no result seen yet: a contribution or the results were lost"
        else:
            round_.bitmap = self._slot.bitmap
            what = "takes the slot" if takes else "joins"
            note = note or (_too_early(before) if takes else "")
            if outcome is Outcome.RESULT:
                round_.complete_ns = packet.time_ns
                what += f", as the last{self._completion}"
        self._tell(packet, header, what, round_, note)

    @property
    def _answer(self) -> str:
        if self.life.switch == RING:
            return "the result goes to its neighbour alone"
        if not self.life.has_parent:
            return "the result goes to it alone"
        # Whether a child is missing that never shows, nothing in the capture tells.
        return "the sum goes up again" + ("" if self.life.workers_known else " if it is complete")

    @property
    def _completion(self) -> str:
        if not self.life.has_parent:
            return ": the result goes to all"
        return ": the sum goes up" if self.life.workers_known else " that this capture has"

    def _result(self, packet: Packet, header: Header, tag: Tag) -> None:
        """This switch's own, or its parent's on the way down."""
        round_ = self._round(tag, header)
        bits = round_.all_bits if self.life.has_parent else header.contributors
        note = self._complete(round_, packet, bits)
        if header.is_to_all:
            what, again, why = _result_to_all(round_)
        else:
            asked = asker(packet, header)
            what, again, why = _result_to_one(round_, header.worker, asked, self._child)
        what = f"passes down: {what}" if self.life.has_parent else what
        self._tell(packet, header, what + (", again" if again else ""), round_, why or note)

    def _sum_up(self, packet: Packet, header: Header, tag: Tag) -> None:
        """The switch contributes its complete sum to its parent's."""
        round_ = self._round(tag, header)
        note = self._complete(round_, packet, round_.all_bits)
        round_.sums_up += 1
        again = ", again" if round_.sums_up > 1 else ""
        what = f"sends its sum up, as child {header.worker} of {destination(packet)}{again}"
        self._tell(packet, header, what, round_, note)

    def _from_parent(self, packet: Packet, header: Header, tag: Tag) -> None:
        """No slot is touched. Complete here it was before, or in a part that passed elsewhere."""
        round_ = self._round(tag, header)
        note = self._complete(round_, packet, round_.all_bits)
        to = "for the one that asked" if header.flags & Flag.REPLAY else "for all below"
        self._tell(packet, header, f"gets the result, {to}", round_, note)

    def _complete(self, round_: SeenRound, packet: Packet, bits: int) -> str:
        """This packet shows that the round is; returns what of it the capture lacks."""
        note = ""
        if not round_.complete:  # contributions passed elsewhere, or before the capture began
            round_.bitmap |= bits
            round_.complete_ns = packet.time_ns
            if round_.unseen:
                note = f"no contribution of {_names(round_.unseen)} in this capture"
            elif not round_.joined:
                note = f"no contribution of any {self._child} in this capture"
        if round_.tag == self._slot.owner or round_.tag.is_newer(self._slot.owner):
            self._slot.owner, self._slot.bitmap = round_.tag, round_.bitmap
        return note

    def _is_new(self, header: Header, tag: Tag) -> bool:
        """Whether nothing of its worker with this number has come from this child in its round."""
        one = (tag, header.worker, header.path, header.copy)
        is_new = one not in self._copies or header.copy == _LAST_COPY
        self._copies.add(one)
        return is_new

    def _other_sender(self, packet: Packet, header: Header) -> str:
        """A switch admits a worker from one place only."""
        found = sender_text(packet)
        first = self._senders.setdefault((header.epoch, header.worker), found)
        return "" if found == first else f"{self._child} {header.worker} sent from {first}"

    def _round(self, tag: Tag, header: Header) -> SeenRound:
        if tag not in self._rounds:
            self._rounds[tag] = SeenRound(tag, self._bits.of(header.epoch))
            self.life.rounds.append(self._rounds[tag])
        return self._rounds[tag]

    def _tell(
        self, packet: Packet, header: Header, what: str, round_: SeenRound | None, note: str = ""
    ) -> None:
        have = workers_in(round_.bitmap) if round_ else []
        missing = round_.missing if round_ else []
        who, path = self._who(packet, header), whose(header)
        event = Event(packet, header, who, what, have, missing, path, note, self._elsewhere)
        self.life.events.append(event)

    def _who(self, packet: Packet, header: Header) -> str:
        if source(packet) == self.life.switch:
            return "switch"
        if header.kind is Kind.RESULT:
            return "parent"
        below = f", a switch of level {header.level}" if header.level else ""
        return f"{self._child} {header.worker}{below}"


def _result_to_all(round_: SeenRound) -> tuple[str, bool, str]:
    """What it is, whether it has come before, and what is odd about that."""
    round_.results_to_all += 1
    again = round_.results_to_all > 1
    why = "for another port of the switch, or a copy, or captured in two places" if again else ""
    return "result to all", again, why


def _result_to_one(
    round_: SeenRound, worker: int, asked_by: int, child: str
) -> tuple[str, bool, str]:
    """The same of a worker's own; the first, if asked for, may come behind one to all."""
    round_.results[worker] += 1
    seen, asked = round_.results[worker], round_.asked_again[asked_by]
    again = seen > 1 or (round_.results_to_all > 0 and worker in round_.replayed)
    unasked = seen > 1 + asked
    why = "not asked for in this capture: a copy, or captured in two places" if unasked else ""
    return f"result to {child} {worker}", again, why


def _too_early(before: SeenRound | None) -> str:
    """A worker takes a slot only when the round before it is over everywhere."""
    if before is None or before.complete:
        return ""
    return f"but the round of seq {before.tag.seq} before it lacks {_names(before.missing)}"


def _names(workers: list[int]) -> str:
    return ", ".join(map(str, workers))
