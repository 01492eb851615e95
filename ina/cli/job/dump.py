"""``ina job dump``: what a bug report about a job needs, in one document."""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from ina import __version__
from ina.cli.common.rpc_client import RequestRefusedError, ask, plain
from ina.errors import UnavailableError
from ina.rpc import controller_pb2 as pb2

_DISTRIBUTIONS = ("ina", "grpcio", "protobuf", "finsy", "numpy", "torch")


def collect(controllers: str, name: str) -> dict[str, Any]:
    """The document. A part that cannot be had is None, and ``errors`` says why.

    Raises what :func:`~ina.cli.common.rpc_client.ask` raises if the job itself cannot be shown.
    """
    job = ask(controllers, lambda operator: operator.ShowJob, pb2.ShowJobRequest(name=name))
    errors: dict[str, str] = {}

    def part(what: str, get: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
        try:
            return get()
        except (UnavailableError, RequestRefusedError) as error:
            errors[what] = str(error)
            return None

    return {
        "dumped_unix_s": time.time(),
        **plain(job),
        "controller": part("controller", lambda: _controller(controllers)),
        "switch": part("switch", lambda: _switch(controllers, name)),
        "errors": errors,
        "versions": versions(),
    }


def write(document: dict[str, Any], file: Path | None) -> None:
    """Writes it, indented, to ``file`` or stdout. Raises OSError."""
    text = msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    if file is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        file.write_text(text)


def versions() -> dict[str, str | None]:
    """Of what this command runs on; None: not installed."""
    found: dict[str, str | None] = {
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for name in _DISTRIBUTIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = __version__ if name == "ina" else None
    return found


def _controller(controllers: str) -> dict[str, Any]:
    request = pb2.ShowControllerRequest()
    return plain(ask(controllers, lambda operator: operator.ShowController, request))


def _switch(controllers: str, name: str) -> dict[str, Any]:
    """The job's entries and counters, foreign entries, and drops, which no job owns."""
    shown = ask(controllers, lambda operator: operator.ShowSwitch, pb2.ShowSwitchRequest())
    document = plain(shown)
    document["entries"] = [e for e in document["entries"] if e["job"] == name or e["foreign"]]
    document["counters"] = [c for c in document["counters"] if c["job"] in (name, "")]
    return document
