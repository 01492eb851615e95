"""The tables of the controller's TOML file: every key, its type and its default."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ina import modes
from ina.congestion import Congestion
from ina.controller.config.fabric import (
    AggregatorConfig,
    HostConfig,
    LinkConfig,
    SwitchPort,
    endpoints,
)
from ina.controller.config.rules import (
    FIRST,
    CongestionTable,
    JobRule,
    RoutingConfig,
    Weight,
    WindowsConfig,
)
from ina.controller.config.store_url import IN_MEMORY, SQLITE
from ina.controller.config.tofino import MirrorConfig, PipesConfig, PortConfig
from ina.fabric.ports import PortRef
from ina.p4 import names
from ina.p4.catalogue import BMV2_MOST_GROWTH_BYTES, ProgramId, target_of
from ina.protocol.dscp import MAX_DSCP
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET, UDP_PORT, VALUE_BYTES

DEFAULT_LISTEN = "127.0.0.1:17700"
DEFAULT_SWITCH = "127.0.0.1:9559"
DEFAULT_BFRT = "127.0.0.1:50052"
"""Where bf_switchd serves BFRuntime."""
DEFAULT_NAME = "switch"
"""Of a switch that is alone and has not been given one."""
DEFAULT_JOB_SLOTS = 512
DEFAULT_LEASE_S = 10.0
EMBEDDED_LEASE_S = 15.0
"""As torchrun's own rendezvous: a node is dead that has missed three keep-alives of 5 s
(``keep_alive_interval``, ``keep_alive_max_attempt`` of torch's dynamic_rendezvous.py)."""

TARGET_WINDOWS = {"soft": 0, "bmv2": 16, "tofino": 0, "tofino2": 0}
"""By target, as ``SwitchConfig.window_limit``. BMv2's egress queues hold 64 packets a port."""
TARGET_SLOT_AGES_US = {"soft": 20_000, "bmv2": 200_000, "tofino": 1000, "tofino2": 1000}
"""By target, as ``SwitchConfig.age_us``: some round trips to an aggregator."""
TOFINOS = ("tofino", "tofino2")
MAX_SLOT_AGE_US = (1 << 30) - 1
"""Ages are told apart by half of a clock of 32 bits."""
MAX_PORT = 510
"""Of the switches that are not Tofinos; 511 is v1model's drop port."""

USUAL_RINGS = "10.128.0.0/19"
"""``rings`` of a switch whose program takes such."""

UdpPortNumber = Annotated[int, Meta(ge=1, le=0xFFFF)]


class SwitchConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A switch that this controller programs."""

    name: str = DEFAULT_NAME
    """What people, the store and the controller's answers call it."""
    mode: str = names.DEFAULT_MODE
    """What its program does; with ``target`` and ``values`` it says which program. ``shared``: jobs
    of mode ``shared`` claim slots of a part of its memory; the rest is for those of mode ``pool``.
    """
    shared_slots: Annotated[int, Meta(ge=0, lt=names.SLOTS_TOTAL)] = 0
    """With mode ``shared``: how many slots, the last ones, jobs of that mode share; 0: half."""
    slot_age_us: Annotated[int, Meta(ge=0, le=MAX_SLOT_AGE_US)] = 0
    """With mode ``shared``: after how many microseconds without a word of its job a slot may be
    another job's; 0: as suits ``target``."""
    aggregator: bool = False
    """With mode ``shared``: whether it can make the results of such jobs, with slots of their own
    in the other part of its memory, where it is the root of their trees."""
    bystanders: tuple[str, ...] = ()
    """With mode ``transparent``: the IPv4 networks that get other RoCEv2 traffic across it. To all
    else it lets none through."""
    target: Literal["soft", "bmv2", "tofino", "tofino2"] = "soft"
    """What kind of switch it is: it decides the default of ``values``, how many packets in flight
    its queues bear, and what its ports can be."""
    southbound: Literal["p4runtime", "bfrt"] = "p4runtime"
    """How it is driven. ``bfrt``: BFRuntime, with the SDE's own client (``SDE_INSTALL``)."""
    grpc_addr: str = DEFAULT_SWITCH
    """host:port of its P4Runtime server (9559 is registered) or BFRuntime server (50052)."""
    device_id: Annotated[int, Meta(ge=0)] = 1
    """The server's number of the device; of a BFRuntime server 0 unless given."""
    election_id: Annotated[int, Meta(ge=1)] = 1
    """P4Runtime: the controller with the highest one is primary. BFRuntime: its client id."""
    values: int = DEFAULT_VALUES_PER_PACKET
    """Values a packet of the P4 build to set: 64, 256, 360 or 1024; of a Tofino 64; with mode
    ``roce`` 56, 248 or 1016, and 248 unless given.

    0: the largest whose packets pass the path to ``data_host`` whole.
    """
    program: str = ""
    """BFRuntime: the program's name in the SDE; empty: what the switch runs."""
    p4info: str = ""
    """P4Runtime on a Tofino: the compiled program's P4Info file, in text form."""
    pipeline: str = ""
    """And its device configuration: the file that the server's own tool made of the binary."""
    grows: bool = True
    """Whether behind a packet that comes as a header alone there is room for values. There is none
    in the kernel's small frames of virtual Ethernet."""
    data_host: str = "127.0.0.1"
    """IPv4 address that workers send to."""
    data_udp_port: UdpPortNumber = UDP_PORT
    """With mode ``roce`` 4791 unless given: another is that of a soft switch's port ``rocev2:``,
    for workers without RDMA devices."""
    data_mac: str = ""
    """MAC address of ``data_host``, 02:00:0a:00:00:01, for other switches that send to this one;
    empty: derived from the address, as behind a UDP port."""
    data_hosts: tuple[str, ...] = ()
    """IPv4 addresses, besides ``data_host``, that packets for this switch have when they get there:
    its own behind an address translation, a container's. It sums what is for its own addresses."""
    data_port: SwitchPort = 1
    """The port that workers are behind which no ``[[host]]`` lists."""
    data_shm: str = ""
    """Address of the switch's shared-memory port ("@..."), for workers on its host; empty: none."""
    multicast: str = ""
    """IPv4 multicast network, "239.192.0.0/24" or wider, of which each job gets an address: workers
    behind one port of the switch get each result once together. It pays where several are behind
    one port, such as the soft switch's UDP port.

    Empty: each worker gets its own copies. The switch's and the workers' network must carry
    multicast, and an Ethernet switch without IGMP snooping floods it to every host; so it is not
    on by itself.
    """
    rings: str = ""
    """With mode ``transparent``: the IPv4 network of which each of a job's workers gets an address
    in its ring, of 8,192 addresses or more; 10.128.0.0/19 unless given. Nothing else may be there,
    but RDMA NICs that have addresses behind these.
    """
    max_window: Annotated[int, Meta(ge=0)] = 0
    """Packets in flight, a worker, instead of what suits ``target``."""
    sums_mpps: Annotated[float, Meta(ge=0)] = 0.0
    """Million packets that it sums in a second; 0: as many as its ports bring."""
    loss_s: Annotated[float, Meta(gt=0)] = 10.0
    """The switch is lost when the controller and a worker have heard nothing of it for so long."""
    pipes: PipesConfig = msgspec.field(default_factory=PipesConfig)
    """Of a Tofino."""
    port: tuple[PortConfig, ...] = ()
    """Ports to set up through BFRuntime; others are left as they are."""
    mirror: tuple[MirrorConfig, ...] = ()
    """Mirror sessions to set up through BFRuntime; others are left as they are."""

    @property
    def runs(self) -> ProgramId:
        """The program; :func:`~ina.p4.catalogue.capabilities` tells what it can do."""
        return ProgramId(self.mode, target_of(self.target), self.values)

    @property
    def expands(self) -> bool:
        """Whether a header that comes alone can leave with all values of a packet."""
        return self.grows and not self.is_short

    @property
    def is_short(self) -> bool:
        """Whether it is one that ends where a packet grows by all values."""
        growth_bytes = VALUE_BYTES * (self.values or DEFAULT_VALUES_PER_PACKET)
        return self.target == "bmv2" and growth_bytes > BMV2_MOST_GROWTH_BYTES

    @property
    def data_addr(self) -> str:
        """host:port that workers send to: what all controllers of this switch call it."""
        return f"{self.data_host}:{self.data_udp_port}"

    @property
    def is_tofino(self) -> bool:
        """Whether it has pipes."""
        return self.target in TOFINOS

    @property
    def slots_shared(self) -> int:
        """How many of its slots, the last ones, jobs share."""
        return modes.of(self.mode).slots_shared(self.shared_slots)

    @property
    def age_us(self) -> int:
        """After which a shared slot may be another job's."""
        return self.slot_age_us or TARGET_SLOT_AGES_US[self.target]

    @property
    def window_limit(self) -> int:
        """Packets in flight that a worker may have at most; 0: half of its job's slots."""
        return self.max_window or TARGET_WINDOWS[self.target]


_OF_AGGREGATORS = (
    *("name", "grpc_addr", "device_id", "election_id", "loss_s"),
    *("data_host", "data_udp_port", "data_mac", "data_hosts", "data_port"),
)
"""Keys of an aggregator that are a switch's, too."""


class JobsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a job gets."""

    mode: str = names.DEFAULT_MODE
    """Of a job that does not ask: slots of its own, or claimed from those that jobs share."""

    aggregators: Literal[1, 2, 4, 8, 16] = 1
    """Of mode ``shared``: among how many a job's lanes are dealt, where so many are reached."""

    sizing: Literal["fixed", "equal", "asked"] = "fixed"
    """What a job gets for good: ``slots``; an equal share for ``count`` jobs; what it asks for."""
    policy: Literal["", "static", "asked", "equal", "jct", "deadline", "priority"] = ""
    """Who gets how many slots (docs/memory.md). ``equal`` and those after it change the sizes of
    jobs that run. Empty: as ``sizing`` says, which is ``static`` or ``asked``."""
    slots: Annotated[int, Meta(ge=2, le=names.SLOTS_TOTAL, multiple_of=2)] = DEFAULT_JOB_SLOTS
    """Slots of a job that does not ask; half of them is its window in packets."""
    count: Annotated[int, Meta(ge=1, le=names.JOBS_TOTAL - 1)] = 16
    """How many jobs share the switch under ``equal``."""
    floor: Annotated[int, Meta(ge=2, le=1 << 15)] = 16
    """Slots, a power of two, that a job keeps under a policy that resizes, whatever others need."""
    preempt: bool = False
    """Whether a job that finds no room evicts jobs of lower priority."""
    lease_s: Annotated[float, Meta(ge=1, le=3600)] = DEFAULT_LEASE_S
    """A worker that is silent for so long is dead."""
    unjoined_s: Annotated[float, Meta(gt=0)] = 60.0
    """A job that was created and that nobody joins ends after this time."""

    @property
    def resizes(self) -> bool:
        """Whether the policy changes the sizes of jobs that run."""
        return self.policy in ("equal", "jct", "deadline", "priority")

    @property
    def gives_what_is_asked(self) -> bool:
        """Policy ``asked``."""
        return self.policy == "asked" or (not self.policy and self.sizing == "asked")


class TenantConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What one tenant may use at a time; 0: no limit."""

    slots: Annotated[int, Meta(ge=0)] = 0
    jobs: Annotated[int, Meta(ge=0)] = 0
    workers: Annotated[int, Meta(ge=0)] = 0
    max_priority: int = 0
    """A job that asks for more gets this."""
    weight: Weight = 1.0
    """Of each of its jobs, where windows are capped: shares of a link go by weights."""
    congestion: CongestionTable | None = None
    """Of its jobs; None: as all have it."""
    dscp: Annotated[int, Meta(ge=0, le=MAX_DSCP)] = 0
    """Of its workers' packets, and so of results, where they ask for none themselves."""


class StoreConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where the desired state is kept."""

    url: str = ""
    """``sqlite:///path`` or ``postgresql://user@host/database``; standbys use the same. Neither
    this nor ``path``: memory, lost with the process."""
    path: str = ""
    """SQLite file, instead of ``url``."""

    @property
    def is_shared(self) -> bool:
        """Whether another controller can take it over."""
        return self.location != IN_MEMORY

    @property
    def location(self) -> str:
        """Its URL."""
        return self.url or (SQLITE + self.path if self.path else IN_MEMORY)


class TlsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """TLS of one address; PEM files. All empty: plain text."""

    cert: str = ""
    key: str = ""
    ca: str = ""
    """Whose certificates are accepted from the other side. On a server this asks for mutual TLS."""


class OperatorsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Who may evict, and see what all tenants do."""

    token_file: str = ""
    """First line: the token that operators must show. Empty: none is asked for."""


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    listen: str = DEFAULT_LISTEN
    """host:port of the gRPC service for workers and operators; port 0: any free one."""
    switches: tuple[SwitchConfig, ...] = msgspec.field(
        name="switch", default_factory=lambda: (SwitchConfig(),)
    )
    """``[switch]``, or several ``[[switch]]``."""
    links: tuple[LinkConfig, ...] = msgspec.field(name="link", default=())
    """``[[link]]``: which switches are joined. A ``topology.json`` has become these and hosts."""
    hosts: tuple[HostConfig, ...] = msgspec.field(name="host", default=())
    """``[[host]]``: which hosts are behind which ports."""
    aggregators: tuple[AggregatorConfig, ...] = msgspec.field(name="aggregator", default=())
    """``[[aggregator]]``: where jobs of mode ``shared`` have their sums completed. None of those
    that can be used: in a process of the job."""
    placement: str = ""
    """Where a job is summed: the name of a policy of :mod:`ina.controller.routing.policies`; or
    ``first``, on the first switch that has room. Empty: ``ina`` where there are links."""
    routing: RoutingConfig = msgspec.field(default_factory=RoutingConfig)
    """What policies may do."""
    metrics: str = ""
    """host:port of the Prometheus endpoint; empty: none."""
    jobs: JobsConfig = msgspec.field(default_factory=JobsConfig)
    congestion: CongestionTable = msgspec.field(
        default_factory=lambda: {"algorithm": Congestion().algorithm}
    )
    """The window algorithm of workers whose job and tenant have none."""
    windows: WindowsConfig = msgspec.field(default_factory=WindowsConfig)
    job_rules: tuple[JobRule, ...] = msgspec.field(name="job", default=())
    """``[[job]]``: by jobs' names, before what their tenants have; the first that fits."""
    tenants: dict[str, TenantConfig] = msgspec.field(default_factory=dict)
    """By name. A job that names no tenant is ``default``'s; with any tenant listed, an unlisted
    one is refused."""
    store: StoreConfig = msgspec.field(default_factory=StoreConfig)
    tls: TlsConfig = msgspec.field(default_factory=TlsConfig)
    """Of ``listen``."""
    switch_tls: TlsConfig = msgspec.field(default_factory=TlsConfig)
    """Towards the switch's P4Runtime server."""
    operators: OperatorsConfig = msgspec.field(default_factory=OperatorsConfig)

    @property
    def switch(self) -> SwitchConfig:
        """The one that there is, or the first."""
        return self.switches[0]

    @property
    def programmed(self) -> tuple[SwitchConfig, ...]:
        """All that the controller programs: switches, and aggregators as the switches they are."""
        return (*self.switches, *map(self._as_switch, self.aggregators))

    def _as_switch(self, it: AggregatorConfig) -> SwitchConfig:
        behind = next((at for at in self.switches if at.name == it.switch), self.switch)
        alike = {name: getattr(it, name) for name in _OF_AGGREGATORS}
        return SwitchConfig(
            mode=modes.of_aggregators().program, values=behind.values, aggregator=True, **alike
        )

    def key_of(self, switch: SwitchConfig) -> str:
        """The table's place in the file: ``switch``, or ``switch[1]`` where there are several."""
        return "switch" if len(self.switches) == 1 else f"switch[{self.switches.index(switch)}]"

    def with_switch(self, **changes: Any) -> Config:
        """The same, but for these keys of the first switch."""
        first = msgspec.structs.replace(self.switch, **changes)
        return msgspec.structs.replace(self, switches=(first, *self.switches[1:]))

    def document(self) -> dict[str, Any]:
        """What the file says, with all defaults; a switch that is alone is a table, not a list."""
        document: dict[str, Any] = msgspec.to_builtins(self)
        switches = list(document["switch"])
        document["switch"] = switches[0] if len(switches) == 1 else switches
        return document

    @property
    def is_fabric(self) -> bool:
        """Whether jobs go where their workers are, and not to the first switch with room."""
        return self.placement != FIRST and bool(self.placement or self.links)

    def endpoints(self, switch: SwitchConfig) -> dict[IPv4Address, tuple[PortRef, int | None]]:
        """By host address: its port of this switch and MAC address (None: derived)."""
        return endpoints(self.hosts, switch.name, switch.data_port)

    def ports_of(self, switch: SwitchConfig) -> list[PortRef]:
        """The ports of a switch that the configuration names, ``data_port`` first."""
        behind = [port for port, _ in self.endpoints(switch).values()]
        towards = [
            port
            for link in self.links
            for name, port in zip(link.switches, link.ports or (), strict=False)
            if name == switch.name
        ]
        return list(dict.fromkeys([switch.data_port, *behind, *towards]))
