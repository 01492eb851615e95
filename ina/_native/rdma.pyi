"""RDMA devices: what there is, queue pairs, and what a worker does to them."""

from ina._native.host import ChannelCounters

GID_ROCE_V1: int
GID_ROCE_V2: int

class RdmaGid:
    @property
    def index(self) -> int: ...
    @property
    def type(self) -> int:
        """GID_ROCE_V1, GID_ROCE_V2, or 0: InfiniBand's."""

    @property
    def address(self) -> str:
        """As IPv6."""

    @property
    def ipv4(self) -> int:
        """0: it is no IPv4 address."""

    @property
    def interface_index(self) -> int: ...

class RdmaPort:
    @property
    def number(self) -> int: ...
    @property
    def is_active(self) -> bool: ...
    @property
    def is_ethernet(self) -> bool: ...
    @property
    def active_mtu_bytes(self) -> int: ...
    @property
    def max_mtu_bytes(self) -> int: ...
    @property
    def gids(self) -> list[RdmaGid]: ...

class RdmaDevice:
    @property
    def name(self) -> str: ...
    @property
    def trouble(self) -> str:
        """Why nothing else is known of it; empty: it was opened."""

    @property
    def ports(self) -> list[RdmaPort]: ...

def rdma_devices() -> list[RdmaDevice]:
    """All of this machine. Raises RuntimeError: no libibverbs, or an old one."""

class UcQueue:
    """A queue pair on an unreliable connection; native/host/channel/uc_queue.hpp."""

    def __init__(
        self, device: str, port: int, gid_index: int, packets: int, message_bytes: int
    ) -> None:
        """Raises RuntimeError."""

    def connect(self, ipv4: int, number: int, first_psn: int, traffic_class: int) -> None:
        """Raises RuntimeError."""

    def close(self) -> None: ...
    @property
    def number(self) -> int: ...
    @property
    def path_mtu_bytes(self) -> int: ...

class RoceChannel:
    """What a worker's transport does to a queue pair, for a checklist and for tests."""

    def __init__(self, queue: UcQueue) -> None:
        """Raises ValueError: it is not connected."""

    def send(self, messages: list[bytes]) -> None:
        """Each one SEND. Raises ValueError: more or longer ones than it has frames for."""

    def receive(self, timeout_ms: int) -> list[bytes]:
        """What has come, or comes first in that time; 64 at most."""

    @property
    def fd(self) -> int: ...
    @property
    def counters(self) -> ChannelCounters: ...
    def close(self) -> None: ...

class RcRingPath:
    """Where a ring's queue pairs lead to; native/host/channel/rc_ring.hpp."""

    def __init__(
        self,
        *,
        next_ipv4: int = ...,
        previous_ipv4: int = ...,
        next_in: list[int] = ...,
        previous_out: list[int] = ...,
        first_psn: int = ...,
        traffic_class: int = ...,
        timeout: int = ...,
        retries: int = ...,
    ) -> None: ...

class RcRing:
    """A worker's queue pairs in a ring; native/host/channel/rc_ring.hpp."""

    def __init__(
        self, device: str, port: int, gid_index: int, lanes: int, message_bytes: int
    ) -> None:
        """Raises RuntimeError."""

    def connect(self, path: RcRingPath) -> None:
        """Raises RuntimeError, ValueError."""

    def close(self) -> None: ...
    @property
    def out_numbers(self) -> list[int]: ...
    @property
    def in_numbers(self) -> list[int]: ...

class RcRingChannel:
    """What a worker's transport does to a ring's queue pairs, for tests."""

    def __init__(self, ring: RcRing, lanes: int) -> None:
        """Raises ValueError: it is not connected, or has other lanes."""

    def send(self, messages: list[bytes]) -> None:
        """Each one SEND on the lane that its sequence number says."""

    def receive(self, timeout_ms: int) -> list[bytes]:
        """What has come, or comes first in that time."""

    def owes(self) -> bool: ...
    @property
    def fd(self) -> int: ...
    @property
    def counters(self) -> ChannelCounters: ...
    def close(self) -> None: ...
