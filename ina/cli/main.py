"""``ina``: mounts its nouns and turns every error into one line and an exit code.

Exit codes: 0 done, or a noun without a command: its help; 1 the command ran and its answer is "no"
(a check failed); 2 wrong input or a missing tool, said in one line on stderr; 130 interrupted; 143
told to stop (SIGTERM). A command whose reader goes away (``ina ... | head -1``) ends at once and
silently, with 0: the reader had enough. One that had its answer by then exits with that.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import select
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Annotated

import typer

from ina import __version__, log
from ina.cli import log_options
from ina.cli.common.output import error_line
from ina.cli.lazy import Lazy, lazy_group, polish
from ina.errors import InaError

NOUNS = {
    "demo": Lazy(
        "ina.cli.demo.command", "Train on real digits through the P4 switch, and with Gloo."
    ),
    "switch": Lazy(
        "ina.cli.switch.command", "Run the soft switch; show what a controller's switch has."
    ),
    "aggregator": Lazy("ina.cli.aggregator", "Run an aggregator for jobs that share slots."),
    "controller": Lazy(
        "ina.cli.controller.command", "Run and inspect the controller that admits jobs to switches."
    ),
    "fabric": Lazy(
        "ina.cli.fabric.command", "Show how switches are joined and which job is summed where."
    ),
    "job": Lazy("ina.cli.job.command", "List, inspect, watch and end the jobs of a controller."),
    "tenant": Lazy("ina.cli.tenant", "Show what each tenant uses and may use."),
    "embed": Lazy(
        "ina.cli.embed.command",
        "Embedding tables that are spread over hosts: plan them, watch them.",
    ),
    "p4": Lazy("ina.cli.p4.command", "Compile, describe and draw the P4 programs."),
    "pcap": Lazy("ina.cli.pcap.command", "Read packet captures: decode them, follow a slot."),
    "test": Lazy("ina.cli.test", "Hold a data plane to the conformance cases, or to another."),
    "emulate": Lazy("ina.cli.emulate", "Emulate a network on this machine, and run jobs in it."),
    "infer": Lazy("ina.cli.infer.command", "Inference that no host conducts, over nodes."),
    "sim": Lazy("ina.cli.sim.command", "Simulate networks in virtual time, with what ships."),
    "bench": Lazy("ina.cli.bench.command", "Measure ina beside its peers and limits."),
    "files": Lazy("ina.cli.files", "Copy dashboards, units, examples, P4 and the dissector."),
    "doctor": Lazy("ina.cli.doctor", "Say what this machine has and what it lacks."),
}

_STANDARD_OUTPUTS = (1, 2)
_END_DEADLINE_S = 15.0
"""For the interpreter, after a command is over."""

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
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """In-network aggregation: gradients summed by P4 switches."""


def _stop(signum: int, frame: FrameType | None) -> None:
    """SIGTERM unwinds the stack, so that every `with` releases what it holds."""
    raise SystemExit(128 + signum)


def run(args: Sequence[str]) -> int:
    """Run one command line; returns its exit code and prints at most one line of error."""
    try:
        log_options.begin()
        root = typer.main.get_command(app)
        log_options.add_to(root)
        code = polish(root).main(args=list(args), prog_name="ina", standalone_mode=False)
    except InaError as error:
        _complain(error_line(error))
        if detail := error.detail.strip("\n"):
            _complain(detail)
        return 2
    except _UsageError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return 130
    except SystemExit as error:
        broken = error.__context__
        if not isinstance(broken, BrokenPipeError):
            raise
        if not _drop_unread_output():
            raise broken from None  # of something else; typer hides it in an exit with 1
        return 0
    except OSError as error:
        if isinstance(error, BrokenPipeError) and _drop_unread_output():
            return 0
        if error.filename is None:
            raise
        # A path from the command line that cannot be read or written.
        _complain(error_line(f"{error.filename}: {error.strerror}"))
        return 2
    finally:
        log.remove()
    return code if isinstance(code, int) else 0


def _complain(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody listens; the exit code still says it
        print(line, file=sys.stderr)


def _drop_unread_output() -> bool:
    """True if stdout or stderr is a pipe without a reader.

    What is left in their buffers then goes nowhere: the interpreter flushes them when it ends. A
    pipe to another process, or a socket, may break too: that is an error, and False here.
    """
    found = select.poll()
    for fd in _STANDARD_OUTPUTS:
        found.register(fd, 0)  # asks for nothing but errors
    unread = [fd for fd, event in found.poll(0) if event & (select.POLLERR | select.POLLHUP)]
    for fd in unread:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, fd)
        os.close(nowhere)
    return bool(unread)


def _usage(error: Exception) -> int:
    message = error.format_message()  # type: ignore[attr-defined]
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message)  # the help, where typer has not printed it
        return 0
    ctx = getattr(error, "ctx", None)
    hint = f" (see: {ctx.command_path} --help)" if ctx is not None else ""
    _complain(error_line(message + hint))
    return 2


def main() -> None:
    """The ``ina`` entry point."""
    signal.signal(signal.SIGTERM, _stop)
    # gRPC's notes on failed handshakes would stand beside the one line that explains them.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        code = run(sys.argv[1:])
    finally:
        # All is released; but a thread that gRPC still runs can keep the interpreter from ending.
        # Then say where each thread is, and end all the same (exit code 1).
        faulthandler.dump_traceback_later(_END_DEADLINE_S, exit=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()  # short output is still in the buffer, and its reader may have gone
        except BrokenPipeError:
            _drop_unread_output()
    sys.exit(code)
