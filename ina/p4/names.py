"""Names of the programs' tables, actions and counters, as their P4Infos have them.

All modes' programs use the same names; what only one has, says so. A test compares them with the
P4Info of every build.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

POOL: Final = "pool"  # the program of jobs with slots of their own
SHARED: Final = "shared"  # of those, and of jobs that claim slots that they share
STREAM: Final = "stream"  # of those of POOL, and of jobs whose lanes skip blocks of zeros
ROCE: Final = "roce"  # of jobs with slots of their own, whose packets are RoCEv2's SENDs
TRANSPARENT: Final = "transparent"  # of those, whose packets go from worker to worker of a ring
MODES: Final = (
    POOL,
    SHARED,
    STREAM,
    ROCE,
    TRANSPARENT,
)  # each the name of the mode that the program was made for
MODES_ON_CHIPS: Final = (POOL, SHARED)  # of which the folder tofino has twins
DEFAULT_MODE: Final = POOL  # whose jobs every program can sum
CPU_PORT: Final = 510  # packet-in and packet-out
OWN_ADDRESSES_TOTAL: Final = 16  # at which the switch itself is reached
SLOTS_TOTAL: Final = 8192  # slots of the whole switch, physical indices 0..8191
JOBS_TOTAL: Final = 256  # length of the per-job counters; also the size of JOBS
MEMBERS_TOTAL: Final = 4096  # workers of all jobs
FLOWS_TOTAL: Final = 32768  # mode "transparent": lanes of all jobs' workers
MAX_RING_LANES: Final = 256  # of each

# Key: dst_addr. No entry: no packet is for this switch. Mode "transparent": LPM, the networks of
# rings.
OWN_ADDRESSES: Final = "PoolIngress.own_addresses"
OURS: Final = "PoolIngress.ours"
# Mode "transparent". Other RoCEv2 traffic than that of rings: without an entry none passes. Key:
# dst_addr (LPM), of no network that overlaps one of rings.
BYSTANDERS: Final = "PoolIngress.bystanders"
BYSTANDERS_TOTAL: Final = 1024
# Acknowledgements of rings' workers. Keys: ingress_port, src_addr, dst_addr, dest_qp.
REPLIES: Final = "PoolIngress.replies"
PASS: Final = "PoolIngress.pass"
# Parameters: port, src_mac, dst_mac, job (whose the row is).
REPLY: Final = "PoolIngress.reply"

# Admission. Keys: job, epoch (low 16 bits).
JOBS: Final = "PoolIngress.admission.jobs"
# Parameters: epoch (32 bits), first_slot, slots, full_bitmap, group, job_index.
ADMIT_JOB: Final = "PoolIngress.admission.admit_job"
# With a parent. Parameters: the same, parent_port, own_worker, own_bit, own_level, path_mask.
ADMIT_INNER_JOB: Final = "PoolIngress.admission.admit_inner_job"
# Mode "shared". Slots that the job shares with others, below an aggregator. Parameters: those of
# ADMIT_INNER_JOB but own_bit; slots are the aggregator's; lane_mask (W - 1); claimable (lanes that
# may claim first_slot + lane); age_us (it takes a slot unheard of for so long); lead_us (its own
# slots seem to be unheard of for so much longer).
ADMIT_SHARED_JOB: Final = "PoolIngress.admission.admit_shared_job"
# Mode "stream": jobs whose packets' last word is a block's number. Parameters: as the first two.
ADMIT_STREAM_JOB: Final = "PoolIngress.admission.admit_stream_job"
ADMIT_INNER_STREAM_JOB: Final = "PoolIngress.admission.admit_inner_stream_job"
# Keys: ingress_port, src_addr, src_port, job, epoch, worker, kind. Has a direct counter.
# Mode "roce": dest_qp (the queue pair that the controller gave the sender) in place of src_port,
# and each action has a parameter more, queue: which of its sender's queue pairs that is. Mode
# "transparent": dst_addr and dest_qp, and the parameters next_port, towards the next worker, and
# queue: which of the flow's connections that is.
MEMBERS: Final = "PoolIngress.admission.members"
# Parameter: worker_bit (1 << worker).
ADMIT_MEMBER: Final = "PoolIngress.admission.admit_member"
# Mode "shared". A switch whose packets hold the workers that they name. Parameter: worker_bits, all
# who send to it.
ADMIT_SET: Final = "PoolIngress.admission.admit_set"
# A row of kind RESULT: the parent; worker is this switch's index among its children. No parameter.
ADMIT_PARENT: Final = "PoolIngress.admission.admit_parent"

# Mode "shared": where the sum of an owner goes that is put out of its slot. Key: epoch (32 bits).
OWNERS: Final = "PoolIngress.claims.owners"
# Parameters: job, job_index, full_bitmap, parent_port, own_worker, own_level.
OWNER_IS: Final = "PoolIngress.claims.owner_is"

# Distribute, ingress: where the parent's replay goes. Keys: job, way (path & path_mask).
CHILDREN: Final = "PoolIngress.distribute.children"
TO_CHILD: Final = "PoolIngress.distribute.to_child"  # port, worker

# Distribute, egress. Keys: job, worker; modes "roce" and "transparent": queue, too (that of the
# packet's sender). Has a direct counter. The replica of worker w in a job's multicast group has
# egress_rid (P4Runtime: instance) w + 1; that of all who share one, 256.
RECEIVERS: Final = "PoolEgress.address.receivers"
# Parameters: dst_mac, dst_addr, dst_port; way, way_mask, strips_on, strips_off: which copies lose
# their values (ina.protocol.strips). Mode "roce": dst_mac, dst_addr, src_port, dest_qp,
# segment_mask (packets of a message, a power of two, less one). Mode "transparent": the row of a
# worker is of its flow to the next one: src_mac, src_addr, dst_mac, dst_addr, src_port, dest_qp,
# first_psn, lane_shift (each 2^lane_shift-th chunk is on the connection), segment_mask,
# next_worker.
ADDRESS: Final = "PoolEgress.address.address"
# The row of worker spec.PARENT is where sums go up to.

# Mark. No key: set the default action. Parameter: packets (above this queue depth: marked).
ECN_THRESHOLD: Final = "PoolEgress.mark.ecn_threshold"
MARK_ABOVE: Final = "PoolEgress.mark.mark_above"

# Forwarding.
ROUTER_MACS: Final = "PoolIngress.forwarding.router_macs"  # key: dst_mac; action NoAction
NO_ACTION: Final = "NoAction"
IPV4_LPM: Final = "PoolIngress.forwarding.ipv4_lpm"  # key: dst_addr (LPM)
ROUTE: Final = "PoolIngress.forwarding.route"  # port, src_mac, dst_mac
DMAC: Final = "PoolIngress.forwarding.dmac"  # key: dst_mac
FORWARD: Final = "PoolIngress.forwarding.forward"  # port
FLOOD: Final = "PoolIngress.forwarding.flood"  # group, with replicas of egress_rid >= 1
SEND_TO_CONTROLLER: Final = "PoolIngress.forwarding.send_to_controller"
DROP: Final = "PoolIngress.forwarding.drop"

# Indirect counters, packets and bytes, by job_index.
JOB_CONTRIBUTIONS: Final = "PoolIngress.distribute.job_contributions"  # summed
JOB_RESULTS: Final = "PoolIngress.distribute.job_results"  # sums completed
JOB_REPLAYS: Final = "PoolIngress.distribute.job_replays"  # finished sums sent again, to one or up
JOB_DUPLICATES: Final = "PoolIngress.distribute.job_duplicates"  # repeated, sum not complete
JOB_STALE: Final = "PoolIngress.distribute.job_stale"  # older than the slot's owner
JOB_PASSED_DOWN: Final = "PoolIngress.distribute.job_passed_down"  # results of the parent
JOB_ECN_MARKS: Final = "PoolEgress.mark.job_ecn_marks"  # results marked by queue depth
JOB_UNADDRESSED: Final = "PoolEgress.address.job_unaddressed"  # results without a receiver entry
# Mode "shared", of jobs that share slots.
JOB_FLUSHES: Final = "PoolIngress.distribute.job_flushes"  # incomplete sums that a resend took up
# Contributions that went up alone, for:
JOB_COLLISIONS: Final = "PoolIngress.distribute.job_collisions"  # the slot is another job's
JOB_BYPASSED: Final = "PoolIngress.distribute.job_bypassed"  # the lane has no slot
JOB_LATE: Final = "PoolIngress.distribute.job_late"  # the round has been closed here
JOB_MISSED: Final = "PoolIngress.distribute.job_missed"  # a resend that finds no sum
JOB_EVICTIONS: Final = "PoolIngress.distribute.job_evictions"  # incomplete sums put out by others
SHARED_JOB_COUNTERS: Final = (
    JOB_FLUSHES,
    JOB_COLLISIONS,
    JOB_BYPASSED,
    JOB_LATE,
    JOB_MISSED,
    JOB_EVICTIONS,
)
JOB_COUNTERS: Final = (
    JOB_CONTRIBUTIONS,
    JOB_RESULTS,
    JOB_REPLAYS,
    JOB_DUPLICATES,
    JOB_STALE,
    JOB_PASSED_DOWN,
    JOB_ECN_MARKS,
    JOB_UNADDRESSED,
)

# Indirect counter, packets and bytes, by ina.protocol.spec.DropReason.
DROPS: Final = "PoolIngress.distribute.drops"


JOB_TABLES: Final = (MEMBERS, JOBS, CHILDREN, RECEIVERS)
"""Those that only the controller fills with jobs, in the order of removal."""

_FURTHER_COUNTERS: Final = {SHARED: SHARED_JOB_COUNTERS}
_FURTHER_TABLES: Final = {SHARED: (OWNERS,), TRANSPARENT: (REPLIES,)}
"""By the program's mode: what it has besides; tables to be removed from last."""

ALL_JOB_COUNTERS: Final = (*JOB_COUNTERS, *chain.from_iterable(_FURTHER_COUNTERS.values()))
ALL_JOB_TABLES: Final = (*JOB_TABLES, *chain.from_iterable(_FURTHER_TABLES.values()))
"""Of any program."""


def job_counters(mode: str) -> tuple[str, ...]:
    """The indirect counters by job of a mode's program."""
    return (*JOB_COUNTERS, *_FURTHER_COUNTERS.get(mode, ()))


def job_tables(mode: str) -> tuple[str, ...]:
    """The tables of jobs of a mode's program, in the order of removal."""
    return (*JOB_TABLES, *_FURTHER_TABLES.get(mode, ()))
