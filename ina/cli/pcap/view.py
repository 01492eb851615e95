"""How packets of a capture and the life of a slot are shown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType

from ina.cli.common.output import emit, table
from ina.pcap import Event, Packet, SlotLife
from ina.pcap.paths import leads_on, owner, owner_text, path_text, shape_text, whose
from ina.pcap.rounds import SeenRound
from ina.pcap.sends import Send
from ina.protocol.bth import Opcode
from ina.protocol.codec import Header
from ina.protocol.coding import values_per_word
from ina.protocol.layout import LAYOUT
from ina.protocol.packed import columns_of
from ina.protocol.spec import Flag, Kind, Shape, ValueType

_NS_PER_S = 1e9
_FILE_ENDING = re.compile(r"\.pcap(ng)?(?=:|$)")
_LINE = "{:>6} {:>12} {:>21} {:>21} {:<12} {:>6} {:>5} {:>6} {:>10} {:>5} {:>6} {:>6}  {}"
_HEADINGS = _LINE.format(
    *("no", "time_s", "from", "to", "kind", "worker", "job", "epoch", "seq", "slot", "values"),
    *("exp", "remarks"),
)


class Lines:
    """One line a packet, as they come: a capture may be larger than memory."""

    def __init__(self, values: bool, several_files: bool = False) -> None:
        self._values = values
        self._several_files = several_files
        self._first_ns: int | None = None

    def print(self, packet: Packet, json: bool) -> None:
        """Prints one packet."""
        if json:
            emit(packet_document(packet, self._values), True)
            return
        if self._first_ns is None:
            self._first_ns = packet.time_ns
            print(_HEADINGS)
        print(self._line(packet, packet.time_ns - self._first_ns))

    def _line(self, packet: Packet, since_ns: int) -> str:
        sent = packet.datagram
        cells: list[Any] = [packet.frame.number, f"{since_ns / _NS_PER_S:.6f}"]
        cells += [f"{sent.src}:{sent.src_port}", f"{sent.dst}:{sent.dst_port}"]
        h = packet.header
        if h is None:
            cells += ["?", *[""] * 7]
        else:
            exponents = f"{h.exponent}>{h.next_exponent}"
            worker = "all" if h.is_to_all else h.worker
            cells += [h.kind.name.lower(), worker, h.job, h.epoch, h.seq, h.slot]
            cells += [h.value_count, exponents]
        return _LINE.format(*cells, "; ".join(self._remarks(packet))).rstrip()

    def _remarks(self, packet: Packet) -> list[str]:
        found = [packet.problem] if packet.problem else []
        found += ["not captured whole"] if packet.cut and not packet.problem else []
        if packet.header is not None:
            found += [name.lower() for name in flag_names(packet.header.flags)]
            if packet.header.contributors:
                found.append(f"contributors {packet.header.contributors:#x}")
            found += _in_a_tree(packet.header)
        found += [_send_text(packet.send)] if packet.send is not None else []
        found += ["CE"] if packet.datagram.ecn == 3 else []
        found += [packet.frame.source] if self._several_files else []
        if self._values and packet.values is not None:
            columns = _columns(packet)
            found.append(str(packet.values.tolist()) if columns is None else f"columns {columns}")
        return found


def _in_a_tree(header: Header) -> list[str]:
    """Whose packet it is, or whose caused it, and who sums it, where that is more than a worker;
    and whose chunk it brings, where it is somebody's."""
    found = [f"from level {header.level}"] if header.level else []
    owned_by = owner(header)
    if owned_by is not None:
        found.insert(0, shape_text(header.shape))
    if header.level or owned_by is not None or leads_on(header):
        found.append(f"path {path_text(whose(header))}")
    if owned_by is not None:
        found.append(f"owner {owner_text(owned_by)}")
    return found


def _send_text(send: Send) -> str:
    """``UC_SEND_ONLY to queue pair 0x800040, packet 7``."""
    bth = send.bth
    return f"{Opcode(bth.opcode).name} to queue pair {bth.dest_qp:#x}, packet {bth.psn}"


