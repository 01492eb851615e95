"""A ring of adapters that know of no switch: sums in place of what they send to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from ina.p4 import names
from ina.protocol.bth import Bth, Opcode
from ina.protocol.roce import RoceFrame, encode_frame
from ina.protocol.spec import DropReason, Flag
from ina.tables.values import AnyItem, Counter, CounterRef, DefaultAction, Entry, Group
from ina.testing.case import Arrival, Case, ItemChange, Step
from ina.testing.cases.actors import STRANGER_PORT, tally, team
from ina.testing.cases.malformed import changed
from ina.testing.cases.ring import Ring, ring
from ina.testing.cases.sends import cases_of, ring_scene
from ina.testing.frames import CE, ETHERNET_BYTES, IPV4, PAYLOAD_OFFSET
from ina.testing.state import worker_mac
from ina.testing.wrapping import network_row

MODE = names.TRANSPARENT
_HOST, _HOST_MAC, _HOST_PORT = 0xC0A8_0007, 0x02AA_0000_0007, 2
"""Somebody behind the switch who has nothing to do with any ring."""
_ACK, _NAK = b"\x1f\x00\x00\x01", b"\x60\x00\x00\x01"
"""AETH: syndrome, and the number of messages."""
_CNP = bytes(16)
_FLOOD = 0x3000


def cases(values: int) -> Iterator[Case]:
    """Of what is not as in mode pool, or has no case there that can be said of a ring."""
    yield from cases_of(ring_scene(team(values)))
    yield from completions(values)
    yield from messages(values)
    yield from repetitions(values)
    yield from marks(values)
    yield from strangers(values)
    yield from replies(values)
    yield from bystanders(values)
    yield from unreadable(values)
    yield from closed(values)
    yield from lifecycle(values)


def completions(values: int) -> Iterator[Case]:
    """A complete chunk leaves once on each flow."""
    for size in (1, 2, 3, 8, 32):
        them = ring(values, size)
        yield _case(
            f"ring/of-{size}",
            f"{size} packets come, and as many leave: each with its flow's addresses, queue pair"
            " and number, and the sum.",
            them,
            (*them.round(0), *them.round(1)),
            tally(them.them, contributions=2 * size, results=2),
        )
    by_rack = ring(values, 4, order=(0, 2, 1, 3))
    yield _case(
        "ring/of-any-order",
        "Who follows whom is what the rows say.",
        by_rack,
        by_rack.round(),
        tally(by_rack.them, contributions=4, results=1),
    )
    behind_one = ring(values, 4, ports=(2, 2, 1, 2))
    yield _case(
        "ring/behind-one-port",
        "Neighbours behind one port: copies leave by the port that they came in by.",
        behind_one,
        behind_one.round(),
        tally(behind_one.them, contributions=4, results=1),
    )
    them = ring(values)
    parts = [them.them.numbers(it) for it in (1, 2, 3)]
    sums = [sum(column) for column in zip(*parts, strict=True)]
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        *first, last = order
        yield _case(
            f"ring/complete-by-{last}-after-{first[0]}",
            "Whoever comes last: the sum is on all flows, and no packet is what it was.",
            them,
            (
                *(them.sends(it, 3, parts[it]) for it in first),
                them.sends(last, 3, parts[last]).gives(*them.results(3, sums)),
            ),
            tally(them.them, contributions=3, results=1),
        )
    yield _case(
        "ring/exponents-only",
        "Packets without values are exchanged for such ones.",
        them,
        (
            *(them.sends(it, 0, next_exponent=it) for it in (0, 1)),
            them.sends(2, 0, next_exponent=2).gives(*them.results(0, next_exponent=2)),
        ),
        tally(them.them, contributions=3, results=1),
    )


def messages(values: int) -> Iterator[Case]:
    """Place, number and the wish for an acknowledgement follow from the chunk's number."""
    them = ring(values, 2, segments=4)
    yield _case(
        "message/of-four",
        "FIRST, MIDDLE, MIDDLE, LAST on both flows, and LAST alone asks for an acknowledgement.",
        them,
        tuple(step for seq in range(8) for step in them.round(seq)),
        tally(them.them, contributions=16, results=8),
    )
    of_two = ring(values, 2, segments=2)
    yield _case(
        "message/of-two",
        "FIRST, LAST.",
        of_two,
        (*of_two.round(6), *of_two.round(7)),
        tally(of_two.them, contributions=4, results=2),
    )
    on_two = ring(values, 3, lane_bits=1)
    yield _case(
        "message/on-two-connections",
        "A flow has two, for even chunks and odd ones: each has its queue pair and its numbers.",
        on_two,
        tuple(step for seq in (0, 1, 3, 2, 4, 5) for step in on_two.round(seq)),
        tally(on_two.them, contributions=18, results=6),
    )
    yield _case(
        "message/again-on-the-second",
        "What is sent again is answered on its connection.",
        on_two,
        (
            *on_two.round(1),
            on_two.sends(2, 1, on_two.them.ones()).gives(
                on_two.replay(2, 1, [3] * on_two.them.values)
            ),
        ),
        tally(on_two.them, contributions=3, results=1, replays=1),
    )
    yield _case(
        "message/out-of-order",
        "A later packet of a message is complete first: it says so by its number.",
        them,
        (*them.round(2), *them.round(1)),
        tally(them.them, contributions=4, results=2),
    )
    high = 0xFFFF_FFFE
    one = ring(values, 2)
    yield _case(
        "message/number-wraps",
        "24 bits of the chunk's number, from the flow's first one on.",
        one,
        (*one.round(high), *one.round(high + 1), *one.round(0x00FF_FFFF)),
        tally(one.them, contributions=6, results=3),
    )


