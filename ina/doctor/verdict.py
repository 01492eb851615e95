"""From what a probe saw and what the switch counted to the hop that fails. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ina.doctor.evidence import Evidence
from ina.doctor.probe import Echo
from ina.p4.builds import largest_build, packet_bytes
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS

ETHERNET_MTU_BYTES = 1500
ETHERNET_OVERHEAD_BYTES = 8 + 14 + 4 + 12
"""Preamble, header, FCS and gap around an IP packet."""


@dataclass(frozen=True)
class Step:
    """One step on the way: what was tried, how it went, what to do."""

    name: str
    ok: bool
    found: str
    advice: str = ""


@dataclass(frozen=True)
class BothEnds:
    """Both ends, for the texts."""

    host: str
    switch: str


def judge_small(echo: Echo, evidence: Evidence | None, way: BothEnds) -> Step:
    """Small packets: does anything come back, and if not, where does it end?"""
    name = "small packets"
    if echo.answered == echo.sent:
        return Step(name, True, _round_trip(echo))
    if echo.answered:
        return Step(
            name,
            False,
            f"{echo.sent - echo.answered} of {echo.sent} lost between {way.host} and {way.switch}",
            "sums survive this and get slower; look for full queues, bad cables, rate limits",
        )
    return _nothing(name, echo, evidence, way) or _unknown(name, way)


def judge_full(echo: Echo, small: Echo, evidence: Evidence | None, way: BothEnds) -> Step:
    """Packets of the build's size, given how small ones fared."""
    name = "full packets"
    size = f"{echo.packet_bytes} bytes ({echo.value_count} values)"
    if echo.answered == echo.sent:
        return Step(name, True, f"{size}: {_round_trip(echo)}", _larger_build(echo))
    if small.answered and (echo.too_long or not echo.answered):
        mtu = echo.mtu_bytes if 0 < echo.mtu_bytes < echo.packet_bytes else 0
        if echo.too_long or mtu:
            known = f"the path's MTU is {mtu} bytes" if mtu else "the path's MTU is smaller"
            return Step(name, False, f"{size} do not fit: {known}", _smaller_build(echo, mtu))
        there = evidence is not None and evidence.from_worker > 0
        hop = f"{way.switch} to {way.host}" if there else f"{way.host} to {way.switch}"
        if evidence is None:
            hop = f"{way.host} and {way.switch}, either way"
        return Step(
            name,
            False,
            f"small packets pass, none of {size} does, on the way {hop}: a smaller MTU without a"
            " word (ICMP is filtered), or a device that drops long UDP packets",
            _smaller_build(echo, 0),
        )
    if echo.answered:
        found = f"{echo.sent - echo.answered} of {echo.sent} lost ({size})"
        return Step(name, False, found, "look for full queues and rate limits on the way")
    return _nothing(name, echo, evidence, way) or _unknown(name, way)


def _nothing(name: str, echo: Echo, evidence: Evidence | None, way: BothEnds) -> Step | None:
    """Nothing came back at all: the first hop that lost everything."""
    if echo.unsent:
        return Step(
            name, False, f"{way.host} cannot send: {echo.unsent}", "a local firewall, or no route"
        )
    if echo.refused:
        return Step(
            name,
            False,
            f"{way.switch} answers that nobody listens on that UDP port",
            "is the switch running? are switch.data_host and switch.data_udp_port in the"
            " controller's file those of the switch's port?",
        )
    if evidence is None:
        return None
    if evidence.to_worker:
        return Step(
            name,
            False,
            f"lost on the way back: the switch sent {evidence.to_worker} results to {way.host},"
            " none arrived",
            f"a firewall on {way.host} or between (UDP from {way.switch}), or the wrong mac or"
            " port of this host in the controller's [[host]]",
        )
    if evidence.from_worker:
        why = "no receiver entry" if evidence.unaddressed else "no result was sent"
        return Step(
            name,
            False,
            f"the switch admitted {evidence.from_worker} packets and {why}",
            "ina switch show: the job's multicast group and receiver; was its port taken down?",
        )
    refused = {reason: count for reason, count in evidence.drops.items() if count > 0}
    if refused:
        said = ", ".join(f"{count} as {reason}" for reason, count in refused.items())
        return Step(name, False, f"the switch dropped packets: {said}", _drop_advice(refused, way))
    return Step(
        name,
        False,
        f"lost on the way there: nothing of {way.host} reached the switch's program",
        f"a firewall (UDP to {way.switch}), a route, or switch.data_host in the controller's file"
        " is not the switch's address",
    )


def _unknown(name: str, way: BothEnds) -> Step:
    return Step(
        name,
        False,
        f"nothing came back from {way.switch}, and the switch's counters cannot be read",
        "set INA_OPERATOR_TOKEN to let the controller say at which hop it ends",
    )


def _drop_advice(refused: dict[str, int], way: BothEnds) -> str:
    if "member" in refused:
        return (
            f"they come from another address, UDP port or switch port than {way.host} says: NAT on"
            " the way, or this host's port in the controller's [[host]] is wrong"
        )
    if "malformed" in refused:
        return "something on the way changes or fragments packets, or breaks their checksum"
    return "another controller's entries on the switch, or old packets: ina switch show"


def _smaller_build(echo: Echo, mtu_bytes: int) -> str:
    fitting = [
        values
        for values in VALUES_PER_PACKET_BUILDS
        if values < echo.value_count and packet_bytes(values) <= (mtu_bytes or ETHERNET_MTU_BYTES)
    ]
    raise_it = f"raise the MTU to {echo.packet_bytes} or more on every link between"
    if not fitting:
        return raise_it
    return f"{raise_it}, or run the build with {max(fitting)} values (switch.values)"


def _larger_build(echo: Echo) -> str:
    """Of use where the wire is the limit: headers are a smaller part of longer packets."""
    best = largest_build(echo.mtu_bytes) if echo.mtu_bytes >= echo.packet_bytes else 0
    if best <= echo.value_count:
        return ""
    less = 1 - _wire_bytes_a_value(best) / _wire_bytes_a_value(echo.value_count)
    return (
        f"this host's MTU of {echo.mtu_bytes} bears the build with {best} values (switch.values):"
        f" {less:.1%} fewer bytes on the wire, if all links bear it and the target has it"
    )


def _wire_bytes_a_value(values: int) -> float:
    return (packet_bytes(values) + ETHERNET_OVERHEAD_BYTES) / values


def _round_trip(echo: Echo) -> str:
    times = sorted(echo.round_trips_s)
    middle, longest = times[len(times) // 2], times[-1]
    return f"{echo.answered} of {echo.sent}, {middle * 1e6:.0f} us, at most {longest * 1e6:.0f} us"