def send_document(send: Send) -> dict[str, Any]:
    """What RoCEv2 says around a packet; ``icrc``: right, wrong, or not captured."""
    return {
        "opcode": Opcode(send.bth.opcode).name,
        "dest_qp": send.bth.dest_qp,
        "psn": send.bth.psn,
        "icrc": send.icrc.value,
        "is_tunnelled": send.is_tunnelled,
    }


def flag_names(flags: Flag) -> list[str]:
    """The flags that are set, by name; bits without a name by their number."""
    names = [str(flag.name) for flag in Flag if flag & flags]
    rest = int(flags) & ~sum(Flag)
    return [*names, f"{rest:#x}"] if rest else names


def packet_document(packet: Packet, values: bool = True) -> dict[str, Any]:
    """One packet as plain data: times in ns since 1970, numbers as they stand in the header."""
    sent = packet.datagram
    document: dict[str, Any] = {
        "source": packet.frame.source,
        "frame": packet.frame.number,
        "time_ns": packet.time_ns,
        "from": f"{sent.src}:{sent.src_port}",
        "to": f"{sent.dst}:{sent.dst_port}",
        "ecn": sent.ecn,
        "problem": packet.problem,
        "cut": packet.cut,
        "rocev2": None if packet.send is None else send_document(packet.send),
    }
    if packet.header is not None:
        document |= header_document(packet.header)
    if values and packet.values is not None:
        document["values"] = packet.values.tolist()
        if (columns := _columns(packet)) is not None:
            document["columns"] = columns
    return document


