"""What is simulated: a topology, jobs, other traffic, faults; as a TOML file.

Names of keys carry units, in the sizes that people write: ``rate_gbit``, ``delay_us``,
``queue_kib``. Unknown keys are refused. :func:`load` reads a file, :func:`make` a document.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from ina.congestion import Congestion, CongestionError
from ina.controller.faults import POINTS
from ina.errors import InvalidInputError
from ina.p4.builds import require_build
from ina.protocol.spec import MAX_WORKERS
from ina.protocol.verify import DEFAULT_VERIFY, Verify
from ina.sim.errors import ScenarioError
from ina.sim.topology import Cable, Topology, fat_tree, leaf_spine, star
from ina.sim.traffic import TrafficSpec, check_traffic
from ina.sim.ways import Way

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

DTYPES = ("float32", "float16", "bfloat16", "int32")
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
    "link_down", "link", "pause", "crash", "power_cycle", "controller_kill", "controller_cut"
]


class LinkSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One direction of a cable. See :class:`~ina.sim.ways.Way`."""

    rate_gbit: float = 10.0
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

    kind: Literal["star", "leaf-spine", "fat-tree", "graph"] = "star"
    hosts: int = 4  # of a star; of each leaf
    leaves: int = 2
    spines: int = 2
    k: int = 4  # ports of a fat-tree's switches
    names: list[str] = []  # of a graph's hosts
    switches: dict[str, Literal["p4", "plain"]] = {}  # of a graph
    cables: list[CableSpec] = []  # of a graph

    def build(self, link: LinkSpec, back: LinkSpec | None, up: LinkSpec | None) -> Topology:
        """``link``: from hosts, and of all else; ``back``: to hosts; ``up``: between switches.

        Raises :class:`ScenarioError`.
        """
        if self.kind == "star":
            _at_least("topology.hosts", self.hosts, 1)
            return star(self.hosts, link.way(), (back or link).way())
        if self.kind == "leaf-spine":
            for key in ("hosts", "leaves", "spines"):
                _at_least(f"topology.{key}", getattr(self, key), 1)
            return leaf_spine(self.leaves, self.spines, self.hosts, link.way(), (up or link).way())
        if self.kind == "fat-tree":
            return fat_tree(self.k, link.way())
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


class HostSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a worker's packets cost its processor, and its socket."""

    packet_ns: int = 0
    kibibyte_ns: int = 0
    buffer_kib: float = 32768.0
    trains: bool = False  # packets go as GSO's super-packets, which no queue divides


class ControllerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How its messages travel, to workers and to switches."""

    lease_s: float = 2.0
    delay_ms: float = 0.1
    jitter_ms: float = 0.0
    loss: float = 0.0
    standbys: int = 0


class TensorSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Tensors of a step that are of one kind."""

    elems: int
    dtype: Literal["float32", "float16", "bfloat16", "int32"] = "float32"
    op: Literal["sum", "avg"] = "sum"
    count: int = 1


class StragglerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Ranks that are late in a step: this share of them, by an exponential time of this mean."""

    share: float = 1.0
    mean_ms: float = 0.0


class JobSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Workers that train together."""

    workers: int
    name: str = "job"
    hosts: list[str] = []  # of each rank; else one after the other
    steps: int = 10
    tensors: list[TensorSpec] = msgspec.field(default_factory=lambda: [TensorSpec(elems=1 << 20)])
    compute_ms: float = 0.0  # of a step, before its tensors
    straggler: StragglerSpec = StragglerSpec()
    slots: int = 0  # 0: as the controller gives them
    verify: Verify = DEFAULT_VERIFY  # sums, by the workers themselves
    # When it comes; several times: again and again.
    at_ms: list[float] = msgspec.field(default_factory=lambda: [0.0])
    check: bool = True  # sums, exactly; False: tensors of zeros that all ranks share


class FaultSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What goes wrong: at ``at_ms``, or again and again, ``every_ms`` apart on average."""

    what: Fault
    where: str = ""
    at_ms: float = -1.0
    every_ms: float = 0.0
    for_ms: float = 1.0
    point: str = ""
    link: LinkSpec | None = None


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
    controller: ControllerSpec = ControllerSpec()
    congestion: dict[str, Any] = {}
    multicast: bool = False  # results to all workers behind a port at once
    ecn_packets: int = 0  # the P4 program marks above so many in a port's queue; 0: it does not
    sample_us: float = 0.0  # windows and queues, for the plot; 0: the limit's two-thousandth
    job: list[JobSpec] = []
    traffic: list[TrafficSpec] = []
    fault: list[FaultSpec] = []

    def build_topology(self) -> Topology:
        """Raises :class:`ScenarioError`."""
        return self.topology.build(self.link, self.link_back, self.link_up)


def load(path: Path) -> Scenario:
    """Reads a file: TOML, or JSON where its name ends so.

    Raises :class:`ScenarioError` with the file and the key.
    """
    try:
        text = path.read_text("utf-8")
        document = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(
            f"{path}: not {path.suffix.strip('.').upper() or 'TOML'}: {error}"
        ) from None
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: want a table of keys")
    return make({"name": path.stem, **document}, str(path))


def make(document: dict[str, Any], source: str = "scenario") -> Scenario:
    """Checks a document; ``source`` is named in errors. Raises :class:`ScenarioError`."""
    try:
        scenario = msgspec.convert(document, Scenario)
        check(scenario)
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at `$.")
        key = where.rstrip("`")
        raise ScenarioError(f"{source}: {key + ': ' if key else ''}{said}") from None
    except InvalidInputError as error:
        raise ScenarioError(f"{source}: {error}") from None
    return scenario


def check(scenario: Scenario) -> None:
    """Raises :class:`ScenarioError`: it says what cannot be."""
    require_build("values =", scenario.values)
    try:
        Congestion.from_table(scenario.congestion)
    except CongestionError as error:
        raise ScenarioError(f"congestion: {error}") from None
    topology = scenario.build_topology()
    if not (scenario.limit_s > 0):
        raise ScenarioError(f"limit_s = {scenario.limit_s:g}: it must be more than 0")
    check_traffic(topology, scenario.traffic)
    names = [job.name for job in scenario.job]
    for job in scenario.job:
        if names.count(job.name) > 1:
            raise ScenarioError(f"job {job.name!r}: the name is there twice")
        _check_job(job, topology)
    for number, fault in enumerate(scenario.fault):
        try:
            _check_fault(fault, scenario, topology)
        except ScenarioError as error:
            raise ScenarioError(f"fault {number + 1} ({fault.what}): {error}") from None


def _check_job(job: JobSpec, topology: Topology) -> None:
    where = f"job {job.name!r}"
    if not 1 <= job.workers <= MAX_WORKERS:
        raise ScenarioError(f"{where}: workers = {job.workers}: want 1 to {MAX_WORKERS}")
    if job.hosts and len(job.hosts) != job.workers:
        raise ScenarioError(f"{where}: {len(job.hosts)} hosts for {job.workers} workers")
    for host in job.hosts:
        if host not in topology.hosts:
            raise ScenarioError(f"{where}: there is no host {host!r}")
    _at_least(f"{where}: steps", job.steps, 1)
    for tensor in job.tensors:
        _at_least(f"{where}: elems", tensor.elems, 0)
        _at_least(f"{where}: count", tensor.count, 1)
    if not 0 <= job.straggler.share <= 1:
        raise ScenarioError(f"{where}: straggler.share is a share, 0 to 1")
    for key in ("compute_ms", "slots"):
        _at_least(f"{where}: {key}", getattr(job, key), 0)


def _check_fault(fault: FaultSpec, scenario: Scenario, topology: Topology) -> None:
    if (fault.at_ms < 0) == (fault.every_ms <= 0):
        raise ScenarioError("want either at_ms or every_ms")
    _at_least("for_ms", fault.for_ms, 0)
    if fault.point and fault.point not in POINTS:
        raise ScenarioError(f"point {fault.point!r} is none of {', '.join(POINTS)}")
    if fault.what == "link" and fault.link is None:
        raise ScenarioError("want `link`: what it is meanwhile")
    known: list[str] = []
    if fault.what in ("link_down", "link"):
        for cable in topology.cables:
            known += [str(cable), f"{cable.one}>{cable.other}", f"{cable.other}>{cable.one}"]
    elif fault.what in ("pause", "crash"):
        known = [f"{job.name}/{rank}" for job in scenario.job for rank in range(job.workers)]
    elif fault.what == "power_cycle":
        known = [name for name, kind in topology.switches.items() if kind == "p4"]
    else:
        known = [""]
    if fault.where not in known:
        some = ", ".join(known[:6]) or "nothing"
        raise ScenarioError(f"where = {fault.where!r}: want {some}{' ...' * (len(known) > 6)}")


def _at_least(what: str, value: float, least: float) -> None:
    if not value >= least:
        raise ScenarioError(f"{what} = {value:g}: want {least:g} or more")
