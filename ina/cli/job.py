"""``ina job``: the jobs of a controller."""

from __future__ import annotations

import typer

from ina.cli.output import emit, table
from ina.cli.rpc_client import ControllerOption, JsonOption, call, controller_at
from ina.controller.config import DEFAULT_LISTEN
from ina.rpc import controller_pb2 as pb2

app = typer.Typer(help="List and inspect the jobs of a controller.", no_args_is_help=True)


@app.callback()
def _job() -> None:
    """List and inspect the jobs of a controller."""


@app.command("list")
def list_jobs(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """List the jobs: state, epoch, slots, and the ranks that have joined."""
    with controller_at(controller) as stub:
        reply = call(stub.ListJobs, pb2.ListJobsRequest(), controller)
    jobs = [
        {
            "name": job.name,
            "state": job.state,
            "job": job.job,
            "epoch": job.epoch,
            "world_size": job.world_size,
            "joined": list(job.joined),
            "first_slot": job.first_slot,
            "slots": job.slots,
        }
        for job in reply.jobs
    ]
    columns = ["name", "state", "job", "epoch", "world_size", "joined", "first_slot", "slots"]
    rows = [[job[column] for column in columns] for job in jobs]
    emit(jobs, json, table(columns, rows) if jobs else "no jobs")
