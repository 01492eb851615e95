"""Reads scenarios from files, and says what is wrong with one."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ina.congestion import Congestion, CongestionError
from ina.controller.config.rules import MAX_WEIGHT, placement_problems
from ina.controller.faults import POINTS
from ina.document import convert
from ina.errors import InvalidInputError
from ina.p4 import names
from ina.p4.builds import require_build
from ina.protocol.coding import CODINGS, MOST_WORKERS, too_narrow
from ina.protocol.spec import MAX_WORLD_SIZE
from ina.sim.errors import ScenarioError
from ina.sim.placing import check_placed
from ina.sim.racks import joined
from ina.sim.scenario import HOOK_BITS, FaultSpec, JobSpec, Scenario, TensorSpec, at_least
from ina.sim.sharing import check_mode, check_sharing
from ina.sim.topology import Topology
from ina.sim.traffic import check_traffic

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]


def load(path: Path) -> Scenario:
    """Reads a file: TOML, or JSON where its name ends so.

    Raises :class:`ScenarioError` with the file and the key.
    """
    try:
        text = path.read_text("utf-8")
        document = msgspec.json.decode(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise ScenarioError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # also bad UTF-8, or a number too long
        raise ScenarioError(
            f"{path}: not {path.suffix.strip('.').upper() or 'TOML'}: {error}"
        ) from None
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: want a table of keys")
    return make({"name": path.stem, **document}, str(path))


def make(document: dict[str, Any], source: str = "scenario") -> Scenario:
    """Checks a document; ``source`` is named in errors. Raises :class:`ScenarioError`."""
    try:
        scenario = convert(document, Scenario)
        check(scenario)
    except InvalidInputError as error:
        raise _refusal(source, error) from None
    return scenario


def _refusal(where: str, error: InvalidInputError) -> ScenarioError:
    refusal = ScenarioError(f"{where}: {error}")
    refusal.detail = error.detail
    return refusal


def check(scenario: Scenario) -> None:
    """Raises :class:`ScenarioError`: it says what cannot be."""
    require_build("values =", scenario.values, scenario.switch.mode)
    try:
        Congestion.from_table(scenario.congestion, own=True).choice()
        for job in scenario.job:
            Congestion.from_table(job.congestion)
    except CongestionError as error:
        raise _refusal("congestion", error) from None
    topology = scenario.build_topology()
    if not 1 <= scenario.controller.count < names.JOBS_TOTAL:
        most = names.JOBS_TOTAL - 1
        raise ScenarioError(f"controller.count = {scenario.controller.count}: want 1 to {most}")
    at_least("controller.slack", scenario.controller.slack, 1)
    for key, problem in placement_problems(scenario.controller.placement, ()):
        raise ScenarioError(f"controller.{key}: {problem}")
    scenario.switch.setup()
    check_sharing(scenario, topology)
    for key in ("packet_ns", "kibibyte_ns", "wake_us", "wake_jitter_us"):
        at_least(f"host.{key}", getattr(scenario.host, key), 0)
    if not (scenario.limit_s > 0):
        raise ScenarioError(f"limit_s = {scenario.limit_s:g}: it must be more than 0")
    check_traffic(topology, scenario.traffic)
    for job in scenario.job:
        _check_job(job, topology)
    used = Counter(name for job in scenario.job for name in job.names())
    if twice := [name for name, count in used.items() if count > 1]:
        raise ScenarioError(f"job {twice[0]!r}: the name is there twice")
    check_placed(scenario.job, topology)
    for number, fault in enumerate(scenario.fault):
        try:
            _check_fault(fault, scenario, topology)
        except ScenarioError as error:
            raise ScenarioError(f"fault {number + 1} ({fault.what}): {error}") from None


def _check_job(job: JobSpec, topology: Topology) -> None:
    where = f"job {job.name!r}"
    if not 1 <= job.workers <= MAX_WORLD_SIZE:
        raise ScenarioError(f"{where}: workers = {job.workers}: want 1 to {MAX_WORLD_SIZE}")
    tops = len({topology.switch_of(host) for host in topology.hosts})
    if not job.hosts and not 1 <= job.racks <= min(job.workers, tops):
        most = min(job.workers, tops)
        raise ScenarioError(f"{where}: racks = {job.racks}: want 1 to {most}")
    if job.hosts and len(job.hosts) != job.workers:
        raise ScenarioError(f"{where}: {len(job.hosts)} hosts for {job.workers} workers")
    for host in job.hosts:
        if host not in topology.hosts:
            raise ScenarioError(f"{where}: there is no host {host!r}")
    at_least(f"{where}: steps", job.steps, 1)
    if not 0 < job.weight <= MAX_WEIGHT:
        raise ScenarioError(f"{where}: weight = {job.weight:g}: want more than 0")
    at_least(f"{where}: copies", job.copies, 1)
    for tensor in job.tensors:
        at_least(f"{where}: elems", tensor.elems, 0)
        at_least(f"{where}: count", tensor.count, 1)
        if tensor.root is not None and not 0 <= tensor.root < job.workers:
            raise ScenarioError(f"{where}: root = {tensor.root}: want 0 to {job.workers - 1}")
        at_least(f"{where}: block_elems", tensor.block_elems, 1)
        if tensor.density is not None and not 0 <= tensor.density <= 1:
            raise ScenarioError(f"{where}: density is a share, 0 to 1")
        if tensor.density is not None and tensor.root is not None:
            raise ScenarioError(f"{where}: a sparse sum, of some density, has no root")
        _check_kind(f"{where}: kind = {tensor.kind!r}", tensor, job)
        bits = CODINGS[tensor.wire].bits
        if job.workers > MOST_WORKERS[bits]:
            raise ScenarioError(f"{where}: wire: {too_narrow(bits, job.workers)}")
    if job.hook:
        _check_hook(job)
    if not 0 <= job.straggler.share <= 1:
        raise ScenarioError(f"{where}: straggler.share is a share, 0 to 1")
    for key in ("compute_ms", "slots", "wraps_after"):
        at_least(f"{where}: {key}", getattr(job, key), 0)


def _check_kind(where: str, tensor: TensorSpec, job: JobSpec) -> None:
    if tensor.kind == "all_reduce":
        return
    if tensor.density is not None:
        raise ScenarioError(f"{where}: a sparse sum, of some density, is of kind all_reduce")
    if tensor.root is not None and tensor.kind != "broadcast":
        raise ScenarioError(f"{where}: it has no root")
    if not job.check:
        raise ScenarioError(f"{where}: want check = true, which gives each rank memory of its own")
    if job.hook:
        raise ScenarioError(f"{where}: a hook's buckets are of kind all_reduce")


def _check_hook(job: JobSpec) -> None:
    where = f"job {job.name!r}: hook {job.hook}"
    plain = TensorSpec(elems=1)
    for tensor in job.tensors:
        if tensor.elems < 1 or replace(tensor, elems=1, count=1) != plain:
            raise ScenarioError(f"{where}: want tensors of float32, of nothing but elems and count")
    bits = HOOK_BITS[job.hook]
    if job.workers > MOST_WORKERS[bits]:
        raise ScenarioError(f"{where}: {too_narrow(bits, job.workers)}")
    if not job.check:
        raise ScenarioError(f"{where}: its sums are checked: want check = true")


def _check_fault(fault: FaultSpec, scenario: Scenario, topology: Topology) -> None:
    if (fault.at_ms < 0) == (fault.every_ms <= 0):
        raise ScenarioError("want either at_ms or every_ms")
    at_least("every_growth", fault.every_growth, 1)
    at_least("for_ms", fault.for_ms, 0)
    if fault.point and fault.point not in POINTS:
        raise ScenarioError(f"point {fault.point!r} is none of {', '.join(POINTS)}")
    if fault.what == "link" and fault.link is None:
        raise ScenarioError("want `link`: what it is meanwhile")
    known: list[str] = []
    if fault.what in ("link_down", "link"):
        for cable in topology.cables:
            known.append(str(cable))
            if fault.what == "link":
                known += [f"{cable.one}>{cable.other}", f"{cable.other}>{cable.one}"]
    elif fault.what in ("pause", "crash"):
        known = [f"{name}/{rank}" for job in scenario.job for name in job.names()
                 for rank in range(job.workers)]  # fmt: skip
    elif fault.what == "resize":
        known = [name for job in scenario.job for name in job.names()]
        if fault.mode:
            check_mode("mode =", fault.mode, scenario.switch)
        if (fault.slots < 2 and not fault.mode) or fault.slots < 0 or fault.slots % 2:
            raise ScenarioError(f"slots = {fault.slots}: want an even number, 2 or more")
    elif fault.what == "windows":
        known = [name for job in scenario.job for name in job.names()]
        Congestion.from_table(fault.congestion)
    elif fault.what == "repair":
        fabric = joined(topology)
        known = [*fabric.switches, *("-".join(link.switches) for link in fabric.links)]
    elif fault.what == "power_cycle":
        known = topology.of_kind("p4", "aggregator")
    else:
        known = [""]
    if fault.where not in known:
        some = ", ".join(known[:6]) or "nothing"
        raise ScenarioError(f"where = {fault.where!r}: want {some}{' ...' * (len(known) > 6)}")
