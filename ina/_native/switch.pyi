class Port:
    """A port of the switch; counters may be read at any time."""

    @property
    def number(self) -> int: ...
    def set_delay(self, delay_ns: int) -> None:
        """Let each packet leave so much later than the program has it. Before the loop starts."""

    def close(self) -> None:
        """Release the socket or files, once no loop uses the port."""

    def stats(self) -> dict[str, int]: ...

class UdpPort(Port):
    """Raises OSError when the address cannot be bound. ``address`` is an IPv4 address as an int."""

    def __init__(
        self,
        number: int,
        address: int,
        udp_port: int,
        frame_udp_port: int,
        loss_probability: float,
        loss_seed: int,
        socket_buffer_bytes: int = 33554432,
    ) -> None: ...
    @property
    def bound(self) -> tuple[int, int]: ...

class FramesPort(Port):
    """Raises OSError when the address cannot be bound. ``address`` is an IPv4 address as an int."""

    def __init__(
        self, number: int, address: int, udp_port: int, loss_probability: float, loss_seed: int
    ) -> None: ...
    @property
    def bound(self) -> tuple[int, int]: ...

class AfPacketPort(Port):
    """Raises OSError: no such interface, no permission."""

    def __init__(
        self, number: int, interface: str, loss_probability: float, loss_seed: int
    ) -> None: ...

class ShmPort(Port):
    """Raises OSError when the abstract Unix address ``name`` is taken or too long."""

    def __init__(
        self,
        number: int,
        name: str,
        frame_udp_port: int,
        loss_probability: float,
        loss_seed: int,
    ) -> None: ...
    def set_dscp(self, dscp: int) -> None:
        """Of the frames that workers' packets become."""

class PcapPort(Port):
    """Raises OSError when a file cannot be opened, ValueError when ``read`` is not whole.

    An empty path stands for no file.
    """

    def __init__(
        self, number: int, read: str, write: str, loss_probability: float, loss_seed: int
    ) -> None: ...

class PortLoop:
    """The thread that moves packets between ports and the pipeline."""

    def __init__(self, cpu_port: int) -> None: ...
    def add(self, port: Port) -> None:
        """Before start()."""

    def start(self) -> None: ...
    def stop(self) -> None:
        """Ends the thread; may be called again."""

    def set_pipeline(self, pipeline: int, state: int) -> None:
        """Addresses of an ina_pipeline and its state; 0, 0 for none.

        When it returns, the loop no longer uses the pipeline that was set before.
        """

    def inject(self, port: int, packet: bytes) -> bool:
        """Run a packet through the pipeline as if it had arrived at ``port``; False: queue full.

        Raises ValueError for more than 65,535 bytes or a port above 511.
        """

    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        """The next packet that left by the CPU port; None at the timeout or after stop()."""

    def stats(self) -> dict[str, int]: ...