def repetitions(values: int) -> Iterator[Case]:
    """An adapter goes back, for what it has sent, or what came in its place, was lost."""
    them = ring(values)
    ones, sums = them.them.ones(), [3] * values
    others = them.them.numbers(5)
    again = [them.sends(it, 0, others).gives(them.replay(it, 0, sums)) for it in them.order]
    yield _case(
        "again/complete",
        "What was summed is answered with the stored sum, on the flow of who asks and no other.",
        them,
        (*them.round(), *again, *again[:1]),
        tally(them.them, contributions=3, results=1, replays=4),
    )
    yield _case(
        "again/incomplete",
        "What waits for others is dropped, and is in the sum once.",
        them,
        (
            them.sends(0, 0, ones),
            them.sends(0, 0, ones),
            them.sends(1, 0, ones),
            them.sends(0, 0, others),
            them.sends(1, 0, ones),
            them.sends(2, 0, ones).gives(*them.results(0, sums)),
        ),
        tally(them.them, contributions=3, results=1, duplicates=3),
    )
    yield from windows(values)


def windows(values: int) -> Iterator[Case]:
    """How far an adapter may go back."""
    them = ring(values)
    ones, sums = them.them.ones(), [3] * values
    window = them.them.job.slots // 2
    yield _case(
        "again/back-by-a-window",
        "All that an adapter can have without an acknowledgement is there: two windows of slots.",
        them,
        (
            *(step for seq in range(2 * window) for step in them.round(seq)),
            *(
                them.sends(1, seq, ones).gives(them.replay(1, seq, sums))
                for seq in range(2 * window)
            ),
        ),
        tally(them.them, contributions=6 * window, results=2 * window, replays=2 * window),
    )
    yield _case(
        "again/lost-before-the-switch",
        "A gap: later chunks stay incomplete, and are complete when the adapter has gone back.",
        them,
        (
            *(them.sends(it, seq, ones) for it in (0, 1) for seq in (0, 1, 2)),
            them.sends(2, 1, ones).gives(*them.results(1, sums)),
            them.sends(2, 2, ones).gives(*them.results(2, sums)),
            them.sends(2, 0, ones).gives(*them.results(0, sums)),
            them.sends(2, 1, ones).gives(them.replay(2, 1, sums)),
            them.sends(2, 2, ones).gives(them.replay(2, 2, sums)),
        ),
        tally(them.them, contributions=9, results=3, replays=2),
    )
    slots = them.them.job.slots
    yield _case(
        "again/older",
        "Older than what its slot holds: dropped, however late it comes.",
        them,
        (
            *them.round(0),
            them.sends(0, slots, ones),
            them.sends(1, 0, ones),
            them.sends(0, 0, ones),
            them.sends(1, slots, ones),
            them.sends(2, slots, ones).gives(*them.results(slots, sums)),
            them.sends(2, 0, ones),
        ),
        tally(them.them, contributions=6, results=2, stale=3),
    )


