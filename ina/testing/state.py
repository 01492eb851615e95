"""What a control plane writes of a job into a device, as the conformance cases have it.

It shares nothing with what the controller writes: two readings of the same contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address

from ina.p4 import names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.spec import ALL_WORKERS, PARENT, Kind
from ina.protocol.strips import Strips
from ina.protocol.switch_model import EPOCH_BITS, Attachment, ModelJob, Parent
from ina.tables.values import AnyItem, Counter, CounterRef, Entry, EntryCounter, Group, MatchValue
from ina.testing.frames import SWITCH_IPV4

_TABLES_THAT_COUNT = (names.MEMBERS, names.RECEIVERS, names.DMAC, names.IPV4_LPM)


def worker_mac(attachment: Attachment) -> int:
    """The MAC address of the worker at an address; any function of it will do."""
    return 0x02_01_00_00_00_00 | attachment.ipv4 & 0xFFFF | (attachment.port & 0xFF) << 16


def receiver_mac(attachment: Attachment) -> int:
    """Where a result's frame goes: to the worker, or to an IP multicast group."""
    address = IPv4Address(attachment.ipv4)
    return multicast_mac_of(address) if address.is_multicast else worker_mac(attachment)


def job_group(number: int) -> int:
    """The multicast group of a job's workers."""
    return number + 1


def job_copies(job: ModelJob) -> Group:
    """The copies of the job's results; instance 256 makes the one that workers share."""
    copies = tuple((at.port, worker + 1) for worker, at in job.receivers)
    return Group(job_group(job.number), copies)


def own_address(ipv4: int = SWITCH_IPV4) -> Entry:
    """What comes for this address and INA's UDP port is for the switch itself."""
    return Entry(names.OWN_ADDRESSES, (("dst_addr", ipv4),), names.OURS)


def job_state(job: ModelJob) -> tuple[AnyItem, ...]:
    """Everything that the controller installs for a job, members last; not the own address."""
    workers = range(len(job.workers))
    return (
        job_copies(job),
        *(receiver_entry(job, worker) for worker in workers),
        *([] if job.sharing is None else [receiver_entry(job, ALL_WORKERS)]),
        *([] if job.parent is None else [parent_receiver_entry(job, job.parent)]),
        *([] if job.parent is None else child_entries(job, job.parent)),
        *([] if job.parent is None or job.claims is None else [owner_entry(job, job.parent)]),
        job_entry(job),
        *(member_entry(job, worker) for worker in workers),
        *([] if job.parent is None else [parent_entry(job, job.parent)]),
    )


def job_entry(job: ModelJob) -> Entry:
    """Admits packets that carry the job's number and the low bits of its epoch."""
    params = (
        ("epoch", job.epoch),
        ("first_slot", job.first_slot),
        ("slots", job.slots),
        ("full_bitmap", job.all_bits),
        ("group", job_group(job.number)),
        ("job_index", job.number),
    )
    match = (("job", job.number), ("epoch", _low(job.epoch)))
    if job.parent is None:
        action = names.ADMIT_STREAM_JOB if job.is_stream else names.ADMIT_JOB
        return Entry(names.JOBS, match, action, params)
    own_bit = ("own_bit", 1 << job.parent.worker)
    above = (
        ("parent_port", job.parent.at.port),
        ("own_worker", job.parent.worker),
        *([own_bit] if job.claims is None else []),
        ("own_level", job.parent.level),
        ("path_mask", job.parent.path_mask),
    )
    if job.claims is None:
        action = names.ADMIT_INNER_STREAM_JOB if job.is_stream else names.ADMIT_INNER_JOB
        return Entry(names.JOBS, match, action, (*params, *above))
    claims = (
        ("lane_mask", job.claims.lane_mask),
        ("claimable", job.claims.claimable),
        ("age_us", job.claims.age_us),
        ("lead_us", job.claims.lead_us),
    )
    return Entry(names.JOBS, match, names.ADMIT_SHARED_JOB, (*params, *above, *claims))


