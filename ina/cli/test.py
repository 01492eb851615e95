"""``ina test``: conformance cases, differential fuzzing and replay, on any data plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import typer

from ina.cli.common.options import command
from ina.cli.common.output import JsonOption, console, emit, table
from ina.cli.common.progress import progress
from ina.errors import InvalidInputError
from ina.p4 import names
from ina.p4.builds import builds_of, listed, require_build, require_mode
from ina.testing.case import Case, Verdict, run_case
from ina.testing.case_file import load_case, save_finding
from ina.testing.cases import all_cases
from ina.testing.devices import open_device
from ina.testing.differential import Comparison
from ina.testing.minimise import minimise

app = typer.Typer(
    help="Hold a data plane to the conformance cases, or to another.", no_args_is_help=True
)

DEVICE = typer.Option(
    metavar="NAME",
    envvar="INA_DEVICE",
    help="model, soft, soft-veth (root), xdp and xdp-veth (root), bmv2 (root), or "
    "HOST:PORT[,DEVICE_ID] of a P4Runtime server.",
)
PORT_MAP = typer.Option(
    "--port-map",
    metavar="PORT@INTERFACE,...",
    envvar="INA_PORT_MAP",
    help="For HOST:PORT: which interface of this machine is cabled to which port, as PTF has it.",
)
MODE = typer.Option(help=f"Of the program that the device runs: {' or '.join(names.MODES)}.")
VALUES = typer.Option(help=f"int32 values a packet ({listed('or')}); 0: every build.")


@app.callback()
def _group() -> None:
    """Hold a data plane to the conformance cases, or to another."""


@app.command()
def conformance(
    device: Annotated[str, DEVICE] = "soft",
    port_map: Annotated[list[str] | None, PORT_MAP] = None,
    mode: Annotated[str, MODE] = names.DEFAULT_MODE,
    values: Annotated[int, VALUES] = 0,
    only: Annotated[
        str, typer.Option(metavar="PATTERN", help='Cases by name, as "repeat/*".')
    ] = "*",
    show: Annotated[bool, typer.Option("--list", help="Say what the cases are; run none.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the conformance cases on a device. Exit code 1 when one of them fails."""
    cases = _chosen(require_mode("--mode", mode), values, only)
    if show:
        rows = [{"case": case.name, "values": case.values, "about": case.about} for case in cases]
        emit(rows, as_json)
        return
    with (
        progress(f"opening {device}", len(cases)) as told,
        open_device(device, port_map or (), mode) as under_test,
    ):
        verdicts = []
        for number, case in enumerate(cases):
            told.update(f"{under_test.name}: case {number + 1} of {len(cases)}, {case.name}")
            verdicts.append(run_case(case, under_test))
            told.advance()
    _report(device, verdicts, as_json)


@dataclass(frozen=True, kw_only=True)
class DiffOptions:
    """Of ``ina test diff``."""

    device: Annotated[str, DEVICE] = "soft"
    against: Annotated[
        str, typer.Option(metavar="NAME", help="The reference: it steers the traffic.")
    ] = "model"
    port_map: Annotated[list[str] | None, PORT_MAP] = None
    packets: Annotated[int, typer.Option(min=1, help="Packets to compare, for each build.")] = (
        10_000
    )
    mode: Annotated[str, MODE] = names.DEFAULT_MODE
    values: Annotated[int, VALUES] = 0
    seed: Annotated[int, typer.Option(help="The same seed gives the same packets.")] = 1
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where a difference is written.")] = (
        Path("ina-difference")
    )
    minimise_s: Annotated[
        float, typer.Option(metavar="SECONDS", help="Time to look for a shorter case.")
    ] = 120.0
    as_json: JsonOption = False


