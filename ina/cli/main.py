"""``ina``: mounts one noun a file and turns every error into one line and an exit code.

Exit codes: 0 done; 1 the command ran and its answer is "no" (a check failed); 2 wrong input or a
missing tool, said in one line on stderr; 130 interrupted; 143 told to stop (SIGTERM).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer

from ina import __version__
from ina.cli.lazy import Member, lazy_group
from ina.cli.output import error_line
from ina.errors import InaError

NOUNS = {
    "demo": Member("ina.cli.demo", "Train on real digits through the P4 switch, and with Gloo."),
    "switch": Member("ina.cli.switch", "Run the soft switch; show what a controller's switch has."),
    "controller": Member(
        "ina.cli.controller", "Run and inspect the controller that admits jobs to switches."
    ),
    "job": Member("ina.cli.job", "List, inspect, watch and end the jobs of a controller."),
    "p4": Member("ina.cli.p4", "Compile, describe and draw the P4 programs."),
    "pcap": Member("ina.cli.pcap", "Read packet captures: decode them, follow a slot."),
    "test": Member("ina.cli.test", "Hold a data plane to the conformance cases, or to another."),
    "emulate": Member("ina.cli.emulate", "Emulate a network on this machine, and run jobs in it."),
    "bench": Member("ina.cli.bench_group", "Measure ina beside its peers and limits."),
    "doctor": Member("ina.cli.doctor", "Say what this machine has and what it lacks."),
}

# typer re-exports only this leaf; its base is what every complaint about a command line is.
_UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"ina {__version__}")
        raise typer.Exit


app = typer.Typer(
    name="ina",
    cls=lazy_group(NOUNS),
    help="In-network aggregation: gradients summed by P4 switches.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


def _stop(signum: int, frame: FrameType | None) -> None:
    """SIGTERM unwinds the stack, so that every `with` releases what it holds."""
    raise SystemExit(128 + signum)


def run(args: Sequence[str]) -> int:
    """Run one command line; returns its exit code and prints at most one line of error."""
    try:
        code = typer.main.get_command(app).main(
            args=list(args), prog_name="ina", standalone_mode=False
        )
    except InaError as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except _UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader went away (`ina ... | head`); nothing is left to say
        return 0
    except OSError as error:
        if error.filename is None:
            raise
        # A path from the command line that cannot be read or written.
        print(error_line(f"{error.filename}: {error.strerror}"), file=sys.stderr)
        return 2
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        return 2
    message = error.format_message()  # type: ignore[attr-defined]
    ctx = getattr(error, "ctx", None)
    hint = f" (see: {ctx.command_path} --help)" if ctx is not None else ""
    print(error_line(message + hint), file=sys.stderr)
    return 2


def main() -> None:
    """The ``ina`` entry point."""
    signal.signal(signal.SIGTERM, _stop)
    # gRPC's notes on failed handshakes would stand beside the one line that explains them.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    sys.exit(run(sys.argv[1:]))
