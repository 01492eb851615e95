"""iperf3 between two hosts."""

from __future__ import annotations

import json
import signal

from bmv2_tests.network import Network
from bmv2_tests.plans import HostPlace

_LONG_S = 300
_START_S = 30.0
_PORT = 5201


class Iperf:
    """One TCP stream from `source` to `sink`, until told to finish. Returns when bytes flow."""

    def __init__(self, network: Network, source: HostPlace, sink: HostPlace) -> None:
        name = f"iperf-{source.name}-{sink.name}"
        common = ["--port", str(_PORT), "--interval", "0.5", "--forceflush"]
        server = ["iperf3", "--server", "--one-off", "--json", *common]
        self._server = network.run(network.node(sink), server, f"{name}-server")
        # Until it listens, the client is refused; a listening socket in this namespace is its.
        listening = f"until ss -Hltn sport = :{_PORT} | grep -q .; do sleep 0.1; done"
        waiting = network.run(network.node(sink), ["sh", "-c", listening], f"{name}-listen")
        assert waiting.wait(_START_S) == 0
        client = ["iperf3", "--client", sink.address, "--time", str(_LONG_S), *common]
        self._client = network.run(network.node(source), client, f"{name}-client")
        self._client.expect("/sec", _START_S)

    def finish(self) -> int:
        """Bytes that the sink received; fails the test if the stream had ended."""
        assert self._client.running, self._client.text()
        self._client.kill(signal.SIGINT)
        assert self._server.wait(_START_S) is not None
        intervals = json.loads(self._server.text())["intervals"]
        return sum(int(interval["sum"]["bytes"]) for interval in intervals)
