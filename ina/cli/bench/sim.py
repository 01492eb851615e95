"""``ina bench sim``: the same star in namespaces and in virtual time, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ina.bench import agreement as both
from ina.bench import parse, star_real, star_sim
from ina.bench.report import rows_of
from ina.bench.star import StarNetwork, burst_bytes, star
from ina.cli.bench.declare import Bench, Found, Row
from ina.cli.bench.options import ValuesOption
from ina.cli.bench.output import SavedOptions, Steps, steps
from ina.cli.bench.testbeds import QUEUE_HELP, check_link, queue_bytes_for, values_for
from ina.cli.common.columns import Column
from ina.congestion import ALGORITHMS, Congestion
from ina.errors import InvalidInputError
from ina.sim.scenario import DTYPES, TensorSpec
from ina.sim.tensors import dtype_of


@dataclass(frozen=True, kw_only=True)
class SimOptions(SavedOptions):
    """Of ``ina bench sim``."""

    workers: Annotated[str, typer.Option(help="Numbers of workers, comma separated.")] = "2,4,8"
    losses: Annotated[
        str, typer.Option(help="Of packets at the switch, each way: shares, comma separated.")
    ] = "0,0.001,0.01"
    link: Annotated[str, typer.Option(help="Rate of the links, as 100mbit.")] = "100mbit"
    queue: Annotated[str, typer.Option(help=QUEUE_HELP, show_default="1M")] = ""
    window: Annotated[str, typer.Option(help=f"One of {', '.join(ALGORITHMS)}.")] = (
        Congestion().algorithm
    )
    size: Annotated[str, typer.Option(help="Of a tensor, as 1M.")] = "1M"
    dtype: Annotated[str, typer.Option(help=f"One of {', '.join(DTYPES)}.")] = "float32"
    values: ValuesOption = 0
    rounds: Annotated[int, typer.Option(min=1, help="Their median counts.")] = 5
    steps_each: Annotated[
        int, typer.Option("--steps", min=1, help="Tensors of a round, one after the other.")
    ] = 8
    seed: Annotated[int, typer.Option(min=0, help="Of values and losses.")] = 1
    scenarios: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write what was simulated, for ina sim run."),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a bound does not hold.")
    ] = False


def _of(side: str, name: str) -> Callable[[Row], Any]:
    return lambda row: row[side][name]


def _both(title: str, name: str) -> tuple[Column, Column]:
    return Column(title, _of("real", name)), Column(f"sim {title}", _of("sim", name))


def _rate(side: str, before: str) -> tuple[Column, Column]:
    return (
        Column(f"{before}Mbit/s", _of(side, "goodput_mbit_s"), 2),
        Column(f"{before}±", lambda row: row[side]["high_mbit_s"] - row[side]["low_mbit_s"], 2),
    )


BENCH = Bench(
    "sim",
    SimOptions,
    (
        *(Column("n", "workers"), Column("loss", lambda row: f"{100 * row['loss']:g} %")),
        *(*_rate("real", ""), *_rate("sim", "sim "), Column("sim/real", "goodput_ratio", 3)),
        Column("5 %", lambda row: "yes" if row["goodput_holds"] else "NO"),
        *(*_both("resent", "resends"), Column("resent sim/real", "resends_ratio", 2)),
        Column("x2", lambda row: row["resends_hold"].replace("no", "NO")),
        *(*_both("lost", "lost"), *_both("overtaken", "overtaken"), *_both("probes", "probes")),
        Column("load", "load", 2),
    ),
    spare=(
        *("load", "sim ±", "±", "lost", "sim lost", "overtaken", "sim overtaken", "probes"),
        "sim probes",
    ),
)


@BENCH.command
def sim(asked: SimOptions) -> Found:
    """Run a star in namespaces and the same star in virtual time, and say how far they agree.

    Needs root. What this machine needs for a packet is measured first, and given to the simulation.
    Exits with 1 if a sum was wrong on either side.
    """
    counts, shares = (
        parse.workers("--workers", asked.workers),
        parse.shares("--losses", asked.losses),
    )
    case = _case(asked)
    if asked.scenarios is not None and not asked.scenarios.is_dir():
        raise InvalidInputError(f"--scenarios {asked.scenarios}: there is no such folder")
    rows: list[both.Agreement] = []
    with steps("agreement", 1 + 2 * len(counts) * len(shares)) as bar:
        with _star(2, 0.0, case, bar) as made:
            bar.say("what a packet costs")
            costs = star_real.costs(made, case)
            bar.done(_costs_text(costs))
        for n in counts:
            rows += [_agreement(n, share, case, costs, bar, asked.scenarios) for share in shares]
    return Found(
        title=f"namespaces and virtual time, {asked.link}, {asked.size} {asked.dtype}"
        f" {asked.window}",
        settings={
            **{"workers": counts, "losses": shares, "values": case.values},
            **{"steps": asked.steps_each, "burst_bytes": case.burst_bytes, "costs": asdict(costs)},
            **asked.named("link", "queue", "window", "size", "dtype", "rounds", "seed"),
        },
        rows=rows_of(rows),
        notes=_notes(case, costs, rows),
        wrong=sum(row.real.wrong + row.sim.wrong for row in rows),
        fails=asked.strict and any(not it.goodput_holds or it.resends_hold == "no" for it in rows),
    )


def _case(asked: SimOptions) -> both.AgreementCase:
    if asked.window not in ALGORITHMS:
        raise InvalidInputError(f"--window {asked.window}: want {', '.join(ALGORITHMS)}")
    known = next((it for it in DTYPES if it == asked.dtype), None)
    if known is None:
        raise InvalidInputError(f"--dtype {asked.dtype}: the network sums {', '.join(DTYPES)}")
    tensor_bytes, *more = parse.sizes("--size", asked.size)
    if more:
        raise InvalidInputError(f"--size {asked.size}: want one size")
    rate = check_link(asked.link)
    if rate is None:
        raise InvalidInputError(f"--link {asked.link}: want a rate, as 100mbit")
    itemsize = dtype_of(TensorSpec(elems=1, dtype=known)).itemsize
    return both.AgreementCase(
        link=asked.link,
        rate_bit_s=rate,
        queue_bytes=queue_bytes_for(asked.queue, rate),
        burst_bytes=burst_bytes(rate),
        algorithm=asked.window,
        dtype=known,
        elems=tensor_bytes // itemsize,
        tensor_bytes=tensor_bytes // itemsize * itemsize,
        values=values_for(asked.values, asked.link),
        rounds=asked.rounds,
        steps=asked.steps_each,
        seed=asked.seed,
    )


@contextmanager
def _star(n: int, loss: float, case: both.AgreementCase, bar: Steps) -> Iterator[StarNetwork]:
    with star(
        n,
        case.link,
        case.rate_bit_s,
        values=case.values,
        queue_bytes=case.queue_bytes,
        loss=loss,
        seed=case.seed,
        congestion={"algorithm": case.algorithm},
        progress=bar.say,
    ) as made:
        yield made


def _agreement(
    n: int,
    loss: float,
    case: both.AgreementCase,
    costs: both.Costs,
    bar: Steps,
    folder: Path | None,
) -> both.Agreement:
    where = f"{n} workers, loss {loss:g}"
    with _star(n, loss, case, bar) as made:
        bar.say(f"{where}, in namespaces")
        (real, apart_s), load = star_real.run(made, case), os.getloadavg()[0]
    bar.done(f"{where}, in namespaces: {real.goodput_mbit_s:.1f} Mbit/s")
    scenario = star_sim.scenario(n, loss, case, costs, apart_s)
    if folder is not None:
        (folder / f"{scenario.name}.json").write_bytes(msgspec.json.encode(scenario))
    sim = star_sim.run(scenario, case)
    bar.done(f"{where}, simulated: {sim.goodput_mbit_s:.1f} Mbit/s")
    return both.agreement(n, loss, apart_s, real, sim, load)


def _costs_text(costs: both.Costs) -> str:
    return (
        f"{costs.worker_packet_ns:.0f} ns a packet at a worker, {costs.switch_packet_ns:.0f} ns at"
        f" the switch, {costs.wake_us:.0f} us and on"
        f" average {costs.wake_jitter_us:.0f} us more until a thread is awake"
    )


def _notes(case: both.AgreementCase, costs: both.Costs, rows: list[both.Agreement]) -> list[str]:
    notes = [
        f"each step reduces one tensor; {case.rounds} rounds of {case.steps} steps after a first"
        " one; Mbit/s: of a worker's tensor, median of the rounds; ±: between the quartiles; the"
        " others: packets that were sent again, of all workers in all rounds",
        f"x2: whether those differ by a factor of {both.RESENDS_BOUND:g} at most; too few: fewer"
        f" than {both.TOO_FEW} on both sides",
        f"this machine, as the simulation has it: {_costs_text(costs)}",
    ]
    cores = len(os.sched_getaffinity(0))
    if max(row.load for row in rows) > cores:
        notes.append(
            f"the load was above {cores}, the number of cores: the real side waited for others"
        )
    return notes