def owner_entry(job: ModelJob, parent: Parent) -> Entry:
    """Says where a sum of the job's goes that is put out of a shared slot."""
    params = (
        ("job", job.number),
        ("job_index", job.number),
        ("full_bitmap", job.all_bits),
        ("parent_port", parent.at.port),
        ("own_worker", parent.worker),
        ("own_level", parent.level),
    )
    return Entry(names.OWNERS, (("epoch", job.epoch),), names.OWNER_IS, params)


def parent_entry(job: ModelJob, parent: Parent) -> Entry:
    """Lets the parent's results in, from its port and address alone."""
    match = _member_match(job, parent.at, parent.worker, Kind.RESULT)
    return Entry(names.MEMBERS, match, names.ADMIT_PARENT)


def parent_receiver_entry(job: ModelJob, parent: Parent) -> Entry:
    """Says where the job's sums go up to."""
    return _receiver(job, PARENT, parent.at, parent.strips)


def child_entries(job: ModelJob, parent: Parent) -> tuple[Entry, ...]:
    """Says to which child a path leads; the root needs none of these."""
    return tuple(
        Entry(
            names.CHILDREN,
            (("job", job.number), ("way", way)),
            names.TO_CHILD,
            (("port", job.workers[child].port), ("worker", child)),
        )
        for child, way in enumerate(parent.ways)
    )


def member_entry(job: ModelJob, worker: int) -> Entry:
    """Lets the worker's packets in, from its port and address alone."""
    match = _member_match(job, job.workers[worker], worker, Kind.CONTRIBUTION)
    bits = job.bits_of(worker)
    if worker in job.sets:
        return Entry(names.MEMBERS, match, names.ADMIT_SET, (("worker_bits", bits),))
    return Entry(names.MEMBERS, match, names.ADMIT_MEMBER, (("worker_bit", bits),))


def _member_match(
    job: ModelJob, at: Attachment, worker: int, kind: Kind
) -> tuple[tuple[str, MatchValue], ...]:
    return (
        ("ingress_port", at.port),
        ("src_addr", at.ipv4),
        ("src_port", at.udp_port),
        ("job", job.number),
        ("epoch", _low(job.epoch)),
        ("worker", worker),
        ("kind", kind.value),
    )


def receiver_entry(job: ModelJob, worker: int) -> Entry:
    """Says where the worker's results go; with ALL_WORKERS, where those that are shared go."""
    at = dict(job.receivers)[worker] if worker == ALL_WORKERS else job.workers[worker]
    return _receiver(job, worker, at, job.strips_of(worker))


def _receiver(job: ModelJob, worker: int, at: Attachment, strips: Strips) -> Entry:
    reached = ("dst_mac", receiver_mac(at)), ("dst_addr", at.ipv4), ("dst_port", at.udp_port)
    way = ("way", strips.way), ("way_mask", strips.way_mask)
    stripped = ("strips_on", strips.on), ("strips_off", strips.off)
    match = (("job", job.number), ("worker", worker))
    return Entry(names.RECEIVERS, match, names.ADDRESS, (*reached, *way, *stripped))


def forward(dst_mac: int, port: int) -> Entry:
    """Frames to a MAC address leave through a port."""
    return Entry(names.DMAC, (("dst_mac", dst_mac),), names.FORWARD, (("port", port),))


def job_counters(number: int, mode: str = names.DEFAULT_MODE) -> list[CounterRef]:
    """All counters of a job, in the order of :func:`ina.p4.names.job_counters`."""
    return [Counter(name, number) for name in names.job_counters(mode)]


def counters_of(items: Sequence[AnyItem]) -> list[CounterRef]:
    """The direct counters of all entries of tables that have one."""
    return [
        EntryCounter(item.table, item.match)
        for item in items
        if isinstance(item, Entry) and item.table in _TABLES_THAT_COUNT
    ]


def _low(epoch: int) -> int:
    return epoch % (1 << EPOCH_BITS)
