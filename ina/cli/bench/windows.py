"""``ina bench windows``: window algorithms on one bottleneck, beside TCP and the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from ina.bench import parse, star_real, windows_sim
from ina.bench import windows as bench
from ina.bench.agreement import AgreementCase, Costs
from ina.bench.dumbbell import DumbbellShape, dumbbell
from ina.bench.report import Ratio
from ina.bench.star import QUEUE_BYTES, burst_bytes, star
from ina.bench.tcp_flow import require_iperf3, why_not
from ina.bench.windows import Bottleneck, Schedule, WindowRow
from ina.bench.windows_agreement import Agreement, agreement
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.options import SpoilOption, ValuesOption
from ina.cli.bench.output import SavedOptions, Steps, steps
from ina.cli.bench.testbeds import QUEUE_HELP, check_link, queue_bytes_for, values_for
from ina.cli.bench.windows_table import COLUMNS, SPARE, notes
from ina.congestion import ALGORITHMS, Congestion
from ina.errors import InvalidInputError

JOBS = 2
_TCP = ("cubic", "dctcp", "reno", "bbr")
_COST_ELEMS = 1 << 18
_SIM_WARM_S, _SIM_MEASURED_S = 1.0, 2.0


@dataclass(frozen=True)
class _Usual:
    """What holds where an option says nothing."""

    links: str
    workers: str
    schedule: Schedule


_FULL = _Usual("200mbit,1gbit", "2,4,8", Schedule(warm_s=3.0, round_s=1.0, rounds=5))
_QUICK = _Usual("200mbit", "2", Schedule(warm_s=1.0, round_s=0.5, rounds=3))


@dataclass(frozen=True, kw_only=True)
class WindowsOptions(SavedOptions):
    """Of ``ina bench windows``."""

    links: Annotated[
        str, typer.Option(help="Rates of the bottleneck.", show_default="200mbit,1gbit")
    ] = ""
    algorithms: Annotated[
        str, typer.Option(help=f"Comma separated, of {', '.join(ALGORITHMS)}.")
    ] = Congestion().algorithm
    tcp: Annotated[
        str, typer.Option(help=f"Flows beside two jobs, one at a time, of {', '.join(_TCP)}.")
    ] = "cubic,dctcp"
    workers: Annotated[
        str, typer.Option(help="Of a job alone in a star, in turns.", show_default="2,4,8")
    ] = ""
    queue: Annotated[str, typer.Option(help=QUEUE_HELP)] = "256K"
    mark: Annotated[
        str, typer.Option(help="What may wait there without an ECN mark, as 64K; 0: no marks.")
    ] = "64K"
    values: ValuesOption = 0
    rounds: Annotated[int, typer.Option(min=0, show_default="5", help="Their median counts.")] = 0
    round_s: Annotated[float, typer.Option(show_default="1", help="Seconds of a round.")] = 0.0
    warm_s: Annotated[
        float, typer.Option(show_default="3", help="Before the first; CUBIC takes some.")
    ] = 0.0
    no_simulator: Annotated[
        bool, typer.Option("--no-simulator", help="Without the same in virtual time.")
    ] = False
    quick: Annotated[
        bool, typer.Option("--quick", help="200mbit, 2 workers and 3 short rounds, if not said.")
    ] = False
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a promise does not hold.")
    ] = False
    spoil: SpoilOption = 0


BENCH = Bench("windows", WindowsOptions, COLUMNS, SPARE)


@BENCH.command
def windows(asked: WindowsOptions) -> Found:
    """Two jobs on one link, TCP beside them, and a job alone; the same in virtual time.

    Needs root, iperf3 (for --tcp) and Linux 6.6. The bottleneck's queue is as long as --queue says,
    and marks.
    """
    values = asked.values
    usual = _QUICK if asked.quick else _FULL
    schedule = Schedule(
        warm_s=_positive("--warm-s", asked.warm_s or usual.schedule.warm_s),
        round_s=_positive("--round-s", asked.round_s or usual.schedule.round_s),
        rounds=asked.rounds or usual.schedule.rounds,
        spoil=asked.spoil,
    )
    rates = parse.rates_bit_s("--links", asked.links or usual.links)
    named = list(rates)
    wanted = parse.names("--algorithms", asked.algorithms, ALGORITHMS)
    counts = parse.workers("--workers", asked.workers or usual.workers)
    flows = parse.names("--tcp", asked.tcp, _TCP) if asked.tcp else []
    queue_bytes = queue_bytes_for(asked.queue, 1.0)
    mark_bytes = 0 if asked.mark == "0" else parse.one_size("--mark", asked.mark)
    if mark_bytes >= queue_bytes:
        raise InvalidInputError(f"--mark {asked.mark}: want less than --queue {asked.queue}")
    for name in named:
        check_link(name)
    values = values_for(values, named[0])
    lacking = [why for it in flows if (why := why_not(it))]
    flows = [it for it in flows if not why_not(it)]
    if flows:
        require_iperf3()
    cases = [Bottleneck(1), Bottleneck(JOBS), *(Bottleneck(JOBS, it) for it in flows)]
    found: list[tuple[WindowRow, Agreement | None, windows_sim.Simulated | None]] = []
    simulated = 0 if asked.no_simulator else sum(case.tcp in windows_sim.TCP for case in cases)
    each = len(cases) + simulated + len(counts)
    with steps("windows", len(rates) * (each * len(wanted) + (not asked.no_simulator))) as bar:
        for why in lacking:
            bar.say(why)
        for link, rate_bit_s in rates.items():
            costs = None if asked.no_simulator else _costs(link, rate_bit_s, values, bar)
            for algorithm in wanted:
                plan = DumbbellShape(
                    jobs=JOBS,
                    flows=1,
                    link=link,
                    rate_bit_s=rate_bit_s,
                    queue_bytes=queue_bytes,
                    mark_bytes=mark_bytes,
                    values=values,
                    congestion={"algorithm": algorithm},
                )
                with dumbbell(plan, bar.say) as net:
                    real = []
                    for case in cases:
                        real.append(bench.at_dumbbell(net, case, schedule))
                        bar.done(f"{_what(real[-1])}: {_mbit_s(real[-1].jobs_mbit_s)}")
                for case, one in zip(cases, real, strict=True):
                    if costs is None or case.tcp not in windows_sim.TCP:
                        found.append((one, None, None))
                        continue
                    sim = windows_sim.run(plan, case, costs, _SIM_WARM_S, _SIM_MEASURED_S)
                    bar.done(f"{_what(one)}, simulated: {_mbit_s(sim.jobs_mbit_s)}")
                    found.append((one, agreement(one, sim), sim))
                for count in counts:
                    one = _alone(count, plan, schedule, bar.say)
                    bar.done(f"{_what(one)}: {_mbit_s(one.jobs_mbit_s)}")
                    found.append((one, None, None))
    rows = [
        {
            **asdict(real),
            "sim": None if sim is None else asdict(sim),
            "agreement": None if agrees is None else asdict(agrees),
        }
        for real, agrees, sim in found
    ]
    return Found(
        title=f"windows on one link, queue {asked.queue}, marks above {asked.mark}, int32",
        settings={
            **{"links": named, "algorithms": wanted, "tcp": flows, "lacking": lacking},
            **{"workers": counts, "queue_bytes": queue_bytes, "mark_bytes": mark_bytes},
            **{"values": values, "schedule": asdict(schedule), "simulator": not asked.no_simulator},
        },
        rows=rows,
        ratios=[
            Ratio(f"{it.link} {it.algorithm} {it.case} {it.workers}/limit", it.limit_share)
            for it, _, _ in found
        ],
        notes=notes(schedule, queue_bytes, mark_bytes, lacking),
        fails=asked.strict and not all(all(it.promises.values()) for it, _, _ in found),
    )


def _costs(link: str, rate_bit_s: float, values: int, bar: Steps) -> Costs:
    """What this machine needs for a packet, as the simulation is told."""
    case = AgreementCase(
        link=link,
        rate_bit_s=rate_bit_s,
        queue_bytes=QUEUE_BYTES,
        burst_bytes=burst_bytes(rate_bit_s),
        algorithm=Congestion().algorithm,
        dtype="int32",
        elems=_COST_ELEMS,
        tensor_bytes=4 * _COST_ELEMS,
        values=values,
        rounds=1,
        steps=1,
        seed=1,
    )
    with star(2, link, rate_bit_s, values=values, progress=bar.say) as net:
        bar.say("what a packet costs")
        costs = star_real.costs(net, case)
    bar.done(
        f"{costs.worker_packet_ns:.0f} ns a packet at a worker, {costs.switch_packet_ns:.0f} ns at"
        f" the switch, {costs.wake_us:.0f} us and {costs.wake_jitter_us:.0f} us to wake"
    )
    return costs


def _alone(
    count: int, plan: DumbbellShape, schedule: Schedule, say: Callable[[str], None]
) -> WindowRow:
    with star(
        count,
        plan.link,
        plan.rate_bit_s,
        values=plan.values,
        queue_bytes=plan.queue_bytes,
        multicast=True,
        congestion=plan.congestion,
        progress=say,
    ) as net:
        return bench.at_star(net, str(plan.congestion["algorithm"]), plan.values, schedule)


def _what(one: WindowRow) -> str:
    return f"{one.link}, {one.algorithm}, {one.case}, {one.workers} workers"


def _mbit_s(jobs: Sequence[float]) -> str:
    return f"{' and '.join(f'{it:.1f}' for it in jobs)} Mbit/s"


def _positive(option: str, seconds: float) -> float:
    if not seconds > 0:
        raise InvalidInputError(f"{option} {seconds:g}: want more than 0")
    return seconds
