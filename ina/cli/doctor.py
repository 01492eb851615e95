"""``ina doctor``: what this machine lacks, where the way to the switch ends, why a job stalls."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.console import Group

from ina.cli.common.given import is_given
from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, emit, table
from ina.cli.common.progress import progress
from ina.cli.common.rpc_client import addresses, ask, ask_about_itself, job_names
from ina.cli.job.view import known_of
from ina.doctor.finding import Finding
from ina.doctor.machine import examine
from ina.doctor.path import examine_path
from ina.doctor.stall import explain
from ina.doctor.verdict import Step
from ina.errors import InvalidInputError
from ina.rpc import controller_pb2 as pb2


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Of ``ina doctor``."""

    ctx: typer.Context
    controller: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            envvar="INA_CONTROLLER",
            help="Also test the way from this host to that controller's switch and back; of"
            " several, separated by commas, the first that answers.",
        ),
    ] = ""
    embedded: Annotated[
        bool,
        typer.Option("--embedded", help="Also test a soft switch of this process, over loopback."),
    ] = False
    job: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Only explain why this job stands still.",
            autocompletion=job_names,
        ),
    ] = ""
    interface: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INTERFACE",
            help="Also say whether it can be a port of ina switch --device xdp; repeatable.",
        ),
    ] = None
    roce: Annotated[
        bool,
        typer.Option(
            "--roce", help="Only go through what transport roce needs: RDMA NICs, step by step."
        ),
    ] = False
    host: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="This host's IPv4 address towards the switch."),
    ] = None
    token: Annotated[str, typer.Option(envvar="INA_JOB_TOKEN", help="Join token to use.")] = ""
    tenant: Annotated[str, typer.Option(envvar="INA_TENANT", help="Tenant to test as.")] = ""
    as_json: JsonOption = False


@command(DoctorOptions)
def doctor(asked: DoctorOptions) -> None:
    """Say what this machine lacks, test the way to the switch, explain a stall.

    Exit code 1 when a required part is missing, a step of the way fails, or the job is in trouble.
    """
    if asked.embedded and asked.controller:
        raise InvalidInputError("--embedded and --controller (INA_CONTROLLER): one of them")
    if asked.roce:
        _refuse_others(asked)
        found = list(_roce())
        emit({"rdma": [_plain(it) for it in found]}, asked.as_json, _machine(found))
        raise typer.Exit(int(not all(it.found for it in found)))
    if asked.job:
        if not asked.controller:
            raise InvalidInputError("--job needs --controller (or INA_CONTROLLER)")
        _refuse(asked.ctx, "--job only explains")
        steps = _explain(asked.controller, asked.job)
        emit({"job": asked.job, "steps": steps}, asked.as_json, _show(steps))
        raise typer.Exit(int(not all(step.ok for step in steps)))
    if not (asked.controller or asked.embedded):
        _refuse(asked.ctx, "it is for testing the way to a switch: add --controller or --embedded")
    findings = examine(asked.interface or ())
    steps = []
    if asked.controller or asked.embedded:
        with ExitStack() as stack:
            for address in addresses(asked.controller) if asked.controller else [_start(stack)]:
                steps = _walk(address, asked.host, asked.token, asked.tenant)
                if steps[0].ok:  # else it is a standby, or away: ask the next
                    break
    emit(
        {"machine": [_plain(finding) for finding in findings], "path": steps},
        asked.as_json,
        Group(_machine(findings), *([_show(steps)] if steps else [])),
    )
    missing = any(finding.required and not finding.found for finding in findings)
    raise typer.Exit(int(missing or not all(step.ok for step in steps)))


def _refuse(ctx: typer.Context, why: str) -> None:
    for name in ("host", "token", "tenant"):
        if is_given(ctx, name):
            raise InvalidInputError(f"--{name}: {why}")


def _refuse_others(asked: DoctorOptions) -> None:
    """Beside --roce; a controller that the environment names does not matter."""
    for name in ("controller", "embedded", "job", "interface"):
        if is_given(asked.ctx, name):
            raise InvalidInputError(f"--{name}: --roce looks at this machine's NICs alone")
    _refuse(asked.ctx, "--roce looks at this machine's NICs alone")


def _roce() -> Iterator[Finding]:
    """Imported here: it needs the extension, which a machine may lack."""
    from ina.doctor.roce import examine_roce

    yield from examine_roce()


def _walk(address: str, host: str | None, token: str, tenant: str) -> list[Step]:
    steps: list[Step] = []
    with progress("controller") as told:
        for step in examine_path(address, host=host, token=token, tenant=tenant):
            steps.append(step)
            told.update(f"{step.name}: {'ok' if step.ok else 'FAILS'}")
    return steps


def _start(stack: ExitStack) -> str:
    """A soft switch and a controller in this process; compiling the program takes some seconds."""
    from ina.controller.embedded import Embedded

    with progress("starting a soft switch"):
        return stack.enter_context(Embedded()).controller_addr


def _explain(controller: str, job: str) -> list[Step]:
    reply = ask(controller, lambda operator: operator.ShowJob, pb2.ShowJobRequest(name=job))
    known = known_of(reply, ask_about_itself(controller))
    return explain(known, time.time(), reply.counters)


def _machine(findings: list[Finding]) -> Any:
    rows = [(f.name, f.verdict, f.found or f"for {f.used_for}: {f.get}") for f in findings]
    return table(["what", "", "found, or how to get it"], rows)


def _show(steps: list[Step]) -> Any:
    rows = []
    for step in steps:
        rows.append((step.name, "ok" if step.ok else "FAILS", step.found))
        if step.advice:
            rows.append(("", "", f"-> {step.advice}"))
    return table(["step", "", "found"], rows)


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "verdict": finding.verdict,
        "found": finding.found,
        "used_for": finding.used_for,
        "get": finding.get,
        "required": finding.required,
    }
