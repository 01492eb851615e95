"""``ina pcap``: what is in a capture file, and the life of one slot."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

import typer

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, emit
from ina.cli.pcap.read import CaptureFiles, Filter
from ina.cli.pcap.view import Lines, life_document, lives_view
from ina.errors import InvalidInputError
from ina.pcap import UDP_PORTS, Address
from ina.pcap import follow as follow_slot
from ina.protocol.spec import MAX_WORKERS, Kind

app = typer.Typer(help="Read packet captures: decode them, follow a slot.", no_args_is_help=True)

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="pcap or pcapng; several are merged by time."),
]
UdpPorts = Annotated[
    list[int] | None,
    typer.Option(
        "--udp-port",
        help=f"A switch's UDP port; repeatable. Default: {' and '.join(map(str, UDP_PORTS))}.",
    ),
]


@app.callback()
def _pcap() -> None:
    """Read packet captures: decode them, follow a slot."""


@dataclass(frozen=True, kw_only=True)
class DecodeOptions:
    """Of ``ina pcap decode``."""

    files: Files
    job: Annotated[int | None, typer.Option(help="Only this job number.")] = None
    slot: Annotated[int | None, typer.Option(help="Only this slot of the job.")] = None
    worker: Annotated[int | None, typer.Option(help="Only this worker, and results to all.")] = None
    seq: Annotated[int | None, typer.Option(help="Only this sequence number.")] = None
    kind: Annotated[str, typer.Option(help="Only this kind, e.g. contribution.")] = ""
    values: Annotated[bool, typer.Option("--values", help="Print the values, too.")] = False
    udp_port: UdpPorts = None
    json: Annotated[bool, typer.Option("--json", help="Print a JSON document a packet.")] = False


@app.command()
@command(DecodeOptions)
def decode(asked: DecodeOptions) -> None:
    """Print every packet of ina: one line each, or one JSON document each.

    Packets that a switch drops for their form are printed with what is wrong with them. A filter
    leaves those out. The last line, on stderr, counts what was read.
    """
    wanted = Filter(asked.job, asked.slot, asked.worker, asked.seq, _kind(asked.kind))
    captures = CaptureFiles(asked.files, asked.udp_port or UDP_PORTS)
    lines = Lines(asked.values, several_files=len(asked.files) > 1)
    # A bar would stand among the packets of a terminal; what passes the filter may be rare.
    with nullcontext() if sys.stdout.isatty() else captures.progress():
        for packet in captures.packets():
            if wanted.passes(packet):
                lines.print(packet, asked.json)
    captures.say_what_was_read()


@app.command()
def follow(
    files: Files,
    job: Annotated[int, typer.Option(help="Job number, as `ina job list` shows it.")],
    slot: Annotated[int, typer.Option(help="Slot index within the job: seq mod slots.")],
    workers: Annotated[
        int | None,
        typer.Option(help="Children of each switch, if no result in the capture can tell them."),
    ] = None,
    switch: Annotated[
        str, typer.Option(metavar="IPV4:UDP_PORT", help="Only this switch of a tree.")
    ] = "",
    udp_port: UdpPorts = None,
    json: JsonOption = False,
) -> None:
    """Tell the life of one slot: who took it, who joined, who is missing, what was sent again.

    In a tree of switches that of each switch which the capture shows.
    """
    if workers is not None and not 1 <= workers <= MAX_WORKERS:
        raise InvalidInputError(f"--workers {workers}: not in 1..{MAX_WORKERS}")
    only = _address(switch) if switch else None
    captures = CaptureFiles(files, udp_port or UDP_PORTS)
    with captures.progress():
        lives = follow_slot(captures.packets(), job, slot, worker_count=workers, switch=only)
    documents = {"job": job, "slot": slot, "switches": [life_document(life) for life in lives]}
    emit(documents if json else None, json, lives_view(lives, job, slot))
    captures.say_what_was_read()


def _address(text: str) -> Address:
    ipv4, _, port = text.rpartition(":")
    try:
        return Address(str(IPv4Address(ipv4)), int(port))
    except ValueError:
        raise InvalidInputError(f"--switch {text}: not IPV4:UDP_PORT") from None


def _kind(name: str) -> Kind | None:
    if not name:
        return None
    try:
        return Kind[name.upper()]
    except KeyError:
        names = ", ".join(kind.name.lower() for kind in Kind)
        raise InvalidInputError(f"--kind {name}: not one of {names}") from None
