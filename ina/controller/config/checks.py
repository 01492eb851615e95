"""What is wrong with a configuration that types alone cannot say."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ina import modes
from ina.controller.config.aggregator_checks import aggregator_problems, mode_problems
from ina.controller.config.fabric_checks import MAC, fabric_problems, is_ipv4, name_problem
from ina.controller.config.routing import placement_problems
from ina.controller.config.store_url import problem_of
from ina.controller.config.tables import (
    DEFAULT_LISTEN,
    MAX_PORT,
    TOFINOS,
    Config,
    JobsConfig,
    SwitchConfig,
    TlsConfig,
)
from ina.controller.config.tofino import (
    host_place_problems,
    place_problems,
    port_problems,
    program_problem,
)
from ina.controller.config.windows_checks import windows_problems
from ina.fabric.ports import PortRef
from ina.p4 import names
from ina.p4.builds import listed
from ina.p4.catalogue import ProgramId, capabilities, target_of, values_of

USUAL_NETWORK = "239.192.0.0/24"
"""Of the addresses that an organisation may use as it likes (RFC 2365, section 6.2)."""

_MULTICAST = IPv4Network("224.0.0.0/4")
_LINK_LOCAL = IPv4Network("224.0.0.0/24")
"""Of routing protocols and the like; hosts and switches treat these addresses in ways of their own.
"""


def network_of(text: str) -> IPv4Network | None:
    """The network that ``switch.multicast`` says; None: each worker gets results of its own.

    Raises :class:`ValueError` with one line about what is wrong.
    """
    if not text:
        return None
    try:
        network = IPv4Network(text)
    except ValueError as error:
        raise ValueError(f"{text!r} is not an IPv4 network: {error}") from None
    if not network.subnet_of(_MULTICAST):
        raise ValueError(f"{text} is not within {_MULTICAST}, IPv4's multicast addresses")
    if network.overlaps(_LINK_LOCAL):
        raise ValueError(f"{text} has addresses of {_LINK_LOCAL}, which are for routing protocols")
    if network.num_addresses < names.JOBS_TOTAL:
        raise ValueError(
            f"{text} has {network.num_addresses} addresses, and each of {names.JOBS_TOTAL} jobs"
            " needs its own: a /24, or wider"
        )
    return network


def builds_of(switch: SwitchConfig) -> tuple[int, ...]:
    """Values a packet of the builds of its mode that its target has."""
    return values_of(switch.mode, target_of(switch.target))


def problems(config: Config) -> list[tuple[str, str]]:
    """What types alone cannot say, as (key, problem)."""
    found = [
        (key, f"{address!r} is not host:port")
        for key, address in (
            ("listen", config.listen),
            ("metrics", config.metrics or DEFAULT_LISTEN),
        )
        if not _is_host_port(address)
    ]
    for switch in config.switches:
        found += _switch_problems(config, switch)
    for key, tls in (("tls", config.tls), ("switch_tls", config.switch_tls)):
        if bool(tls.cert) != bool(tls.key):
            found.append((key, "cert and key go together"))
    if config.tls.ca and not config.tls.cert:
        found.append(("tls.ca", "without cert and key the service has no TLS"))
    if config.store.url and config.store.path:
        found.append(("store", "url and path are two places: name one"))
    if problem := problem_of(config.store.location):
        found.append(("store.url", problem))
    found += windows_problems(config)
    found += placement_problems(config.placement, config.job_rules)
    found += _jobs_problems(config.jobs)
    for name in config.tenants:
        if not name or not name.isprintable():
            found.append(("tenants", f"{name!r} is not a name"))
    found += [*_set_problems(config), *fabric_problems(config)]
    return [*found, *aggregator_problems(config)]


def _jobs_problems(jobs: JobsConfig) -> Iterator[tuple[str, str]]:
    """What is wrong with how slots are shared out."""
    if jobs.sizing != "fixed" and jobs.policy not in ("", "static"):
        yield "jobs.sizing", f"policy {jobs.policy!r} says itself how many slots jobs get"
    elif jobs.sizing == "asked" and jobs.policy == "static":
        yield "jobs.sizing", "under policy 'static' all jobs get as many slots: fixed or equal"
    if jobs.floor & (jobs.floor - 1):
        yield "jobs.floor", f"{jobs.floor} is not a power of two"


def _set_problems(config: Config) -> Iterator[tuple[str, str]]:
    """What is wrong with the switches as a set."""
    if not config.switches:
        yield "switch", "there is none: leave it out, or list one"
    seen: dict[tuple[str, str], int] = {}
    for index, switch in enumerate(config.switches):
        for key, value in (
            ("name", switch.name),
            ("grpc_addr", f"{switch.grpc_addr} device {switch.device_id}"),
            ("data_host", switch.data_addr),
        ):
            former = seen.setdefault((key, value), index)
            if former != index:
                yield f"switch[{index}].{key}", f"{value} is switch[{former}]'s, too"


def _switch_problems(config: Config, switch: SwitchConfig) -> list[tuple[str, str]]:
    key = config.key_of(switch)
    found = []
    if problem := name_problem(switch.name):
        found.append((f"{key}.name", problem))
    if not _is_host_port(switch.grpc_addr):
        found.append((f"{key}.grpc_addr", f"{switch.grpc_addr!r} is not host:port"))
    builds = builds_of(switch)
    if switch.mode not in names.MODES:
        found.append((f"{key}.mode", f"{switch.mode!r} is none of {', '.join(names.MODES)}"))
    elif not builds:
        found.append((f"{key}.mode", f"no program of mode {switch.mode!r} is for {switch.target}"))
    elif not modes.of(switch.mode).is_written_to(
        capabilities(ProgramId(switch.mode, target_of(switch.target), builds[0]))
    ):
        found.append((f"{key}.mode", f"{switch.mode} is not written to a {switch.target} yet"))
    elif switch.values not in (0, *builds):
        found.append((f"{key}.values", f"{switch.values} is not {listed('or', builds)}"))
    if not is_ipv4(switch.data_host):
        found.append((f"{key}.data_host", f"{switch.data_host!r} is not an IPv4 address"))
    for host in switch.data_hosts:
        if not is_ipv4(host):
            found.append((f"{key}.data_hosts", f"{host!r} is not an IPv4 address"))
    if len(switch.data_hosts) > names.OWN_ADDRESSES_TOTAL - 2:  # data_host, shared memory's
        found.append(
            (
                f"{key}.data_hosts",
                f"{len(switch.data_hosts)} addresses: at most {names.OWN_ADDRESSES_TOTAL - 2}",
            )
        )
    if switch.data_mac and not MAC.fullmatch(switch.data_mac):
        found.append((f"{key}.data_mac", f"{switch.data_mac!r} is not a MAC address"))
    try:
        network_of(switch.multicast)
    except ValueError as error:
        found.append((f"{key}.multicast", str(error)))
    if builds:
        found += [(f"{key}.{name}", problem) for name, problem in mode_problems(switch)]
    of_target = _tofino_problems if switch.is_tofino else _other_switch_problems
    for where, problem in of_target(config, switch):
        inner = where.removeprefix("switch.")
        found.append((where if where == inner else f"{key}.{inner}", problem))
    return found


def _places(config: Config, switch: SwitchConfig) -> Iterator[tuple[str, PortRef]]:
    """Where workers are behind, with the keys that say so."""
    yield "switch.data_port", switch.data_port
    for index, host in enumerate(config.hosts):
        if host.switch in ("", switch.name) and host.port is not None:
            yield f"host[{index}].port", host.port
    for index, link in enumerate(config.links):
        for name, port in zip(link.switches, link.ports or (), strict=False):
            if name == switch.name:
                yield f"link[{index}].ports", port


def _other_switch_problems(config: Config, switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    """What only a Tofino has, and what only it may have."""
    if switch.southbound == "bfrt":
        yield "switch.southbound", f"bfrt is for {' and '.join(TOFINOS)}, not for {switch.target}"
    for key in ("program", "p4info", "pipeline", "port", "mirror"):
        if getattr(switch, key):
            yield f"switch.{key}", f"only a Tofino has it, switch.target is {switch.target!r}"
    if switch.device_id == 0:
        yield "switch.device_id", "0: P4Runtime's devices begin at 1"
    for key, place in _places(config, switch):
        if isinstance(place, str):
            yield key, f"{place!r}: only a Tofino behind BFRuntime has names of ports"
        elif not 1 <= place <= MAX_PORT:
            yield key, f"{place} is not 1 to {MAX_PORT}"


def _tofino_problems(config: Config, switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    for key, place in _places(config, switch):
        yield from place_problems(key, place, switch.target, switch.pipes)
        if isinstance(place, str) and switch.southbound != "bfrt":
            yield key, f"{place!r}: P4Runtime has no names of the front panel: give its number"
    yield from port_problems(switch.target, switch.pipes, switch.port, switch.mirror)
    for index, host in enumerate(config.hosts):
        if host.switch in ("", switch.name) and host.port is not None:
            yield from host_place_problems(f"host[{index}].port", host.port, switch.port)
    if switch.southbound == "bfrt":
        yield from _bfrt_problems(config, switch)
        return
    if not (switch.p4info and switch.pipeline):
        key = "pipeline" if switch.p4info else "p4info"
        yield f"switch.{key}", "P4Runtime sets the program: name its P4Info and its device file"
    for key in ("port", "mirror", "program"):
        if getattr(switch, key):
            yield f"switch.{key}", "P4Runtime cannot set it; southbound = 'bfrt' can"


def _bfrt_problems(config: Config, switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    problem = program_problem(switch.program)
    if problem:
        yield "switch.program", problem
    for key in ("p4info", "pipeline"):
        if getattr(switch, key):
            yield f"switch.{key}", "the SDE loads the program; BFRuntime only finds it there"
    if config.switch_tls != TlsConfig():
        yield "switch_tls", "the SDE's BFRuntime client has no TLS"


def _is_host_port(text: str) -> bool:
    host, colon, port = text.rpartition(":")
    return bool(colon and host and port.isdecimal() and int(port) <= 0xFFFF)
