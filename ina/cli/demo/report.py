"""Compares the demo's trainings: the verdict and the table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Group
from rich.text import Text

from ina.cli.common.output import table as plain_table
from ina.cli.demo.run import Training
from ina.p4 import names

MAX_ACCURACY_GAP_POINTS = 0.5


@dataclass
class Report:
    """What the demo found. ``worker_*`` are means over the workers, bytes those of frames."""

    workers: int
    epochs: int
    values: int
    loss_rate: float
    seconds_ina: float
    seconds_gloo: float
    accuracy_ina: float  # last epoch's, in percent
    accuracy_gloo: float
    largest_parameter_difference: float
    parameters_sha256: str
    parameters_sha256_no_loss: str | None  # of a run without loss; None if this was one
    all_reduces_network: int  # tensors, rank 0 (the same on all ranks)
    all_reduces_fallback: int  # all ranks together
    contributions_summed: int  # packets, as the P4 program counted them
    results: int  # sums completed, as the P4 program counted them
    replays: int
    tensor_bytes: int  # that one worker all-reduced
    worker_bytes_sent: float
    worker_bytes_received: float
    ring_bytes: float  # each way, 2 (n - 1) / n of the tensors, no headers
    retransmissions: int  # all ranks together, as are the next three, which are what became of them
    losses: int
    spurious_resends: int
    probes: int
    drops_injected: int
    curve: str
    ranks: list[dict[str, Any]]  # ina.torch.GroupStats of each
    failures: list[str]  # why the exit code is 1; empty if all is well


def compare(
    run: Training, gloo: Training, lossless: Training | None, *, values: int, loss_rate: float
) -> Report:
    """Judge ``run`` (through P4, perhaps with loss) against Gloo and a run without loss."""
    n, ranks = run.workers, run.ranks
    tensor_bytes = ranks[0]["network_bytes"]
    switch = ranks[0]["switch"]
    report = Report(
        workers=n,
        epochs=len(run.accuracies),
        values=values,
        loss_rate=loss_rate,
        seconds_ina=run.seconds,
        seconds_gloo=gloo.seconds,
        accuracy_ina=100 * run.accuracies[-1],
        accuracy_gloo=100 * gloo.accuracies[-1],
        largest_parameter_difference=float(np.abs(run.parameters - gloo.parameters).max()),
        parameters_sha256=run.parameters_sha256,
        parameters_sha256_no_loss=lossless.parameters_sha256 if lossless else None,
        all_reduces_network=ranks[0]["network_all_reduces"],
        all_reduces_fallback=sum(rank["fallbacks"] for rank in ranks),
        contributions_summed=_packets(switch, names.JOB_CONTRIBUTIONS),
        results=_packets(switch, names.JOB_RESULTS),
        replays=_packets(switch, names.JOB_REPLAYS),
        tensor_bytes=tensor_bytes,
        worker_bytes_sent=_mean(rank["session"]["bytes_sent"] for rank in ranks),
        worker_bytes_received=_mean(rank["session"]["bytes_received"] for rank in ranks),
        ring_bytes=2 * (n - 1) / n * tensor_bytes,
        retransmissions=_total(ranks, "retransmissions"),
        losses=_total(ranks, "losses"),
        spurious_resends=_total(ranks, "spurious_resends"),
        probes=_total(ranks, "probes"),
        drops_injected=switch["loss_in_packets"] + switch["loss_out_packets"],
        curve="",
        ranks=ranks,
        failures=[],
    )
    report.failures = _judge(report)
    return report


def _judge(report: Report) -> list[str]:
    failures = []
    if report.all_reduces_fallback:
        failures.append(f"{report.all_reduces_fallback} all_reduces fell back to Gloo")
    totals = {rank["network_all_reduces"] for rank in report.ranks}
    if totals != {report.all_reduces_network} or not report.all_reduces_network:
        failures.append(f"the ranks disagree on the number of all_reduces: {sorted(totals)}")
    chunks = {rank["session"]["chunks_done"] for rank in report.ranks}
    if report.contributions_summed != report.workers * report.results:
        failures.append(
            f"P4 summed {report.contributions_summed} contributions for {report.results} results"
            f" of {report.workers} workers"
        )
    if max(chunks) > report.results:
        failures.append(f"workers had {max(chunks)} sums, P4 completed {report.results}")
    gap = abs(report.accuracy_ina - report.accuracy_gloo)
    if not gap <= MAX_ACCURACY_GAP_POINTS:
        failures.append(f"the accuracies differ by {gap:.2f} points")
    if report.parameters_sha256_no_loss not in (None, report.parameters_sha256):
        failures.append("the parameters differ from those of the run without loss")
    if report.loss_rate and not report.drops_injected:
        failures.append("no packet was dropped although loss was asked for")
    return failures


def _packets(switch: dict[str, Any], name: str) -> int:
    """Packets of a P4 counter, all its indices: the demo's switch has had no other job."""
    alias = name.rpartition(".")[2]  # the controller shows P4Info's aliases
    return sum(c["packets"] for c in switch["counters"] if c["name"] == alias)


