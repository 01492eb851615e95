import enum
from collections.abc import Callable, Sequence

from ina._native.congestion import Choice
from ina._native.host import (
    Peer,
    RingEnds,
    SoftRoceEnds,
    TransportEngine,
    WorkerConfig,
    WorkerCounters,
)

class Marking(enum.Enum):
    NONE = ...
    STEP = ...
    RED = ...

class QueueConfig:
    """Lengths are bytes as on the wire; native/sim/queue.hpp says what each is."""

    limit_bytes: int
    marking: Marking
    mark_bytes: int
    red_least_bytes: int
    red_most_bytes: int
    red_probability: float
    red_weight: float
    urgent_dscp: int
    def __init__(self, **fields: object) -> None: ...

class LinkConfig:
    """One direction of a cable; native/sim/link.hpp says what each is."""

    bits_per_s: int
    wire_gap_bytes: int
    burst_bytes: int
    delay_ns: int
    jitter_ns: int
    loss: float
    bad_from: float
    bad_to: float
    bad_loss: float
    duplication: float
    reordering: float
    reordering_ns: int
    corruption: float
    frame_check: bool
    def __init__(self, **fields: object) -> None: ...

class SwitchSetup:
    """Of a P4 switch that is a soft one; native/sim/p4_switch.hpp says what each is."""

    packet_cost_ns: int
    wake_ns: int
    wake_jitter_ns: int
    loss: float
    trains: bool
    def __init__(self, **fields: object) -> None: ...

class WorkerSetup:
    """Of a worker on a host; native/sim/worker.hpp and native/sim/nic.hpp say what each is."""

    own: Peer
    to: Peer
    results: Peer
    tos: int
    pair: SoftRoceEnds | None
    ring: RingEnds | None
    packet_cost_ns: int
    kibibyte_cost_ns: int
    buffer_bytes: int
    trains: bool
    wake_ns: int
    wake_jitter_ns: int
    max_in_flight: int
    shares: int
    halts: bool
    def __init__(self, **fields: object) -> None: ...

class Fate(enum.Enum):
    ARRIVES = ...
    LOST = ...
    CORRUPTED = ...
    LINK_DOWN = ...
    QUEUE_FULL = ...

class TraceRecord:
    @property
    def port(self) -> int: ...
    @property
    def fate(self) -> Fate: ...
    @property
    def sent_ns(self) -> int: ...
    @property
    def arrives_ns(self) -> int: ...
    @property
    def frame_bytes(self) -> int: ...
    @property
    def head(self) -> bytes: ...

class Trace:
    """Raises OSError: the file cannot be written."""

    def __init__(self, most_records: int = 0, pcap: str = "") -> None: ...
    def flush(self) -> None: ...
    @property
    def ports(self) -> list[str]: ...
    def records(self) -> list[TraceRecord]: ...

class PortCounters:
    @property
    def offered_packets(self) -> int: ...
    @property
    def arrived_packets(self) -> int: ...
    @property
    def full_packets(self) -> int: ...
    @property
    def lost_packets(self) -> int: ...
    @property
    def corrupted_packets(self) -> int: ...
    @property
    def duplicated_packets(self) -> int: ...
    @property
    def marked_packets(self) -> int: ...
    @property
    def sent_packets(self) -> int: ...
    @property
    def sent_bytes(self) -> int: ...
    @property
    def waited_ns(self) -> int: ...
    @property
    def longest_bytes(self) -> int: ...

class Port:
    """One direction of a cable."""

    up: bool
    link: LinkConfig
    queue: QueueConfig
    @property
    def name(self) -> str: ...
    @property
    def counters(self) -> PortCounters: ...
    @property
    def waiting_packets(self) -> int: ...
    @property
    def waiting_bytes(self) -> int: ...
    def set_tap(self, tap: Callable[[bytes], bytes | None] | None) -> None:
        """Each frame that the link does not lose arrives as the function makes it of its bytes,
        from the Ethernet header on; None: it is lost. What the function raises ends run()."""

class Node: ...

class Bridge(Node):
    def set_route(self, mac: int, ports: list[int]) -> None:
        """Raises ValueError: there is no such port."""

    @property
    def unrouted_packets(self) -> int: ...

class P4SwitchCounters:
    @property
    def received_packets(self) -> int: ...
    @property
    def off_packets(self) -> int: ...
    @property
    def sent_packets(self) -> int: ...
    @property
    def unknown_port_packets(self) -> int: ...
    @property
    def to_controller_packets(self) -> int: ...
    @property
    def loss_in_packets(self) -> int: ...
    @property
    def loss_out_packets(self) -> int: ...

class P4Switch(Node):
    def set_pipeline(self, pipeline: int, state: int) -> None:
        """Addresses, as of ina.switch.pipeline; 0: it has no power, or no program."""

    def clear_queues(self) -> None: ...
    @property
    def counters(self) -> P4SwitchCounters: ...

class Host(Node):
    @property
    def address(self) -> int: ...
    @property
    def unwanted_packets(self) -> int: ...

class WorkerEvent(enum.Enum):
    DONE = ...
    STALLED = ...
    MISMATCH = ...
    CORRUPTED = ...
    BREACH = ...

