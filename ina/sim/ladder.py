"""What happened to packets, as a ladder: a column a node, a line a packet, time downwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ina.extension import sim as native
from ina.extension.sim import Trace
from ina.protocol.bth import BTH_BYTES, ROCE_UDP_PORT, Opcode, decode_bth
from ina.protocol.codec import Header, decode_header
from ina.protocol.errors import PacketError
from ina.protocol.spec import ALL_WORKERS, Flag, Kind
from ina.sim.errors import ScenarioError

__all__ = ["Trace", "ladder", "recorder"]

_UDP_PORT_OFFSET = 36
_PAYLOAD_OFFSET = 42  # Ethernet, IPv4, UDP
_SYNDROME_OFFSET = _PAYLOAD_OFFSET + BTH_BYTES
_NAK = 0x60
_COLUMN = 16
_TIME = 14
_SHORT = {Kind.CONTRIBUTION: "c", Kind.RESULT: "r"}
_FATES = {
    native.Fate.LOST: "lost",
    native.Fate.CORRUPTED: "corrupted",
    native.Fate.LINK_DOWN: "link down",
    native.Fate.QUEUE_FULL: "queue full",
}


def recorder(most_frames: int, pcap: Path | None) -> Trace:
    """What keeps the newest frames for a ladder, and writes all to a file.

    Raises :class:`ScenarioError`: the file cannot be written.
    """
    try:
        return Trace(most_frames, str(pcap or ""))
    except OSError as error:
        raise ScenarioError(f"{pcap}: {error.strerror}") from None


def ladder(
    records: Iterable[native.TraceRecord],
    ports: Sequence[str],
    *,
    seqs: frozenset[int] | None = None,
    window: int = 0,
) -> Iterator[str]:
    """Lines. ``ports``: of the trace, ``FROM>TO``.

    ``seqs``: packets of these chunks only (with ``window``: of their lanes); None: all.
    """
    shown = [record for record in records if _is_shown(record, seqs, window)]
    ways = [name.partition("#")[0].split(">") for name in ports]
    nodes = _ordered({node for record in shown for node in ways[record.port]}, ways)
    if not shown:
        yield "no packet"
        return
    yield " " * _TIME + "".join(f"{node:^{_COLUMN}}" for node in nodes)
    for record in sorted(shown, key=lambda one: one.sent_ns):
        here, there = (nodes.index(node) for node in ways[record.port])
        yield f"{record.sent_ns / 1e3:>{_TIME - 3}.3f} us" + _arrow(
            here, there, len(nodes), label(record), record.fate
        )


def label(record: native.TraceRecord) -> str:
    """Kind, sequence number and worker of an ina packet; what a NIC says of which packet's number;
    else the frame's size."""
    header = header_of(record)
    if header is None:
        return _reply(record.head) or f"{record.frame_bytes} B"
    kind = _SHORT.get(header.kind, "?")
    worker = "*" if header.worker == ALL_WORKERS else str(header.worker)
    again = "'" if header.flags & Flag.RESEND else ""
    values = "" if header.value_count else "e"
    return f"{kind}{header.seq}{values}{again}/{worker}"


def header_of(record: native.TraceRecord) -> Header | None:
    """None: it is no packet of ina."""
    inside = _PAYLOAD_OFFSET + (BTH_BYTES if _is_roce(record.head) else 0)
    try:
        return decode_header(record.head[inside:])
    except PacketError:
        return None


def _is_roce(head: bytes) -> bool:
    port = head[_UDP_PORT_OFFSET : _UDP_PORT_OFFSET + 2]
    return int.from_bytes(port, "big") == ROCE_UDP_PORT


def _reply(head: bytes) -> str:
    """Empty: it is none."""
    if not _is_roce(head) or len(head) <= _SYNDROME_OFFSET:
        return ""
    bth = decode_bth(head[_PAYLOAD_OFFSET:])
    if bth.opcode != Opcode.RC_ACKNOWLEDGE:
        return ""
    return f"{'nak' if head[_SYNDROME_OFFSET] & _NAK else 'ack'} {bth.psn}"


def _is_shown(record: native.TraceRecord, seqs: frozenset[int] | None, window: int) -> bool:
    if seqs is None:
        return True
    header = header_of(record)
    if header is None:
        return False
    if window:
        return any((header.seq - seq) % window == 0 for seq in seqs)
    return header.seq in seqs


def _ordered(nodes: set[str], ways: Sequence[Sequence[str]]) -> list[str]:
    """As a tree is written down: half of what is below a node, the node, the other half."""
    neighbours: dict[str, set[str]] = {}
    for one, other in ways:
        if one in nodes and other in nodes:
            neighbours.setdefault(one, set()).add(other)
            neighbours.setdefault(other, set()).add(one)
    found: list[str] = []
    seen: set[str] = set()
    # Of two in the middle the one that is named last: hosts come first.
    last_first = list(neighbours)[::-1]
    for root in sorted(last_first, key=lambda name: _depth(neighbours, name)):
        found += _in_order(neighbours, root, seen)
    return found


def _in_order(neighbours: Mapping[str, set[str]], node: str, seen: set[str]) -> list[str]:
    """What a breadth-first search from there has found and nobody before. ``seen`` grows."""
    if node in seen:
        return []
    seen.add(node)
    order = [node]
    below: dict[str, list[str]] = {}
    for one in order:
        below[one] = sorted(neighbours[one] - seen, key=_natural)
        seen.update(below[one])
        order += below[one]
    parts: dict[str, list[str]] = {}
    for one in reversed(order):
        half = (len(below[one]) + 1) // 2
        first, second = (
            [name for child in children for name in parts[child]]
            for children in (below[one][:half], below[one][half:])
        )
        parts[one] = [*first, one, *second]
    return parts[node]


def _depth(neighbours: Mapping[str, set[str]], node: str) -> int:
    """Cables to the node that is farthest from it."""
    away = {node: 0}
    order = [node]
    for one in order:
        for other in neighbours[one] - away.keys():
            away[other] = away[one] + 1
            order.append(other)
    return max(away.values())


def _natural(name: str) -> tuple[str, int]:
    letters = name.rstrip("0123456789")
    digits = name[len(letters) :]
    return letters, int(digits) if digits else 0


def _arrow(here: int, there: int, nodes: int, text: str, fate: native.Fate) -> str:
    cells = [" "] * (_COLUMN * nodes)
    for node in range(nodes):
        cells[node * _COLUMN + _COLUMN // 2] = "|"
    start, end = (node * _COLUMN + _COLUMN // 2 for node in (here, there))
    step = 1 if end > start else -1
    for at in range(start + step, end, step):
        cells[at] = "-"
    arrives = fate is native.Fate.ARRIVES
    cells[end - step] = (">" if step > 0 else "<") if arrives else "x"
    low = min(start, end)
    place = low + 1 + max(0, (abs(end - start) - 1 - len(text)) // 2)
    room = max(start, end) - 1
    for offset, char in enumerate(text):
        if place + offset < room:
            cells[place + offset] = char
    line = "".join(cells).rstrip()
    return line if arrives else f"{line}  {_FATES[fate]}"
