"""``ina job``: the jobs of a controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ina import modes
from ina.cli.common.bounds import MAX_COUNT
from ina.cli.common.given import is_given
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, check_output, emit
from ina.cli.common.rpc_client import (
    ControllerOption,
    ask,
    ask_about_itself,
    job_names,
    plain,
)
from ina.cli.job.dump import collect
from ina.cli.job.dump import write as write_dump
from ina.cli.job.memory import history_view, plan_view
from ina.cli.job.plan_file import plan_request
from ina.cli.job.resize import resize as resize_job
from ina.cli.job.resize import resize_line
from ina.cli.job.view import job_view, jobs_table, slot_range
from ina.cli.job.watch import watch as watch_jobs
from ina.controller.config import DEFAULT_LISTEN
from ina.rpc import controller_pb2 as pb2

app = typer.Typer(
    help="List, inspect, watch, resize and end the jobs of a controller.", no_args_is_help=True
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The job's name.", autocompletion=job_names)
]


@app.callback()
def _job() -> None:
    """List, inspect, watch, resize and end the jobs of a controller."""


@app.command("list")
def list_jobs(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """List the jobs: state, epoch, slots, ranks that have joined, and who is missing."""
    reply = ask(controller, lambda operator: operator.ListJobs, pb2.ListJobsRequest())
    if json:
        emit([plain(job) for job in reply.jobs], json)
        return
    about = ask_about_itself(controller)
    emit([], json, jobs_table(reply.jobs, controller=about) if reply.jobs else "no jobs")


@app.command()
def show(
    name: NameArgument, controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False
) -> None:
    """Show one job: members, leases, progress, who is missing, counters, last events."""
    reply = ask(controller, lambda operator: operator.ShowJob, pb2.ShowJobRequest(name=name))
    human = None if json else job_view(reply, controller=ask_about_itself(controller))
    emit(plain(reply), json, human)


@app.command()
def watch(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A job; without it, all of them.", autocompletion=job_names
        ),
    ] = "",
    for_s: Annotated[
        float,
        typer.Option("--for", metavar="SECONDS", min=0.0, help="Stop after so long; 0: never."),
    ] = 0.0,
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Tell what happens to jobs as it happens, and who is missing while one stands still.

    Ends with the job, if one is named, or with Ctrl-C. With --json a line is a document.
    """
    watch_jobs(controller, name, for_s=for_s, json=json)


@app.command()
def evict(
    name: NameArgument,
    reason: Annotated[
        str, typer.Option(help="What the job's workers are told, beside that an operator did it.")
    ] = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """End a job: its workers fail with the reason, its slots are free when this returns."""
    request = pb2.EvictJobRequest(name=name, reason=reason)
    job = ask(controller, lambda operator: operator.EvictJob, request).job
    emit(plain(job), json, f"evicted {name}: slots {slot_range(job) or 'none'} are free")


@app.command()
def resize(
    name: NameArgument,
    slots: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=2, max=0xFFFE, help="Slots of its own, even; default: as it has."
        ),
    ] = None,
    mode: Annotated[
        str,
        typer.Option(metavar="|".join(modes.names()), help="As INA_MODE; default: as it has."),
    ] = "",
    wait_s: Annotated[
        float,
        typer.Option(
            "--wait", metavar="SECONDS", min=0.0, help="Wait so long for it to have changed."
        ),
    ] = 10.0,
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Give a running job another number of slots, or another mode, while it runs.

    Its workers notice nothing but speed. When one of them needs longer than --wait says to finish
    what it has begun, the change goes on by itself.
    """
    done = resize_job(controller, name, slots or 0, mode, wait_s)
    emit(done.document(), json, resize_line(done))


@app.command()
def history(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A job; without it, all of them.", autocompletion=job_names
        ),
    ] = "",
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Tell why jobs have as many slots as they have: the memory policy's last decisions."""
    request = pb2.ListDecisionsRequest(job=name)
    reply = ask(controller, lambda operator: operator.ListDecisions, request)
    emit(plain(reply), json, history_view(reply))


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """Of ``ina job plan``."""

    ctx: typer.Context
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="TOML file of the job; options come before its keys."),
    ] = None
    workers: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many it has.")] = None
    like: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Its steps are this running job's.", autocompletion=job_names
        ),
    ] = ""
    step_bytes: Annotated[
        str, typer.Option("--bytes", metavar="N", help="Bytes a worker sends in a step, as 100M.")
    ] = ""
    compute_s: Annotated[
        float, typer.Option("--compute", metavar="SECONDS", min=0, help="A step's computation.")
    ] = 0.0
    overlap_s: Annotated[
        float | None,
        typer.Option(
            "--overlap",
            metavar="SECONDS",
            min=0,
            help="Of it, while sums are under way; default: all of it.",
        ),
    ] = None
    round_trip_s: Annotated[
        float,
        typer.Option("--round-trip", metavar="SECONDS", min=0, help="Of a packet to the switch."),
    ] = 50e-6
    link_gbit: Annotated[
        float, typer.Option("--link", metavar="GBIT/S", min=0, help="Of a worker; 0: not known.")
    ] = 0.0
    slots: Annotated[int, typer.Option(metavar="N", min=0, help="That it asks for.")] = 0
    tenant: Annotated[str, typer.Option(envvar="INA_TENANT", help="Whose it is.")] = ""
    priority: Annotated[
        int, typer.Option(envvar="INA_PRIORITY", min=-MAX_COUNT, help="Higher is more important.")
    ] = 0
    deadline: Annotated[
        str, typer.Option(envvar="INA_DEADLINE", help="Seconds from now, or a time.")
    ] = ""
    steps: Annotated[
        int, typer.Option(envvar="INA_STEPS", min=0, help="That it takes; 0: not known.")
    ] = 0
    controller: ControllerOption = DEFAULT_LISTEN
    json: JsonOption = False


@app.command()
@command(PlanOptions)
def plan(asked: PlanOptions) -> None:
    """Say what a job would get now, where it would be summed, and what its steps would take.

    And whom it would slow down, by how much. Nothing is reserved.
    """
    options = {
        **{
            "workers": asked.workers,
            "like": asked.like,
            "bytes": asked.step_bytes,
            "compute_s": asked.compute_s,
        },
        **{
            "overlap_s": asked.overlap_s,
            "round_trip_us": asked.round_trip_s * 1e6,
            "link_gbit": asked.link_gbit,
        },
        **{
            "slots": asked.slots,
            "tenant": asked.tenant,
            "priority": asked.priority,
            "deadline": asked.deadline,
        },
        **{"steps": asked.steps},
    }
    called = {"bytes": "step_bytes", "round_trip_us": "round_trip_s"}
    given = {key: it for key, it in options.items() if is_given(asked.ctx, called.get(key, key))}
    usual = {key: options[key] for key in ("tenant", "priority", "deadline", "steps")}
    request = plan_request(asked.file, given, usual)
    reply = ask(asked.controller, lambda operator: operator.PlanJob, request)
    emit(plain(reply), asked.json, plan_view(reply))


@app.command()
def dump(
    name: NameArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: stdout.")
    ] = None,
    controller: ControllerOption = DEFAULT_LISTEN,
    json: JsonOption = False,
) -> None:
    """Write one JSON document with all that a bug report about a job needs.

    It has host addresses and counters, and neither tokens nor keys nor gradients.
    """
    if output is not None:
        check_output("--output", output, (".json", ""))
    document = collect(controller, name)
    if output is None:
        write_dump(document, None)
        return
    write_dump(document, output)
    emit({"file": output}, json, f"wrote {output}")
