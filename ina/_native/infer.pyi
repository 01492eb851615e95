import enum

from ina._native.congestion import Choice
from ina._native.host import RtoLimits, TransportEngine, WorkerConfig

_Place = tuple[int, int]
"""IPv4 address and UDP port."""

class Kernel(enum.Enum):
    INPUT = 0
    LINEAR = 1
    RELU = 2
    ADD = 3
    EMBED = 4
    NEIGHBOURS = 5
    FRONTIER = 6
    FOLD = 7
    ARGMAX = 8

class Columns:
    def __init__(self, low: int = 0, high: int = 0) -> None: ...
    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...

class Edge:
    def __init__(self, node: int, columns: Columns) -> None: ...
    @property
    def node(self) -> int: ...
    @property
    def columns(self) -> Columns: ...

class Graph:
    """Of addresses: vertices + 1 uint64, and edges uint32; both are copied."""

    def __init__(self, first: int, vertices: int, to: int, edges: int, /) -> None: ...

class Stage:
    def __init__(
        self,
        *,
        kernel: Kernel = ...,
        is_mine: bool = ...,
        is_summed: bool = ...,
        rows_in: int = ...,
        rows_out: int = ...,
        columns_in: Columns = ...,
        columns_out: Columns = ...,
    ) -> None: ...
    kernel: Kernel
    is_mine: bool
    is_summed: bool
    rows_in: int
    rows_out: int
    columns_in: Columns
    columns_out: Columns
    own: Columns
    inbound: list[Edge]
    outbound: list[Edge]
    adds: int
    shift: int
    low: int
    high: int
    table_width: int
    fanout: int
    seed: int
    with_self: bool
    is_last: bool
    turn: int
    turns: int
    def set_weights(self, weights: int, count: int, bias: int, made: int, /) -> None: ...
    def set_table(self, table: int, values: int, places: int, rows: int, /) -> None: ...
    def set_graph(self, graph: Graph, /) -> None: ...

class Program:
    def __init__(
        self,
        *,
        key: int = ...,
        plan: int = ...,
        node: int = ...,
        entry: int = ...,
        members: int = ...,
        ring: int = ...,
        packet_values: int = ...,
        low: int = ...,
        high: int = ...,
        nodes: list[_Place] = ...,
        stages: list[Stage] = ...,
    ) -> None: ...
    key: int
    plan: int
    node: int
    entry: int
    members: int
    ring: int
    packet_values: int
    low: int
    high: int
    stages: list[Stage]

def run_kernel(stage: Stage, values: int, adds: int, out: int, /) -> None: ...
def finish_kernel(stage: Stage, values: int, /) -> None: ...

class Fault(enum.Enum):
    NONE = 0
    NODE_LOST = 1
    SUMS_LOST = 2
    OTHER_PLAN = 3
    OUT_OF_RANGE = 4

class Outcome(enum.Enum):
    PENDING = 0
    DONE = 1
    FAILED = 2
    TOO_LATE = 3

class Mark(enum.Enum):
    CAME = 1
    RAN = 2
    SUMMED = 3
    ANSWERED = 4

class Failure:
    def __init__(self, fault: Fault, node: int = ..., stage: int = ...) -> None: ...
    @property
    def fault(self) -> Fault: ...
    @property
    def node(self) -> int: ...
    @property
    def stage(self) -> int: ...

class Status:
    @property
    def at_ns(self) -> int: ...
    @property
    def node(self) -> int: ...
    @property
    def silent_ms(self) -> int: ...

class StagesCounters:
    @property
    def tasks(self) -> int: ...
    @property
    def duplicates(self) -> int: ...
    @property
    def stale(self) -> int: ...
    @property
    def strays(self) -> int: ...
    @property
    def replays(self) -> int: ...
    @property
    def blocks(self) -> int: ...

class EntryCounters:
    @property
    def blocks(self) -> int: ...
    @property
    def again(self) -> int: ...
    @property
    def timeouts(self) -> int: ...
    @property
    def refused(self) -> int: ...
    @property
    def strays(self) -> int: ...

