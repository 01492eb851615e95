"""What is wrong with a configuration that types alone cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any

from ina import modes
from ina.congestion import Congestion, CongestionError
from ina.controller.config.networks import ipv4_network, network_of, rings_of
from ina.controller.config.rules import placement_problems
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
    Problem,
    host_place_problems,
    place_problems,
    port_problems,
    program_problem,
)
from ina.fabric.ports import PortRef
from ina.p4 import names
from ina.p4.builds import listed
from ina.p4.catalogue import (
    BMV2_MOST_GROWTH_BYTES,
    ProgramId,
    capabilities,
    target_of,
    values_of,
)
from ina.p4.errors import UnknownBuildError
from ina.protocol.spec import DEFAULT_VALUES_PER_PACKET

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Of a switch: it is typed, and a label of metrics."""
MAC = re.compile(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")


def fabric_problems(config: Config) -> Iterator[Problem]:
    """As (key, problem)."""
    yield from _host_problems(config)
    switches = {switch.name: switch for switch in config.switches}
    for index, link in enumerate(config.links):
        key = f"link[{index}].switches"
        unknown = [name for name in link.switches if name not in switches]
        if unknown:
            yield key, f"no switch is called {unknown[0]!r}"
        elif link.switches[0] == link.switches[1]:
            yield key, f"{link.switches[0]!r} is at both ends"
        else:
            yield from _end_problems(key, *(switches[name] for name in link.switches))
    yield from _port_problems(config, switches)
    yield from values_problems(config)


def _end_problems(key: str, one: SwitchConfig, other: SwitchConfig) -> Iterator[Problem]:
    """What a tree over both would ask of them."""
    for switch in (one, other):
        try:
            able = capabilities(switch.runs).trees
        except UnknownBuildError:
            continue  # 0 values: not chosen yet; any other number has been told
        if not able:
            yield (
                key,
                f"{switch.name!r} runs the program {switch.runs}, which cannot sum in a tree of"
                " switches",
            )


def values_problems(config: Config) -> Iterator[Problem]:
    """A packet crosses a tree as it is, so switches that are joined want builds of one size.

    Those are left alone whose build is not chosen yet.
    """
    chosen = {switch.name: switch.values for switch in config.switches if switch.values}
    for index, link in enumerate(config.links):
        values = {name: chosen[name] for name in link.switches if name in chosen}
        if len(set(values.values())) > 1:
            each = " and ".join(f"{name!r} {count}" for name, count in values.items())
            yield f"link[{index}].switches", f"{each} values a packet: want the same on both"


def _port_problems(config: Config, switches: dict[str, SwitchConfig]) -> Iterator[Problem]:
    """A port has one cable. Behind a soft switch's ``data_port``, a UDP socket, are many."""
    used: dict[tuple[str, PortRef], str] = {}
    for index, host in enumerate(config.hosts):
        owner = host.switch or config.switch.name
        if host.port is not None:
            used.setdefault((owner, host.port), f"host[{index}]")
    for index, link in enumerate(config.links):
        for name, port in zip(link.switches, link.ports or (), strict=False):
            if name not in switches or _is_shared(switches[name], port):
                continue
            key = f"link[{index}].ports"
            former = used.setdefault((name, port), key)
            if former != key:
                yield key, f"port {port} of {name!r} is {former.removesuffix('.ports')}'s, too"


def _is_shared(switch: SwitchConfig, port: PortRef) -> bool:
    return switch.target == "soft" and port == switch.data_port


def _host_problems(config: Config) -> Iterator[Problem]:
    names_of = {switch.name for switch in config.switches}
    seen: dict[tuple[str, str], int] = {}
    for index, host in enumerate(config.hosts):
        key = f"host[{index}]"
        if not is_ipv4(host.address):
            yield f"{key}.address", f"{host.address!r} is not an IPv4 address"
        if host.switch and host.switch not in names_of:
            yield f"{key}.switch", f"no switch is called {host.switch!r}"
        elif not host.switch and len(config.switches) > 1:
            yield f"{key}.switch", "which one? there are several"
        if host.mac and not MAC.fullmatch(host.mac):
            yield f"{key}.mac", f"{host.mac!r} is not a MAC address"
        if (host.address, host.switch) in seen:
            yield f"{key}.address", f"{host.address} is listed twice"
        elif config.is_fabric:
            for (address, switch), former in seen.items():
                if address == host.address:
                    yield (
                        f"{key}.switch",
                        f"{address} is behind {switch!r}, too (host[{former}]), and a worker sends"
                        " to one: leave one out, or give each of its interfaces an address",
                    )
                    break
        seen.setdefault((host.address, host.switch), index)


def name_problem(name: str) -> str:
    """What is wrong with what a switch is called; empty: nothing."""
    if _NAME.fullmatch(name):
        return ""
    return f"{name!r}: want up to 63 letters, digits, - _ and ."


def is_ipv4(text: str) -> bool:
    """Whether it is an IPv4 address."""
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


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
    elif modes.of(switch.mode).fills_packets and switch.is_short:
        words = switch.values or DEFAULT_VALUES_PER_PACKET
        problem = f"{words} of mode {switch.mode!r} on BMv2: its packets grow by at most"
        found.append((f"{key}.values", f"{problem} {BMV2_MOST_GROWTH_BYTES} bytes, give it 64"))
    elif modes.of(switch.mode).is_stream and not switch.grows:
        problem = "false: mode 'stream' makes whole packets of ones with a word alone"
        found.append((f"{key}.grows", problem))
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
    try:
        rings_of(switch.rings)
    except ValueError as error:
        found.append((f"{key}.rings", str(error)))
    found += [(f"{key}.bystanders", problem) for problem in bystander_problems(switch)]
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


def windows_problems(config: Config) -> Iterator[tuple[str, str]]:
    """As (key, problem)."""
    tables: dict[str, Mapping[str, Any] | None] = {"congestion": config.congestion}
    for name, tenant in config.tenants.items():
        tables[f"tenants.{name}.congestion"] = tenant.congestion
    seen: dict[str, int] = {}
    for index, rule in enumerate(config.job_rules):
        tables[f"job[{index}].congestion"] = rule.congestion
        if not rule.name:
            yield f"job[{index}].name", "empty: no job is called so; * is any"
        former = seen.setdefault(rule.name, index)
        if former != index:
            yield f"job[{index}].name", f"{rule.name!r} is job[{former}]'s, too, which is first"
    for key, table in tables.items():
        try:
            Congestion.from_table(table or {})
        except CongestionError as error:
            yield key, str(error)


def mode_problems(switch: SwitchConfig) -> Iterator[Problem]:
    """As (key of the switch's table, problem); its mode is one."""
    for mode in modes.every():
        for key in mode.switch_keys:
            if getattr(switch, key) and key not in modes.of(switch.mode).switch_keys:
                yield key, f"only with mode {mode.name!r}, and the switch's is {switch.mode!r}"
    if names.SLOTS_TOTAL - switch.slots_shared < 2:
        yield "shared_slots", f"{switch.slots_shared}: leave 2 of {names.SLOTS_TOTAL} to other jobs"


def bystander_problems(switch: SwitchConfig) -> Iterator[str]:
    """Of the networks that get RoCEv2 traffic which is not of rings."""
    try:
        rings = rings_of(switch.rings)
    except ValueError:  # that is said elsewhere
        rings = None
    for text in switch.bystanders:
        try:
            network = ipv4_network(text)
        except ValueError as error:
            yield str(error)
            continue
        if rings is not None and network.overlaps(rings):
            yield f"{text} overlaps {rings}, which is rings'"
    if len(switch.bystanders) > names.BYSTANDERS_TOTAL:
        yield f"{len(switch.bystanders)} networks: at most {names.BYSTANDERS_TOTAL}"


def aggregator_problems(config: Config) -> Iterator[Problem]:
    """As (key, problem)."""
    switches = {switch.name: switch for switch in config.switches}
    seen: dict[tuple[str, str], str] = {}
    for switch in config.switches:
        for name, value in _must_differ(switch):
            seen.setdefault((name, value), config.key_of(switch))
    for index, it in enumerate(config.aggregators):
        key = f"aggregator[{index}]"
        as_switch = config.programmed[len(config.switches) + index]
        for name, value in _must_differ(as_switch):
            former = seen.setdefault((name, value), key)
            if former != key:
                yield f"{key}.{name}", f"{value} is {former}'s, too"
        if problem := name_problem(it.name):
            yield f"{key}.name", problem
        for host in (it.data_host, *it.data_hosts):
            if not is_ipv4(host):
                yield f"{key}.data_host", f"{host!r} is not an IPv4 address"
        if it.data_mac and not MAC.fullmatch(it.data_mac):
            yield f"{key}.data_mac", f"{it.data_mac!r} is not a MAC address"
        if it.switch and it.switch not in switches:
            yield f"{key}.switch", f"no switch is called {it.switch!r}"
        elif not it.switch and len(switches) > 1:
            yield f"{key}.switch", "which one is it behind? there are several"
    try:
        mode = modes.of(config.jobs.mode)
    except modes.UnknownModeError:
        yield "jobs.mode", f"{config.jobs.mode!r} is none of {', '.join(modes.names())}"
        return
    known = [it for it in config.switches if it.mode in modes.names()]
    if known and not any(
        modes.sums(mode, it.mode, shares_slots=it.slots_shared > 0) for it in known
    ):
        yield "jobs.mode", f"no switch has mode {mode.name!r}"


def _must_differ(switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    yield "name", switch.name
    yield "grpc_addr", f"{switch.grpc_addr} device {switch.device_id}"
    yield "data_host", switch.data_addr
