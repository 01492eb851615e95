"""``ina p4``: compile P4 programs; unpack, describe and draw compiled ones."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from ina.cli.common.output import JsonOption, check_output, emit, table
from ina.cli.common.progress import progress
from ina.cli.p4.tofino import Target, compile_for_tofino
from ina.errors import InvalidInputError
from ina.p4 import names
from ina.p4.builds import all_builds, builds_of, listed, require_build, require_mode
from ina.p4.compile import compile_all, compile_build, compile_program
from ina.p4.errors import P4InfoError
from ina.p4.info import ProgramInfo, read_p4info
from ina.p4.origin import warn_if_changed
from ina.p4.programs import COMPILED_DIR, build_defines, compiled
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET
from ina.switch.graph import draw_program
from ina.switch.ir import load_program

app = typer.Typer(help="Compile, unpack, describe and draw the P4 programs.", no_args_is_help=True)

Build = Annotated[int, typer.Option(help=f"Which of ina's builds: {listed('or')}.")]
Mode = Annotated[str, typer.Option(help=f"Of jobs: {' or '.join(names.MODES)}.")]


@app.callback()
def _p4() -> None:
    """Compile, unpack, describe and draw the P4 programs."""


@app.command("compile")
def compile_(
    source: Annotated[
        Path | None, typer.Argument(help="A P4 program (default: those of ina).")
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            help=f"Which of ina's: {' or '.join(names.MODES)} (default: all; Tofino: pool)."
        ),
    ] = None,
    values: Annotated[
        int | None, typer.Option(help=f"Values a packet: {listed('or')} (default: all of them).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Directory for the results (default: here).")
    ] = None,
    target: Annotated[
        Target, typer.Option(help="bmv2: a v1model program; tofino, tofino2: a TNA program.")
    ] = Target.BMV2,
    report: Annotated[
        Path | None, typer.Option(help="Tofino: write what it uses of the chip, as Markdown.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compile with p4c: to BMv2 JSON and P4Info, or for a Tofino.

    With no argument: renews all checked-in builds of ina's programs and their manifest.
    p4c-bm2-ss is looked for on PATH or as INA_P4C; for a Tofino p4c-barefoot and bfas, or
    INA_P4C_TOFINO and INA_BFAS.
    """
    if report is not None:
        check_output("--report", report, (".md", ""))
    if target is not Target.BMV2:
        of = names.DEFAULT_MODE if mode is None else require_mode("--mode", mode)
        compile_for_tofino(source, of, target.value, values, out or Path(), report, json)
        return
    if report is not None:
        raise InvalidInputError("--report needs --target tofino or tofino2")
    _say(_compile(source, mode, values, out), json)


def _say(written: Iterable[Path], json: bool) -> None:
    emit([{"file": str(path), "bytes": path.stat().st_size} for path in written], json)


def _compile(
    source: Path | None, mode: str | None, values: int | None, out: Path | None
) -> list[Path]:
    """What was written."""
    if source is not None:
        defines = build_defines(values) if values is not None else {}
        with progress(f"p4c compiles {source}"):
            warnings: list[str] = []
            written = compile_program(
                source, out or Path(), source.stem, defines, on_warnings=warnings.append
            )
        for said in warnings:
            print(said.rstrip("\n"), file=sys.stderr)
        return list(written)
    with progress("p4c compiles ina's programs") as told:

        def begin(mode: str, values: int) -> None:
            told.update(f"p4c compiles the program of mode {mode}, {values} values a packet")

        if mode is None and values is None and out is None:
            compile_all(begin)
            return sorted(COMPILED_DIR.iterdir())
        modes = names.MODES if mode is None else (require_mode("--mode", mode),)
        if values is not None and all(values not in builds_of(of) for of in modes):
            require_build("--values", values, modes[0])
        made: list[Path] = []
        for of, build in all_builds():
            if of in modes and values in (None, build):
                begin(of, build)
                made += compile_build(build, out or Path(), of)
        return made


