"""Other traffic than ina's, as scenarios describe it: TCP flows that come and go, UDP at a rate.

A :class:`PoissonSpec`, :class:`IncastSpec`, :class:`AllToAllSpec` or :class:`UdpSpec` is a table of
a scenario's file, told apart by ``kind``. :func:`add_traffic` lets it happen in a fabric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from ina.extension import sim as native
from ina.sim.errors import ScenarioError
from ina.sim.fabric import VirtualFabric
from ina.sim.flows import Completion, ideal_ns, path
from ina.sim.sizes import Points, mean_bytes, points
from ina.sim.topology import Topology
from ina.sim.ways import Way

_ALGORITHMS = {"cubic": native.TcpAlgorithm.CUBIC, "dctcp": native.TcpAlgorithm.DCTCP}
_TCP_HEADER_BYTES = 14 + 20 + 20
_UDP_HEADER_BYTES = 14 + 20 + 8
_LEAST_UDP_BYTES, _MOST_UDP_BYTES = 16, 65507
_MOST_WINDOW_BYTES = 65535 << 8  # what a header says, scaled


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class TcpSpec(_Table, frozen=True, kw_only=True):
    """What the hosts' TCP does. There is no handshake: connections are there, and idle.

    ``cubic`` is RFC 9438, with ``ecn`` as in RFC 3168; ``dctcp`` is RFC 8257, and always has ECN.
    """

    algorithm: Literal["cubic", "dctcp"] = "cubic"
    ecn: bool = False
    dscp: int = 0
    mss_bytes: int = 1460
    initial_window_segments: int = 10
    receive_window_kib: float = 16383.0
    min_rto_ms: float = 10.0
    delayed_ack_us: float = 500.0

    def __post_init__(self) -> None:
        if not 1 <= self.mss_bytes <= 65000:
            raise ScenarioError(f"mss_bytes = {self.mss_bytes}: want 1 to 65000")
        if not 0 <= self.dscp < 64:
            raise ScenarioError(f"dscp = {self.dscp}: want 0 to 63")
        if not 1 <= self.initial_window_segments <= 1000:
            raise ScenarioError(
                f"initial_window_segments = {self.initial_window_segments}: want 1 to 1000"
            )
        window_bytes = self.receive_window_kib * 1024
        if not self.mss_bytes + 256 <= window_bytes <= _MOST_WINDOW_BYTES:
            raise ScenarioError(
                f"receive_window_kib = {self.receive_window_kib:g}: want a segment to 16383"
            )
        if not 0 <= self.delayed_ack_us < self.min_rto_ms * 1000:
            raise ScenarioError(
                f"delayed_ack_us = {self.delayed_ack_us:g}: want 0 to less than min_rto_ms, "
                f"which is {self.min_rto_ms:g}"
            )

    def config(self) -> native.TcpConfig:
        """For the native network."""
        return native.TcpConfig(
            algorithm=_ALGORITHMS[self.algorithm],
            ecn=self.ecn,
            dscp=self.dscp,
            mss_bytes=self.mss_bytes,
            initial_window_segments=self.initial_window_segments,
            receive_window_bytes=round(self.receive_window_kib * 1024),
            initial_rto_ns=round(self.min_rto_ms * 1e6),
            min_rto_ns=round(self.min_rto_ms * 1e6),
            delayed_ack_ns=round(self.delayed_ack_us * 1e3),
        )


class _FlowsSpec(_Table, frozen=True, kw_only=True):
    """Random numbers follow from the seed and ``name`` (by itself the kind): keep names apart."""

    name: str = ""
    sources: list[str] = []  # all hosts
    destinations: list[str] = []  # all hosts
    tcp: TcpSpec = TcpSpec()
    start_ms: float = 0.0
    stop_ms: float = 0.0  # no flow begins from then on; 0: that time does not come

    def __post_init__(self) -> None:
        _not_negative(self, "start_ms", "stop_ms")


class PoissonSpec(_FlowsSpec, frozen=True, kw_only=True, tag_field="kind", tag="poisson"):
    """Flows that begin at random times between random hosts, each pair as likely as any other.

    ``load``: of the sources' cables, all together, that the flows take, with headers, if none is
    lost. Sizes: of a distribution, or ``fixed``: ``size_kib``.
    """

    load: float
    sizes: Literal["web-search", "data-mining", "fixed"] = "web-search"
    size_kib: float = 64.0
    most_flows: int = 0  # 0: there is no most

    def __post_init__(self) -> None:
        super().__post_init__()
        _not_negative(self, "most_flows")
        _above_zero(self, "load", "size_kib")

    def size_points(self) -> Points:
        """The distribution of sizes."""
        return points(round(self.size_kib * 1024) if self.sizes == "fixed" else self.sizes)


class IncastSpec(_FlowsSpec, frozen=True, kw_only=True, tag_field="kind", tag="incast"):
    """All sources send to each destination at once, in rounds: ``period_ms`` apart, or 0: a round
    begins when the last one is over. Name one destination, or a few."""

    size_kib: float = 64.0
    rounds: int = 1
    period_ms: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _not_negative(self, "period_ms")
        _above_zero(self, "size_kib", "rounds")
        if not self.destinations:
            raise ScenarioError("destinations: an incast wants one, or a few")


class AllToAllSpec(_FlowsSpec, frozen=True, kw_only=True, tag_field="kind", tag="all-to-all"):
    """Each source sends to each destination, in rounds as of an incast."""

    size_kib: float = 64.0
    rounds: int = 1
    period_ms: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _not_negative(self, "period_ms")
        _above_zero(self, "size_kib", "rounds")


class UdpSpec(_Table, frozen=True, kw_only=True, tag_field="kind", tag="udp"):
    """Datagrams of one size from a host to another; ``rate_gbit`` is of all that is on the wire."""

    source: str
    destination: str
    rate_gbit: float
    name: str = ""
    payload_bytes: int = 1472
    spacing: Literal["even", "poisson"] = "even"
    dscp: int = 0
    start_ms: float = 0.0
    stop_ms: float = 0.0

    def __post_init__(self) -> None:
        _not_negative(self, "start_ms", "stop_ms")
        _above_zero(self, "rate_gbit")
        if not _LEAST_UDP_BYTES <= self.payload_bytes <= _MOST_UDP_BYTES:
            raise ScenarioError(f"payload_bytes = {self.payload_bytes}: want 16 to 65507")
        if not 0 <= self.dscp < 64:
            raise ScenarioError(f"dscp = {self.dscp}: want 0 to 63")


FlowsSpec = PoissonSpec | IncastSpec | AllToAllSpec
TrafficSpec = PoissonSpec | IncastSpec | AllToAllSpec | UdpSpec


class Flows:
    """TCP flows that are under way in a fabric."""

    def __init__(
        self, name: str, fabric: VirtualFabric, spec: FlowsSpec, traffic: native.Traffic
    ) -> None:
        self.name = name
        self.native = traffic
        self._topology = fabric.topology
        self._spec = spec
        self._completions: list[Completion] = []
        self._paths: dict[tuple[str, str], list[Way]] = {}

    @property
    def active(self) -> int:
        """How many have begun, and have not ended."""
        return self.native.active_flows

    def completions(self) -> Sequence[Completion]:
        """Of all that have ended so far, in the order of their ends."""
        sources = hosts_of(self._topology, self._spec.sources)
        destinations = hosts_of(self._topology, self._spec.destinations)
        for record in self.native.take_records():
            source, destination = sources[record.source], destinations[record.destination]
            self._completions.append(
                Completion(
                    number=record.number,
                    source=source,
                    destination=destination,
                    size_bytes=record.bytes,
                    started_ns=record.started_ns,
                    done_ns=None if record.done_ns < 0 else record.done_ns,
                    ideal_ns=ideal_ns(
                        self._path(source, destination),
                        record.bytes,
                        self._spec.tcp.mss_bytes,
                        _TCP_HEADER_BYTES,
                    ),
                    segments=record.segments,
                    retransmissions=record.retransmissions,
                    timeouts=record.timeouts,
                    marked_packets=record.marked_packets,
                )
            )
        return self._completions

    def _path(self, source: str, destination: str) -> list[Way]:
        pair = source, destination
        if pair not in self._paths:
            self._paths[pair] = path(self._topology, *pair)
        return self._paths[pair]


class UdpStream:
    """Datagrams that are under way in a fabric."""

    def __init__(self, name: str, spec: UdpSpec, stream: native.UdpStream) -> None:
        self.name = name
        self.native = stream
        self._spec = spec

    @property
    def counters(self) -> native.UdpStreamCounters:
        """Sent, received, and how long it took."""
        return self.native.counters


def add_traffic(fabric: VirtualFabric, specs: Sequence[TrafficSpec]) -> list[Flows | UdpStream]:
    """Lets it happen, from the times on that are in ``specs``.

    P4 switches forward what is not ina's by entries that are the caller's to write
    (:meth:`VirtualFabric.forwarding`). Raises :class:`ScenarioError`.
    """
    check_traffic(fabric.topology, specs)
    added: list[Flows | UdpStream] = []
    for spec in specs:
        name = name_of(spec)
        if isinstance(spec, UdpSpec):
            added.append(UdpStream(name, spec, _add_stream(fabric, name, spec)))
        else:
            added.append(Flows(name, fabric, spec, _add_flows(fabric, name, spec)))
    return added


def check_traffic(topology: Topology, specs: Sequence[TrafficSpec]) -> None:
    """Raises :class:`ScenarioError`: a host is unknown, or a name is there twice."""
    names = [name_of(spec) for spec in specs]
    for spec, name in zip(specs, names, strict=True):
        if names.count(name) > 1:
            raise ScenarioError(f"traffic {name!r}: the name is there twice")
        if isinstance(spec, UdpSpec):
            sources, destinations = [spec.source], [spec.destination]
        else:
            sources, destinations = list(spec.sources), list(spec.destinations)
        for host in (*sources, *destinations):
            if host not in topology.hosts:
                raise ScenarioError(f"traffic {name!r}: there is no host {host!r}")
        both = {*hosts_of(topology, sources), *hosts_of(topology, destinations)}
        if len(both) < 2:
            raise ScenarioError(f"traffic {name!r}: {min(both, default='nobody')} is alone in it")


def name_of(spec: TrafficSpec) -> str:
    """As it is, or of its kind."""
    return spec.name or str(type(spec).__struct_config__.tag)


def hosts_of(topology: Topology, named: Sequence[str]) -> Sequence[str]:
    """Those, or all."""
    return named or topology.hosts


def _add_stream(fabric: VirtualFabric, name: str, spec: UdpSpec) -> native.UdpStream:
    way, _ = fabric.topology.ways_from(spec.source)[1]
    wire_bytes = spec.payload_bytes + _UDP_HEADER_BYTES + way.wire_gap_bytes
    config = native.UdpStreamConfig(
        mean_gap_ns=wire_bytes * 8 / spec.rate_gbit,
        is_poisson=spec.spacing == "poisson",
        payload_bytes=spec.payload_bytes,
        dscp=spec.dscp,
        **_times(spec),
    )
    return native.add_udp_stream(
        fabric.network,
        f"traffic/{name}",
        config,
        fabric.hosts[spec.source],
        fabric.hosts[spec.destination],
    )


def _add_flows(fabric: VirtualFabric, name: str, spec: FlowsSpec) -> native.Traffic:
    sources = hosts_of(fabric.topology, spec.sources)
    if isinstance(spec, PoissonSpec):
        sizes = spec.size_points()
        how = {"mean_gap_ns": _mean_gap_ns(fabric.topology, spec, sources)}
        if spec.most_flows:
            how["most_flows"] = spec.most_flows
    else:
        sizes = points(round(spec.size_kib * 1024))
        how = {"rounds": spec.rounds, "period_ns": round(spec.period_ms * 1e6)}
    return native.add_traffic(
        fabric.network,
        f"traffic/{name}",
        native.TrafficConfig(tcp=spec.tcp.config(), **_times(spec), **how),
        sizes,
        [fabric.hosts[host] for host in sources],
        [fabric.hosts[host] for host in hosts_of(fabric.topology, spec.destinations)],
    )


def _mean_gap_ns(topology: Topology, spec: PoissonSpec, sources: Sequence[str]) -> float:
    mean_bits = 8 * mean_bytes(spec.size_points())
    ways = [topology.ways_from(host)[1][0] for host in sources]
    mss_bytes = spec.tcp.mss_bytes
    bits_per_s = sum(  # of data
        way.bits_per_s * mss_bytes / (mss_bytes + _TCP_HEADER_BYTES + way.wire_gap_bytes)
        for way in ways
    )
    if bits_per_s == 0:
        raise ScenarioError("load: of cables that have no rate there is none")
    return mean_bits * 1e9 / (spec.load * bits_per_s)


def _times(spec: TrafficSpec) -> dict[str, int]:
    times = {"start_ns": round(spec.start_ms * 1e6)}
    return times | ({"stop_ns": round(spec.stop_ms * 1e6)} if spec.stop_ms else {})


def _not_negative(spec: _Table, *keys: str) -> None:
    for key in keys:
        if not getattr(spec, key) >= 0:
            raise ScenarioError(f"{key} = {getattr(spec, key):g}: it must not be negative")


def _above_zero(spec: _Table, *keys: str) -> None:
    for key in keys:
        if not getattr(spec, key) > 0:
            raise ScenarioError(f"{key} = {getattr(spec, key):g}: it must be more than 0")
