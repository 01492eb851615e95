"""A soft switch: ports, a pipeline between them, and P4Runtime to control it."""

from __future__ import annotations

import errno
import logging
import socket
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType

import grpc
from finsy.proto import p4r

from ina.errors import InvalidInputError, UnavailableError
from ina.rpc.channel import is_loopback, ping_options
from ina.rpc.tls import PLAIN_TEXT, TlsFiles, server_credentials
from ina.switch.p4runtime import Device, P4RuntimeService
from ina.switch.p4runtime.handlers import method_handlers
from ina.switch.p4runtime.streams import MAX_STREAMS
from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import AddressError, Port, PortInUseError, check_ports
from ina.switch.stats import PORT_DROPS, SwitchStats
from ina.switch.target import Target
from ina.switch.targets import default_target
from ina.tables.values import PortDrop

_log = logging.getLogger(__name__)

MAX_CONFIG_BYTES = 128 << 20
"""Largest gRPC message: a p4_device_config."""
MAX_DELAY_US = 10_000_000
_STOP_GRACE_S = 0.5
_STOP_DEADLINE_S = 10.0
_CPU_POLL_NS = 200_000_000
_PING_S = 10.0
_HANDSHAKE_MS = 10_000
_RPC_THREADS = MAX_STREAMS + 24  # a stream holds one as long as it lives
_MAX_WAITING_RPCS = 1024  # more are refused at once, not queued


