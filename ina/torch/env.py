"""The environment variables of the PyTorch backend: the only place where they are read.

=====================  =============================================================================
INA_CONTROLLER         ``host:port`` of a running controller; several, the primary and its backups,
                       separated by commas. Unset: rank 0 starts an embedded controller and soft
                       switch in its own process.
INA_JOB                name of the job at the controller; sub-groups append ``/<group>``. Unset: a
                       random name that rank 0 chooses.
INA_JOB_TOKEN          secret that every worker of the job must show; the first one's counts.
INA_TENANT             whose quota the job counts on; unset: the controller's default tenant.
INA_MODE               ``pool``, slots of the job's own; ``shared``, slots that jobs share, with an
                       aggregator above the switch, which rank 0 runs where the controller has none;
                       see docs/shared_slots.md; ``stream``, of the first, blocks that are zero on
                       all ranks are skipped, see docs/fewer_bytes.md; ``roce``, of the first, its
                       packets are RoCEv2's, and ``transparent``, round a ring, see docs/roce.md.
                       Unset: as the controller's configuration has it; with the embedded switch
                       ``pool``.
INA_PRIORITY           importance of the job, an integer; higher wins. Default 0.
INA_DEADLINE           when the job is to have ended, for controllers whose memory policy goes by
                       that: seconds from now, or a time, as ``2026-11-25T18:00:00+01:00``.
INA_STEPS              steps of training that the job will take. Rank 0's count, as of the former.
INA_QUEUE_S            how long the job waits for slots where the switch has none left, at most a
                       week. Default 0: it is refused.
INA_ON_SWITCH_LOSS     what happens when the switch is lost: ``error`` (default), every rank's
                       all_reduce raises; ``fallback``, the job goes on over Gloo.
INA_SWITCH_RETURN      with ``fallback``: whether the job goes back to the network as soon as that
                       takes it again, ``1`` (default), or stays on Gloo, ``0``.
INA_TLS_CA             PEM files of TLS to the controller, and with INA_TLS_CERT and INA_TLS_KEY
INA_TLS_CERT           of mutual TLS; see docs/security.md. Read by :mod:`ina.rpc`.
INA_TLS_KEY
INA_HOST               IPv4 address that this worker sends from, and that rank 0's embedded switch
                       listens on. Default 127.0.0.1 with the embedded switch, else the address
                       that routes to the switch.
INA_TRANSPORT          how this worker reaches the switch: ``auto`` (default), shared memory where
                       the switch offers it and is on this host, as the embedded one does, else
                       UDP; ``udp``; ``shm``; or in mode ``roce``, which these two ask for where
                       INA_MODE is unset, ``roce``, by an RDMA device, and ``roce-soft``, in this
                       process. See docs/host.md and docs/roce.md.
INA_HOST_NODE          where several ranks of a group share this host and INA_CONTROLLER is set: the
                       lowest adds up what they send, over shared memory, and sends one contribution
                       to the switch, unless that is on this host, too. ``0``: each sends its own;
                       ``1``: also where the switch is on this host. See docs/host.md.
INA_THREADS            threads that drive this worker's packets: 1, 2, 4 or 8; 0 (default): one for
                       each four cores of a worker, 1 to 4. Shared memory: always one.
INA_WINDOW             how many packets this worker has in flight: an algorithm of
                       :mod:`ina.congestion`, or a class of your own, ``my_module:MyWindow``, with
                       options behind commas, ``fixed,packets=64``. Unset: as the controller's
                       configuration has it. See docs/own_window.md.
INA_RDMA_TIMEOUT_S     mode ``transparent`` by an RDMA device: after so many seconds of silence it
                       sends again, default 4, and INA_RDMA_RETRIES times, default 7, at most. Read
INA_RDMA_RETRIES       by :mod:`ina.host`. See docs/roce.md.
INA_DSCP               DSCP of this worker's packets, and so of the sums that they complete: 0 to
                       63. Unset: as the controller's configuration has it for the job's tenant.
INA_VERIFY             how the job's sums are verified, the same for all its workers: ``off``,
                       ``accidents`` (bits that flip) or ``keyed`` (what is forged, too). Unset: as
                       another worker asks; if none does, ``accidents``, or ``off`` where all
                       share memory with the switch. See docs/host.md.
INA_WIRE               how float gradients travel: ``32`` (default), each in a word of a packet;
                       ``16``, in half of one, for up to 64 workers; ``8``, in a quarter, to 16;
                       ``16-stochastic`` and ``8-stochastic``, rounded by chance. The same for all
                       workers of the job. See docs/fewer_bytes.md.
INA_SPARSE             whether all_reduces of dense floats leave out blocks that are zero on all
                       ranks: ``off`` (default); ``auto``, where that gains; or how many values a
                       block has. The same for all workers of the job. See docs/fewer_bytes.md.
INA_VALUES             values a packet of the embedded switch's P4 build: 64, 256, 360 (needs an MTU
                       of 1496) or 1024 (4152); in mode ``roce`` 56, 248 or 1016. Default: the
                       most where all workers must be on rank 0's host, as INA_HOST is loopback,
                       else 256, or 248.
INA_MULTICAST          IPv4 multicast network where the embedded switch sends results, once for all
                       workers, as ``239.192.0.0/24``. Unset: to each worker a copy of its own. See
                       docs/host.md.
INA_LEASE_S            seconds after which the embedded controller takes a silent worker for dead:
                       1 to 3600, default 15. A killed process is found in about 3 s.
INA_LOSS_RATE          share of packets that the embedded switch drops at its ports, in each
                       direction: 0 (default) to below 1; and that services of embeddings drop on
                       their way out. For tests and demonstrations.
INA_LOSS_SEED          seed of those drops, default 0.
INA_EMBED              where ``ina embed serve`` serves on this rank's host, a path: rows of
                       embeddings lie there, and not in this process. See docs/embeddings.md.
INA_STATS_DIR          existing folder in which each worker writes its counters as JSON
                       (``group<id>.rank<r>.json``) when its group is destroyed.
INA_LEAVE_TIMEOUT_S    how long the process with the embedded switch waits, when it is done, for
                       the other workers to leave their jobs. Default 30.
INA_LOG                ``debug``, ``info``, ``warning`` or ``error``: log lines on stderr
                       (:mod:`ina.log`)
INA_LOG_FORMAT         ``text`` or ``json``
INA_METRICS            ``host:port`` where each worker serves its counters to Prometheus, with
                       ``LOCAL_RANK`` added to the port; 0: any free one. Read by :mod:`ina.host`.
=====================  =============================================================================

:class:`ina.torch.Options` in ``pg_options`` goes before the environment. How long an operation may
take is ``init_process_group(timeout=...)``, as with every backend.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ina import modes
from ina.congestion import Congestion, CongestionError
from ina.errors import InvalidInputError
from ina.host.threads import check_threads
from ina.host.wishes import NO_WISHES, Wishes, deadline_of
from ina.modes.transports import TransportName, mode_for, transport_names
from ina.p4.builds import builds_of, interface_mtu_bytes, largest_build, listed, usual_build
from ina.p4.names import DEFAULT_MODE
from ina.protocol.coding import checked_coding
from ina.protocol.dscp import checked_dscp
from ina.protocol.verify import Verify, checked_verify
from ina.torch.errors import SettingError

_log = logging.getLogger("ina.torch")

_ETHERNET_MTU_BYTES = 1500
_EMBEDDED_ONLY = ("INA_VALUES", "INA_MULTICAST", "INA_LEASE_S", "INA_LOSS_RATE", "INA_LOSS_SEED")
_ALWAYS = (
    *("INA_CONTROLLER", "INA_JOB", "INA_JOB_TOKEN", "INA_TENANT", "INA_PRIORITY"),
    *("INA_DEADLINE", "INA_STEPS", "INA_QUEUE_S"),
    *("INA_CONTROLLER", "INA_JOB", "INA_JOB_TOKEN", "INA_TENANT", "INA_PRIORITY", "INA_MODE"),
    *("INA_TLS_CA", "INA_TLS_CERT", "INA_TLS_KEY"),
    *(
        "INA_ON_SWITCH_LOSS",
        "INA_SWITCH_RETURN",
        "INA_HOST",
        "INA_TRANSPORT",
        "INA_HOST_NODE",
        "INA_THREADS",
        "INA_WINDOW",
        *("INA_RDMA_TIMEOUT_S", "INA_RDMA_RETRIES"),
        "INA_DSCP",
        "INA_VERIFY",
        "INA_WIRE",
        "INA_SPARSE",
        "INA_EMBED",
        "INA_STATS_DIR",
        "INA_LEAVE_TIMEOUT_S",
        "INA_LOG",
        "INA_LOG_FORMAT",
        "INA_METRICS",
    ),
)
_OF_OTHERS = frozenset(  # read by the soft switch, `ina p4` and ina.rpc
    ("INA_CC", "INA_P4C", "INA_OPERATOR_TOKEN")
)
ON_SWITCH_LOSS = ("error", "fallback")
KNOWN = frozenset((*_EMBEDDED_ONLY, *_ALWAYS))


SparseSetting = str | int
"""OFF, AUTO, or how many values a block has."""
OFF, AUTO = "off", "auto"
MOST_BLOCK_ELEMS = 1 << 24


@dataclass(frozen=True)
class Settings:
    """What the environment asks for; the module's docstring explains each."""

    controller: str | None = None
    job: str | None = None
    token: str = ""
    tenant: str = ""
    priority: int = 0
    wishes: Wishes = NO_WISHES
    mode: str = ""
    on_switch_loss: str = "error"
    returns: bool = True
    """To the network, after it fell back."""
    host: str | None = None
    transport: TransportName = "auto"
    host_node: bool | None = None
    """None: where the switch is not on this host."""
    threads: int = 0
    congestion: Congestion | None = None
    """None: as the controller says."""
    dscp: int | None = None
    """None: as the controller has it for the tenant."""
    verify: Verify | None = None
    wire: str = "32"
    """One of ina.protocol.coding.CODINGS."""
    sparse: SparseSetting = OFF
    local_workers: int = 0
    """Of this host, as torchrun says (LOCAL_WORLD_SIZE); 0: not known."""
    values: int = 0  # 0: packet_values chooses
    multicast: str = ""
    """A network; empty: none."""
    lease_s: float | None = None
    """Of the embedded controller; None: its default."""
    loss_rate: float = 0.0
    loss_seed: int = 0
    embed: str = ""
    """A Unix socket; empty: none."""
    stats_dir: Path | None = None
    leave_timeout_s: float = 30.0

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read and check the variables; raises :class:`SettingError` naming the bad one."""
        for name in sorted(environ):
            if name.startswith("INA_") and name not in KNOWN | _OF_OTHERS:
                _log.warning("ina: the environment variable %s is not known and ignored", name)
        controller = environ.get("INA_CONTROLLER") or None
        if controller is not None:
            _check_addresses(controller)
            for name in _EMBEDDED_ONLY:
                if environ.get(name):
                    raise SettingError(
                        f"{name} is for the embedded switch, but INA_CONTROLLER={controller} names"
                        " a running controller: unset one of them"
                    )
        values = _integer(environ, "INA_VALUES", 0)
        transport = environ.get("INA_TRANSPORT") or "auto"
        if transport not in transport_names():
            names = " or ".join(transport_names())
            raise SettingError(f"INA_TRANSPORT={transport}: want {names}")
        mode = mode_for(transport, check_mode("INA_MODE", environ.get("INA_MODE", "")))
        builds = builds_of(modes.of(mode or DEFAULT_MODE).program)
        if environ.get("INA_VALUES") and values not in builds:
            raise SettingError(
                f"INA_VALUES={values}: there are builds for {listed('or', builds)} values"
            )
        loss_rate = _number(environ, "INA_LOSS_RATE", 0.0)
        if not 0.0 <= loss_rate < 1.0:
            raise SettingError(f"INA_LOSS_RATE={loss_rate:g}: want 0 <= rate < 1")
        on_switch_loss = environ.get("INA_ON_SWITCH_LOSS") or "error"
        check_on_switch_loss("INA_ON_SWITCH_LOSS", on_switch_loss)
        returns = environ.get("INA_SWITCH_RETURN") or "1"
        if returns not in ("0", "1"):
            raise SettingError(f"INA_SWITCH_RETURN={returns}: want 0 or 1")
        threads = _integer(environ, "INA_THREADS", 0)
        try:
            check_threads("INA_THREADS", threads)
        except InvalidInputError as error:
            raise SettingError(str(error)) from None
        host_node = environ.get("INA_HOST_NODE", "")
        if host_node not in ("", "0", "1"):
            raise SettingError(f"INA_HOST_NODE={host_node}: want 0 or 1")
        leave_timeout_s = _number(environ, "INA_LEAVE_TIMEOUT_S", 30.0)
        if not 0.0 <= leave_timeout_s <= 3600.0:
            raise SettingError(f"INA_LEAVE_TIMEOUT_S={leave_timeout_s:g}: want 0 to 3600 seconds")
        return cls(
            controller=controller,
            job=environ.get("INA_JOB") or None,
            token=environ.get("INA_JOB_TOKEN", ""),
            tenant=environ.get("INA_TENANT", ""),
            priority=_integer(environ, "INA_PRIORITY", 0),
            wishes=_wishes(environ),
            mode=mode,
            on_switch_loss=on_switch_loss,
            returns=returns == "1",
            host=environ.get("INA_HOST") or None,
            transport=cast(TransportName, transport),
            host_node=host_node == "1" if host_node else None,
            threads=threads,
            congestion=_congestion(environ),
            dscp=check_dscp("INA_DSCP", _integer(environ, "INA_DSCP", 0))
            if environ.get("INA_DSCP")
            else None,
            verify=check_verify("INA_VERIFY", environ.get("INA_VERIFY") or None),
            wire=check_wire("INA_WIRE", environ.get("INA_WIRE") or "32"),
            sparse=check_sparse("INA_SPARSE", environ.get("INA_SPARSE") or OFF),
            local_workers=_integer(environ, "LOCAL_WORLD_SIZE", 0),
            values=values,
            multicast=_multicast(environ),
            lease_s=_lease_s(environ),
            loss_rate=loss_rate,
            loss_seed=_integer(environ, "INA_LOSS_SEED", 0),
            embed=environ.get("INA_EMBED", ""),
            stats_dir=_folder(environ, "INA_STATS_DIR"),
            leave_timeout_s=leave_timeout_s,
        )

    @property
    def packet_values(self) -> int:
        """Values a packet of the embedded switch's build.

        Where nobody chose: shared memory and loopback bear the largest; a path between hosts is
        taken to bear what this host's interface does, but no jumbo frames.
        """
        if self.values:
            return self.values
        program = modes.of(self.mode or DEFAULT_MODE).program
        if self.embedded_host.startswith("127."):
            return max(builds_of(program))
        mtu_bytes = interface_mtu_bytes(self.embedded_host)
        if mtu_bytes is None:
            return usual_build(program)
        return largest_build(min(mtu_bytes, _ETHERNET_MTU_BYTES), builds_of(program))

    @property
    def embedded_host(self) -> str:
        """IPv4 address that the embedded switch listens on."""
        return self.host or "127.0.0.1"


def check_on_switch_loss(name: str, value: str) -> None:
    """Raise :class:`SettingError` unless the value, of what is called ``name``, is a policy."""
    if value not in ON_SWITCH_LOSS:
        raise SettingError(f"{name}={value}: want {' or '.join(ON_SWITCH_LOSS)}")


def check_verify(name: str, value: str | None) -> Verify | None:
    """Return it if it is None or a way to verify sums; raise :class:`SettingError` if not."""
    try:
        return None if value is None else checked_verify(name, value)
    except InvalidInputError as error:
        raise SettingError(str(error)) from None


def check_wire(name: str, value: str | int) -> str:
    """Return its name if it is a way for values to travel; raise :class:`SettingError` if not."""
    try:
        return str(checked_coding(name, value))
    except InvalidInputError as error:
        raise SettingError(str(error)) from None


def check_sparse(name: str, value: str | int) -> SparseSetting:
    """Return what it stands for; raise :class:`SettingError` if that is no way to sum by blocks."""
    if value in (OFF, AUTO):
        return str(value)
    text = str(value)
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_BLOCK_ELEMS):
        raise SettingError(
            f"{name}={value}: want {OFF}, {AUTO} or values of a block, 1 to {MOST_BLOCK_ELEMS}"
        )
    return int(text)


def check_dscp(name: str, value: int | None) -> int | None:
    """Return it if it is None or a DSCP; raise :class:`SettingError` if not."""
    try:
        return None if value is None else checked_dscp(name, value)
    except InvalidInputError as error:
        raise SettingError(str(error)) from None


def check_mode(name: str, value: str) -> str:
    """Return it if it is empty or a mode; raise :class:`SettingError` if not."""
    if value and value not in modes.names():
        raise SettingError(f"{name}={value}: want {' or '.join(modes.names())}")
    return value


def check_lease(name: str, lease_s: float) -> None:
    """Raise :class:`SettingError` unless a controller takes such a lease, of what is called so."""
    if not 1.0 <= lease_s <= 3600.0:
        raise SettingError(f"{name}={lease_s:g}: want 1 to 3600 seconds")


def _lease_s(environ: Mapping[str, str]) -> float | None:
    if not environ.get("INA_LEASE_S"):
        return None
    lease_s = _number(environ, "INA_LEASE_S", 0.0)
    check_lease("INA_LEASE_S", lease_s)
    return lease_s


def _congestion(environ: Mapping[str, str]) -> Congestion | None:
    text = environ.get("INA_WINDOW", "")
    if not text:
        return None
    try:
        congestion = Congestion.from_text(text)
        congestion.choice()  # there is such a class, and it takes these options
    except CongestionError as error:
        raise SettingError(f"INA_WINDOW={text}: {error}") from error
    return congestion


def _wishes(environ: Mapping[str, str]) -> Wishes:
    deadline, now_unix_s = environ.get("INA_DEADLINE", ""), time.time()
    steps, queue_s = _integer(environ, "INA_STEPS", 0), _number(environ, "INA_QUEUE_S", 0.0)
    name = "INA_DEADLINE"
    try:
        deadline_unix_s = deadline_of(deadline, now_unix_s)
        name = "INA_STEPS"
        Wishes(steps=steps)
        name = "INA_QUEUE_S"
        return Wishes(deadline_unix_s, steps, queue_s)
    except InvalidInputError as error:
        raise SettingError(f"{name}={environ[name]}: {error}") from None


def _check_addresses(addresses: str) -> None:
    for address in addresses.split(","):
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise SettingError(f"INA_CONTROLLER={addresses}: want host:port, separated by commas")


def _integer(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    try:
        return int(text) if text else default
    except ValueError:
        raise SettingError(f"{name}={text}: want an integer") from None


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise SettingError(f"{name}={text}: want a number") from None


def _multicast(environ: Mapping[str, str]) -> str:
    text = environ.get("INA_MULTICAST", "")
    if not text:
        return ""
    # Imported here: a worker that joins a running controller needs none.
    from ina.controller.config import network_of

    try:
        network_of(text)
    except ValueError as error:
        raise SettingError(f"INA_MULTICAST={text}: {error}") from None
    return text


def _folder(environ: Mapping[str, str], name: str) -> Path | None:
    text = environ.get(name, "")
    if not text:
        return None
    path = Path(text)
    if not path.is_dir():
        raise SettingError(f"{name}={text}: there is no such folder")
    return path


@dataclass(frozen=True)
class Options:
    """What a script says of one group: ``init_process_group("ina", pg_options=Options(...))``.

    Goes before the environment variable of the same name; None leaves that in force.

    Raises :class:`ina.torch.errors.SettingError` for a policy that does not exist, or such a lease.
    """

    on_switch_loss: str | None = None
    """``"error"`` or ``"fallback"``."""
    returns: bool | None = None
    """After it fell back: whether it goes back to the network as soon as that takes it again; it
    does unless a rank says False."""
    tenant: str | None = None
    priority: int | None = None
    mode: str | None = None
    """``"pool"``, ``"shared"`` or ``"stream"``, the same on all ranks."""
    job: str | None = None
    """The job's name at the controller."""
    wishes: Wishes | None = None
    """Deadline, steps and how long it waits for slots, in place of all three variables."""
    lease_s: float | None = None
    """Of the embedded controller: seconds after which a silent worker is dead, 1 to 3600."""

    congestion: Congestion | None = None
    """How many packets this worker has in flight, in place of INA_WINDOW."""
    dscp: int | None = None
    """Of this worker's packets: 0 to 63."""
    verify: Verify | None = None
    """``"off"``, ``"accidents"`` or ``"keyed"``, the same on all ranks."""
    wire: str | None = None
    """How float gradients travel, ``"32"``, ``"16"`` or ``"8"``, or one of these rounded by chance,
    ``"8-stochastic"``; the same on all ranks."""
    sparse: str | int | None = None
    """Whether all_reduces of dense floats leave out blocks that are zero on all ranks: ``"off"``,
    ``"auto"``, where that gains, or how many values a block has; the same on all ranks."""
    host_node: bool | None = None
    """Whether this host's ranks have what they send added up here; True: also where the switch is
    on this host."""

    def __post_init__(self) -> None:
        check_verify("verify", self.verify)
        check_wire("wire", "32" if self.wire is None else self.wire)
        check_sparse("sparse", OFF if self.sparse is None else self.sparse)
        check_dscp("dscp", self.dscp)
        check_mode("mode", self.mode or "")
        if self.on_switch_loss is not None:
            check_on_switch_loss("on_switch_loss", self.on_switch_loss)
        if self.lease_s is not None:
            check_lease("lease_s", self.lease_s)

    def over(self, settings: Settings) -> Settings:
        """``settings`` with what is said here; SettingError: a lease, but not embedded."""
        if self.lease_s is not None and settings.controller is not None:
            raise SettingError(
                f"lease_s is for the embedded controller, but INA_CONTROLLER={settings.controller}"
                " names a running one: its configuration has the lease"
            )
        said = {name: value for name, value in vars(self).items() if value is not None}
        return dataclasses.replace(settings, **said)
