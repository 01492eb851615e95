"""``ina tenant``: who shares a controller's switch."""

from __future__ import annotations

import typer

from ina.cli.common.output import JsonOption, emit, table
from ina.cli.common.rpc_client import ControllerOption, ask, plain
from ina.controller.config import DEFAULT_LISTEN
from ina.rpc import controller_pb2 as pb2

app = typer.Typer(help="Show what each tenant uses and may use.", no_args_is_help=True)


@app.callback()
def _tenant() -> None:
    """Show what each tenant uses and may use."""


@app.command("list")
def list_tenants(controller: ControllerOption = DEFAULT_LISTEN, json: JsonOption = False) -> None:
    """List the tenants: jobs, slots and workers, used and allowed.

    Those that are configured, and others that have jobs: where any is configured, their next ones
    are refused.
    """
    reply = ask(controller, lambda operator: operator.ListTenants, pb2.ListTenantsRequest())
    other = "refused" if any(tenant.configured for tenant in reply.tenants) else "any"
    rows = [
        [
            tenant.name,
            _of(tenant.jobs, tenant.jobs_limit),
            _of(tenant.slots, tenant.slots_limit),
            _of(tenant.workers, tenant.workers_limit),
            str(tenant.max_priority) if tenant.configured else other,
        ]
        for tenant in reply.tenants
    ]
    human = table(["tenant", "jobs", "slots", "workers", "max priority"], rows)
    emit([plain(tenant) for tenant in reply.tenants], json, human)


def _of(used: int, limit: int) -> str:
    return f"{used} of {limit}" if limit else f"{used}"
