"""``ina bench switch``: packets through the UDP port of a soft switch, BMv2 beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from ina.bench import parse
from ina.bench.report import rows_of
from ina.cli.bench.declare import Bench, Found, Row
from ina.cli.bench.options import UnicastOption, check_seconds
from ina.cli.bench.output import ALL_BUILDS, ComparedOptions, steps
from ina.cli.common.columns import Column
from ina.cli.common.options import command
from ina.emulate.topology import SwitchKind
from ina.errors import InvalidInputError, UnavailableError
from ina.p4.builds import packet_bytes
from ina.protocol.spec import MAX_WORKERS


@dataclass(frozen=True, kw_only=True)
class SwitchOptions(ComparedOptions):
    """Of ``ina bench switch``."""

    values: Annotated[str, typer.Option(help="Builds to measure, by values a packet.")] = ALL_BUILDS
    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4"
    seconds: Annotated[float, typer.Option(help="Of a sample.")] = 1.0
    repeats: Annotated[int, typer.Option(min=1, help="Samples; the median counts.")] = 5
    unicast: UnicastOption = False
    bmv2: Annotated[
        bool, typer.Option(help="Measure BMv2, too, where it is installed; needs root.")
    ] = True
    device: Annotated[
        str,
        typer.Option(help="soft, or xdp: the kernel beside user space, on veth; needs root."),
    ] = "soft"
    link: Annotated[
        str,
        typer.Option(help="With --device xdp: real workers, with links of a rate as 1Gbit."),
    ] = ""


def _spread(row: Row) -> str:
    low, high = row["low_packets_per_second"], row["high_packets_per_second"]
    return f"{low / 1e3:.0f}-{high / 1e3:.0f}"


BENCH = Bench(
    "switch",
    SwitchOptions,
    (
        *(Column("switch"), Column("values"), Column("n", "workers")),
        Column("k packets/s in", "packets_per_second", 1, 1e-3),
        Column("spread", _spread),
        *(Column("CPU ns/packet in", "cpu_ns_per_packet", 0), Column("of a core", "cores_busy", 2)),
        *(Column("GB/s in", "gradient_gb_per_second", 2), Column("#wrong", "wrong")),
    ),
    notes=("CPU: of the thread that moves packets, in and out, kernel included",),
)


IN_KERNEL = Bench(
    "switch",
    SwitchOptions,
    (
        *(Column("switch"), Column("values"), Column("n", "workers")),
        Column("k packets/s of a core", "packets_per_second", 0, 1e-3),
        *(Column("spread", _spread), Column("CPU ns/packet in", "cpu_ns_per_packet", 0)),
        *(Column("frames"), Column("#wrong", "wrong")),
    ),
    notes=(
        "on virtual Ethernet with an MTU of 1500; soft: packet sockets; xdp: native",
        "frames come from the kernel, 64 at once by each cable, and what leaves is dropped there",
        "CPU: of the threads that move packets, in and out; #wrong: frames that are in no sum",
    ),
)
OF_A_JOB = Bench(
    "switch",
    SwitchOptions,
    (
        *(Column("switch"), Column("values"), Column("n", "workers")),
        Column("k packets/s in", "packets_per_second", 1, 1e-3),
        Column("GB/s in", "gradient_gb_per_second", 3),
        *(Column("CPU ns/packet in", "cpu_ns_per_packet", 0), Column("of a core", "cores_busy", 2)),
        Column("#wrong", "wrong"),
    ),
    notes=(
        "workers are processes in namespaces, as those of ina emulate",
        "CPU: of the threads that move the switch's packets, in and out",
    ),
)


@command(SwitchOptions)
def switch(asked: SwitchOptions) -> None:
    """Packets a second through a switch, and its CPU time a packet, sums checked.

    Through a soft switch's UDP port, BMv2 beside it; or (--device xdp) through the kernel, user
    space beside it. Workers are processes on this machine; what they need of its cores the switch
    does not get.
    """
    parse.names("--device", asked.device, ("soft", "xdp"))
    if asked.device == "soft" and asked.link:
        raise InvalidInputError(f"--link {asked.link}: of --device xdp alone")
    if asked.device == "soft":
        BENCH.run(asked, _through_udp)
    elif asked.link:
        OF_A_JOB.run(asked, _of_a_job)
    else:
        IN_KERNEL.run(asked, _in_kernel)


def _cases(asked: SwitchOptions) -> list[tuple[int, int, SwitchKind]]:
    """Values that fit into a frame, workers, and both devices."""
    from ina.bench.switch_frames import DEVICES, MTU_BYTES, why_not

    if why := why_not():
        raise UnavailableError(why)
    builds = parse.numbers("--values", asked.values)
    counts = parse.numbers("--workers", asked.workers, 2, MAX_WORKERS)
    check_seconds(asked.seconds)
    fitting = [build for build in builds if packet_bytes(build) <= MTU_BYTES]
    return [(build, n, device) for build in fitting for n in counts for device in DEVICES]


def _in_kernel(asked: SwitchOptions) -> Found:
    from ina.bench.switch_frames import FRAMES, measure_frames, ratios

    cases = _cases(asked)
    rows = []
    with steps("switch", len(cases)) as bar:
        for build, n, device in cases:
            rows.append(measure_frames(device, build, n, FRAMES, asked.repeats))
            bar.done(f"{build} values, {n} workers, {device}")
    return Found(
        title="frames through ports of virtual Ethernet",
        settings=asked.named("repeats", "device"),
        rows=rows_of(rows),
        ratios=ratios(rows),
    )


def _of_a_job(asked: SwitchOptions) -> Found:
    from ina.bench.switch_job import measure_job, ratios

    cases, rate = _cases(asked), parse.rate_bit_s("--link", asked.link)
    rows = []
    with steps("switch", len(cases)) as bar:
        for build, n, device in cases:
            rows.append(measure_job(device, build, n, asked.seconds * asked.repeats, rate))
            bar.done(f"{build} values, {n} workers, {device}")
    return Found(
        title=f"a job around a switch, links of {asked.link}",
        settings=asked.named("seconds", "repeats", "device", "link"),
        rows=rows_of(rows),
        ratios=ratios(rows),
    )


def _through_udp(asked: SwitchOptions) -> Found:
    from ina.bench.switch import SwitchRow, measure, measure_bmv2, ratios, why_not_bmv2
    from ina.emulate.nodes import LINK_MTU_BYTES

    builds = parse.numbers("--values", asked.values)
    counts = parse.numbers("--workers", asked.workers, 1, MAX_WORKERS)
    check_seconds(asked.seconds)
    missing = why_not_bmv2() if asked.bmv2 else "--no-bmv2"
    rows: list[SwitchRow] = []
    on_bmv2 = [b for b in builds if not missing and packet_bytes(b) <= LINK_MTU_BYTES]
    with steps("switch", (len(builds) + len(on_bmv2)) * len(counts)) as bar:
        for build in builds:
            for n in counts:
                rows.append(
                    measure(build, n, asked.seconds, asked.repeats, multicast=not asked.unicast)
                )
                bar.done(f"{build} values, {n} workers")
                if build in on_bmv2:
                    rows.append(measure_bmv2(build, n, asked.seconds * asked.repeats))
                    bar.done(f"{build} values, {n} workers, BMv2")
    notes = []
    if not asked.unicast:
        notes.append("results go to all workers at once (IP multicast); --unicast: to each")
    notes.append(
        f"BMv2 was not measured: {missing}"
        if missing
        else "bmv2: simple_switch_grpc on veth pairs in namespaces, one sample after a first round"
    )
    if not missing and on_bmv2 != builds:
        notes.append(f"builds whose packets do not fit into its links' MTU, {LINK_MTU_BYTES}: not")
    return Found(
        title="packets through ports",
        settings={
            **{"values": builds, "workers": counts},
            **asked.named("seconds", "repeats", "unicast"),
        },
        rows=rows_of(rows),
        ratios=ratios(rows),
        notes=notes,
    )
