from enum import IntEnum

MAX_CELLS: int
"""Of a ring, at least."""
WELCOME_BYTES: int

class Status(IntEnum):
    """What the switch answers."""

    ATTACHED = 0
    BAD_HELLO = 1
    NOT_ALLOWED = 2
    FULL = 3
    NO_MEMORY = 4

class Welcome:
    @property
    def status(self) -> int:
        """One of Status, or what a later version says."""

    @property
    def switch_port(self) -> int: ...
    @property
    def address(self) -> int:
        """IPv4, what the program sees as this worker's."""

    @property
    def udp_port(self) -> int: ...

def hello(cells: int, payload_bytes: int) -> bytes:
    """What a worker says first. ``cells``: of each ring, a power of two."""

def read_welcome(data: bytes) -> Welcome | None:
    """None: of another version. Raises ValueError where it is not WELCOME_BYTES long."""