class SoftSwitch:
    """A P4Runtime device in this process; a context manager.

    Ports forward once a P4Runtime client has set a pipeline (or :meth:`preload` has).
    """

    def __init__(
        self,
        ports: Sequence[Port],
        *,
        grpc_addr: str | None = "127.0.0.1:0",
        device_id: int = 1,
        cpu_port: int = 510,
        loss_rate: float = 0.0,
        loss_seed: int = 0,
        port_loss: Mapping[int, float] | None = None,
        delay_us: int = 0,
        target: Target | None = None,
        tls: TlsFiles = PLAIN_TEXT,
    ) -> None:
        """``loss_rate``: probability in 0..1 that a packet is dropped, at each port and in both
        directions, drawn from a generator seeded with ``loss_seed``; ``port_loss`` has another one
        for some port numbers. ``delay_us``: so long each packet is kept before it leaves, at most
        10 s, as if the switch were so far away. ``target``: what runs the programs;
        None: compiled C.
        ``tls``: of the P4Runtime server; ``grpc_addr`` None: there is none, :meth:`insert` fills
        the tables. Raises :class:`InvalidInputError`.
        """
        check_ports(list(ports), cpu_port)
        port_loss = dict(port_loss or {})
        for rate in (loss_rate, *port_loss.values()):
            if not 0.0 <= rate <= 1.0:
                raise InvalidInputError(f"loss rate {rate}: not in 0..1")
        for number in port_loss.keys() - {port.number for port in ports}:
            raise InvalidInputError(f"loss of port {number}: there is no such port")
        if not 0 <= delay_us <= MAX_DELAY_US:
            raise InvalidInputError(f"delay {delay_us} us: not in 0..{MAX_DELAY_US}")
        if not 0 <= device_id < 1 << 64:  # controllers of p4lang/tutorials begin at 0
            raise InvalidInputError(f"device id {device_id}: not in 0..2^64-1")
        self._credentials = server_credentials(tls) if tls else None
        self._specs = tuple(ports)
        self._wanted_grpc_addr = grpc_addr
        self._cpu_port = cpu_port
        self._impairment = Impairment(loss_rate, loss_seed, port_loss, delay_us)
        self._ports: PortSet | None = None
        self._server: grpc.Server | None = None
        self._service: P4RuntimeService | None = None
        self._rpc_threads: ThreadPoolExecutor | None = None
        self._grpc_addr = ""
        self._last_stats: SwitchStats | None = None
        self._stats_lock = threading.Lock()
        self._stopping = threading.Event()
        self._cpu_thread: threading.Thread | None = None
        self._target = target or default_target()
        self._device = Device(
            device_id,
            self._target,
            install=self._install,
            inject=self._inject,
            drops=self._port_drops,
        )

    def start(self) -> None:
        """Open the ports and serve P4Runtime; once in the life of a SoftSwitch.

        Raises :class:`PortInUseError`, :class:`AddressError`, :class:`InvalidPortError` (no such
        interface, a bad pcap file); then nothing is left open.
        """
        if self._ports is not None or self._stopping.is_set():
            raise UnavailableError("a SoftSwitch can be started once")
        with ExitStack() as undo:
            undo.callback(self.stop)
            ports = self._target.ports(self._specs, self._cpu_port, self._impairment)
            self._ports = ports
            ports.open()
            self._device.take_over()
            if self._wanted_grpc_addr is not None:
                self._serve(self._wanted_grpc_addr)
            ports.start()
            self._cpu_thread = threading.Thread(
                target=self._forward_cpu_packets,
                args=(ports,),
                name="switch-packet-in",
                daemon=True,
            )
            self._cpu_thread.start()
            if self._server is not None:
                self._server.start()
            undo.pop_all()

    def stop(self) -> None:
        """End P4Runtime and forwarding, close all sockets and files. May be called again."""
        self._stopping.set()
        if self._service is not None:
            self._service.close()
            self._service = None
        if self._server is not None:
            self._server.stop(_STOP_GRACE_S).wait(_STOP_DEADLINE_S)
            self._server = None
        if self._rpc_threads is not None:
            self._rpc_threads.shutdown(wait=False)  # gRPC leaves this to its owner
            self._rpc_threads = None
        if self._ports is not None:
            self._ports.stop()
        if self._cpu_thread is not None:
            self._cpu_thread.join(_STOP_DEADLINE_S)
            self._cpu_thread = None
        with self._stats_lock:
            if self._ports is not None:
                self._last_stats = self._ports.stats()
                self._ports.close()
            self._ports = None
        self._device.close()

    def preload(self, config: p4r.ForwardingPipelineConfig) -> None:
        """Set a pipeline as a client would, without one. Raises an :class:`InaError`."""
        self._running()
        self._device.preload(config)

    def insert(self, entities: Iterable[p4r.Entity]) -> None:
        """Insert them, in their order, without a client. Raises what is wrong with the first."""
        self._device.insert(entities)

    def delete(self, entities: Iterable[p4r.Entity]) -> None:
        """Delete them as insert() inserts them."""
        self._device.delete(entities)

    def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        """Return what the requests select, all of one moment, without a client."""
        return self._device.read(requests)[0]

    @property
    def was_taken_over(self) -> bool:
        """Whether it goes on with what a former process left in the kernel."""
        return self._device.was_taken_over

    @property
    def ports(self) -> tuple[Port, ...]:
        """The ports as they were asked for."""
        return self._specs

    @property
    def grpc_addr(self) -> str:
        """Where P4Runtime is served, with the actual port."""
        return self._grpc_addr

    def udp_address(self, number: int) -> tuple[str, int]:
        """As :meth:`PortSet.udp_address`, of a switch that runs."""
        return self._running().udp_address(number)

    def set_shm_dscp(self, number: int, dscp: int) -> None:
        """As :meth:`PortSet.set_shm_dscp`, of a switch that runs."""
        self._running().set_shm_dscp(number, dscp)

    def shm_address(self, number: int) -> str:
        """As :meth:`PortSet.shm_address`, of a switch that runs."""
        return self._running().shm_address(number)

    def stats(self) -> SwitchStats:
        """Counters of all ports since start(); after stop(), the last ones."""
        with self._stats_lock:
            if self._ports is not None:
                return self._ports.stats()
        if self._last_stats is None:
            raise UnavailableError("the switch has not been started")
        return self._last_stats

    def __enter__(self) -> SoftSwitch:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _serve(self, address: str) -> None:
        host, port = _split(address)
        _check_free(host, port)
        self._rpc_threads = ThreadPoolExecutor(_RPC_THREADS, thread_name_prefix="p4runtime")
        server = grpc.server(
            self._rpc_threads,
            maximum_concurrent_rpcs=_MAX_WAITING_RPCS,
            options=[
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", MAX_CONFIG_BYTES),
                ("grpc.max_send_message_length", MAX_CONFIG_BYTES),
                ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
                # A primary whose machine died without a word must not stay primary.
                *ping_options(_PING_S, _PING_S),
                ("grpc.http2.min_ping_interval_without_data_ms", int(_PING_S * 500)),
            ],
        )
        self._service = P4RuntimeService(self._device)
        server.add_generic_rpc_handlers((method_handlers(self._service),))
        try:
            bound = _add_port(server, f"{host}:{port}", self._credentials)
        except RuntimeError as error:
            raise PortInUseError(f"P4Runtime address {host}:{port}: {error}") from None
        self._server = server
        self._grpc_addr = f"{host}:{bound}"

    def _running(self) -> PortSet:
        if self._ports is None:
            raise UnavailableError("the switch is not running")
        return self._ports

    def _install(self, pipeline: Pipeline) -> None:
        if self._ports is not None:
            self._ports.install(pipeline)

    def _port_drops(self) -> list[PortDrop]:
        return [
            PortDrop(number, f"{direction} {reason}", packets)
            for number, port in sorted(self.stats().ports.items())
            for name, (direction, reason) in PORT_DROPS.items()
            if (packets := getattr(port, name))
        ]

    def _inject(self, packet: bytes) -> bool:
        return self._ports is not None and self._ports.inject(self._cpu_port, packet)

    def _forward_cpu_packets(self, ports: PortSet) -> None:
        while not self._stopping.is_set():
            packet = ports.next_cpu_packet(_CPU_POLL_NS)
            if packet is not None:
                self._device.packet_in(packet)
            self._device.tell_digests(time.monotonic_ns(), time.time_ns())


def _split(address: str) -> tuple[str, int]:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 0xFFFF:
        raise InvalidInputError(f"P4Runtime address {address!r}: expected HOST:PORT")
    return host, int(port)


def _add_port(server: grpc.Server, address: str, credentials: grpc.ServerCredentials | None) -> int:
    if credentials is None:
        if not is_loopback(address.rpartition(":")[0]):
            _log.warning("P4Runtime at %s has no TLS: who reaches it can own the switch", address)
        return server.add_insecure_port(address)
    return server.add_secure_port(address, credentials)


def _check_free(host: str, port: int) -> None:
    """gRPC tells of a taken port only in its own log, so ask the kernel first."""
    try:
        family, _, _, _, where = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
            probe.listen(1)
    except OSError as error:
        message = f"P4Runtime address {host}:{port}: {error.strerror}"
        if error.errno == errno.EADDRINUSE:
            raise PortInUseError(message) from None
        raise AddressError(message) from None