class ClientCounters:
    @property
    def blocks(self) -> int: ...
    @property
    def again(self) -> int: ...
    @property
    def strays(self) -> int: ...
    @property
    def damaged(self) -> int: ...

class Traffic:
    @property
    def sent_packets(self) -> int: ...
    @property
    def received_packets(self) -> int: ...
    @property
    def send_drops(self) -> int: ...
    @property
    def lost(self) -> int: ...
    @property
    def wakes(self) -> int: ...

class EntryConfig:
    def __init__(
        self, *, rto: RtoLimits = ..., patience_ns: int = ..., least_gap_ns: int = ...
    ) -> None: ...
    rto: RtoLimits
    patience_ns: int
    least_gap_ns: int

class ClientConfig:
    def __init__(
        self,
        *,
        key: int = ...,
        plan: int = ...,
        nonce: int = ...,
        entry: _Place = ...,
        packet_values: int = ...,
        window: int = ...,
        rows_in: int = ...,
        columns_in: int = ...,
        rows_out: int = ...,
        columns_out: int = ...,
        nodes: list[_Place] = ...,
        answers: list[Columns] = ...,
        rto: RtoLimits = ...,
    ) -> None: ...
    key: int
    plan: int
    nonce: int
    window: int

class SumEngine(TransportEngine):
    def __init__(
        self,
        config: WorkerConfig,
        max_in_flight: int,
        congestion: Choice,
        room_packets: int,
        is_virtual: bool = False,
    ) -> None: ...
    def close(self) -> None: ...
    @property
    def has_left(self) -> bool: ...

_Sent = tuple[int, int, int, bytes]
"""(-1, IPv4 address, UDP port, datagram), or (place among the sums, 0, 0, contribution)."""

class Node:
    def __init__(
        self, program: Program, entry: EntryConfig, engines: list[tuple[int, SumEngine]], /
    ) -> None: ...
    def receive(self, sender: _Place, packet: bytes, now_ns: int, /) -> None: ...
    def receive_result(self, at: int, packet: bytes, now_ns: int, /) -> None: ...
    def work(self, now_ns: int, /) -> list[_Sent]: ...
    def next_deadline_ns(self) -> int: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def counters(self) -> StagesCounters: ...
    @property
    def damaged(self) -> int: ...
    @property
    def under_way(self) -> int: ...

class Client:
    def __init__(self, config: ClientConfig, /) -> None: ...
    def ask(self, values: int, blocks: int, out: int, deadline_ns: int, /) -> int: ...
    def outcome(self, request: int, /) -> Outcome: ...
    def forget(self, request: int, /) -> None: ...
    def receive(self, sender: _Place, packet: bytes, now_ns: int, /) -> None: ...
    def work(self, now_ns: int, /) -> list[_Sent]: ...
    def next_deadline_ns(self) -> int: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def status(self) -> Status: ...
    @property
    def counters(self) -> ClientCounters: ...

class StageLink:
    def __init__(self, stage: int, fd: int, engine: SumEngine, /) -> None: ...

class Service:
    def __init__(
        self,
        fd: int,
        program: Program,
        entry: EntryConfig,
        links: list[StageLink],
        loss_rate: float = 0.0,
        loss_seed: int = 0,
        most_moments: int = 0,
    ) -> None: ...
    def fail(self, failure: Failure, /) -> None: ...
    def wait_failed(self, timeout_ns: int) -> bool: ...
    def close(self) -> None: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def traffic(self) -> Traffic: ...
    @property
    def thread_id(self) -> int: ...
    @property
    def counters(self) -> StagesCounters: ...
    @property
    def damaged(self) -> int: ...
    @property
    def entry_counters(self) -> EntryCounters | None: ...
    def take_moments(self) -> list[tuple[int, Mark, int, int, int]]: ...

class Asker:
    def __init__(self, fd: int, config: ClientConfig, /) -> None: ...
    def ask(self, values: int, blocks: int, out: int, patience_ns: int, /) -> int: ...
    def wait(self, request: int, timeout_ns: int) -> Outcome: ...
    def forget(self, request: int, /) -> None: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def status(self) -> Status: ...
    @property
    def heard_ns(self) -> int: ...
    @property
    def counters(self) -> ClientCounters: ...