def marks(values: int) -> Iterator[Case]:
    """Adapters slow down by marks alone, so none may be lost in a sum."""
    them = ring(values)
    ones, sums = them.them.ones(), [3] * values
    said = {"flags": Flag.ECN}

    def marked(worker: int, tos: int) -> Arrival:
        frame = replace(them.frame(worker, 0, ones), tos=tos)
        return Arrival(them.at(worker).port, encode_frame(frame))

    for name, first, last, leaves in (
        ("by-the-first", CE, 2, CE),
        ("by-the-last", 2, CE, CE),
        ("on-ect-1", CE, 1, CE),
        ("not-without-ecn", CE, 0, 0),
        ("with-its-class", CE, 0xB8 | 2, 0xB8 | CE),
    ):
        yield _case(
            f"mark/{name}",
            "A packet came with CE: all that leave have it, and ina's header says so.",
            them,
            (
                marked(0, first),
                them.sends(1, 0, ones),
                marked(2, last).gives(*them.results(0, sums, tos=leaves, **said)),
                them.sends(1, 0, ones).gives(them.replay(1, 0, sums, tos=CE, **said)),
            ),
            tally(them.them, contributions=3, results=1, replays=1),
        )
    yield _case(
        "mark/ends-with-its-round",
        "The slot's next chunk is marked by its own packets alone.",
        them,
        (
            marked(0, CE),
            them.sends(1, 0, ones),
            them.sends(2, 0, ones).gives(*them.results(0, sums, tos=CE, **said)),
            *them.round(them.them.job.slots),
        ),
        tally(them.them, contributions=6, results=2),
    )


def strangers(values: int) -> Iterator[Case]:
    """A packet counts from the one port and address to the one neighbour and queue pair."""
    them = ring(values)
    usual = them.frame(0, 0, them.them.numbers(1))
    bth = usual.bth
    for name, port, frame in (
        ("another-worker's-port", 2, usual),
        ("a-port-without-workers", STRANGER_PORT, usual),
        ("another-worker's-address", 1, replace(usual, src_ipv4=them.at(1).ipv4)),
        ("to-another-neighbour", 1, replace(usual, dst_ipv4=them.at(2).ipv4)),
        ("to-itself", 1, replace(usual, dst_ipv4=them.at(0).ipv4)),
        ("another-queue-pair", 1, replace(usual, bth=replace(bth, dest_qp=bth.dest_qp ^ 1))),
        ("the-way-back", 2, replace(usual, src_ipv4=usual.dst_ipv4, dst_ipv4=usual.src_ipv4)),
    ):
        yield _case(
            f"stranger/ring-{name}",
            "Dropped and counted: neither summed, nor passed on.",
            them,
            (Arrival(port, encode_frame(frame)), *them.round()),
            tally(them.them, contributions=3, results=1, drops={DropReason.MEMBER: 1}),
        )
    other = ring(values, 2, number=2, first_slot=64)
    forged = replace(other.frame(0, 0, other.them.ones()), payload=usual.payload)
    yield Case(
        "stranger/ring-of-another-job",
        "Two rings: a worker of one that speaks for the other changes nothing in either.",
        values,
        (*them.all_rows, *them.ways, *other.all_rows),
        (
            them.sends(0, 0, them.them.ones()),
            Arrival(1, encode_frame(forged)),
            *other.round(),
            *them.round()[1:],
            *other.round(1),
        ),
        {
            **tally(them.them, contributions=3, results=1, drops={DropReason.MEMBER: 1}),
            **{
                ref: count
                for ref, count in tally(other.them, contributions=4, results=2).items()
                if isinstance(ref, Counter) and ref.name != names.DROPS
            },
        },
        mode=MODE,
    )
    psn_is_wrong = replace(usual, bth=replace(bth, psn=bth.psn ^ 0x800), payload=_ones(them))
    yield _case(
        "stranger/psn-is-not-looked-at",
        "The header says which chunk it is; the number that leaves follows from that.",
        them,
        (Arrival(1, encode_frame(psn_is_wrong)), *them.round()[1:]),
        tally(them.them, contributions=3, results=1),
    )