@app.command()
@command(DiffOptions)
def diff(asked: DiffOptions) -> None:
    """Send the same random, mutated and hostile packets to two devices; compare all that leaves.

    Exit code 1 at the first difference: it is minimised and written as a case and as pcap files.
    """
    wanted = builds(asked.values, require_mode("--mode", asked.mode))
    done = []
    with (
        progress(
            f"opening {asked.against} and {asked.device}", asked.packets * len(wanted)
        ) as told,
        open_device(asked.against, mode=asked.mode) as reference,
        open_device(asked.device, asked.port_map or (), asked.mode) as under_test,
    ):
        for build in wanted:
            what = f"{asked.against} and {asked.device}, {build} values"
            told.update(what)
            comparison = Comparison(reference, under_test, build, asked.seed)
            finding = comparison.run(asked.packets, told.advance)
            done.append({"values": build, **asdict(comparison.tally)})
            if finding is not None:
                told.update(f"{what}: looking for a shorter case")
                finding = minimise(finding, reference, under_test, budget_s=asked.minimise_s)
                written = save_finding(finding, asked.device, under_test, asked.out)
                break
        else:
            finding, written = None, []
    document = {
        "device": asked.device,
        "against": asked.against,
        "seed": asked.seed,
        "builds": done,
        "differences": list(finding.differences) if finding else [],
        "files": [str(path) for path in written],
    }
    emit(document, asked.as_json, _told(document))
    raise typer.Exit(int(finding is not None))


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="A case, as `ina test diff` writes it.")],
    device: Annotated[str, DEVICE] = "soft",
    port_map: Annotated[list[str] | None, PORT_MAP] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a case of a file on a device. Exit code 1 when the device does otherwise."""
    case = load_case(file)
    with (
        progress(f"{device}: {case.name}"),
        open_device(device, port_map or (), case.mode) as under_test,
    ):
        verdict = run_case(case, under_test)
    _report(device, [verdict], as_json)


def builds(values: int, mode: str) -> Sequence[int]:
    """The builds of a mode that ``--values`` means. Raises InvalidInputError."""
    if values == 0:
        return builds_of(mode)
    require_build("--values", values, mode)
    return (values,)


def _chosen(mode: str, values: int, only: str) -> list[Case]:
    cases = [
        case
        for build in builds(values, mode)
        for case in all_cases(build, mode)
        if fnmatch(case.name, only)
    ]
    if not cases:
        raise InvalidInputError(f"--only {only!r}: no case has such a name (see --list)")
    return cases


def _told(document: dict[str, Any]) -> str:
    names = f"{document['against']} and {document['device']}, seed {document['seed']}"
    lines = [
        f"{names}, {build['values']} values a packet: {build['packets']} packets in, "
        f"{build['left']} out, {build['counters']} counters compared"
        for build in document["builds"]
    ]
    lines += [f"difference: {line}" for line in document["differences"]]
    lines += [f"written: {file}" for file in document["files"]]
    return "\n".join(lines if document["differences"] else [*lines, "no difference"])


def _report(device: str, verdicts: list[Verdict], as_json: bool) -> None:
    failed = [verdict for verdict in verdicts if verdict.differences]
    skipped = [verdict for verdict in verdicts if verdict.skipped]
    green = len(verdicts) - len(failed) - len(skipped)
    if as_json:
        document: dict[str, Any] = {
            "device": device,
            "green": green,
            "failed": [
                {
                    "case": verdict.case.name,
                    "values": verdict.case.values,
                    "about": verdict.case.about,
                    "differences": verdict.differences,
                }
                for verdict in failed
            ],
            "skipped": [
                {"case": v.case.name, "values": v.case.values, "why": v.skipped} for v in skipped
            ],
        }
        emit(document, True)
    else:
        rows = [
            *(
                ("FAILS", v.case.values, v.case.name, line)
                for v in failed
                for line in v.differences
            ),
            *(("not run", v.case.values, v.case.name, v.skipped) for v in skipped),
        ]
        if rows:
            emit(None, False, table(["", "values", "case", "why"], rows))
        console().print(
            f"{device}: {green} cases green, {len(failed)} failed, {len(skipped)} not run"
        )
    raise typer.Exit(int(bool(failed)))