@app.command("unpack")
def unpack(
    mode: Mode = names.DEFAULT_MODE,
    values: Build = DEFAULT_VALUES_PER_PACKET,
    out: Annotated[Path | None, typer.Option(help="Directory (default: ina's cache).")] = None,
    json: JsonOption = False,
) -> None:
    """Write one of ina's compiled programs as plain files: BMv2 JSON and P4Info.

    For tools that load such files, as simple_switch_grpc and p4runtime-shell do.
    """
    program = compiled(values, require_mode("--mode", mode))
    files = [program.bmv2_json, program.p4info]
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
            files = [Path(shutil.copyfile(file, out / file.name)) for file in files]
        except OSError as error:
            raise InvalidInputError(f"--out {out}: {error.strerror}") from None
    _say(files, json)


@app.command("info")
def info(
    file: Annotated[
        Path | None, typer.Argument(help="A P4Info file, text form (default: the one of ina).")
    ] = None,
    mode: Mode = names.DEFAULT_MODE,
    values: Build = DEFAULT_VALUES_PER_PACKET,
    json: JsonOption = False,
) -> None:
    """List a program's tables, actions, counters and registers."""
    if file is not None and not file.is_file():
        raise P4InfoError(f"{file}: no such file")
    program = read_p4info(
        file if file is not None else compiled(values, require_mode("--mode", mode)).p4info
    )
    emit(program, json, _view(program))


@app.command("graph")
def graph(
    out: Annotated[Path, typer.Argument(metavar="OUT.svg", help="Where to write the picture.")],
    program: Annotated[
        Path | None, typer.Option(help="A program's BMv2 JSON (default: the one of ina).")
    ] = None,
    mode: Mode = names.DEFAULT_MODE,
    values: Build = DEFAULT_VALUES_PER_PACKET,
    json: JsonOption = False,
) -> None:
    """Draw the pipeline as SVG: parser, controls, tables, registers and who touches them."""
    check_output("OUT.svg", out, (".svg",))
    require_mode("--mode", mode)
    source = program if program is not None else compiled(values, mode).bmv2_json
    if program is not None:
        warn_if_changed(program)
    ir = load_program(source)
    svg = draw_program(ir, Path(ir.name).name or source.name)
    out.write_text(svg)
    drawn = {
        "file": str(out),
        "tables": len(ir.tables),
        "registers": len(ir.registers),
        "counters": len(ir.counters),
    }
    emit(drawn, json)


def _view(program: ProgramInfo) -> Group:
    addressable = {name for entry in program.tables for name in entry.actions}
    views = [
        table(
            ["table", "key", "actions", "entries", "counter"],
            (
                [
                    entry.name,
                    ", ".join(f"{key.name}/{key.bits} {key.match}" for key in entry.keys) or "-",
                    ", ".join(map(_last, entry.actions)),
                    entry.size,
                    "direct" if entry.direct_counter else "-",
                ]
                for entry in program.tables
            ),
            title=f"program {program.name}",
        ),
        table(
            ["action", "parameters"],
            (
                [a.name, ", ".join(f"{p.name}/{p.bits}" for p in a.parameters) or "-"]
                for a in program.actions
                if a.name in addressable
            ),
        ),
        table(["counter", "entries"], ([c.name, c.size] for c in program.counters)),
        table(["register", "entries", "bits"], _registers(program)),
    ]
    return Group(*views)


def _registers(program: ProgramInfo) -> list[list[object]]:
    """The registers, those of the values (one a value) on one line."""
    rows: list[list[object]] = []
    values = [r for r in program.registers if _last(r.name).startswith("value_")]
    for register in program.registers:
        if register not in values:
            rows.append([register.name, register.size, register.bits or "-"])
    if values:
        first, last = values[0], values[-1]
        rows.append([f"{first.name} .. {_last(last.name)}", first.size, first.bits or "-"])
    return rows


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]
