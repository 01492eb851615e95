"""What is simulated: a topology, jobs, other traffic, faults; as a TOML file.

Names of keys carry units, in the sizes that people write: ``rate_gbit``, ``delay_us``,
``queue_kib``. Unknown keys are refused. :mod:`ina.sim.reading` reads files.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from ina.congestion import Congestion
from ina.extension import sim as native
from ina.fabric.errors import FabricError
from ina.fabric.graph import Fabric
from ina.fabric.shapes import fat_tree, leaf_spine, racks, star
from ina.p4.names import DEFAULT_MODE
from ina.sim.errors import ScenarioError
from ina.sim.topology import Cable, Topology, laid
from ina.sim.traffic import TrafficSpec
from ina.sim.ways import WIRE_GAP_BYTES, Way

Dtype = Literal["float32", "float16", "bfloat16", "int32"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)
Hook = Literal["", "lowbit8", "lowbit16", "topk"]
HOOKS: tuple[Hook, ...] = tuple(it for it in get_args(Hook) if it)
HOOK_BITS: dict[str, int] = {"lowbit8": 8, "lowbit16": 16, "topk": 32}
"""Of each of a value's columns."""
Wire = Literal["32", "16", "16-stochastic", "8", "8-stochastic"]
WIRES: tuple[Wire, ...] = get_args(Wire)
FAULTS = (
    "link_down",  # where: a cable "h1-s1"; for_ms
    "link",  # where: a way "h1>s1" or a cable; `link` is what it is for for_ms
    "pause",  # where: a rank "job/0"; for_ms
    "crash",  # where: a rank; after for_ms it comes back, 0: it does not
    "power_cycle",  # where: a switch; off for for_ms
    "controller_kill",  # at `point`, or at once; comes back after for_ms
    "controller_cut",  # no message reaches or leaves the controller for for_ms
)
Fault = Literal[
    "link_down", "link", "pause", "crash", "power_cycle", "controller_kill", "controller_cut",
    "resize", "windows", "repair",
]  # fmt: skip


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One direction of a cable. See :class:`~ina.sim.ways.Way`."""

    rate_gbit: float = 10.0
    wire_gap_bytes: int = WIRE_GAP_BYTES  # of each frame, besides its bytes
    burst_kib: float = 0.0  # a token bucket, of so much; 0: a wire
    delay_us: float = 1.0
    jitter_us: float = 0.0
    loss: float = 0.0
    burst_from: float = 0.0
    burst_to: float = 1.0
    burst_loss: float = 1.0
    duplication: float = 0.0
    reordering: float = 0.0
    reordering_us: float = 0.0
    corruption: float = 0.0
    frame_check: bool = True
    queue_kib: float = 1024.0
    marking: Literal["none", "step", "red"] = "none"
    mark_kib: float = 64.0
    red_least_kib: float = 32.0
    red_most_kib: float = 256.0
    red_probability: float = 0.1
    urgent_dscp: int = 64

    def way(self) -> Way:
        """In the units of the network. Raises :class:`ScenarioError`."""
        if self.rate_gbit <= 0:
            raise ScenarioError(f"rate_gbit = {self.rate_gbit:g}: it must be more than 0")
        return Way(
            bits_per_s=round(self.rate_gbit * 1e9),
            wire_gap_bytes=self.wire_gap_bytes,
            burst_bytes=round(self.burst_kib * 1024),
            delay_ns=round(self.delay_us * 1e3),
            jitter_ns=round(self.jitter_us * 1e3),
            loss=self.loss,
            bad_from=self.burst_from,
            bad_to=self.burst_to,
            bad_loss=self.burst_loss,
            duplication=self.duplication,
            reordering=self.reordering,
            reordering_ns=round(self.reordering_us * 1e3),
            corruption=self.corruption,
            frame_check=self.frame_check,
            queue_bytes=round(self.queue_kib * 1024),
            marking=self.marking,
            mark_bytes=round(self.mark_kib * 1024),
            red_least_bytes=round(self.red_least_kib * 1024),
            red_most_bytes=round(self.red_most_kib * 1024),
            red_probability=self.red_probability,
            urgent_dscp=self.urgent_dscp,
        )


class CableSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of a graph."""

    one: str
    other: str
    link: LinkSpec | None = None  # both ways; else the scenario's
    back: LinkSpec | None = None  # from `other`, where it differs


class TopologySpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Which nodes and cables there are."""

    kind: Literal["star", "leaf-spine", "racks", "fat-tree", "graph"] = "star"
    hosts: int = 4  # of a star; of each leaf
    leaves: int = 2
    spines: int = 2
    above: Literal["plain", "p4"] = "plain"  # switches without hosts, of leaf-spine and fat-tree
    k: int = 4  # ports of a fat-tree's switches
    racks: list[int] = []  # of kind racks: hosts of each leaf
    pod: int = 0  # of kind racks: leaves below a switch between them and the root; 0: none
    names: list[str] = []  # of a graph's hosts
    switches: dict[str, Literal["p4", "plain"]] = {}  # of a graph
    cables: list[CableSpec] = []  # of a graph

    def build(self, link: LinkSpec, back: LinkSpec | None, up: LinkSpec | None) -> Topology:
        """``link``: from hosts, and of all else; ``back``: to hosts; ``up``: between switches.

        Raises :class:`ScenarioError`.
        """
        if self.kind != "graph":
            self._check_counts()
            try:
                fabric = self._fabric()
            except FabricError as error:
                raise ScenarioError(f"topology: {error}") from None
            back_to_hosts = (back or link).way() if self.kind == "star" else link.way()
            above = "p4" if self.kind == "racks" else self.above
            return laid(fabric, link.way(), back_to_hosts, (up or link).way(), above=above)
        cables = tuple(
            Cable(
                cable.one,
                cable.other,
                (cable.link or link).way(),
                (cable.back or cable.link or back or link).way(),
            )
            for cable in self.cables
        )
        return Topology(tuple(self.names), self.switches, cables)

    def _check_counts(self) -> None:
        counts = {"star": ("hosts",), "leaf-spine": ("hosts", "leaves", "spines")}
        for key in counts.get(self.kind, ()):
            at_least(f"topology.{key}", getattr(self, key), 1)
        for hosts in (self.racks or [0]) if self.kind == "racks" else ():
            at_least("topology.racks: hosts", hosts, 1)
        at_least("topology.pod", self.pod, 0)

    def _fabric(self) -> Fabric:
        if self.kind == "star":
            return star(self.hosts)
        if self.kind == "racks":
            return racks(self.racks, self.pod)
        if self.kind == "leaf-spine":
            return leaf_spine(self.spines, self.leaves, self.hosts, names=("l{}", "s{}"))
        return fat_tree(self.k, names=("e{}_{}", "a{}_{}", "c{}_{}"), first=1)


class HostSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a worker's packets cost its processor, and its socket."""

    packet_ns: int = 0
    kibibyte_ns: int = 0
    buffer_kib: float = 32768.0
    trains: bool = False  # packets go as GSO's super-packets, which no queue divides
    wake_us: float = 0.0  # until a processor that has slept is at work, at least
    wake_jitter_us: float = 0.0  # and on average so much more, exponentially


class SwitchSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of P4 switches that are soft switches; all as it is here: hardware, which needs no time."""

    packet_ns: int = 0  # of its thread, to take or to send one
    wake_us: float = 0.0  # until a thread that has slept is at work, at least
    wake_jitter_us: float = 0.0  # and on average so much more, exponentially
    loss: float = 0.0  # as its --loss-rate: at each port, in each direction
    trains: bool = False  # results go as GSO's super-packets
    # As the controller's [switch], of each P4 switch.
    mode: str = DEFAULT_MODE
    shared_slots: int = 0  # of mode shared: how many jobs share; 0: half
    slot_age_us: int = 0  # and after how long one is free of which nothing was heard; 0: 20,000
    aggregators: list[str] = []  # P4 switches that have `aggregator = true`

    def setup(self) -> native.SwitchSetup:
        """In the units of the network. Raises :class:`ScenarioError`."""
        for key in ("packet_ns", "wake_us", "wake_jitter_us"):
            at_least(f"switch.{key}", getattr(self, key), 0)
        if not 0 <= self.loss <= 1:
            raise ScenarioError(f"switch.loss = {self.loss:g}: a probability is 0 to 1")
        return native.SwitchSetup(
            packet_cost_ns=self.packet_ns,
            wake_ns=round(self.wake_us * 1e3),
            wake_jitter_ns=round(self.wake_jitter_us * 1e3),
            loss=self.loss,
            trains=self.trains,
        )


class AggregatorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A soft switch that makes results of jobs of mode ``shared``, at a cable of its own."""

    name: str
    switch: str = ""  # the P4 switch that its cable ends at; empty: the first
    job: str = ""  # rank 0 of it runs it in its process; empty: the controller has it in its file
    link: LinkSpec | None = None  # both ways; else the scenario's


class ControllerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How its messages travel, to workers and to switches, and how it shares out slots."""

    lease_s: float = 2.0
    # As the controller's [jobs]: 512 slots each, what a job asks, or an equal share for `count`.
    sizing: Literal["fixed", "equal", "asked"] = "fixed"
    count: int = 16
    delay_ms: float = 0.1
    jitter_ms: float = 0.0
    loss: float = 0.0
    standbys: int = 0
    aggregators: Literal[1, 2, 4, 8, 16] = 1  # that a job of mode shared is dealt to, at most
    last_epoch: int = 0  # that was issued before; packets carry the lower 16 bits of one
    quotas: dict[str, int] = {}  # by tenant: slots that its jobs may have; 0: any number
    # As the controller's file has them, where P4 switches are joined.
    placement: str = "nearest"
    stripes: Literal[1, 2, 4, 8, 16] = 8
    # As the controller's [windows].
    caps: Literal["none", "max-min"] = "none"
    slack: float = 2.0


Kind = Literal["all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier"]
SHAPED_KINDS: tuple[Kind, ...] = ("reduce_scatter", "all_gather", "broadcast", "barrier")


class TensorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tensors of a step that are of one kind."""

    elems: int  # with kind reduce_scatter and all_gather: of each rank's part
    dtype: Dtype = "float32"
    op: Literal["sum", "avg"] = "sum"
    kind: Kind = "all_reduce"
    root: int | None = None  # a rank that alone gets the sum, or has what others get; None: none
    wire: Wire = "32"  # how floats travel
    density: float | None = None  # of a sparse sum: a block is not zero so often; None: a dense sum
    block_elems: int = 64  # of a sparse sum
    zeros: float = 0.0  # share of its runs of 256 values that are zero, on each rank its own
    count: int = 1

    @property
    def operations(self) -> int:
        """What is submitted for one: a sparse sum's counters come before its values."""
        return 1 if self.density is None else 2


class StragglerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ranks that are late in a step: this share of them, by an exponential time of this mean."""

    share: float = 1.0
    mean_ms: float = 0.0


class JobSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Workers that train together."""

    workers: int
    name: str = "job"
    hosts: list[str] = []  # of each rank; else those that follow the job before
    racks: int = 1  # switches that they are behind, in equal parts
    copies: int = 1  # more of the same, NAME-1, NAME-2 ...
    steps: int = 10
    tensors: list[TensorSpec] = msgspec.field(default_factory=lambda: [TensorSpec(elems=1 << 20)])
    hook: Hook = ""  # of ina.torch, by which its tensors go, float32 buckets; empty: none
    compute_ms: float = 0.0  # of a step, before its tensors
    straggler: StragglerSpec = StragglerSpec()
    slots: int = 0  # 0: as the controller gives them
    wraps_after: int = 0  # sequence numbers, or a few more: then they wrap; 0: they begin at 0
    mode: str = DEFAULT_MODE
    priority: int = 0
    tenant: str = ""  # one of controller.quotas
    verify: Literal["", "off", "accidents", "keyed"] = ""  # its sums; empty: as is usual
    weight: float = 1.0  # this and the next as the controller's [[job]]
    congestion: dict[str, Any] = {}  # empty: the scenario's
    # When it comes; several times: again and again.
    at_ms: list[float] = msgspec.field(default_factory=lambda: [0.0])
    check: bool = True  # sums, exactly; False: tensors of zeros that all ranks share

    def names(self) -> list[str]:
        """Of its copies."""
        return (
            [f"{self.name}-{i + 1}" for i in range(self.copies)] if self.copies > 1 else [self.name]
        )


class FaultSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What goes wrong, or is ordered: once ``at_ms``, or again and again, ``every_ms`` apart."""

    what: Fault
    where: str = ""
    at_ms: float = -1.0
    every_ms: float = 0.0
    every_growth: float = 1.0  # by which every_ms becomes longer each time
    for_ms: float = 1.0
    point: str = ""
    link: LinkSpec | None = None
    # That a job is to have; of no slots as many as it has, and the mode that it has of none.
    slots: int = 0
    mode: str = ""
    # Of what = "repair": a link "l1-s1" or a switch that an operator takes out for for_ms: trees
    # are moved off it, though it works.
    # Of what = "windows": as the controllers' file has it from then on for job `where`; empty: no
    # table of its own.
    congestion: dict[str, Any] = {}


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of it."""

    name: str = "scenario"
    limit_s: float = 60.0  # of virtual time: it ends then, whatever is under way
    values: int = 64
    topology: TopologySpec = TopologySpec()
    link: LinkSpec = LinkSpec()
    link_back: LinkSpec | None = None
    link_up: LinkSpec | None = None
    host: HostSpec = HostSpec()
    switch: SwitchSpec = SwitchSpec()
    aggregator: list[AggregatorSpec] = []
    controller: ControllerSpec = ControllerSpec()
    congestion: dict[str, Any] = {}  # the controller's table, or the workers' module:Class
    multicast: bool = False  # results to all workers behind a port at once
    ecn_packets: int = 0  # the P4 program marks above so many in a port's queue; 0: it does not
    sample_us: float = 0.0  # windows and queues, for the plot; 0: the limit's two-thousandth
    job: list[JobSpec] = []
    traffic: list[TrafficSpec] = []
    fault: list[FaultSpec] = []

    def build_topology(self) -> Topology:
        """With its aggregators. Raises :class:`ScenarioError`."""
        topology = self.topology.build(self.link, self.link_back, self.link_up)
        ends = []
        for one in self.aggregator:
            there = one.switch or (topology.of_kind("p4") or [""])[0]
            if topology.switches.get(there) != "p4":
                raise ScenarioError(f"aggregator {one.name!r}: no P4 switch is called {there!r}")
            way = (one.link or self.link).way()
            back = way if one.link else (self.link_back or self.link).way()
            kind = "embedded" if one.job else "aggregator"
            ends.append((one.name, kind, Cable(one.name, there, way, back)))
        return topology.with_ends(ends)

    def own_window(self) -> Congestion | None:
        """The class of Python's that its workers ask for; None: they go by the controller's table.

        Raises :class:`~ina.congestion.CongestionError`.
        """
        congestion = Congestion.from_table(self.congestion, own=True)
        return congestion if congestion.is_own else None


def at_least(what: str, value: float, least: float) -> None:
    """Raises :class:`ScenarioError` unless it is."""
    if not value >= least:
        raise ScenarioError(f"{what} = {value:g}: want {least:g} or more")