def replies(values: int) -> Iterator[Case]:
    """What receivers say to senders crosses the switch as it came, where rows say so."""
    them = ring(values)
    for name, opcode, further in (
        ("ack", Opcode.RC_ACKNOWLEDGE, _ACK),
        ("nak", Opcode.RC_ACKNOWLEDGE, _NAK),
        ("congestion", Opcode.CONGESTION_NOTIFICATION, _CNP),
        ("nothing-behind-it", Opcode.RC_ACKNOWLEDGE, b""),
        ("as-long-as-a-send", Opcode.RC_ACKNOWLEDGE, bytes(32)),
    ):
        said = [(it, encode_frame(them.says(it, opcode, further, psn=7 + it))) for it in them.order]
        yield _case(
            f"reply/{name}",
            "From the next worker to the one before it: not a bit of IP is changed, none counted.",
            them,
            (
                *(
                    Arrival(them.at(them.next(it)).port, data).gives(them.passed_on(it, data))
                    for it, data in said
                ),
                *them.round(),
            ),
            tally(them.them, contributions=3, results=1),
        )
    usual = them.says(0, Opcode.RC_ACKNOWLEDGE, _ACK)
    spoilt = encode_frame(usual)[:-1] + b"\x00"
    yield _case(
        "reply/spoilt",
        "Its ICRC is its receiver's matter.",
        them,
        (Arrival(2, spoilt).gives(them.passed_on(0, spoilt)),),
        {},
    )
    yield from other_replies(them, usual)


def other_replies(them: Ring, usual: RoceFrame) -> Iterator[Case]:
    """Those that no row lets through, and what else may be of them."""
    for name, port, frame in (
        ("another-port", 3, usual),
        ("another-address", 2, replace(usual, src_ipv4=them.at(2).ipv4)),
        ("to-another", 2, replace(usual, dst_ipv4=them.at(2).ipv4)),
        ("another-queue-pair", 2, replace(usual, bth=replace(usual.bth, dest_qp=1))),
    ):
        yield _case(
            f"reply/{name}",
            "No row lets it through: dropped and counted.",
            them,
            (Arrival(port, encode_frame(frame)), *them.round()),
            tally(them.them, contributions=3, results=1, drops={DropReason.MEMBER: 1}),
        )
    marked = changed(encode_frame(usual), 14, 0x4503)
    yield _case(
        "reply/marked",
        "It keeps its mark.",
        them,
        (Arrival(2, marked).gives(them.passed_on(0, marked)),),
        {},
    )
    yield _case(
        "reply/needs-no-way",
        "Its row says by which port it leaves.",
        them,
        (Arrival(2, encode_frame(usual)).gives(them.passed_on(0, encode_frame(usual))),),
        {},
        without_ways=True,
    )


def bystanders(values: int) -> Iterator[Case]:
    """Others use RoCEv2 across the switch, too."""
    them = ring(values)
    for name, opcode, payload in (
        ("send", Opcode.RC_SEND_ONLY, _ones(them)),
        ("short-send", Opcode.RC_SEND_ONLY, bytes(4)),
        ("unreliable", Opcode.UC_SEND_FIRST, bytes(100)),
        ("write", 0x0A, bytes(16 + 64)),
        ("read-response", 0x10, bytes(1024)),
        ("ack", Opcode.RC_ACKNOWLEDGE, _ACK),
    ):
        data = encode_frame(_to_host(opcode, payload))
        yield _case(
            f"bystander/{name}",
            "To whom a row lets it: as it came.",
            them,
            (Arrival(1, data).gives((_HOST_PORT, data)), *them.round()),
            tally(them.them, contributions=3, results=1),
            _to_network("192.168.0.0/16"),
        )
        yield _case(
            f"bystander/{name}-without-a-row",
            "Dropped and counted, though forwarding knows the way.",
            them,
            (Arrival(1, data), *them.round()),
            tally(them.them, contributions=3, results=1, drops={DropReason.MEMBER: 1}),
            _to_network("192.169.0.0/16"),
        )
    data = encode_frame(_to_host(Opcode.RC_SEND_ONLY, _ones(them)))
    another_port = changed(data, 36, 4792)
    yield _case(
        "bystander/another-udp-port",
        "No RoCEv2: forwarded like any frame.",
        them,
        (Arrival(1, another_port).gives((_HOST_PORT, another_port)),),
        {},
    )
    to_ring = changed(encode_frame(them.frame(0, 0, _numbers(them))), 36, 4792)
    to_ring = worker_mac(them.at(1)).to_bytes(6, "big") + to_ring[6:]
    yield _case(
        "bystander/another-udp-port-of-a-ring",
        "Nor is that: no adapter takes it for a SEND.",
        them,
        (Arrival(1, to_ring).gives((2, to_ring)), *them.round()),
        tally(them.them, contributions=3, results=1),
    )


