"""``ina switch shell``: p4runtime-shell, connected to a switch with its program's P4Info."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from ina.cli.switch.probe import SwitchAnswer, probe
from ina.cli.switch.shell_env import shell_python
from ina.errors import InvalidInputError
from ina.p4 import compiled
from ina.rpc.tls import TlsFiles, from_environment

_LOW_BITS = 64


def open_shell(address: str, device_id: int, values: int, take_over: bool) -> NoReturn:
    """Becomes the shell: this process is replaced.

    Where a client is primary the shell only reads, unless ``take_over``. A switch without a program
    gets ina's build for ``values``. Raises what probe and shell_python raise, InvalidInputError.
    """
    program = compiled(values)
    answer = probe(address, device_id)
    writes = take_over or answer.primary_id is None
    if not answer.has_program and not writes:
        raise InvalidInputError(f"{address}: no program yet, and another client is primary")
    python = shell_python()
    args = [str(python), "-m", "p4runtime_sh", "--grpc-addr", address]
    args += ["--device-id", str(device_id), "--election-id", _election_id(answer, writes)]
    if not answer.has_program:
        args += ["--config", f"{program.p4info},{program.bmv2_json}"]
    print(_greeting(address, answer, writes, program.bmv2_json), file=sys.stderr, flush=True)
    environment = {**os.environ, "PYTHONPATH": "", "GRPC_VERBOSITY": "NONE"}
    os.execve(str(python), args + _tls_options(from_environment()), environment)


def _election_id(answer: SwitchAnswer, writes: bool) -> str:
    """Above all others, or below them: a backup's id must be its own, too."""
    number = answer.highest_id + 1 if writes else 0
    return f"{number >> _LOW_BITS},{number % (1 << _LOW_BITS)}"


def _greeting(address: str, answer: SwitchAnswer, writes: bool, program: Path) -> str:
    said = f"{address}: "
    if not answer.has_program:
        said += f"no program yet, setting {program.stem}; "
    if not writes:
        return said + f"reading only, client {answer.primary_id} is primary (see --take-over)"
    if answer.primary_id is not None:
        return said + f"primary in the place of client {answer.primary_id}, until the shell ends"
    return said + "primary"


def _tls_options(files: TlsFiles) -> list[str]:
    if not files:
        return []
    named = (("--cacert", files.ca), ("--cert", files.cert), ("--private-key", files.key))
    return ["--ssl", *(word for option, path in named if path for word in (option, path))]
