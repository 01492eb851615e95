"""``ina sim``: networks in virtual time, with the code that ships."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ina.cli.common.bounds import MAX_PROCESSES, MAX_SEED
from ina.cli.common.output import JsonOption, check_picture, console, emit
from ina.cli.common.progress import progress
from ina.cli.common.window import WindowOption, WindowValuesOption, window_of
from ina.cli.sim.compare import app as compare_app
from ina.cli.sim.plot import plot as draw_plot
from ina.cli.sim.progress import fuzz_progress, run_progress
from ina.cli.sim.view import finding_view, fuzz_view, ladder_view, report_view
from ina.errors import InvalidInputError
from ina.files import root
from ina.sim.draw import draw
from ina.sim.fuzz import CRASH, Finding, State, fuzz, load_state, mend_at_s, smaller, try_scenario
from ina.sim.ladder import recorder
from ina.sim.reading import load
from ina.sim.run import Simulation
from ina.sim.scenario import Scenario

app = typer.Typer(help="Simulate networks in virtual time, with the code that ships.",
                  no_args_is_help=True)  # fmt: skip

app.add_typer(compare_app, name="compare")
_LADDER_FRAMES = 200_000
"""Kept for the ladder: the newest."""
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Of all that happens by chance.")]


@app.callback()
def _sim() -> None:
    """Simulate networks in virtual time, with the code that ships."""


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A scenario, TOML.")],
    seed: Seed = 1,
    plot: Annotated[
        Path | None, typer.Option(help="Windows, queues and goodput over time, as .png, .svg.")
    ] = None,
    pcap: Annotated[Path | None, typer.Option(help="Write each frame, at each link.")] = None,
    events: Annotated[bool, typer.Option("--events", help="Print what happened, too.")] = False,
    window: WindowOption = "",
    window_option: WindowValuesOption = None,
    json: JsonOption = False,
) -> None:
    """Run a scenario and print what an operator would ask.

    Exit code 1 if a sum was wrong, or a job ended though no fault of the scenario was done to it.
    """
    if plot is not None:
        check_picture("--plot", plot)
    scenario = load(file)
    if (congestion := window_of(window, window_option)) is not None:
        table = {"algorithm": congestion.algorithm, **congestion.options}
        scenario = msgspec.structs.replace(scenario, congestion=table)
    trace = recorder(0, pcap) if pcap else None
    with run_progress(scenario.limit_s) as told:
        simulation = Simulation(scenario, seed, trace=trace, samples=plot is not None, told=told)
        report = simulation.run()
    if plot is not None:
        draw_plot(report, plot)
    emit(report, json, report_view(report, events=events))
    if report.violations or report.ended_unasked:
        raise typer.Exit(1)


@app.command()
def example(
    name: Annotated[str, typer.Argument(help="Which; none: list them.")] = "",
    out: Annotated[Path | None, typer.Option(help="A file; default: NAME.toml here.")] = None,
    json: JsonOption = False,
) -> None:
    """Write a scenario to start from, or list those that there are."""
    folder = root() / "examples" / "sim"
    found = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if not name:
        rows = [
            {"name": stem, "what": path.read_text().splitlines()[0].lstrip("# ")}
            for stem, path in found.items()
        ]
        emit(rows, json)
        return
    if name not in found:
        raise InvalidInputError(f"there is no example {name!r}: there are {', '.join(found)}")
    to = out or Path(f"{name}.toml")
    if to.exists():
        raise InvalidInputError(f"{to} is there already")
    to.write_text(found[name].read_text())
    emit({"file": str(to)}, json, f"{to}: run it with ina sim run {to}")


@app.command("fuzz")
def fuzz_command(
    seeds: Annotated[int, typer.Option(min=1, help="How many.")] = 200,
    first: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The first one.")] = 0,
    processes: Annotated[
        int, typer.Option(min=0, max=MAX_PROCESSES, help="0: one for each core.")
    ] = 0,
    state: Annotated[
        Path | None, typer.Option(help="Where it notes how far it is; with it, it continues.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for scenarios that fail.")] = Path("out/sim"),
    budget_s: Annotated[float, typer.Option(min=0, help="To make one that fails smaller.")] = 60.0,
    json: JsonOption = False,
) -> None:
    """Try random networks, jobs and faults until a promise is broken.

    The first one that breaks is made smaller and printed with its seed and a ladder diagram. Exit
    code 1 if there is one.
    """
    found = load_state(state, first) if state else State(first, first)
    with fuzz_progress(seeds) as told:
        found = fuzz(found, seeds, processes=processes, save=state, told=told)
    newest = found.findings[:1]
    # What ends a process would end this one, too, if it were run here.
    findings = [it if it.kind == CRASH else _smallest(it, budget_s, out) for it in newest]
    emit(found, json, fuzz_view(found))
    if not json:
        for finding in findings:
            console().print(finding_view(finding, out))
            if finding.kind != CRASH:
                _print_ladder(finding.scenario, finding.seed)
    if found.findings:
        raise typer.Exit(1)


@app.command()
def replay(
    seed: Annotated[int, typer.Argument(min=0, max=MAX_SEED, help="As ina sim fuzz printed it.")],
    file: Annotated[Path | None, typer.Option(help="A scenario; else that of the seed.")] = None,
    pcap: Annotated[Path | None, typer.Option(help="Write each frame, at each link.")] = None,
    ladder: Annotated[bool, typer.Option("--ladder", help="Print a ladder diagram.")] = False,
    events: Annotated[bool, typer.Option("--events", help="Print what happened, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Run a seed of ``ina sim fuzz`` once more. Exit code 1 if it breaks a promise."""
    scenario = load(file) if file else draw(seed)
    trace = recorder(_LADDER_FRAMES if ladder else 0, pcap)
    with run_progress(scenario.limit_s) as told:
        simulation = Simulation(
            scenario, seed, trace=trace, mend_at_s=mend_at_s(scenario), told=told
        )
        report = simulation.run()
    emit({"scenario": scenario, "report": report}, json, report_view(report, events=events))
    if ladder and not json:
        console().print(ladder_view(trace))
    if report.violations:
        raise typer.Exit(1)


def _smallest(finding: Finding, budget_s: float, out: Path) -> Finding:
    with progress(f"making the scenario of seed {finding.seed} smaller"):
        scenario = smaller(finding.scenario, finding.seed, finding.kind, budget_s)
    again = try_scenario(scenario, finding.seed).violations
    what = next((it.what for it in again if it.kind == finding.kind), finding.what)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"seed-{finding.seed}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(scenario)))
    return Finding(finding.seed, finding.kind, what, scenario)


def _print_ladder(scenario: Scenario, seed: int) -> None:
    trace = recorder(_LADDER_FRAMES, None)
    Simulation(scenario, seed, trace=trace, mend_at_s=mend_at_s(scenario)).run()
    console().print(ladder_view(trace))