def unreadable(values: int) -> Iterator[Case]:
    """Datagrams whose port is not where it is looked for could be RoCEv2's."""
    them = ring(values)
    of_ring = encode_frame(them.frame(0, 0, _numbers(them)))
    of_ring = worker_mac(them.at(1)).to_bytes(6, "big") + of_ring[6:]
    of_host = encode_frame(_to_host(Opcode.RC_SEND_ONLY, _ones(them)))
    for name, make in _HIDDEN.items():
        data = make(of_ring)
        yield _case(
            f"unreadable/{name}",
            "To an address of a ring: malformed, and never forwarded.",
            them,
            (Arrival(1, data), *them.round()),
            tally(them.them, contributions=3, results=1, drops={DropReason.MALFORMED: 1}),
        )
        data = make(of_host)
        yield _case(
            f"unreadable/{name}-to-a-bystander",
            "Forwarded to whom a row lets it, and to nobody else.",
            them,
            (
                Arrival(1, data),
                ItemChange(insert=(_to_network("192.168.0.7/32"),)),
                Arrival(1, data).gives((_HOST_PORT, data)),
            ),
            {Counter(names.DROPS, DropReason.MEMBER): 1},
        )
    for tag in (0x8100, 0x88A8):
        tagged = of_ring[:12] + tag.to_bytes(2, "big") + b"\x60\x05" + of_ring[12:]
        short = tagged[:60]
        yield _case(
            f"unreadable/tag-{tag:#x}",
            "Of some VLAN: an adapter there would take it. Counted, and never forwarded.",
            them,
            (Arrival(1, tagged), Arrival(1, short), *them.round()),
            tally(them.them, contributions=3, results=1, drops={DropReason.MEMBER: 2}),
        )
    tcp = changed(of_ring, 22, 0x4006)
    yield _case(
        "unreadable/tcp",
        "No datagram: forwarded like any frame.",
        them,
        (Arrival(1, tcp).gives((2, tcp)), *them.round()),
        tally(them.them, contributions=3, results=1),
    )
    yield _case(
        "unreadable/cut",
        "Cut anywhere from the end of the IP header on: malformed; before, no IP packet.",
        them,
        (*(Arrival(1, of_ring[:size]) for size in range(20, IPV4.stop + 40)), *them.round()),
        tally(them.them, contributions=3, results=1, drops={DropReason.MALFORMED: 40}),
        without_ways=True,
    )


def closed(values: int) -> Iterator[Case]:
    """A worker's own packet would be taken for the sum: nothing passes without a row."""
    them = ring(values, 2)
    flood: tuple[AnyItem, ...] = (
        Group(_FLOOD, ((1, 1), (2, 1), (3, 1))),
        DefaultAction(names.DMAC, names.FLOOD, (("group", _FLOOD),)),
    )
    raw: list[Step] = [them.sends(it, seq, them.them.ones()) for it in (0, 1) for seq in (0, 1)]
    acks: list[Step] = [
        Arrival(them.at(them.next(it)).port, encode_frame(them.says(it, 0x11, _ACK)))
        for it in (0, 1)
    ]
    ordinary = encode_frame(them.frame(0, 0))
    ordinary = changed(ordinary, 36, 53)
    floods = Arrival(1, ordinary).gives((2, ordinary), (3, ordinary))
    nobodys = network_row(0x0AFF_0000, 16)  # so that the case has one
    yield Case(
        "closed/power-on",
        "A switch that floods and has no row of a ring yet lets none of its packets through.",
        values,
        (nobodys, *flood),
        (*raw, *acks, floods, ItemChange(insert=them.all_rows), *them.round(4)),
        tally(them.them, contributions=2, results=1, drops={DropReason.MEMBER: 6}),
        mode=MODE,
    )
    yield Case(
        "closed/reboot",
        "Rows gone, slots empty: what adapters repeat stays here until the rows are back.",
        values,
        (*flood, *them.all_rows),
        (
            *them.round(),
            ItemChange(delete=them.all_rows[::-1]),
            *raw,
            *acks,
            ItemChange(insert=them.addresses),
            *raw,
            *acks,
            ItemChange(insert=them.state),
            *them.round(1),
        ),
        tally(
            them.them,
            contributions=4,
            results=2,
            drops={DropReason.MEMBER: 6 + 2, DropReason.JOB: 4},
        ),
        mode=MODE,
    )
    yield Case(
        "closed/bystanders-first",
        "With all but the ring's own network let through, too.",
        values,
        (nobodys, *flood, _to_network("192.168.0.0/16"), _to_network("10.128.0.0/9")),
        (*raw, *acks, floods),
        {Counter(names.DROPS, DropReason.MEMBER): 6},
        mode=MODE,
    )