def _columns(packet: Packet) -> list[list[int]] | None:
    """The values of words that hold several, by column; None: each word holds one."""
    if packet.header is None or packet.values is None:
        return None
    per_word = values_per_word(packet.header.value_type)
    if per_word == 1:
        return None
    found: list[list[int]] = columns_of(packet.values, 32 // per_word).tolist()
    return found


def header_document(header: Header) -> dict[str, Any]:
    """The header's fields; kind, flags, shape and type by name. ``whose`` and ``owner``: what
    ``path`` says, whose packet it is or whose caused it, 24 bits, and whose chunk, 12 bits."""
    document = {field.name: getattr(header, field.name) for field in LAYOUT}
    types = {member.value: member.name for member in ValueType}
    kind_of_value = types.get(header.value_type, header.value_type)
    shapes = {member.value: member.name for member in Shape}
    return document | {
        "kind": header.kind.name,
        "flags": flag_names(header.flags),
        "shape": shapes.get(header.shape, header.shape),
        "value_type": kind_of_value,
        "whose": whose(header),
        "owner": owner(header),
    }


def life_document(life: SlotLife) -> dict[str, Any]:
    """The life of a slot as plain data."""
    return {
        "job": life.job,
        "slot": life.slot,
        "switch": str(life.switch),
        "in_tree": life.in_tree,
        "has_parent": life.has_parent,
        "parents": [str(parent) for parent in life.parents],
        "workers": life.workers,
        "workers_known": life.workers_known,
        "events": [_event_document(event) for event in life.events],
        "rounds": [_round_document(round_) for round_ in life.rounds],
    }


def _event_document(event: Event) -> dict[str, Any]:
    told = {
        "who": event.who,
        "what": event.what,
        "have": event.have,
        "missing": event.missing,
        "note": event.note,
        "elsewhere": [{"source": it.source, "frame": it.number} for it in event.elsewhere],
    }
    return packet_document(event.packet, values=False) | told


def _round_document(round_: SeenRound) -> dict[str, Any]:
    return {
        "epoch": round_.tag.epoch % (1 << 16),
        "seq": round_.tag.seq,
        "joined": [{"worker": w, "time_ns": ns} for w, ns in round_.joined.items()],
        "complete": round_.complete,
        "complete_ns": round_.complete_ns,
        "missing": round_.missing,
        "unseen": round_.unseen,
        "results": {str(worker): count for worker, count in sorted(round_.results_seen.items())},
        "results_to_all": round_.results_to_all,
        "sums_up": round_.sums_up,
        "asked_again": {str(worker): count for worker, count in round_.asked_again.items()},
    }


def lives_view(lives: Sequence[SlotLife], job: int, slot: int) -> RenderableType:
    """Of each switch two tables: packet by packet, and round by round."""
    if not lives:
        return f"job {job} slot {slot}: no packet of it in the capture"
    several = len(lives) > 1
    return Group(*(part for life in lives for part in _life_parts(life, several)))


def _life_parts(life: SlotLife, several: bool) -> list[RenderableType]:
    whose = f"job {life.job} slot {life.slot}"
    if several or life.in_tree:
        whose += f" of switch {life.switch}"
    if life.has_parent:
        whose += f", below {', '.join(map(str, life.parents)) or 'another'}"
    if not life.events:
        return [f"{whose}: no packet of it in the capture"]
    who = f"{'children' if life.in_tree else 'workers'} {_names(life.workers)}"
    if not life.workers_known:
        who += " at least (no result names them all; --workers N says how many there are)"
    first_ns = life.events[0].packet.time_ns
    several_files = (
        len({it.source for event in life.events for it in [event.packet.frame, *event.elsewhere]})
        > 1
    )
    events = [
        [
            _places(event, several_files),
            f"{(event.packet.time_ns - first_ns) / _NS_PER_S:.6f}",
            event.header.epoch,
            event.header.seq,
            _actor(event),
            event.what,
            _names(event.have),
            _names(event.missing),
            _note(event, life),
        ]
        for event in life.events
    ]
    columns = ["no", "time_s", "epoch", "seq", "who", "what", "have", "missing", "note"]
    rounds = table(
        ["epoch", "seq", "state", "µs", "joined, in order", "results seen to", "sent again by"],
        [_round_row(round_) for round_ in life.rounds],
        title="Rounds",
    )
    return [f"{whose}; {who}", table(columns, events), rounds]


def _places(event: Event, several_files: bool) -> int | str:
    """Where it was captured first; and in how many other places, as ``+1``."""
    frame = event.packet.frame
    if not several_files:
        return frame.number
    more = f" +{len(event.elsewhere)}" if event.elsewhere else ""
    return f"{_FILE_ENDING.sub('', frame.source)} {frame.number}{more}"


def _actor(event: Event) -> str:
    is_resend = event.header.kind is Kind.CONTRIBUTION and event.header.flags & Flag.RESEND
    return f"{event.who} (resend)" if is_resend and event.who != "switch" else event.who


def _note(event: Event, life: SlotLife) -> str:
    """What the packet says besides, in a tree which worker's packet it is, or caused it, and whose
    chunk it brings."""
    flags = event.header.flags & ~Flag.RESEND
    found = [name.lower() for name in flag_names(flags)]
    if life.in_tree:
        is_own = event.header.kind is Kind.CONTRIBUTION and not event.header.level
        path = f"path {path_text(event.path)}"
        found.append(path if is_own else f"caused by {path}")
    if (owned_by := owner(event.header)) is not None:
        found = [shape_text(event.header.shape), *found, f"owner {owner_text(owned_by)}"]
    return "; ".join([*found, *filter(None, [event.note])])


def _round_row(round_: SeenRound) -> list[Any]:
    state = "complete"
    if not round_.complete:
        state = f"open, missing {_names(round_.missing)}"
    elif round_.results_seen and round_.without_result:
        state += f", no result to {_names(round_.without_result)} seen"
    span = "" if round_.span_ns is None else f"{round_.span_ns / 1000:.0f}"
    again = ", ".join(
        f"{worker} ({count}x)" for worker, count in sorted(round_.asked_again.items())
    )
    return [
        round_.tag.epoch % (1 << 16),
        round_.tag.seq,
        state,
        span,
        _names(list(round_.joined)),
        _results(round_),
        again or "-",
    ]


def _results(round_: SeenRound) -> str:
    if not round_.results_to_all:
        return _names(sorted(round_.results))
    alone = f", alone {_names(sorted(round_.results))}" if round_.results else ""
    return f"all{alone}"


def _names(workers: list[int]) -> str:
    return ", ".join(map(str, workers)) or "-"