def _total(ranks: list[dict[str, Any]], counter: str) -> int:
    return sum(int(rank["session"][counter]) for rank in ranks)


def _mean(numbers: Any) -> float:
    return float(np.mean(list(numbers)))


def table(report: Report) -> Group:
    """The report for people, within 80 columns: one line a fact, ina beside Gloo."""
    n, mb = report.workers, _megabytes
    ring = f"{mb(report.ring_bytes)} (ring)"
    rows = [
        ("test accuracy", f"{report.accuracy_ina:.2f} %", f"{report.accuracy_gloo:.2f} %"),
        ("largest parameter difference", f"{report.largest_parameter_difference:.2e}", ""),
        ("all_reduces through P4", report.all_reduces_network, ""),
        ("all_reduces fallen back to Gloo", report.all_reduces_fallback, ""),
        ("packets summed in P4", report.contributions_summed, ""),
        ("sums completed in P4", report.results, ""),
        ("all-reduced by a worker", mb(report.tensor_bytes), mb(report.tensor_bytes)),
        ("  sent", mb(report.worker_bytes_sent), ring),
        ("  received", mb(report.worker_bytes_received), ring),
        ("packets sent again", report.retransmissions, ""),
        ("  for a lost one", report.losses, ""),
        ("  while a worker was late", report.probes, ""),
        ("  because others overtook it", report.spurious_resends, ""),
        ("injected drops", report.drops_injected, ""),
    ]
    if report.parameters_sha256_no_loss is not None:
        identical = report.parameters_sha256_no_loss == report.parameters_sha256
        rows += [
            ("parameters' sha256", report.parameters_sha256[:16], ""),
            (
                "  of the run without loss",
                report.parameters_sha256_no_loss[:16],
                "bit-identical" if identical else "DIFFERENT",
            ),
        ]
    rows.append(
        ("seconds, with start-up", f"{report.seconds_ina:.1f}", f"{report.seconds_gloo:.1f}")
    )
    title = f"{n} workers, {report.epochs} epochs, {report.values} values a packet"
    if report.loss_rate:
        title += f", {100 * report.loss_rate:g} % loss"
    verdict = "; ".join(report.failures) or "every sum was made in P4"
    return Group(
        plain_table(["", "ina (P4)", "Gloo"], rows, title=title),
        Text("\nring: by formula, 2 (n - 1) / n of the tensors, without headers"),
        Text(f"loss curves: {report.curve}"),
        Text(f"{'FAILED' if report.failures else 'ok'}: {verdict}"),
    )


def _megabytes(count: float) -> str:
    return f"{count / 1e6:.2f} MB"


def write_json(report: Report, path: Path) -> None:
    """Write the report as one JSON document."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
