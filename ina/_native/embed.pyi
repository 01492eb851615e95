import enum

class Rule(enum.Enum):
    NONE = 0
    SGD = 1
    ADAGRAD = 2
    ROWWISE_ADAGRAD = 3

class TableSpec:
    def __init__(
        self, *, rows: int = ..., dim: int = ..., first_owner: int = ..., owners: int = ...
    ) -> None: ...
    rows: int
    dim: int
    first_owner: int
    owners: int

class Optimizer:
    def __init__(
        self, *, rule: Rule = ..., epsilon: float = ..., first_accumulator: float = ...
    ) -> None: ...
    rule: Rule
    epsilon: float
    first_accumulator: float
    def state_values(self, dim: int) -> int: ...

class GroupConfig:
    def __init__(
        self,
        *,
        key: int = ...,
        host: int = ...,
        hosts: int = ...,
        tables: list[TableSpec] = ...,
        optimizer: Optimizer = ...,
        part_bytes: int = ...,
    ) -> None: ...
    key: int
    host: int
    hosts: int
    tables: list[TableSpec]
    optimizer: Optimizer
    part_bytes: int

class ClientConfig:
    def __init__(self, *, window_parts: int = ..., patience_ns: int = ...) -> None: ...
    window_parts: int
    patience_ns: int

class Placement:
    def __init__(self, spec: TableSpec, hosts: int) -> None: ...
    def owner_of(self, row: int) -> int: ...
    def local_of(self, row: int) -> int: ...
    def rows_of(self, host: int) -> int: ...
    def row_at(self, host: int, local: int) -> int: ...

class OwnerCounters:
    lookups: int
    rows_read: int
    gradients: int
    repeated: int
    late: int
    refused: int
    unheld: int

class ClientCounters:
    messages: int
    sent_again: int
    stray: int

class CacheCounters:
    hits: int
    misses: int

class Failure:
    host: int
    step: int
    what: str

class Traffic:
    sent_packets: int
    sent_bytes: int
    received_packets: int
    received_bytes: int
    strangers: int
    send_drops: int
    lost: int

class Outcome(enum.Enum):
    DONE = 0
    NOT_YET = 1
    FAILED = 2

class _Both:
    def look_up(
        self,
        step: int,
        table: int,
        bags: int,
        offsets: int,
        rows: int,
        weights: int,
        with_state: bool,
        /,
    ) -> int: ...
    def take(self, ticket: int, vectors: int, /) -> None: ...
    def add_gradients(
        self,
        step: int,
        table: int,
        bags: int,
        offsets: int,
        rows: int,
        weights: int,
        vectors: int,
        /,
    ) -> None: ...
    def set_optimizer(self, optimizer: Optimizer) -> None: ...
    def end_step(self, step: int, rate: float) -> None: ...
    def copy_rows(
        self, table: int, first: int, count: int, values: int, state: int, into: bool, /
    ) -> None: ...
    def set_hot(self, table: int, count: int, rows: int, values: int, state: int, /) -> None: ...
    def hot_rows(self, table: int) -> list[int]: ...
    def hot_values(self) -> int: ...
    def read_hot(self, table: int, values: int, state: int, /) -> None: ...
    def settle_hot(self) -> None: ...
    def apply_hot(self, sums: int, rate: float, /) -> None: ...
    def read_hot_gradients(self, out: int, /) -> None: ...
    def open_before(self, version: int, /) -> None: ...
    def resize_cache(self, most_bytes: int, /) -> None: ...
    @property
    def version(self) -> int: ...
    @property
    def damaged(self) -> int: ...
    @property
    def owner(self) -> OwnerCounters: ...
    @property
    def client(self) -> ClientCounters: ...
    @property
    def cache(self) -> CacheCounters: ...

class Node(_Both):
    def __init__(self, config: GroupConfig, own: ClientConfig) -> None: ...
    def is_done(self, ticket: int, /) -> bool: ...
    def are_gradients_received(self) -> bool: ...
    def receive(self, sender: int, packet: bytes, now_ns: int) -> None: ...
    def poll(self, now_ns: int) -> None: ...
    def take_packets(self, now_ns: int) -> list[tuple[int, bytes]]: ...
    def next_deadline_ns(self) -> int: ...
    @property
    def missing(self) -> int: ...
    @property
    def fault(self) -> str: ...
    @property
    def failure(self) -> Failure | None: ...

class Service(_Both):
    def __init__(
        self,
        fd: int,
        config: GroupConfig,
        own: ClientConfig,
        peers: list[tuple[int, int]],
        loss_rate: float,
        loss_seed: int,
    ) -> None: ...
    def send(self) -> None: ...
    def wait(self, ticket: int, timeout_ns: int) -> Outcome: ...
    def wait_for_gradients(self, timeout_ns: int) -> Outcome: ...
    def wait_for_version(self, version: int, timeout_ns: int) -> Outcome: ...
    @property
    def failure(self) -> Failure: ...
    @property
    def traffic(self) -> Traffic: ...
    def close(self) -> None: ...
