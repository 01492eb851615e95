"""What is wrong with ``[[aggregator]]``, and with modes, that types alone cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from ina import modes
from ina.controller.config.fabric_checks import MAC, is_ipv4, name_problem
from ina.controller.config.tables import Config, SwitchConfig
from ina.controller.config.tofino import Problem
from ina.p4 import names


def mode_problems(switch: SwitchConfig) -> Iterator[Problem]:
    """As (key of the switch's table, problem); its mode is one."""
    for mode in modes.every():
        for key in mode.switch_keys:
            if getattr(switch, key) and key not in modes.of(switch.mode).switch_keys:
                yield key, f"only with mode {mode.name!r}, and the switch's is {switch.mode!r}"
    if names.SLOTS_TOTAL - switch.slots_shared < 2:
        yield "shared_slots", f"{switch.slots_shared}: leave 2 of {names.SLOTS_TOTAL} to other jobs"


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
    if known and not any(mode.runs_on(shares_slots=it.slots_shared > 0) for it in known):
        yield "jobs.mode", f"no switch has mode {mode.name!r}"


def _must_differ(switch: SwitchConfig) -> Iterator[tuple[str, str]]:
    yield "name", switch.name
    yield "grpc_addr", f"{switch.grpc_addr} device {switch.device_id}"
    yield "data_host", switch.data_addr
