"""What the TAB key offers beyond the names of commands and options: names of jobs."""

from __future__ import annotations

import logging
import os

import grpc
import typer

from ina.controller.config import DEFAULT_LISTEN
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2

DEADLINE_S = 0.5
"""A controller that does not answer by then offers nothing: somebody is typing."""


def job_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The jobs of the controller that the command line, or else INA_CONTROLLER, names first."""
    from ina.cli.common.rpc_client import addresses, controller_at

    given = ctx.params.get("controller") or os.environ.get("INA_CONTROLLER") or DEFAULT_LISTEN
    logging.disable()  # nothing may be printed between what is typed
    try:
        with controller_at(addresses(given)[0]) as operator:
            jobs = operator.ListJobs(pb2.ListJobsRequest(), timeout=DEADLINE_S).jobs
    except (InaError, grpc.RpcError):
        return []
    finally:
        logging.disable(logging.NOTSET)
    return [job.name for job in jobs if job.name.startswith(incomplete)]