class Worker(TransportEngine):
    """An engine in virtual time: what waits in it does not, and its operations are told as
    notices."""

    @property
    def name(self) -> str: ...
    @property
    def alive(self) -> bool: ...
    def pause(self, until_ns: int) -> None: ...
    def crash(self) -> None: ...
    def leave_group(self) -> None: ...
    @property
    def buffer_full_packets(self) -> int: ...
    @property
    def damaged_packets(self) -> int: ...
    @property
    def busy_ns(self) -> int: ...
    @property
    def breach(self) -> str: ...
    @property
    def moderation_ns(self) -> int: ...
    @property
    def counters(self) -> WorkerCounters:
        """This, and what follows: of stats()."""

    @property
    def window(self) -> int: ...
    @property
    def in_flight(self) -> int: ...
    @property
    def in_flight_limit(self) -> int: ...

Notice = tuple[int, Worker, WorkerEvent, int]
"""When, who, what, and the tensor's id."""

class Network:
    """What belongs to it lives as long as it does."""

    def __init__(self, seed: int) -> None: ...
    def add_bridge(self, name: str) -> Bridge: ...
    def add_switch(self, name: str, cpu_port: int, setup: SwitchSetup) -> P4Switch: ...
    def add_host(self, address: int) -> Host: ...
    def connect(
        self,
        from_node: Node,
        from_port: int,
        to_node: Node,
        to_port: int,
        there: str,
        queue: QueueConfig,
        link: LinkConfig,
        back: str,
        queue_back: QueueConfig,
        link_back: LinkConfig,
    ) -> tuple[Port, Port]:
        """Raises ValueError: no such port."""

    def add_worker(
        self, host: Host, name: str, setup: WorkerSetup, config: WorkerConfig, window: Choice
    ) -> Worker:
        """Raises ValueError: a number is out of range."""

    def run(self, until_ns: int) -> bool: ...
    def take_notices(self) -> list[Notice]: ...
    @property
    def now_ns(self) -> int: ...
    @property
    def next_ns(self) -> int: ...
    @property
    def happened(self) -> int: ...
    @property
    def hops(self) -> int: ...
    def set_trace(self, trace: Trace | None) -> None: ...

class TcpAlgorithm(enum.Enum):
    CUBIC = ...
    DCTCP = ...

class TcpConfig:
    """Of both ends of connections; native/sim/flows/tcp_config.hpp says what each is."""

    algorithm: TcpAlgorithm
    ecn: bool
    dscp: int
    mss_bytes: int
    initial_window_segments: int
    receive_window_bytes: int
    initial_rto_ns: int
    min_rto_ns: int
    max_rto_ns: int
    delayed_ack_ns: int
    most_timeouts: int
    def __init__(self, **fields: object) -> None: ...

class TcpSender:
    @property
    def window_bytes(self) -> int: ...
    @property
    def threshold_bytes(self) -> int: ...
    @property
    def in_flight_bytes(self) -> int: ...
    @property
    def srtt_ns(self) -> int: ...
    @property
    def rto_ns(self) -> int: ...
    @property
    def retransmissions(self) -> int: ...
    @property
    def recoveries(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def ecn_reductions(self) -> int: ...

def cubic_curve(since_s: float, k_s: float, most_segments: float) -> float: ...
def cubic_back_s(most_segments: float, window_segments: float) -> float: ...

class TrafficConfig:
    """When flows begin; native/sim/flows/traffic.hpp says what each is."""

    tcp: TcpConfig
    start_ns: int
    stop_ns: int
    most_flows: int
    mean_gap_ns: float
    rounds: int
    period_ns: int
    def __init__(self, **fields: object) -> None: ...

class FlowRecord:
    @property
    def number(self) -> int: ...
    @property
    def source(self) -> int: ...
    @property
    def destination(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def started_ns(self) -> int: ...
    @property
    def done_ns(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def retransmissions(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def marked_packets(self) -> int: ...

class Traffic:
    @property
    def started_flows(self) -> int: ...
    @property
    def active_flows(self) -> int: ...
    def take_records(self) -> list[FlowRecord]:
        """Of flows that have ended since the last call."""

    def progress(self) -> list[tuple[int, int]]:
        """Of active flows: their numbers, and the bytes that their receivers have."""

    def sender(self, number: int) -> TcpSender | None:
        """Of an active flow. Not to be used once something else has happened in the network."""

class UdpStreamConfig:
    """native/sim/flows/udp_stream.hpp says what each is."""

    mean_gap_ns: float
    is_poisson: bool
    payload_bytes: int
    dscp: int
    start_ns: int
    stop_ns: int
    def __init__(self, **fields: object) -> None: ...

class UdpStreamCounters:
    @property
    def sent_packets(self) -> int: ...
    @property
    def received_packets(self) -> int: ...
    @property
    def received_bytes(self) -> int: ...
    @property
    def delay_ns(self) -> int: ...
    @property
    def longest_delay_ns(self) -> int: ...

class UdpStream:
    @property
    def counters(self) -> UdpStreamCounters: ...

def add_traffic(
    network: Network,
    name: str,
    config: TrafficConfig,
    sizes: Sequence[tuple[float, float]],
    sources: Sequence[Host],
    destinations: Sequence[Host],
) -> Traffic:
    """Raises ValueError: no source has another host to send to, or sizes are no distribution."""

def add_udp_stream(
    network: Network, name: str, config: UdpStreamConfig, source: Host, destination: Host
) -> UdpStream:
    """Raises ValueError: a number is out of range."""
