"""A TCP flow of iperf3's between two hosts of a benchmark's network, until it is stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from ina.emulate.processes import Logged, environment, last_line
from ina.emulate.remains import HostState
from ina.errors import InaError, MissingToolError

_KNOWN = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_LONGEST_S = 86400
"""No run is so long."""
_START_S = 20.0


def require_iperf3() -> None:
    """Raises MissingToolError."""
    if shutil.which("iperf3") is None:
        raise MissingToolError("TCP flows need iperf3: apt-get install iperf3")


def why_not(algorithm: str) -> str:
    """Why this kernel's TCP has no such congestion control; empty: it has."""
    known = _KNOWN.read_text().split()
    if algorithm in known:
        return ""
    return f"this kernel's TCP has no {algorithm}, but {', '.join(known)}"


class TcpFlow:
    """From its making until :meth:`stop` it flows."""

    def __init__(self, source: HostState, sink: HostState, algorithm: str, folder: Path) -> None:
        """Raises InaError: iperf3 cannot; DeadlineError."""
        self._what = f"TCP {algorithm} from {source.name} to {sink.name}"
        common = ["--interval", "1", "--forceflush"]
        server = ["iperf3", "--server", "--one-off", *common]
        log = folder / f"iperf3.{sink.name}.log"
        self._server = Logged(f"{self._what}: server", sink.namespace, server, log, environment())
        client = [
            *("iperf3", "--client", sink.address, "--json", "--congestion", algorithm),
            *("--time", str(_LONGEST_S), "--connect-timeout", str(round(1e3 * _START_S))),
        ]
        self._log = folder / f"iperf3.{source.name}.log"
        try:
            self._server.await_line("Server listening", _START_S)
            self._client = Logged(self._what, source.namespace, client, self._log, environment())
        except BaseException:
            self._server.stop()
            raise
        try:
            self._server.await_line("/sec", _START_S)
        except BaseException:
            self.stop()
            raise

    def check(self) -> None:
        """Raises InaError if it does not flow any more."""
        self._client.check()
        self._server.check()

    def stop(self) -> None:
        """Idempotent."""
        self._client.stop()
        self._server.stop()

    def resends(self) -> int:
        """Segments that it has sent again; once it is stopped. Raises InaError."""
        try:
            return int(json.loads(self._log.read_text())["end"]["sum_sent"]["retransmits"])
        except (ValueError, KeyError):
            raise InaError(f"{self._what}: {last_line(self._log)}") from None
