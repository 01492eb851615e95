"""What RoCEv2 has around ina's packet: BTH, ICRC, messages of one SEND or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ina.p4 import names
from ina.protocol.bth import Opcode, decode_bth
from ina.protocol.spec import DropReason
from ina.tables.values import AnyItem, Entry
from ina.testing.case import Arrival, Case
from ina.testing.cases.actors import tally, team
from ina.testing.cases.sends import BTH, cases_of, roce_scene, with_bth
from ina.testing.wrapping import InSends

MODE = names.ROCE


def cases(values: int) -> Iterator[Case]:
    """Of a round of honest workers, the first of whose packets are otherwise."""
    yield from cases_of(roce_scene(team(values)))
    yield from messages(values)
    yield from strangers(values)


def messages(values: int) -> Iterator[Case]:
    """Results of neighbours are one message where receivers want it so."""
    them = team(values, 2)
    scene = roce_scene(them)
    state = tuple(_with_segments(item, 3) for item in scene.state)
    places = (
        Opcode.UC_SEND_FIRST,
        Opcode.UC_SEND_MIDDLE,
        Opcode.UC_SEND_MIDDLE,
        Opcode.UC_SEND_LAST,
    )
    steps: list[Arrival] = []
    for seq in range(8):
        one, two = scene.round(seq)
        out = tuple((port, _at_place(data, places[seq % 4])) for port, data in two.out)
        steps += [one, two.gives(*out)]
    yield Case(
        "message/of-four",
        "FIRST, MIDDLE, MIDDLE, LAST by the chunk's number, as its packet's number is.",
        values,
        state,
        tuple(steps),
        tally(them, contributions=16, results=8),
        mode=MODE,
    )
    high = 0xFFFF_FFFE
    one, two = scene.round(high)
    yield Case(
        "message/number-wraps",
        "24 bits of the chunk's number are the packet's.",
        values,
        scene.state,
        (one, two),
        tally(them, contributions=2, results=1),
        mode=MODE,
    )


def strangers(values: int) -> Iterator[Case]:
    """Who sends to another queue pair than the controller gave it."""
    them = team(values)
    scene = roce_scene(them)
    of_next = InSends.switch_qp(them.job.workers[1].udp_port)
    for name, number in (("nobody's", 0x80_0001), ("another-worker's", of_next), ("general", 1)):
        yield scene.refused(
            f"queue-pair/{name}",
            "The queue pair that a worker sends to is its name: no other lets it in.",
            with_bth(scene.first, replace(scene.usual, dest_qp=number)),
            DropReason.MEMBER,
        )


def _with_segments(item: AnyItem, mask: int) -> AnyItem:
    if not isinstance(item, Entry) or item.table != names.RECEIVERS:
        return item
    params = {**dict(item.params), "segment_mask": mask}
    return Entry(item.table, item.match, item.action, tuple(params.items()))


def _at_place(data: bytes, opcode: Opcode) -> bytes:
    return with_bth(data, replace(decode_bth(data[BTH]), opcode=opcode))
