"""``ina bench advise``: what limits a job, whether ina can help it, and which build suits it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from ina.bench import advise as bench
from ina.bench import allreduce, ddp, parse
from ina.bench.gradients import ITEM_BYTES, Gradients, measured
from ina.bench.report import Report, load, rows_of
from ina.bench.testbed import LOOPBACK
from ina.cli.bench.declare import Bench, Found
from ina.cli.bench.output import SavedOptions, steps
from ina.cli.bench.testbeds import Loopback
from ina.cli.common import torchrun
from ina.cli.common.columns import Column, ms
from ina.errors import InvalidInputError
from ina.p4.builds import largest_build
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET, MAX_WORKERS

_BUCKET_BYTES = 25 << 20  # DDP's default
_COST_SIZES = (64 << 10, 16 << 20)
_COST_WORKERS = 2


@dataclass(frozen=True, kw_only=True)
class AdviseOptions(SavedOptions):
    """Of ``ina bench advise``."""

    workers: Annotated[int, typer.Option(help="Of the job, 2 to 32.")] = 4
    link: Annotated[
        str, typer.Option(help="Rate of each worker's link, as 10gbit; or loopback: measured.")
    ] = LOOPBACK
    model: Annotated[
        str,
        typer.Option(
            help="digits, resnet50 or gpt2: gradients and, of digits alone, compute time."
        ),
    ] = ""
    compute_ms: Annotated[
        float | None, typer.Option(min=0, help="Of a step of your job without communication.")
    ] = None
    gradient_mb: Annotated[
        float | None, typer.Option(min=0, help="Gradients of a step of your job, 10^6 bytes.")
    ] = None
    dtype: Annotated[str, typer.Option(help="Of the gradients: float32, float16, bfloat16.")] = (
        "float32"
    )
    gradients: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Gradients of a step, of torch.save or numpy.save, one file a rank: how many,"
            " of which type, which blocks are zero. Several times.",
        ),
    ] = None
    buckets: Annotated[
        int | None, typer.Option(min=1, help="All-reduces of a step [DDP's, of 25 MiB].")
    ] = None
    mtu: Annotated[int, typer.Option(help="Of the path to the switch, in bytes.")] = 1500
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Latency and CPU cost from a saved `ina bench allreduce` [measured now].",
        ),
    ] = None


BENCH = Bench(
    "advise",
    AdviseOptions,
    (
        *(Column("n", "workers"), ms("compute ms", "compute_s", 1)),
        *(Column("gradients MB", "gradient_bytes", 1, 1e-6), Column("buckets")),
        *(ms("wire ms", "wire_s", 1), ms("CPU ms", "cpu_s", 1), ms("latency ms", "latency_s", 1)),
        *(ms("step ina ms", "ina_step_s", 1), ms("step Gloo ms", "gloo_step_s", 1)),
        *(Column("gain", "gain", 2), Column("at most", "gain_at_most", 2), Column("values")),
    ),
)


@BENCH.command
def advise(asked: AdviseOptions) -> Found:
    """Say what limits a training job, and what in-network aggregation can change about it.

    The job is described by its compute time and gradients a step, or by --model, which measures
    them here. What an all-reduce costs on this machine is measured, or read from --costs.
    """
    rate = _check(asked)
    with steps("advise", 2) as bar:
        bar.say("what an all-reduce costs here")
        priced = load(asked.costs) if asked.costs is not None else _measure_costs()
        price = bench.costs_of(priced)
        link_bit_s = bench.loopback_bit_s(priced, asked.workers) if rate is None else rate
        bar.done("what a step computes")
        found = _measure_model(asked.model, asked.compute_ms) if asked.model else None
        bar.done("done")
    compute_s = (
        asked.compute_ms / 1e3
        if asked.compute_ms is not None
        else (found.compute_s if found else 0.0)
    )
    saved = _saved(asked)
    dtype, union = (
        (asked.dtype, None) if saved is None else (saved.dtype, saved.union_of(asked.workers))
    )
    nbytes = round(asked.gradient_mb * 1e6) if asked.gradient_mb is not None else 0
    if saved is not None:
        nbytes = saved.elems * ITEM_BYTES[dtype]
    if found is not None and not nbytes:
        nbytes = found.gradient_bytes
    count = asked.buckets or (found.buckets if found else max(1, -(-nbytes // _BUCKET_BYTES)))
    job = bench.KnownJob(
        *(asked.workers, compute_s, nbytes, count, link_bit_s, asked.mtu, dtype, union)
    )
    advice = bench.advise(job, price)
    return Found(
        title=f"{advice.bound}-bound, links {asked.link}",
        settings={"model": asked.model, "link": asked.link, **asdict(job)},
        rows=[{**asdict(advice), "costs": asdict(price)}],
        notes=[
            advice.text,
            *([] if saved is None else [_blocks_text(saved, asked.workers)]),
            f"{advice.values} values a packet: the largest build for an MTU of {asked.mtu}"
            " (the controller's switch.values = 0 chooses so by itself)",
            "a model: two thirds of the computing hide communication, but not that of the last"
            " bucket; latency and CPU time as measured on this machine",
        ],
        wrong=priced.wrong + (found.wrong if found is not None else 0),
    )


def _saved(asked: AdviseOptions) -> Gradients | None:
    """Blocks are as many values as a packet of the path."""
    if not asked.gradients:
        return None
    return measured(asked.gradients, largest_build(asked.mtu))


def _blocks_text(saved: Gradients, workers: int) -> str:
    said = (
        f"{saved.elems} gradients of {saved.dtype}: {100 * saved.density:.1f} % of a rank's blocks"
        f" are not zero, and {100 * saved.union:.1f} % of the blocks of {saved.ranks} together"
    )
    if saved.ranks >= workers:
        return said
    return f"{said}; of {workers}, taken as unlike, {100 * saved.union_of(workers):.1f} %"


def _check(asked: AdviseOptions) -> float | None:
    """Of a link, bit/s; None: of the loopback, which is measured."""
    parse.numbers("--workers", str(asked.workers), 2, MAX_WORKERS)
    rate = None if asked.link == LOOPBACK else parse.rate_bit_s("--link", asked.link)
    if asked.model and asked.model not in ddp.MODELS:
        raise InvalidInputError(f"--model {asked.model}: want one of {', '.join(ddp.MODELS)}")
    if asked.dtype not in ITEM_BYTES:
        raise InvalidInputError(f"--dtype {asked.dtype}: want one of {', '.join(ITEM_BYTES)}")
    has_size = asked.gradient_mb is not None or asked.gradients
    if not asked.model and (asked.compute_ms is None or not has_size):
        raise InvalidInputError("want --compute-ms and --gradient-mb or --gradients, or --model")
    if asked.model and asked.model not in ddp.COMPUTING_MODELS and asked.compute_ms is None:
        raise InvalidInputError(
            f"--model {asked.model}: it has the model's gradients but computes nothing:"
            " want --compute-ms"
        )
    return rate


def _measure_costs() -> Report:
    """A short all-reduce of a small and of a large tensor on loopback."""
    torchrun.require("torch")
    rows: list[allreduce.AllReduceRow] = []
    case = allreduce.AllReduceCase("float32", 4, "sum", DEFAULT_VALUES_PER_PACKET, 5, 2.0, "udp")
    allreduce.measure(Loopback(_COST_WORKERS), _COST_SIZES, case, rows.extend)
    return Report(
        bench="allreduce",
        settings={"link": LOOPBACK},
        rows=rows_of(rows),
        ratios=[],
        wrong=sum(row.wrong for row in rows),
    )


def _measure_model(model: str, compute_ms: float | None) -> ddp.StepRow:
    torchrun.require("torch")
    order = ddp.StepOrder(model, repeats=3, seconds=5.0, compute_ms=compute_ms or 0.0)
    return ddp.measure(Loopback(_COST_WORKERS), order, DEFAULT_VALUES_PER_PACKET)[0]
