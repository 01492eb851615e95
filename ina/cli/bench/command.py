"""``ina bench``: the benchmarks, each in a file of its own."""

from __future__ import annotations

import typer

from ina.cli.lazy import Lazy, lazy_group

MEMBERS = {
    "pipeline": Lazy("ina.cli.bench.pipeline", "The compiled P4 program, packets in memory."),
    "switch": Lazy("ina.cli.bench.switch", "A soft switch with packets through its UDP ports."),
    "quantize": Lazy("ina.cli.bench.quantize", "The host's conversions, beside memcpy."),
    "rounding": Lazy("ina.cli.bench.rounding", "How far off sums are in fewer bits."),
    "allreduce": Lazy("ina.cli.bench.allreduce", "All-reduce through the switch, beside Gloo."),
    "collectives": Lazy(
        "ina.cli.bench.collectives", "nccl-tests' table of collectives, beside Gloo."
    ),
    "blocks": Lazy("ina.cli.bench.blocks", "Sums of arrays that are mostly zero, by density."),
    "racks": Lazy("ina.cli.bench.racks", "All-reduce over racks and a spine, beside Gloo."),
    "routing": Lazy("ina.cli.bench.routing", "Two jobs over two spines, by placement."),
    "hosts": Lazy("ina.cli.bench.hosts", "Hosts of several ranks, with nodes and without."),
    "sharing": Lazy("ina.cli.bench.sharing", "Jobs on a switch with slots for one, in four ways."),
    "stopped": Lazy(
        "ina.cli.bench.stopped", "A job that claims slots and stops, and its neighbour."
    ),
    "resize": Lazy("ina.cli.bench.resize", "What other slots cost a running job."),
    "ddp": Lazy("ina.cli.bench.ddp", "Training steps of DDP, beside Gloo."),
    "fsdp": Lazy("ina.cli.bench.fsdp", "Steps of FSDP2, beside Gloo and what links allow."),
    "training": Lazy("ina.cli.bench.training", "Losses by how gradients travel."),
    "embedding": Lazy("ina.cli.bench.embedding", "An embedding's gradients, beside Gloo."),
    "lookups": Lazy("ina.cli.bench.lookups", "Embeddings looked up and updated, beside Gloo."),
    "inference": Lazy("ina.cli.bench.inference", "A plan of inference, beside Gloo."),
    "controller": Lazy("ina.cli.bench.controller", "Joins, and how long admission takes."),
    "windows": Lazy("ina.cli.bench.windows", "Window algorithms on one link, beside TCP."),
    "sim": Lazy("ina.cli.bench.sim", "The virtual network, beside the same star of namespaces."),
    "advise": Lazy("ina.cli.bench.advise", "Say what limits a job, and whether ina can help."),
}

app = typer.Typer(
    cls=lazy_group(MEMBERS), help="Measure ina beside its peers and limits.", no_args_is_help=True
)


@app.callback()
def _bench() -> None:
    """Measure ina beside its peers and limits."""