def lifecycle(values: int) -> Iterator[Case]:
    """Rows come and go while packets arrive."""
    them = ring(values)
    ones = them.them.ones()
    yield _case(
        "lifecycle/ring-without-a-flow",
        "A copy on a flow without a row is counted and dropped; the others leave.",
        them,
        (
            ItemChange(delete=(them.receiver(1),)),
            *them.round()[:2],
            them.sends(2, 0, ones).gives(*(them.result(it, 0, [3] * values) for it in (0, 2))),
            them.sends(1, 0, ones),
        ),
        tally(them.them, contributions=3, results=1, replays=1, unaddressed=2),
    )
    job = them.them.job
    before = ring(values, 2)
    after = ring(values, 3, epoch=job.epoch + 1, first_slot=100, order=(0, 2, 1))
    gone = before.frame(0, 5, before.them.ones())
    yield Case(
        "lifecycle/ring-grows",
        "A newer epoch with one worker more, in other slots: the former one's packets are refused.",
        values,
        before.all_rows,
        (
            *before.round(5),
            before.sends(1, 6, ones),
            ItemChange(before.all_rows[::-1], after.all_rows),
            Arrival(1, encode_frame(gone)),
            *after.round(0),
            *after.round(5),
        ),
        tally(after.them, contributions=9, results=3, drops={DropReason.JOB: 1}),
        mode=MODE,
    )


def _case(
    name: str,
    about: str,
    them: Ring,
    steps: tuple[Step, ...],
    counts: dict[CounterRef, int],
    *further: AnyItem,
    without_ways: bool = False,
) -> Case:
    """With ordinary forwarding between all, so that what passes is seen."""
    ways = () if without_ways else (*them.ways, _WAY_TO_HOST)
    state = (*them.all_rows, *ways, *further)
    return Case(name, about, them.them.values, state, steps, counts, mode=MODE)


_WAY_TO_HOST = Entry(names.DMAC, (("dst_mac", _HOST_MAC),), names.FORWARD, (("port", _HOST_PORT),))


def _to_host(opcode: int, payload: bytes) -> RoceFrame:
    return RoceFrame(
        Bth(opcode, 0x77, 5), payload, 0xC0A8_0001, _HOST, src_udp=0xC123, dst_mac=_HOST_MAC
    )


def _to_network(network: str) -> Entry:
    return Entry(names.BYSTANDERS, (("dst_addr", network),), names.PASS)


def _ones(them: Ring) -> bytes:
    return them.frame(0, 0, them.them.ones()).payload


def _numbers(them: Ring) -> list[int]:
    return them.them.numbers(1)


def _with_options(data: bytes) -> bytes:
    """Four bytes that say nothing."""
    longer = bytearray(data[: IPV4.stop] + bytes([1] * 4) + data[IPV4.stop :])
    longer[14] = 0x46
    longer[16:18] = (len(longer) - ETHERNET_BYTES).to_bytes(2, "big")
    return bytes(longer)


_HIDDEN: Mapping[str, Callable[[bytes], bytes]] = {
    "later-fragment": lambda data: changed(data, 20, 0x0001),
    "ip-options": _with_options,
    "ip-version-5": lambda data: changed(data, 14, 0x5502),
    "no-udp-header": lambda data: data[: PAYLOAD_OFFSET - 1],
}
"""How a frame's port is where nobody looks for it."""
